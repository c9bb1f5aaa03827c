/* Requests that wait for another one: by the one awaited while that is under way, then by when they are due. */
#ifndef DRIVELAB_REPLAY_PARKED_H
#define DRIVELAB_REPLAY_PARKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds the memory: of more than these, the next of the file is not looked at before one of them has gone. */
#define MOST_PARKED (1u << 19)

struct waiter {
    uint32_t index, awaited, next; /* next: 1 + place of the next in the bucket or of the next free one; 0: none */
};

struct due {
    uint64_t due_ns;
    uint32_t index;
};

struct parked {
    struct waiter *waiters;
    uint32_t *buckets; /* 1 + place of the first waiter */
    struct due *heap;  /* the earliest first, of equals the lower index */
    uint32_t waiting, places, free, bucket_bits;
    uint32_t due, heap_room;
};

static inline uint32_t parked_count(const struct parked *parked) { return parked->waiting + parked->due; }

/* False without memory. */
bool parked_wait(struct parked *, uint32_t index, uint32_t awaited);
bool parked_due(struct parked *, uint32_t index, uint64_t due_ns);

/* One of those that wait for `awaited`, which waits no longer; false when there is none (any more). */
bool parked_release(struct parked *, uint32_t awaited, uint32_t *index);

static inline const struct due *parked_first(const struct parked *parked)
{
    return parked->due ? &parked->heap[0] : NULL;
}
void parked_take_first(struct parked *);

#endif
