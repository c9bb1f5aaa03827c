/* A hash table of queues: entries of one key in order. Entries are in a pool and have an index; 0 means none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_PASSED 1024u

struct entry {
    uint64_t key;
    int64_t order;
    uint32_t next, previous;         /* of the same key */
    uint32_t last;                   /* of the same key; valid in its first entry */
    uint32_t chain;                  /* first entry of another key in the same bucket; valid in a first entry */
    uint32_t older, younger;         /* of all keys, by the time of insertion */
};

struct multimap {
    char *pool;
    size_t entry_bytes; /* size of the caller's struct, which begins with a struct entry */
    uint32_t used, allocated, free_list;
    uint32_t *buckets;
    uint32_t bucket_bits;
    uint32_t count, live; /* entries in the table; all allocated entries */
    uint32_t oldest, youngest;
};

bool multimap_init(struct multimap *, size_t entry_bytes);
void multimap_free(struct multimap *);

static inline void *multimap_at(const struct multimap *map, uint32_t index)
{
    return map->pool + (size_t)index * map->entry_bytes;
}

/* Allocate an entry outside the table; 0 without memory. The pool may move, which invalidates pointers into it. */
uint32_t multimap_allocate(struct multimap *);
void multimap_release(struct multimap *, uint32_t index);

/* Insert an entry behind the last entry of its key without a greater order; it passes at most MOST_PASSED entries.
   False without memory. */
bool multimap_insert(struct multimap *, uint32_t index, uint64_t key, int64_t order);
/* Take an entry out of the table; it stays allocated. */
void multimap_remove(struct multimap *, uint32_t index);

static inline uint32_t multimap_bucket(const struct multimap *map, uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - map->bucket_bits));
}

/* Return the first entry of a key; 0 if there is none. */
static inline uint32_t multimap_first(const struct multimap *map, uint64_t key)
{
    uint32_t index = map->buckets[multimap_bucket(map, key)];
    while (index && ((struct entry *)multimap_at(map, index))->key != key)
        index = ((struct entry *)multimap_at(map, index))->chain;
    return index;
}

static inline uint32_t multimap_next(const struct multimap *map, uint32_t index)
{
    return ((struct entry *)multimap_at(map, index))->next;
}
