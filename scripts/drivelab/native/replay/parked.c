#include "parked.h"

#include <stdlib.h>

static uint32_t bucket_of(const struct waiting *waiting, uint32_t awaited)
{
    return (uint32_t)(awaited * UINT32_C(2654435769)) >> (32 - waiting->bucket_bits); /* Fibonacci hashing (Knuth) */
}

static bool grow(struct waiting *waiting)
{
    uint32_t bits = waiting->places ? waiting->bucket_bits + 1 : 10;
    struct waiter *waiters = realloc(waiting->waiters, sizeof *waiters << bits);
    if (!waiters)
        return false;
    waiting->waiters = waiters;
    uint32_t *buckets = calloc((size_t)1 << bits, sizeof *buckets);
    if (!buckets)
        return false;
    free(waiting->buckets);
    waiting->buckets = buckets;
    waiting->bucket_bits = bits;
    for (uint32_t place = 0; place < waiting->places; place++) { /* all are in use, because growing was necessary */
        uint32_t *bucket = &buckets[bucket_of(waiting, waiters[place].awaited)];
        waiters[place].next = *bucket;
        *bucket = place + 1;
    }
    for (uint32_t place = waiting->places; place < 1u << bits; place++) {
        waiters[place].next = waiting->free;
        waiting->free = place + 1;
    }
    waiting->places = 1u << bits;
    return true;
}

bool waiting_add(struct waiting *waiting, uint32_t index, uint32_t awaited)
{
    if (!waiting->free && !grow(waiting))
        return false;
    uint32_t place = waiting->free;
    struct waiter *waiter = &waiting->waiters[place - 1];
    waiting->free = waiter->next;
    uint32_t *bucket = &waiting->buckets[bucket_of(waiting, awaited)];
    *waiter = (struct waiter){index, awaited, *bucket};
    *bucket = place;
    __atomic_fetch_add(&waiting->count, 1, __ATOMIC_RELAXED);
    return true;
}

bool waiting_release(struct waiting *waiting, uint32_t awaited, uint32_t *index)
{
    if (!waiting->count)
        return false;
    for (uint32_t *link = &waiting->buckets[bucket_of(waiting, awaited)]; *link;) {
        uint32_t place = *link;
        struct waiter *waiter = &waiting->waiters[place - 1];
        if (waiter->awaited == awaited) {
            *index = waiter->index;
            *link = waiter->next;
            waiter->next = waiting->free;
            waiting->free = place;
            __atomic_fetch_sub(&waiting->count, 1, __ATOMIC_RELAXED);
            return true;
        }
        link = &waiter->next;
    }
    return false;
}

static bool before(const struct due *left, const struct due *right)
{
    return left->due_ns != right->due_ns ? left->due_ns < right->due_ns : left->index < right->index;
}

bool due_add(struct due_heap *due, uint32_t index, uint64_t due_ns)
{
    if (due->count == due->room) {
        uint32_t room = due->room ? 2 * due->room : 1024;
        struct due *heap = realloc(due->heap, sizeof *heap * room);
        if (!heap)
            return false;
        due->heap = heap;
        due->room = room;
    }
    struct due new = {due_ns, index};
    uint32_t at = due->count++;
    for (; at && before(&new, &due->heap[(at - 1) / 2]); at = (at - 1) / 2)
        due->heap[at] = due->heap[(at - 1) / 2];
    due->heap[at] = new;
    return true;
}

void due_take_first(struct due_heap *due)
{
    struct due last = due->heap[--due->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= due->count)
            break;
        if (child + 1 < due->count && before(&due->heap[child + 1], &due->heap[child]))
            child++;
        if (!before(&due->heap[child], &last))
            break;
        due->heap[at] = due->heap[child];
        at = child;
    }
    due->heap[at] = last;
}
