/* Discards and write-zeroes: io_uring has no such operations for block devices before Linux 6.12, and system calls for
   them block, so that a few threads make them. They are started only for schedules that have such requests. */
#ifndef DRIVELAB_REPLAY_BLOCKING_H
#define DRIVELAB_REPLAY_BLOCKING_H

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
    const struct target *target;
    int event; /* becomes readable when jobs have ended */
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint32_t waiting, first, ended; /* jobs that no thread has taken up, the first of them, jobs that have ended */
    struct job queue[MOST_IN_FLIGHT], done[MOST_IN_FLIGHT];
};

/* NULL when it is refused. */
struct blocking *blocking_start(const struct target *, struct refusal *);
/* At most MOST_IN_FLIGHT at a time. */
void blocking_submit(struct blocking *, const struct job *);
/* Takes jobs that have ended, at most MOST_IN_FLIGHT; their number. */
uint32_t blocking_reap(struct blocking *, struct job *jobs);

#endif
