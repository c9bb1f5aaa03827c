#include "blocking.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"

#define THREADS 16

static int32_t execute(const struct target *target, const struct job *job)
{
    bool discard = job->operation == DISCARD;
    int status;
    if (job->operation == FLUSH) {
        status = fsync(target->file);
    } else if (target->is_block_device) {
        uint64_t range[2] = {job->offset_bytes, job->length_bytes};
        status = ioctl(target->file, discard ? BLKDISCARD : BLKZEROOUT, range);
    } else {
        status = fallocate(target->file, FALLOC_FL_KEEP_SIZE | (discard ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE),
                           (off_t)job->offset_bytes, (off_t)job->length_bytes);
    }
    return status ? -errno : 0;
}

static void *work(void *argument)
{
    struct blocking *blocking = argument;
    for (;;) {
        pthread_mutex_lock(&blocking->lock);
        while (!blocking->waiting)
            pthread_cond_wait(&blocking->more, &blocking->lock);
        struct job job = blocking->queue[blocking->first];
        blocking->first = (blocking->first + 1) % MOST_IN_FLIGHT;
        blocking->waiting--;
        pthread_mutex_unlock(&blocking->lock);

        job.result = execute(blocking->target, &job);
        job.complete_ns = now_ns();

        pthread_mutex_lock(&blocking->lock);
        blocking->done[blocking->ended++] = job;
        pthread_mutex_unlock(&blocking->lock);
        uint64_t one = 1;
        if (write(blocking->event, &one, sizeof one) < 0)
            abort(); /* an eventfd write fails only if it would overflow 64 bits */
    }
    return NULL;
}

bool blocking_start(struct blocking *blocking, const struct target *target, struct refusal *refusal)
{
    blocking->target = target;
    pthread_mutex_init(&blocking->lock, NULL);
    pthread_cond_init(&blocking->more, NULL);
    blocking->event = eventfd(0, EFD_CLOEXEC);
    int error = blocking->event < 0 ? errno : 0;
    for (unsigned i = 0; i < THREADS && !error; i++) {
        pthread_t thread;
        error = pthread_create(&thread, NULL, work, blocking);
    }
    return !error || refuse(refusal, BAD_HOST, "cannot start threads for discards (%s)", strerror(error));
}

void blocking_submit(struct blocking *blocking, const struct job *job)
{
    pthread_mutex_lock(&blocking->lock);
    blocking->queue[(blocking->first + blocking->waiting++) % MOST_IN_FLIGHT] = *job;
    pthread_cond_signal(&blocking->more);
    pthread_mutex_unlock(&blocking->lock);
}

uint32_t blocking_reap(struct blocking *blocking, struct job *jobs, uint32_t most)
{
    pthread_mutex_lock(&blocking->lock);
    uint32_t count = blocking->ended < most ? blocking->ended : most;
    blocking->ended -= count;
    memcpy(jobs, blocking->done + blocking->ended, count * sizeof *jobs);
    pthread_mutex_unlock(&blocking->lock);
    return count;
}
