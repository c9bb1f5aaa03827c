/* Time, and how late this host wakes a sleeping thread. */
#pragma once

#include <liburing.h>
#include <stdint.h>
#include <time.h>

#include "records.h"

#define SECOND_NS INT64_C(1000000000)

static inline int64_t clock_now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_now_ns(CLOCK_MONOTONIC); }

/* A host whose 99th percentile exceeds this is not idle; spinning longer would only take CPU time from the drive's
   completions. */
#define MOST_MARGIN_NS 500000

/* Sleep until a completion in the ring (NULL: in none), a signal, or a time; return whether it was the time. */
bool sleep_for(struct io_uring *ring, int64_t ns);

/* Sleep a few hundred times in the idle ring, in the same way as the replay; takes about 0.1 s.
   Store how late the wake-ups were, and how long the engine shall spin before a request is due. */
void measure_wakeups(struct io_uring *ring, struct results_header *);
