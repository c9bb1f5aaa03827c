/* The loop: issue due requests, process completions, and sleep until shortly before the next request.

   With real-time priority, a spinning loop keeps everything else off its CPU, even the work that completes requests.
   And the kernel stops a loop that hardly ever sleeps for 50 ms of each second (sched_rt_runtime_us). So with
   real-time priority the loop spins only while nothing is in flight; otherwise it sleeps until the next request is
   due, even if that is soon. On a loop device at 50000 requests/s, 1 % of the requests are then issued more than 60
   us late; with spinning, more than 5 ms late. The cost is the wake-up time: at 10000 requests/s, 5 % are more than
   30 us late instead of 5 us.

   Without real-time priority, threads on all CPUs would also keep off the threads that serve the device, until the
   scheduler's next tick. So they give way once before they spin with requests in flight. */
#include <sched.h>

#include "engine.h"

#define BEAT_NS (SECOND_NS / 2)
#define STEP_NS 200
/* A trial has two turns: watching until the first time, sleeping until the second. The first half of a turn does not
   count, because the scheduler needs time to find a free CPU for a kernel thread. It finds none within 30 ms. */
#define WATCHED_NS 100000000
#define TRIED_NS 140000000
#define RETRY_NS 50000 /* delay before retrying a submission for which the kernel had no memory */

volatile sig_atomic_t asked_to_stop;

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static void check_for_end(struct engine *engine, int64_t now)
{
    int number = asked_to_stop;
    if (number) {
        engine->results->header->signal = (uint32_t)number;
        engine_stop(engine, INTERRUPTED);
    }
    if (now >= engine->options->runtime_ns)
        engine_stop(engine, TIME_IS_UP);
}

static void beat(struct issuer *issuer, int64_t now)
{
    if (now < issuer->beat_ns + BEAT_NS)
        return;
    issuer->beat_ns = now;
    if (!issuer->number)
        issuer->engine->results->header->heartbeat_ns = (uint64_t)now;
}

/* Return the earliest of the next request, the end of the runtime, and the next heartbeat. */
static int64_t wake_up_at(const struct issuer *issuer, int64_t next)
{
    const struct options *options = issuer->engine->options;
    int64_t beat_at = issuer->beat_ns + BEAT_NS, end = options->runtime_ns, wake = next;
    if (next != NEVER && !(options->priority && issuer->in_flight))
        wake -= issuer->margin_ns;
    if (end < wake)
        wake = end;
    return wake < beat_at ? wake : beat_at;
}

static void spin(struct issuer *issuer, int64_t next)
{
    while (!asked_to_stop && !ring_has_news(&issuer->ring) && !polls_jobs(issuer) && elapsed_ns(issuer->engine) < next)
        relax();
}

/* A sleep and a wake-up take as long as an I/O of a fast drive and would count as its latency. So the loop polls for
   completions, without sleeping, for a time after each submission or completion. But where the kernel completes
   requests in a separate thread, as for loop devices, a sleep frees the CPU for that thread. So a trial at the
   start tries both ways, and the one with the lower mean latency is kept. It watches first: that moves the other thread
   to another CPU, where it stays, and the fast sleeps before it do not come back (50 instead of 15 us). */
bool issuer_watches(const struct issuer *issuer)
{
    const struct trial *trial = &issuer->trial;
    if (trial->turn < TURNS)
        return !trial->turn;
    return trial->latency_ns[1] * (double)trial->requests[0] < trial->latency_ns[0] * (double)trial->requests[1];
}

static void go_on_with_trial(struct issuer *issuer, int64_t now)
{
    struct trial *trial = &issuer->trial;
    if (trial->turn == TURNS)
        return;
    trial->turn = now < WATCHED_NS ? 0 : now < TRIED_NS ? 1 : TURNS;
    trial->counts = trial->turn < TURNS && now >= (trial->turn ? (WATCHED_NS + TRIED_NS) / 2 : WATCHED_NS / 2);
}

static int64_t watched_until(const struct issuer *issuer)
{
    int64_t last = issuer->submitted_ns > issuer->progress_ns ? issuer->submitted_ns : issuer->progress_ns;
    return last + issuer->watch_ns;
}

/* After a longer idle time a CPU wakes up later than was measured before the start. So the margin follows the 99th
   percentile of the lateness of sleeps, up to a limit (stochastic approximation after Robbins and Monro, 1951). */
static void adapt_margin(struct issuer *issuer, int64_t late_ns)
{
    int64_t least = (int64_t)issuer->engine->results->header->spin_ns;
    issuer->margin_ns += late_ns > issuer->margin_ns ? 99 * STEP_NS : -STEP_NS;
    if (issuer->margin_ns < least)
        issuer->margin_ns = least;
    else if (issuer->margin_ns > MOST_MARGIN_NS)
        issuer->margin_ns = MOST_MARGIN_NS;
}

static bool hangs(const struct issuer *issuer, int64_t now)
{
    const struct engine *engine = issuer->engine;
    int64_t last = 0;
    for (unsigned i = 0; i < engine->options->threads; i++) {
        int64_t progress = __atomic_load_n(&engine->issuers[i].progress_ns, __ATOMIC_RELAXED);
        last = progress > last ? progress : last;
    }
    return issuer->in_flight && now - last > engine->options->watchdog_ns;
}

static bool all_done(const struct issuer *issuer, bool stopping)
{
    const struct engine *engine = issuer->engine;
    return !issuer->in_flight &&
           (stopping || (issuer->next == issuer->taken_to && !issuer->due.count &&
                         __atomic_load_n(&engine->taken, __ATOMIC_RELAXED) == engine->schedule->header.count));
}

void issuer_run(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    for (;;) {
        int64_t now = elapsed_ns(engine), next = NEVER;
        check_for_end(engine, now);
        beat(issuer, now);
        go_on_with_trial(issuer, now);
        uint32_t state = engine_state(engine);
        if (state == HUNG)
            return;
        if (!issue_submit_rest(issuer))
            next = now + RETRY_NS;
        else if (state == RUNNING)
            next = issue_due(issuer, now);
        bool submits = issuer->prepared;
        if (submits)
            issue_submit(issuer);
        if (reap(issuer))
            continue;
        if (!submits && all_done(issuer, state != RUNNING))
            return;
        if (!submits && hangs(issuer, now)) {
            __atomic_store_n(&engine->state, HUNG, __ATOMIC_RELEASE);
            return;
        }
        if (next <= now)
            continue;
        now = elapsed_ns(engine);
        int64_t wake = wake_up_at(issuer, next), watched = watched_until(issuer);
        if (issuer->in_flight && engine->options->polled) {
            spin(issuer, wake > now ? wake : next);
        } else if (issuer->in_flight && now < watched && issuer_watches(issuer)) {
            spin(issuer, next < watched ? next : watched);
        } else if (wake > now) {
            if (sleep_for(engine->options->polled ? NULL : &issuer->ring, wake - now))
                adapt_margin(issuer, elapsed_ns(engine) - wake);
        } else if (next != NEVER) {
            if (issuer->in_flight && !issuer->watch_ns)
                sched_yield();
            spin(issuer, next);
        }
    }
}
