/* Find the last completion of its stream before each request. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct completion {
    int64_t time_ns, stream, record;
    uint64_t number; /* order of completions at the same time */
};

struct last {
    int64_t time_ns, stream, record;
    bool used;
};

struct state {
    struct completion *heap; /* future completions, the earliest first */
    uint64_t waiting, numbered;
    struct last *streams; /* hash table; never full, as it has twice as many places as there are requests */
    uint64_t places;
};

static bool is_before(const struct completion *a, const struct completion *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void push(struct state *s, int64_t stream, int64_t time_ns, int64_t record)
{
    struct completion new = {time_ns, stream, record, s->numbered++};
    uint64_t at = s->waiting++;
    for (; at && is_before(&new, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = new;
}

static struct completion pop(struct state *s)
{
    struct completion first = s->heap[0], moved = s->heap[--s->waiting];
    uint64_t at = 0;
    for (uint64_t child; (child = 2 * at + 1) < s->waiting; at = child) {
        child += child + 1 < s->waiting && is_before(&s->heap[child + 1], &s->heap[child]);
        if (!is_before(&s->heap[child], &moved))
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = moved;
    return first;
}

static struct last *last_of(const struct state *s, int64_t stream)
{
    uint64_t place = (uint64_t)stream * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    while (s->streams[place &= s->places - 1].used && s->streams[place].stream != stream)
        place++;
    return &s->streams[place];
}

static void complete(struct state *s, int64_t stream, int64_t time_ns, int64_t record)
{
    *last_of(s, stream) = (struct last){time_ns, stream, record, true};
}

static void complete_until(struct state *s, int64_t now_ns)
{
    while (s->waiting && s->heap[0].time_ns <= now_ns) {
        struct completion next = pop(s);
        complete(s, next.stream, next.time_ns, next.record);
    }
}

/* Set each row's `after` and `think_ns`; return how many completions later rows may wait for, or -1 without memory.
 *
 * `stream`, `complete_ns` and `record` are of `before` completions that a row may wait for, then of the rows, and have
 * space for all; at the end they hold the completions that later rows may wait for. `known` and `queue_ns` are of the
 * rows, the latter ascending. A row without a completion completes at `never_ns`. A row that waits for none keeps its
 * `after` and `think_ns`. Completions come before requests of the same time, unless they belong to a request of that
 * time, which they follow.
 */
int64_t dependencies_find(uint64_t before, uint64_t rows, int64_t *stream, int64_t *complete_ns, int64_t *record,
                          const bool *known, const int64_t *queue_ns, int64_t never_ns, int64_t *after,
                          int64_t *think_ns)
{
    struct state s = {.places = 64};
    while (s.places < 2 * (before + rows))
        s.places *= 2;
    s.heap = malloc((before + rows + 1) * sizeof *s.heap);
    s.streams = calloc(s.places, sizeof *s.streams);
    int64_t kept = -1;
    if (!s.heap || !s.streams)
        goto end;
    for (uint64_t i = 0; i < before; i++)
        push(&s, stream[i], complete_ns[i], record[i]);
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t i = before + row;
        complete_until(&s, queue_ns[row]);
        if (!known[row])
            continue;
        const struct last *last = last_of(&s, stream[i]);
        if (last->used) {
            after[row] = last->record;
            think_ns[row] = queue_ns[row] - last->time_ns;
        }
        if (complete_ns[i] == never_ns)
            continue;
        if (complete_ns[i] > queue_ns[row])
            push(&s, stream[i], complete_ns[i], record[i]);
        else
            complete(&s, stream[i], complete_ns[i], record[i]);
    }
    kept = 0;
    for (uint64_t place = 0; place < s.places; place++)
        if (s.streams[place].used) {
            stream[kept] = s.streams[place].stream;
            complete_ns[kept] = s.streams[place].time_ns;
            record[kept++] = s.streams[place].record;
        }
    while (s.waiting) {
        struct completion next = pop(&s);
        stream[kept] = next.stream;
        complete_ns[kept] = next.time_ns;
        record[kept++] = next.record;
    }
end:
    free(s.heap);
    free(s.streams);
    return kept;
}
