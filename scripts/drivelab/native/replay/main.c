/* Replay a schedule on a target with io_uring and record the result of each request.
   Usage: see options.c. Only drivelab/replay/native.py calls this program. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "engine.h"

/* Time before the first request, so that it is not already late. */
#define HEAD_START_NS 2000000
#define STACK_BYTES ((size_t)1 << 20) /* of each thread; none needs much, but sanitizers take some */

static void on_signal(int number) { asked_to_stop = number; }

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART, so that a signal ends a sleep */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Set CPU and priority of this thread only; the threads for discards and pages already run. */
static bool take_cpu(const struct options *options, unsigned number, struct refusal *refusal)
{
    int cpu = options->cpus[number];
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set))
            return refuse(refusal, BAD_HOST, "the replay cannot run on CPU %d (%s)", cpu, strerror(errno));
    }
    struct sched_param parameter = {.sched_priority = (int)options->priority};
    /* SCHED_RESET_ON_FORK: children of this thread, also the kernel's io-wq workers, do not inherit the priority. */
    if (options->priority && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter))
        return refuse(refusal, BAD_HOST, "the real-time priority %d is not granted (%s); run as root (in a "
                      "container: with CAP_SYS_NICE), or without real-time priority",
                      parameter.sched_priority, strerror(errno));
    return true;
}

static bool open_shared(struct engine *engine, struct refusal *refusal)
{
    const struct options *options = engine->options;
    pthread_mutex_init(&engine->waiting.lock, NULL);
    if (!schedule_open(engine->schedule, options->schedule, refusal) ||
        !results_open(engine->results, options->results, engine->schedule->header.count,
                      engine->schedule->header.checksum, refusal) ||
        !target_open(engine->target, options->target, options->identity, engine->schedule, refusal) ||
        (options->nvme && !nvme_open(engine->target, options->nvme, engine->schedule, refusal)))
        return false;
    engine->pager = (struct pager){engine->schedule, engine->results, 0};
    for (unsigned i = 0; i < options->threads; i++) {
        engine->issuers[i].engine = engine;
        engine->issuers[i].number = i;
    }
    return pager_start(&engine->pager, refusal);
}

/* Open what this thread alone uses. Its CPU is set before its memory is used, so that the memory is near. */
static bool open_own(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    const uint64_t *operations = engine->schedule->operations;
    struct refusal *refusal = &issuer->refusal;
    for (unsigned operation = 0; operation < OPERATIONS && !issuer->blocking.target; operation++)
        if (operations[operation] && needs_thread(engine, operation))
            blocking_start(&issuer->blocking, engine->target, refusal);
    if (!issuer->number) /* no thread that was started before gets signals and wakes up for them */
        pthread_sigmask(SIG_SETMASK, &engine->signals, NULL);
    if (refusal->status || !take_cpu(engine->options, issuer->number, refusal) ||
        !ring_open(&issuer->ring, (unsigned)engine->options->depth, engine->options, refusal) ||
        !buffers_make(&issuer->buffers, engine->schedule, engine->options->seed, refusal) ||
        !ring_register(&issuer->ring, engine->target, &issuer->buffers, refusal))
        return false;
    memset(issuer->slots, 0, sizeof issuer->slots); /* its pages become resident now, not at a request */
    for (uint32_t i = 0; i < MOST_IN_FLIGHT; i++)
        issuer->free_slots[i] = (uint16_t)i;
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (issuer->blocking.target && !engine->options->polled)
        reap_listen(issuer);
    return true;
}

static void start(struct engine *engine)
{
    const struct options *options = engine->options;
    struct results_header *header = engine->results->header;
    bool watches = (long)options->threads < sysconf(_SC_NPROCESSORS_ONLN) && !options->priority;
    for (unsigned i = 0; i < options->threads; i++) {
        struct issuer *issuer = &engine->issuers[i];
        issuer->margin_ns = (int64_t)header->spin_ns;
        issuer->watch_ns = watches ? issuer->margin_ns : 0;
        header->plain_buffers |= !issuer->buffers.registered;
    }
    header->threads = (uint32_t)options->threads;
    header->polled = options->polled;
    header->kernel_thread = options->kernel_thread;
    header->nvme = options->nvme != NULL;
    int64_t now = now_ns();
    engine->start_ns = now + HEAD_START_NS;
    header->start_monotonic_ns = engine->start_ns;
    header->start_realtime_ns = clock_now_ns(CLOCK_REALTIME) + (engine->start_ns - now);
    results_set_state(engine->results, RUNNING);
}

