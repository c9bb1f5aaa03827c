#include "parked.h"

#include <stdlib.h>

static uint32_t bucket_of(const struct parked *parked, uint32_t awaited)
{
    return (uint32_t)(awaited * UINT32_C(2654435769)) >> (32 - parked->bucket_bits); /* Fibonacci hashing (Knuth) */
}

static bool grow(struct parked *parked)
{
    uint32_t bits = parked->places ? parked->bucket_bits + 1 : 10;
    struct waiter *waiters = realloc(parked->waiters, sizeof *waiters << bits);
    if (!waiters)
        return false;
    parked->waiters = waiters;
    uint32_t *buckets = calloc((size_t)1 << bits, sizeof *buckets);
    if (!buckets)
        return false;
    free(parked->buckets);
    parked->buckets = buckets;
    parked->bucket_bits = bits;
    for (uint32_t place = 0; place < parked->places; place++) { /* all are in use, because growing was necessary */
        uint32_t *bucket = &buckets[bucket_of(parked, waiters[place].awaited)];
        waiters[place].next = *bucket;
        *bucket = place + 1;
    }
    for (uint32_t place = parked->places; place < 1u << bits; place++) {
        waiters[place].next = parked->free;
        parked->free = place + 1;
    }
    parked->places = 1u << bits;
    return true;
}

bool parked_wait(struct parked *parked, uint32_t index, uint32_t awaited)
{
    if (!parked->free && !grow(parked))
        return false;
    uint32_t place = parked->free;
    struct waiter *waiter = &parked->waiters[place - 1];
    parked->free = waiter->next;
    uint32_t *bucket = &parked->buckets[bucket_of(parked, awaited)];
    *waiter = (struct waiter){index, awaited, *bucket};
    *bucket = place;
    parked->waiting++;
    return true;
}

bool parked_release(struct parked *parked, uint32_t awaited, uint32_t *index)
{
    if (!parked->waiting)
        return false;
    for (uint32_t *link = &parked->buckets[bucket_of(parked, awaited)]; *link;) {
        uint32_t place = *link;
        struct waiter *waiter = &parked->waiters[place - 1];
        if (waiter->awaited == awaited) {
            *index = waiter->index;
            *link = waiter->next;
            waiter->next = parked->free;
            parked->free = place;
            parked->waiting--;
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

bool parked_due(struct parked *parked, uint32_t index, uint64_t due_ns)
{
    if (parked->due == parked->heap_room) {
        uint32_t room = parked->heap_room ? 2 * parked->heap_room : 1024;
        struct due *heap = realloc(parked->heap, sizeof *heap * room);
        if (!heap)
            return false;
        parked->heap = heap;
        parked->heap_room = room;
    }
    struct due new = {due_ns, index};
    uint32_t at = parked->due++;
    for (; at && before(&new, &parked->heap[(at - 1) / 2]); at = (at - 1) / 2)
        parked->heap[at] = parked->heap[(at - 1) / 2];
    parked->heap[at] = new;
    return true;
}

void parked_take_first(struct parked *parked)
{
    struct due last = parked->heap[--parked->due];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= parked->due)
            break;
        if (child + 1 < parked->due && before(&parked->heap[child + 1], &parked->heap[child]))
            child++;
        if (!before(&parked->heap[child], &last))
            break;
        parked->heap[at] = parked->heap[child];
        at = child;
    }
    parked->heap[at] = last;
}
