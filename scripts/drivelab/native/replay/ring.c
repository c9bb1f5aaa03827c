#include "ring.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static bool explain(int error, struct refusal *refusal)
{
    if (error == ENOSYS)
        return refuse(refusal, BAD_HOST, "this kernel has no io_uring (%s); use the engine fio", strerror(error));
    if (error == EPERM || error == EACCES)
        return refuse(refusal, BAD_HOST, "io_uring is not permitted here (%s): sysctl kernel.io_uring_disabled or the "
                      "container's seccomp profile forbids it; permit it, or use the engine fio", strerror(error));
    if (error == ENOMEM)
        return refuse(refusal, BAD_HOST, "io_uring gets no memory (%s); raise the limit of locked memory (ulimit -l)",
                      strerror(error));
    return refuse(refusal, BAD_HOST, "io_uring cannot be set up (%s)", strerror(error));
}

bool ring_open(struct io_uring *ring, unsigned depth, struct refusal *refusal)
{
    /* Completions are then worked off when this thread asks for them, all at once, instead of interrupting it:
       deferred since Linux 6.1, cooperatively since 5.19. */
    static const unsigned ways[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0,
    };
    int error = EINVAL;
    for (size_t way = 0; way < sizeof ways / sizeof *ways && error == EINVAL; way++) {
        /* One completion more than requests: that of the threads for discards. */
        struct io_uring_params parameters = {.flags = ways[way] | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
                                             .cq_entries = depth + 2 * MOST_TOGETHER};
        error = -io_uring_queue_init_params(2 * MOST_TOGETHER, ring, &parameters);
    }
    if (error)
        return explain(error, refusal);
    if (!(ring->features & IORING_FEAT_EXT_ARG)) {
        io_uring_queue_exit(ring);
        return refuse(refusal, BAD_HOST, "this kernel's io_uring is too old; Linux 5.11 is needed, or the engine fio");
    }
    io_uring_register_ring_fd(ring); /* saves a look-up with each system call; not before Linux 5.18 */
    return true;
}

/* Register the areas of requests' data, which locks them in memory; 0 or an errno. */
static int register_buffers(struct io_uring *ring, const struct buffers *buffers)
{
    struct iovec areas[BUFFERS];
    for (unsigned i = 0; i < BUFFERS; i++)
        areas[i] = buffers_to_register(buffers, i);
    struct rlimit limit;
    if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    return -io_uring_register_buffers(ring, areas, BUFFERS);
}

bool ring_register(struct io_uring *ring, const struct target *target, struct buffers *buffers,
                   struct refusal *refusal)
{
    int error = register_buffers(ring, buffers);
    buffers->registered = !error;
    /* ENOMEM: more than the limit of locked memory (io_uring_register(2)). Requests then use the same areas without
       registration; the kernel maps them anew for each request, which takes CPU time. */
    if (error && error != ENOMEM)
        return refuse(refusal, BAD_HOST, "the replay's buffers cannot be registered with io_uring (%s)",
                      strerror(error));
    error = -io_uring_register_files(ring, &target->file, 1);
    if (error)
        return refuse(refusal, BAD_HOST, "the target cannot be registered with io_uring (%s)", strerror(error));
    return true;
}
