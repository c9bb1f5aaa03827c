/* The command line. */
#pragma once

#include <stdint.h>

#include "records.h"
#include "refusal.h"

#define MOST_THREADS 64u

struct options {
    const char *schedule, *results;
    const char *nvme; /* NULL: requests go through the block layer */
    const char *target, *identity;
    uint64_t depth, seed, threads;
    uint64_t priority;               /* 0: no real-time priority */
    int64_t watchdog_ns, runtime_ns; /* runtime INT64_MAX: no limit */
    int cpus[MOST_THREADS];          /* a CPU for each thread, -1: any */
    int go_on, possible;             /* possible: only look at this host */
    int polled, kernel_thread;       /* completions are polled in the driver; a kernel thread submits (SQPOLL) */
};

bool options_read(struct options *, int argc, char **argv, struct refusal *);
