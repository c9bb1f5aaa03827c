/* Replay a schedule on a target with io_uring and record the result of each request.
   Usage: see options.c. Only drivelab/replay/native.py calls this program. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine.h"

/* Time before the first request, so that it is not already late. */
#define HEAD_START_NS 2000000

static void on_signal(int number) { asked_to_stop = number; }

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART, so that a signal ends a sleep */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Set CPU and priority of this thread only; the threads for discards and pages already run. */
static bool take_cpu(const struct options *options, struct refusal *refusal)
{
    if (options->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(options->cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set))
            return refuse(refusal, BAD_HOST, "the replay cannot run on CPU %d (%s)", options->cpu, strerror(errno));
    }
    struct sched_param parameter = {.sched_priority = options->priority};
    /* SCHED_RESET_ON_FORK: children of this thread, also the kernel's io-wq workers, do not inherit the priority. */
    if (options->priority && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter))
        return refuse(refusal, BAD_HOST, "the real-time priority %d is not granted (%s); run as root (in a "
                      "container: with CAP_SYS_NICE), or without real-time priority",
                      options->priority, strerror(errno));
    return true;
}

static bool count_requests(struct engine *engine, struct refusal *refusal)
{
    uint64_t count = engine->schedule->header.count, wanted = engine->options->requests;
    engine->total = wanted ? wanted : count;
    if (wanted > count && (!count || engine->schedule->deadlines || engine->schedule->dependencies))
        return refuse(refusal, BAD_COMMAND, "--requests: only a schedule without deadlines and dependencies can be "
                      "repeated");
    return true;
}

static bool open_all(struct engine *engine, struct refusal *refusal)
{
    const struct options *options = engine->options;
    uint64_t seed = options->seed;
    if (!options->has_seed && getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return refuse(refusal, BAD_HOST, "cannot get random numbers from the kernel (%s)", strerror(errno));
    return schedule_open(engine->schedule, options->schedule, refusal) && count_requests(engine, refusal) &&
           results_open(engine->results, options->results, engine->total, engine->schedule->header.checksum, refusal) &&
           ring_open(engine->ring, (unsigned)options->depth, refusal) &&
           target_open(engine->target, options->target, options->identity, engine->schedule, refusal) &&
           buffers_make(engine->buffers, engine->schedule, seed, refusal) &&
           ring_register(engine->ring, engine->target, engine->buffers, refusal);
}

static bool start_helpers(struct engine *engine, struct refusal *refusal)
{
    const uint64_t *operations = engine->schedule->operations;
    sigset_t all, before; /* threads inherit the blocked set, so that only the main thread gets signals and wakes up */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    engine->pager = (struct pager){engine->schedule, engine->results, 0};
    bool started = pager_start(&engine->pager, refusal);
    if (started && (operations[DISCARD] || operations[WRITE_ZEROES])) {
        engine->blocking = blocking_start(engine->target, refusal);
        started = engine->blocking != NULL;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started && take_cpu(engine->options, refusal);
}

static void start(struct engine *engine)
{
    struct results_header *header = engine->results->header;
    for (uint32_t i = 0; i < MOST_IN_FLIGHT; i++)
        engine->free_slots[i] = (uint16_t)i;
    struct wakeups wakeups = measure_wakeups(engine->ring);
    header->spin_ns = engine->options->has_spin ? engine->options->spin_us * 1000 : spin_margin_ns(&wakeups);
    engine->margin_ns = (int64_t)header->spin_ns;
    engine->watch_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 && !engine->options->priority ? engine->margin_ns : 0;
    header->wakeup_p50_ns = wakeups.p50_ns;
    header->wakeup_p95_ns = wakeups.p95_ns;
    header->wakeup_p99_ns = wakeups.p99_ns;
    header->wakeup_max_ns = wakeups.max_ns;
    header->plain_buffers = !engine->buffers->registered;
    if (engine->blocking)
        reap_listen(engine);
    engine->start_ns = now_ns() + HEAD_START_NS;
    header->start_monotonic_ns = engine->start_ns;
    header->start_realtime_ns = clock_now_ns(CLOCK_REALTIME) + HEAD_START_NS;
    results_set_state(engine->results, RUNNING);
}

/* Release the target now; the kernel would hold it until some time after the end of the program. */
static void release_target(struct engine *engine)
{
    if (engine->blocking) { /* end the read that listens to the threads */
        uint64_t one = 1;
        struct io_uring_cqe *cqe;
        struct __kernel_timespec timeout = timespec_of(SECOND_NS);
        if (write(engine->blocking->event, &one, sizeof one) == sizeof one)
            io_uring_wait_cqe_timeout(engine->ring, &cqe, &timeout);
    }
    io_uring_unregister_files(engine->ring);
    io_uring_unregister_buffers(engine->ring);
    close(engine->target->file);
}

int main(int argc, char **argv)
{
    static struct options options;
    static struct schedule schedule;
    static struct results results;
    static struct target target;
    static struct buffers buffers;
    static struct io_uring ring;
    static struct engine engine = {.options = &options, .schedule = &schedule, .results = &results, .target = &target,
                                   .buffers = &buffers, .ring = &ring};
    struct refusal refusal;
    handle_signals();
    if (!options_read(&options, argc, argv, &refusal) ||
        !(options.possible ? ring_open(&ring, 1, &refusal)
                           : open_all(&engine, &refusal) && start_helpers(&engine, &refusal))) {
        fprintf(stderr, "drivelab-replay: %s\n", refusal.message);
        return (int)refusal.status;
    }
    if (options.possible)
        return ORDERLY;
    start(&engine);
    enum state state = engine_run(&engine);
    results_set_state(&results, state);
    if (state != HUNG)
        release_target(&engine);
    /* Exit at once, without waiting for requests in flight or threads. */
    _exit(state == HUNG ? TARGET_HANGS : ORDERLY);
}
