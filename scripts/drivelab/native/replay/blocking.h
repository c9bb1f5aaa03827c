/* Discards and write-zeroes, and flushes of a polled replay. Before Linux 6.12, io_uring does not support them for
   block devices, and their system calls block. So a few threads execute them; they are started only for schedules
   with such requests. */
#pragma once

#include <pthread.h>

#include "records.h"
#include "target.h"

struct job {
    uint64_t offset_bytes, length_bytes;
    int64_t complete_ns; /* of the monotonic clock */
    int32_t result;      /* 0 or -errno */
    uint32_t slot;
    uint8_t operation;
};

struct blocking {
    const struct target *target; /* NULL before the start */
    int event; /* becomes readable when jobs have ended */
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint32_t waiting, first, ended; /* number of jobs without a thread, index of the first one, number of ended jobs */
    struct job queue[MOST_IN_FLIGHT], done[MOST_IN_FLIGHT];
};

/* Start the threads; false with a refusal on failure. */
bool blocking_start(struct blocking *, const struct target *, struct refusal *);
/* Submit a job; at most MOST_IN_FLIGHT jobs at a time. */
void blocking_submit(struct blocking *, const struct job *);
/* Take ended jobs, at most `most`; return their number. */
uint32_t blocking_reap(struct blocking *, struct job *jobs, uint32_t most);
