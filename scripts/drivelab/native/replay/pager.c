#include "files.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* Bytes of each file: 0.1 s at a million requests a second, with 40 and 24 bytes a request. */
#define AHEAD_BYTES ((size_t)4 << 20)
#define BEHIND_BYTES ((size_t)1 << 20)
#define PAUSE_NS 20000000

static void serve(const struct mapped *mapped, size_t start, uint64_t position, size_t record_bytes, bool writable,
                  bool drop)
{
    size_t at = start + position * record_bytes, behind = at > BEHIND_BYTES ? at - BEHIND_BYTES : 0;
    mapped_populate(mapped, at, at + AHEAD_BYTES, writable);
    if (writable)
        mapped_populate(mapped, 0, start, true); /* the header: the kernel write-protects pages after writeback */
    if (!drop)
        return;
    /* Drop from the beginning, because requests that waited for others bring back dropped pages. */
    mapped_drop(mapped, start, behind);
    mapped_drop(mapped, at + 2 * AHEAD_BYTES, mapped->bytes);
}

static void update_pages(const struct pager *pager, uint64_t position, bool drop)
{
    const struct schedule *schedule = pager->schedule;
    serve(&schedule->mapped, sizeof schedule->header, position, sizeof *schedule->records, false, drop);
    serve(&pager->results->mapped, RESULTS_HEADER_BYTES, position, sizeof *pager->results->records, true, drop);
}

static void *run(void *argument)
{
    const struct pager *pager = argument;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (uint64_t dropped_at = 0;;) {
        uint64_t position = __atomic_load_n(&pager->position, __ATOMIC_RELAXED);
        bool drop = (position - dropped_at) * sizeof(struct result_record) > BEHIND_BYTES / 4;
        if (drop)
            dropped_at = position;
        update_pages(pager, position, drop);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

bool pager_start(struct pager *pager, struct refusal *refusal)
{
    update_pages(pager, 0, false);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, pager);
    return !error || refuse(refusal, BAD_HOST, "cannot start a thread (%s)", strerror(error));
}
