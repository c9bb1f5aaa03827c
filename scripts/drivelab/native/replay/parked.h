/* Requests that depend on another request: keyed by that request until it completes, then ordered by due time. */
#ifndef DRIVELAB_REPLAY_PARKED_H
#define DRIVELAB_REPLAY_PARKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory limit: with this many parked requests, the next dependent request of the file waits until one is issued. */
#define MOST_PARKED (1u << 19)

struct waiter {
    uint32_t index, awaited, next; /* next: 1 + place of the next waiter in the bucket, or next free place; 0: none */
};

struct due {
    uint64_t due_ns;
    uint32_t index;
};

struct parked {
    struct waiter *waiters;
    uint32_t *buckets; /* 1 + place of the first waiter */
    struct due *heap;  /* earliest first; for equal times, lower index first */
    uint32_t waiting, places, free, bucket_bits;
    uint32_t due, heap_room;
};

static inline uint32_t parked_count(const struct parked *parked) { return parked->waiting + parked->due; }

/* False without memory. */
bool parked_wait(struct parked *, uint32_t index, uint32_t awaited);
bool parked_due(struct parked *, uint32_t index, uint64_t due_ns);

/* Remove one of the requests that wait for `awaited`; false if there is none. */
bool parked_release(struct parked *, uint32_t awaited, uint32_t *index);

static inline const struct due *parked_first(const struct parked *parked)
{
    return parked->due ? &parked->heap[0] : NULL;
}
void parked_take_first(struct parked *);

#endif
