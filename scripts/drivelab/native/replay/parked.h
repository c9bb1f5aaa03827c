/* Requests that depend on another request: keyed by that request until it completes, then ordered by due time. */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "options.h"

/* Memory limit: with this many parked requests, the next dependent request of the file waits until one is issued. Each
   thread may exceed it by one. */
#define MOST_PARKED (1u << 19)

struct waiter {
    uint32_t index, awaited, next; /* next: place of the next waiter in the bucket, or next free place; 0: none */
};

struct due {
    uint64_t due_ns;
    uint32_t index;
};

/* Requests whose dependency is not complete; shared by the issuing threads. */
struct waiting {
    pthread_mutex_t lock;
    struct waiter waiters[1 + MOST_PARKED + MOST_THREADS]; /* the first one is not used */
    uint32_t buckets[MOST_PARKED]; /* place of the first waiter, by the lowest bits of the awaited request's index */
    uint32_t count; /* also read without the lock */
    uint32_t used, free;
};

/* Requests whose dependency is complete, earliest first; for equal times, lower index first. */
struct due_heap {
    struct due *heap;
    uint32_t count, room;
};

/* The caller holds the lock. */
void waiting_add(struct waiting *, uint32_t index, uint32_t awaited);
/* Remove one of the requests that wait for `awaited` and return its index, which is above 0, as it waits for an earlier
   one; 0 if there is none. The caller holds the lock. */
uint32_t waiting_release(struct waiting *, uint32_t awaited);

/* False without memory. */
bool due_add(struct due_heap *, uint32_t index, uint64_t due_ns);
static inline const struct due *due_first(const struct due_heap *due) { return due->count ? &due->heap[0] : NULL; }
void due_take_first(struct due_heap *);
