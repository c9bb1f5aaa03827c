/* Find requests that share bytes with an earlier one in flight, so that the order of the two matters.
 *
 * Each request in flight is listed under the stretches of addresses that it touches. Level l has stretches of
 * 2^(FIRST_BITS + l * STEP_BITS) bytes. A request belongs to the lowest level whose stretches are at least as long as
 * the request, so it touches one or two of them. A hash table finds the requests of a stretch. Reads and changes are
 * listed apart, since two reads never conflict. Requests that ended are skipped, and removed when the pool is full.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 12, STEP_BITS = 6, LEVELS = 9, FIRST_CAPACITY = 1024 };

struct node {
    int64_t begin, end, until_ns;
    uint64_t stretch;
    uint32_t next; /* 1 + index; 0: none */
    uint8_t level, changes;
};

struct flying {
    struct node *nodes;
    uint32_t *heads; /* 1 + index of a node; 4 for each node of the capacity */
    uint32_t used, capacity;
    unsigned levels; /* bit l: a request of that level may be in flight */
};

static unsigned bits(unsigned level) { return FIRST_BITS + level * STEP_BITS; }

static uint32_t *head(const struct flying *f, uint64_t stretch, unsigned level, bool changes)
{
    uint64_t hash = (stretch * 16 + level) * UINT64_C(0x9E3779B97F4A7C15);
    return &f->heads[(hash >> 32 & (2 * (uint64_t)f->capacity - 1)) * 2 + changes];
}

static void link_node(struct flying *f, uint32_t index)
{
    struct node *node = &f->nodes[index];
    uint32_t *first = head(f, node->stretch, node->level, node->changes);
    node->next = *first;
    *first = index + 1;
    f->levels |= 1U << node->level;
}

/* Remove requests that ended, and double the capacity if more than half of it is still used. */
static bool make_room(struct flying *f, int64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->used; i++)
        if (f->nodes[i].until_ns > now_ns)
            f->nodes[kept++] = f->nodes[i];
    f->used = kept;
    if (kept >= f->capacity / 2) {
        uint32_t capacity = f->capacity ? 2 * f->capacity : FIRST_CAPACITY;
        struct node *nodes = realloc(f->nodes, capacity * sizeof *nodes);
        if (!nodes)
            return false;
        f->nodes = nodes;
        uint32_t *heads = realloc(f->heads, 4 * (size_t)capacity * sizeof *heads);
        if (!heads)
            return false;
        f->heads = heads;
        f->capacity = capacity;
    }
    memset(f->heads, 0, 4 * (size_t)f->capacity * sizeof *f->heads);
    f->levels = 0;
    for (uint32_t i = 0; i < kept; i++)
        link_node(f, i);
    return true;
}

static bool insert(struct flying *f, int64_t begin, int64_t end, bool changes, int64_t until_ns, int64_t now_ns)
{
    unsigned level = 0;
    while (level + 1 < LEVELS && end - begin > INT64_C(1) << bits(level))
        level++;
    uint64_t last = (uint64_t)(end - 1) >> bits(level);
    for (uint64_t stretch = (uint64_t)begin >> bits(level); stretch <= last; stretch++) {
        if (f->used == f->capacity && !make_room(f, now_ns))
            return false;
        f->nodes[f->used] = (struct node){begin, end, until_ns, stretch, 0, level, changes};
        link_node(f, f->used++);
    }
    return true;
}

static bool meets(const struct node *node, int64_t begin, int64_t end, int64_t now_ns)
{
    return node->begin < end && node->end > begin && node->until_ns > now_ns;
}

static bool listed(const struct flying *f, uint32_t first, int64_t begin, int64_t end, int64_t now_ns)
{
    for (uint32_t i = first; i; i = f->nodes[i - 1].next)
        if (meets(&f->nodes[i - 1], begin, end, now_ns))
            return true;
    return false;
}

static bool conflicts(const struct flying *f, int64_t begin, int64_t end, bool changes, int64_t now_ns)
{
    for (unsigned level = 0; level < LEVELS; level++) {
        if (!(f->levels >> level & 1))
            continue;
        uint64_t first = (uint64_t)begin >> bits(level), last = (uint64_t)(end - 1) >> bits(level);
        if (last - first >= f->used) { /* It is quicker to look at all. */
            for (uint32_t i = 0; i < f->used; i++)
                if ((changes || f->nodes[i].changes) && meets(&f->nodes[i], begin, end, now_ns))
                    return true;
            return false;
        }
        for (uint64_t stretch = first; stretch <= last; stretch++)
            if (listed(f, *head(f, stretch, level, true), begin, end, now_ns) ||
                (changes && listed(f, *head(f, stretch, level, false), begin, end, now_ns)))
                return true;
    }
    return false;
}

/* Set `overlaps[i]` if row i begins while a conflicting earlier request is in flight; false without memory.
 *
 * `begin`, `end`, `changes` and `until_ns` are of `before` requests in flight, then of the rows; `start_ns` is of the
 * rows, ascending. A request is in flight for all rows that start before its `until_ns`. One without bytes conflicts
 * with none.
 */
bool overlaps_find(uint64_t before, uint64_t rows, const int64_t *begin, const int64_t *end, const bool *changes,
                   const int64_t *until_ns, const int64_t *start_ns, bool *overlaps)
{
    struct flying f = {0};
    bool ok = make_room(&f, INT64_MIN);
    for (uint64_t i = 0; ok && i < before + rows; i++) {
        int64_t now_ns = i < before ? INT64_MIN : start_ns[i - before];
        if (i >= before)
            overlaps[i - before] = end[i] > begin[i] && conflicts(&f, begin[i], end[i], changes[i], now_ns);
        if (end[i] > begin[i] && until_ns[i] > now_ns)
            ok = insert(&f, begin[i], end[i], changes[i], until_ns[i], now_ns);
    }
    free(f.nodes);
    free(f.heads);
    return ok;
}
