#include "ring.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The kernel returns the locked memory of a closed ring a little later, and counts it for all processes of a user. */
#define MEMORY_TRIES 100
static const struct timespec memory_pause = {.tv_nsec = 20000000};

#define KERNEL_THREAD_IDLE_MS 100 /* without requests; it then sleeps */

static bool explain(int error, struct refusal *refusal)
{
    if (error == ENOSYS)
        return refuse(refusal, BAD_HOST, "this kernel has no io_uring (%s); use Linux 5.11 or later", strerror(error));
    if (error == EPERM || error == EACCES)
        return refuse(refusal, BAD_HOST, "io_uring is not permitted here (%s): sysctl kernel.io_uring_disabled or the "
                      "container's seccomp profile forbids it; permit it", strerror(error));
    if (error == ENOMEM)
        return refuse(refusal, BAD_HOST, "io_uring gets no memory (%s); raise the limit of locked memory (ulimit -l)",
                      strerror(error));
    return refuse(refusal, BAD_HOST, "cannot set up io_uring (%s)", strerror(error));
}

static int set_up(struct io_uring *ring, unsigned depth, unsigned flags)
{
    /* More completions than requests, because the threads for discards need one. */
    struct io_uring_params parameters = {.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
                                         .cq_entries = depth + 2 * MOST_TOGETHER,
                                         .sq_thread_idle = KERNEL_THREAD_IDLE_MS};
    return -io_uring_queue_init_params(2 * MOST_TOGETHER, ring, &parameters);
}

bool ring_open(struct io_uring *ring, unsigned depth, const struct options *options, struct refusal *refusal)
{
    /* With these flags the kernel processes completions together when this thread asks for them, instead of
       interrupting it: deferred since Linux 6.1, cooperatively since 5.19. */
    static const unsigned ways[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0,
    };
    unsigned asked = (options->polled ? IORING_SETUP_IOPOLL : 0) | (options->kernel_thread ? IORING_SETUP_SQPOLL : 0) |
                     (options->nvme ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0);
    size_t count = sizeof ways / sizeof *ways;
    int error = EINVAL, tries = 0;
    /* Those flags are for threads that submit themselves. */
    for (size_t way = options->kernel_thread ? count - 1 : 0; way < count && error == EINVAL; way++)
        while ((error = set_up(ring, depth, ways[way] | asked)) == ENOMEM && tries++ < MEMORY_TRIES)
            nanosleep(&memory_pause, NULL);
    if (error == EINVAL && asked)
        return refuse(refusal, BAD_HOST, "this kernel's io_uring cannot poll, submit in a kernel thread, or pass NVMe "
                      "commands as asked; use Linux 6.1 or later, or none of these");
    if (error)
        return explain(error, refusal);
    if (!(ring->features & IORING_FEAT_EXT_ARG))
        return refuse(refusal, BAD_HOST, "this kernel's io_uring is too old; use Linux 5.11 or later");
    io_uring_register_ring_fd(ring); /* saves a look-up in each system call; since Linux 5.18 */
    return true;
}

/* Register the data areas, which locks them in memory; return 0 or an errno. */
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
    /* Some kernels refuse NVMe commands with registered buffers of several pages (EINVAL, Linux 6.1). */
    int error = target->nvme ? ENOMEM : register_buffers(ring, buffers);
    buffers->registered = !error;
    /* ENOMEM: above the limit of locked memory (io_uring_register(2)). Requests then use the same areas without
       registration; the kernel maps them again for each request, which takes CPU time. */
    if (error && error != ENOMEM)
        return refuse(refusal, BAD_HOST, "cannot register the replay's buffers with io_uring (%s)",
                      strerror(error));
    int file = target->nvme ? target->nvme : target->file;
    error = -io_uring_register_files(ring, &file, 1);
    if (error)
        return refuse(refusal, BAD_HOST, "cannot register the target with io_uring (%s)", strerror(error));
    return true;
}
