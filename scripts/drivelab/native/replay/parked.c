#include "parked.h"

#include <stdlib.h>

void waiting_add(struct waiting *waiting, uint32_t index, uint32_t awaited)
{
    uint32_t place = waiting->free, *bucket = &waiting->buckets[awaited % MOST_PARKED];
    if (place)
        waiting->free = waiting->waiters[place].next;
    else
        place = ++waiting->used;
    waiting->waiters[place] = (struct waiter){index, awaited, *bucket};
    *bucket = place;
    __atomic_fetch_add(&waiting->count, 1, __ATOMIC_RELAXED);
}

uint32_t waiting_release(struct waiting *waiting, uint32_t awaited)
{
    if (!waiting->count)
        return 0;
    uint32_t *link = &waiting->buckets[awaited % MOST_PARKED];
    while (*link && waiting->waiters[*link].awaited != awaited)
        link = &waiting->waiters[*link].next;
    uint32_t place = *link;
    if (!place)
        return 0;
    *link = waiting->waiters[place].next;
    waiting->waiters[place].next = waiting->free;
    waiting->free = place;
    __atomic_fetch_sub(&waiting->count, 1, __ATOMIC_RELAXED);
    return waiting->waiters[place].index;
}

static bool less(struct due a, struct due b) { return a.due_ns != b.due_ns ? a.due_ns < b.due_ns : a.index < b.index; }

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
    for (; at && less(new, due->heap[(at - 1) / 2]); at = (at - 1) / 2)
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
        if (child + 1 < due->count && less(due->heap[child + 1], due->heap[child]))
            child++;
        if (!less(due->heap[child], last))
            break;
        due->heap[at] = due->heap[child];
        at = child;
    }
    due->heap[at] = last;
}
