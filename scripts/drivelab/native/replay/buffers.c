#include "buffers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define WRITE_AREA_BYTES ((size_t)16 << 20)
#define READ_AREA_BYTES ((size_t)4 << 20) /* registered, so always resident, like the write area */
/* Limit of memory beyond the registered areas, for reads and for writes each; beyond it a request waits, as it does at
   the depth limit. */
#define MOST_SPARE_BYTES ((size_t)512 << 20)

/* A pseudorandom bijection of 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
   pseudorandom number generators, OOPSLA 2014). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Map memory that becomes resident only when it is used. */
static void *area(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool make_pool(struct pool *pool, size_t bytes, size_t unit_bytes)
{
    *pool = (struct pool){.area = {area(bytes), bytes}, .busy = calloc(bytes / unit_bytes, 1),
                          .units = bytes / unit_bytes};
    if (!pool->area.iov_base || !pool->busy)
        return false;
    /* Doubles the speed of long transfers; a refusal does no harm. */
    madvise(pool->area.iov_base, bytes, MADV_HUGEPAGE);
    return true;
}

static void fill_at_random(uint64_t *words, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = mix(~seed + i * UINT64_C(0x9e3779b97f4a7c15));
}

bool buffers_make(struct buffers *buffers, const struct schedule *schedule, uint64_t seed, struct refusal *refusal)
{
    *buffers = (struct buffers){.block_bytes = schedule->header.block_bytes, .seed = seed};
    size_t unit = buffers->unit_bytes = buffers->block_bytes > PAGE_BYTES ? buffers->block_bytes : PAGE_BYTES;
    /* One unit if nothing is written or read. With nothing in flight, every request fits into the areas: */
    size_t to_write = unit, to_read = unit, most_read = unit;
    if (schedule->operations[WRITE]) /* twice the longest, so that two consecutive writes fit */
        to_write = rounded_up(larger(2 * schedule->longest[WRITE], WRITE_AREA_BYTES), unit);
    if (schedule->operations[READ]) {
        size_t longest = rounded_up(schedule->longest[READ], unit), all = longest * MOST_IN_FLIGHT;
        most_read = all < MOST_SPARE_BYTES ? all : rounded_up(MOST_SPARE_BYTES, unit);
        to_read = larger(longest, most_read < READ_AREA_BYTES ? most_read : READ_AREA_BYTES);
    }
    buffers->read_registered_bytes = to_read;
    if (!make_pool(&buffers->pools[WRITE_BUFFER], to_write, unit) ||
        !make_pool(&buffers->pools[READ_BUFFER], most_read, unit))
        return refuse(refusal, BAD_HOST, "not enough memory for the data of the requests: %zu bytes",
                      to_write + most_read);
    fill_at_random(buffers->pools[WRITE_BUFFER].area.iov_base, to_write, seed);
    return true;
}

struct iovec buffers_to_register(const struct buffers *buffers, unsigned buffer)
{
    struct iovec part = buffers->pools[buffer].area;
    if (buffer == READ_BUFFER)
        part.iov_len = buffers->read_registered_bytes;
    return part;
}

/* Find `units` contiguous free units, from `at` on and once around; return the first, or pool->units if none. */
static size_t find(const struct pool *pool, size_t at, size_t units)
{
    const unsigned char *busy = pool->busy;
    for (size_t passed = 0; passed <= pool->units;) {
        if (at + units > pool->units) {
            passed += pool->units - at + 1;
            at = 0;
            continue;
        }
        const unsigned char *used = memrchr(busy + at, 1, units);
        if (!used)
            return at;
        const unsigned char *free = memchr(used, 0, (size_t)(busy + pool->units - used));
        size_t beyond = free ? (size_t)(free - busy) : pool->units;
        passed += beyond - at;
        at = beyond;
    }
    return pool->units;
}

static bool take(struct buffers *buffers, struct piece *piece)
{
    struct pool *pool = &buffers->pools[piece->buffer];
    size_t at = find(pool, pool->next, piece->units);
    if (at == pool->units)
        return false;
    memset(pool->busy + at, 1, piece->units);
    piece->at = (unsigned char *)pool->area.iov_base + at * buffers->unit_bytes;
    /* Writes use the area as a ring. For reads, no unit below `next` is free. */
    if (piece->buffer == WRITE_BUFFER || at == pool->next)
        pool->next = at + piece->units;
    return true;
}

static struct piece piece_of(const struct buffers *buffers, uint32_t bytes, uint8_t buffer)
{
    return (struct piece){NULL, bytes, (bytes + buffers->unit_bytes - 1) / buffers->unit_bytes, true, buffer};
}

/* Give each block its key, which does not repeat within one replay. */
static void stamp(const struct buffers *buffers, unsigned char *at, uint32_t bytes, uint64_t index)
{
    uint64_t number = buffers->seed + (index << BLOCK_BITS);
    for (uint32_t done = 0; done < bytes; done += buffers->block_bytes)
        *(uint64_t *)(at + done) = mix(number++);
}

static void take_spare(struct buffers *buffers, struct piece *piece)
{
    size_t whole = rounded_up(piece->bytes, PAGE_BYTES);
    piece->registered = false;
    if (whole <= MOST_SPARE_BYTES - buffers->spare_bytes && (piece->at = area(whole))) {
        /* in bounds, because the area is twice as long as the longest write */
        memcpy(piece->at, buffers->pools[WRITE_BUFFER].area.iov_base, piece->bytes);
        buffers->spare_bytes += whole;
    }
}

struct piece buffers_take_data(struct buffers *buffers, uint32_t bytes, uint64_t index)
{
    struct piece piece = piece_of(buffers, bytes, WRITE_BUFFER);
    if (!take(buffers, &piece))
        take_spare(buffers, &piece);
    if (piece.at)
        stamp(buffers, piece.at, bytes, index);
    return piece;
}

struct piece buffers_take_room(struct buffers *buffers, uint32_t bytes)
{
    struct piece piece = piece_of(buffers, bytes, READ_BUFFER);
    const unsigned char *area = buffers->pools[READ_BUFFER].area.iov_base;
    if (take(buffers, &piece))
        piece.registered = (size_t)(piece.at - area) + bytes <= buffers->read_registered_bytes;
    return piece;
}

void buffers_give_back(struct buffers *buffers, struct piece *piece)
{
    struct pool *pool = &buffers->pools[piece->buffer];
    if (!piece->at)
        return;
    if (piece->buffer == WRITE_BUFFER && !piece->registered) {
        size_t whole = rounded_up(piece->bytes, PAGE_BYTES);
        munmap(piece->at, whole);
        buffers->spare_bytes -= whole;
    } else {
        size_t at = (size_t)(piece->at - (unsigned char *)pool->area.iov_base) / buffers->unit_bytes;
        memset(pool->busy + at, 0, piece->units);
        if (piece->buffer == READ_BUFFER && at < pool->next)
            pool->next = at;
    }
    piece->at = NULL;
}