/* Release the target now; the kernel would hold it until some time after the end of the program. */
static void release_target(struct issuer *issuer)
{
    if (issuer->blocking.target && !issuer->engine->options->polled) { /* end the read that listens to the threads */
        uint64_t one = 1;
        if (write(issuer->blocking.event, &one, sizeof one) == sizeof one)
            sleep_for(&issuer->ring, SECOND_NS);
    }
    io_uring_unregister_files(&issuer->ring);
    io_uring_unregister_buffers(&issuer->ring);
}

/* The threads meet when all have opened what they use, and when the start time is set. */
static pthread_barrier_t all_open, all_start;

static void *issue(void *argument)
{
    struct issuer *issuer = argument;
    struct engine *engine = issuer->engine;
    if (!open_own(issuer))
        __atomic_store_n(&engine->refused, true, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_open);
    if (__atomic_load_n(&engine->refused, __ATOMIC_RELAXED))
        return NULL;
    if (!issuer->number) {
        measure_wakeups(engine->options->polled ? NULL : &issuer->ring, engine->results->header);
        start(engine);
    }
    pthread_barrier_wait(&all_start);
    issuer_run(issuer);
    if (issuer->watch_ns && issuer_watches(issuer))
        __atomic_fetch_add(&engine->results->header->watching, 1, __ATOMIC_RELAXED);
    if (engine_state(engine) != HUNG)
        release_target(issuer);
    return NULL;
}

static bool run_threads(struct engine *engine, struct refusal *refusal)
{
    unsigned threads = (unsigned)engine->options->threads;
    pthread_barrier_init(&all_open, NULL, threads);
    pthread_barrier_init(&all_start, NULL, threads);
    for (unsigned i = 1; i < threads; i++) {
        int error = pthread_create(&engine->issuers[i].thread, NULL, issue, &engine->issuers[i]);
        if (error)
            return refuse(refusal, BAD_HOST, "cannot start %u threads (%s)", threads, strerror(error));
    }
    return true;
}

/* Replay; return whether the threads could begin. */
static bool replay(struct engine *engine, struct refusal *refusal)
{
    sigset_t all; /* threads inherit the blocked set */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &engine->signals);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_setattr_default_np(&attributes);
    if (!open_shared(engine, refusal) || !run_threads(engine, refusal))
        return false;
    issue(&engine->issuers[0]);
    for (unsigned i = 0; engine->refused && i < engine->options->threads; i++) {
        if (engine->issuers[i].refusal.status) {
            *refusal = engine->issuers[i].refusal;
            return false;
        }
    }
    for (unsigned i = 1; engine_state(engine) != HUNG && i < engine->options->threads; i++)
        pthread_join(engine->issuers[i].thread, NULL);
    return true;
}

int main(int argc, char **argv)
{
    static struct options options;
    static struct schedule schedule;
    static struct results results;
    static struct target target;
    static struct issuer issuers[MOST_THREADS];
    static struct engine engine; /* without values, or the program's file would hold all of it */
    struct refusal refusal;
    struct io_uring ring;
    engine.options = &options, engine.schedule = &schedule, engine.results = &results, engine.target = &target;
    engine.issuers = issuers, engine.state = RUNNING;
    handle_signals();
    if (!options_read(&options, argc, argv, &refusal) ||
        !(options.possible ? ring_open(&ring, 1, &options, &refusal) : replay(&engine, &refusal))) {
        fprintf(stderr, "drivelab-replay: %s\n", refusal.message);
        return (int)refusal.status;
    }
    if (options.possible)
        return ORDERLY;
    uint32_t state = engine_state(&engine);
    results_set_state(&results, state == RUNNING ? FINISHED : state);
    if (state != HUNG) {
        close(target.file);
        if (target.nvme)
            close(target.nvme);
    }
    /* Exit at once, without waiting for requests in flight or threads. */
    _exit(state == HUNG ? TARGET_HANGS : ORDERLY);
}
