/* The io_uring of a replay. */
#ifndef DRIVELAB_REPLAY_RING_H
#define DRIVELAB_REPLAY_RING_H

#include <liburing.h>

#include "buffers.h"
#include "target.h"

/* Requests that are submitted together at the most. */
#define MOST_TOGETHER 32u

/* A ring for `depth` requests in flight; false, in words for the user, where the system grants none. */
bool ring_open(struct io_uring *, unsigned depth, struct refusal *);
/* Register target and buffers. Buffers beyond the limit of locked memory are left plain: buffers->registered tells. */
bool ring_register(struct io_uring *, const struct target *, struct buffers *, struct refusal *);

/* Whether looking for completions would find any, without a system call. */
static inline bool ring_has_news(const struct io_uring *ring)
{
    unsigned flags = IO_URING_READ_ONCE(*ring->sq.kflags);
    return io_uring_cq_ready(ring) || flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

#endif
