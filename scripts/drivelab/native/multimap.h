/* Pools of structs of one size, which have an index; 0 means none. And a hash table of queues over a pool: entries of
   one key in order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_PASSED 1024u

struct pool {
    char *content; /* moves when the pool grows, which invalidates pointers into it */
    size_t bytes;  /* size of a struct */
    uint32_t used, allocated, free_list;
    uint32_t live; /* structs in use */
};

/* Allocate a struct; 0 without memory. */
uint32_t pool_take(struct pool *);
void pool_release(struct pool *, uint32_t index);

struct entry {
    uint64_t key;
    int64_t order;
    uint32_t next, previous;         /* of the same key */
    uint32_t last;                   /* of the same key; valid in its first entry */
    uint32_t chain;                  /* first entry of another key in the same bucket; valid in a first entry */
    uint32_t older, younger;         /* of all keys, by the time of insertion */
};

struct multimap {
    struct pool pool; /* of the caller's structs, which begin with a struct entry */
    uint32_t *buckets;
    uint32_t bucket_bits;
    uint32_t count; /* entries in the table; others are only allocated */
    uint32_t oldest, youngest;
};

bool multimap_init(struct multimap *, size_t entry_bytes);
void multimap_free(struct multimap *);

static inline void *multimap_at(const struct multimap *map, uint32_t index)
{
    return map->pool.content + (size_t)index * map->pool.bytes;
}

/* Insert an entry behind the last entry of its key without a greater order; it passes at most MOST_PASSED entries.
   False without memory. */
bool multimap_insert(struct multimap *, uint32_t index, uint64_t key, int64_t order);
/* Allocate and insert an entry; return the caller's struct, which is otherwise unset, or NULL without memory. */
void *multimap_add(struct multimap *, uint64_t key, int64_t order);
/* Take an entry out of the table; it stays allocated. */
void multimap_remove(struct multimap *, uint32_t index);
/* Take an entry out of the table and release it. */
void multimap_drop(struct multimap *, uint32_t index);

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
