/* Time, and how late this host wakes up a sleeper. */
#ifndef DRIVELAB_REPLAY_CLOCK_H
#define DRIVELAB_REPLAY_CLOCK_H

#include <liburing.h>
#include <stdint.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static inline int64_t clock_now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_now_ns(CLOCK_MONOTONIC); }

static inline struct __kernel_timespec timespec_of(int64_t ns)
{
    return (struct __kernel_timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

/* A host that is later than this one time in a hundred is not idle; spinning longer would only take away the CPU that
   the drive's completions need. */
#define MOST_MARGIN_NS 500000

struct wakeups {
    uint64_t p50_ns, p95_ns, p99_ns, max_ns;
};

/* Sleep a few hundred times in the ring, in which nothing is in flight, as the replay will. About 0.1 s. */
struct wakeups measure_wakeups(struct io_uring *ring);

/* Before what is due the engine does not sleep but looks at the clock again and again for so long. */
uint64_t spin_margin_ns(const struct wakeups *);

#endif
