#include "multimap.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BITS 10

static struct entry *at(const struct multimap *map, uint32_t index) { return multimap_at(map, index); }

uint32_t pool_take(struct pool *pool)
{
    uint32_t index = pool->free_list;
    if (index) { /* a free struct begins with the index of the next one */
        memcpy(&pool->free_list, pool->content + (size_t)index * pool->bytes, sizeof pool->free_list);
    } else {
        if (pool->used + 1 >= pool->allocated) {
            uint32_t wanted = pool->allocated ? 2 * pool->allocated : 1024;
            char *content = realloc(pool->content, (size_t)wanted * pool->bytes);
            if (!content)
                return 0;
            pool->content = content;
            pool->allocated = wanted;
        }
        index = ++pool->used;
    }
    pool->live++;
    return index;
}

void pool_release(struct pool *pool, uint32_t index)
{
    memcpy(pool->content + (size_t)index * pool->bytes, &pool->free_list, sizeof pool->free_list);
    pool->free_list = index;
    pool->live--;
}

bool multimap_init(struct multimap *map, size_t entry_bytes)
{
    *map = (struct multimap){.pool.bytes = entry_bytes, .bucket_bits = FIRST_BITS};
    map->buckets = calloc((size_t)1 << FIRST_BITS, sizeof *map->buckets);
    return map->buckets != NULL;
}

void multimap_free(struct multimap *map)
{
    free(map->pool.content);
    free(map->buckets);
}

static bool grow(struct multimap *map)
{
    uint32_t *old = map->buckets, old_count = 1u << map->bucket_bits;
    uint32_t *buckets = calloc((size_t)old_count * 4, sizeof *buckets);
    if (!buckets)
        return false;
    map->buckets = buckets;
    map->bucket_bits += 2;
    for (uint32_t i = 0; i < old_count; i++)
        for (uint32_t index = old[i], following; index; index = following) {
            following = at(map, index)->chain;
            uint32_t *bucket = &buckets[multimap_bucket(map, at(map, index)->key)];
            at(map, index)->chain = *bucket;
            *bucket = index;
        }
    free(old);
    return true;
}

/* Return the link that points to the first entry of a key. */
static uint32_t *link_to(struct multimap *map, uint32_t first)
{
    uint32_t *link = &map->buckets[multimap_bucket(map, at(map, first)->key)];
    while (*link != first)
        link = &at(map, *link)->chain;
    return link;
}

bool multimap_insert(struct multimap *map, uint32_t index, uint64_t key, int64_t order)
{
    if (map->count >= 1u << map->bucket_bits && !grow(map))
        return false;
    struct entry *entry = at(map, index);
    uint32_t first = multimap_first(map, key);
    *entry = (struct entry){.key = key, .order = order, .last = index};
    if (!first) {
        uint32_t *bucket = &map->buckets[multimap_bucket(map, key)];
        entry->chain = *bucket;
        *bucket = index;
    } else {
        uint32_t before = at(map, first)->order > order ? 0 : at(map, first)->last;
        for (uint32_t passed = 0; before && at(map, before)->order > order && passed < MOST_PASSED; passed++)
            before = at(map, before)->previous;
        entry->previous = before;
        entry->next = before ? at(map, before)->next : first;
        if (entry->next)
            at(map, entry->next)->previous = index;
        if (!before) {
            entry->last = at(map, first)->last;
            *link_to(map, first) = index;
            entry->chain = at(map, first)->chain;
        } else {
            at(map, before)->next = index;
            if (!entry->next)
                at(map, first)->last = index;
        }
    }
    entry->older = map->youngest;
    if (map->youngest)
        at(map, map->youngest)->younger = index;
    else
        map->oldest = index;
    map->youngest = index;
    map->count++;
    return true;
}

void *multimap_add(struct multimap *map, uint64_t key, int64_t order)
{
    uint32_t index = pool_take(&map->pool);
    return index && multimap_insert(map, index, key, order) ? multimap_at(map, index) : NULL;
}

void multimap_remove(struct multimap *map, uint32_t index)
{
    struct entry *entry = at(map, index);
    if (!entry->previous) {
        uint32_t *link = link_to(map, index);
        if (entry->next) {
            at(map, entry->next)->last = entry->last;
            at(map, entry->next)->chain = entry->chain;
            *link = entry->next;
        } else {
            *link = entry->chain;
        }
    } else {
        at(map, entry->previous)->next = entry->next;
        if (!entry->next)
            at(map, multimap_first(map, entry->key))->last = entry->previous;
    }
    if (entry->next)
        at(map, entry->next)->previous = entry->previous;
    if (entry->older)
        at(map, entry->older)->younger = entry->younger;
    else
        map->oldest = entry->younger;
    if (entry->younger)
        at(map, entry->younger)->older = entry->older;
    else
        map->youngest = entry->older;
    map->count--;
}

void multimap_drop(struct multimap *map, uint32_t index)
{
    multimap_remove(map, index);
    pool_release(&map->pool, index);
}
