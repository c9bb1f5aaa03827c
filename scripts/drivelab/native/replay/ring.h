/* The io_uring of a replay. */
#pragma once

#include <liburing.h>

#include "buffers.h"
#include "options.h"
#include "target.h"

/* The most requests in one submission. */
#define MOST_TOGETHER 32u

/* Open a ring for `depth` requests in flight; false with a refusal if the system denies it. */
bool ring_open(struct io_uring *, unsigned depth, const struct options *, struct refusal *);
/* Register target and buffers. Above the limit of locked memory, buffers stay plain; buffers->registered is false. */
bool ring_register(struct io_uring *, const struct target *, struct buffers *, struct refusal *);

/* Return whether completions are available. Without polling, that takes no system call. */
static inline bool ring_has_news(struct io_uring *ring)
{
    if (ring->flags & IORING_SETUP_IOPOLL && !io_uring_cq_ready(ring))
        io_uring_get_events(ring); /* asks the drive once */
    unsigned flags = IO_URING_READ_ONCE(*ring->sq.kflags);
    return io_uring_cq_ready(ring) || flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}
