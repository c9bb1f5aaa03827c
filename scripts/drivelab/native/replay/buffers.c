#include "buffers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define WRITE_AREA_BYTES ((size_t)16 << 20)
#define READ_AREA_BYTES ((size_t)512 << 10) /* small: what is read stays within the CPU cache */
/* Of memory beyond the registered area: then a write waits as it would for a place in flight. */
#define MOST_SPARE_BYTES ((size_t)512 << 20)

/* A one-to-one mapping of 64 bits that looks random: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable
   pseudorandom number generators, OOPSLA 2014). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void *area(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

bool buffers_make(struct buffers *buffers, const struct schedule *schedule, uint64_t seed, struct refusal *refusal)
{
    *buffers = (struct buffers){.block_bytes = schedule->header.block_bytes, .stamp = seed};
    buffers->unit_bytes = buffers->block_bytes > PAGE_BYTES ? buffers->block_bytes : PAGE_BYTES;
    /* Twice the longest, so that two in turn fit; one page where nothing is written or read. */
    size_t to_write = 2 * (size_t)schedule->longest_write, to_read = schedule->longest_read;
    if (schedule->operations[WRITE] && to_write < WRITE_AREA_BYTES)
        to_write = WRITE_AREA_BYTES;
    if (schedule->operations[READ] && to_read < READ_AREA_BYTES)
        to_read = READ_AREA_BYTES;
    to_write = rounded_up(to_write ? to_write : 1, buffers->unit_bytes);
    to_read = rounded_up(to_read ? to_read : 1, buffers->unit_bytes);
    buffers->units = to_write / buffers->unit_bytes;
    buffers->areas[WRITE_BUFFER] = (struct iovec){area(to_write), to_write};
    buffers->areas[READ_BUFFER] = (struct iovec){area(to_read), to_read};
    buffers->busy = calloc(buffers->units, 1);
    if (!buffers->areas[WRITE_BUFFER].iov_base || !buffers->areas[READ_BUFFER].iov_base || !buffers->busy)
        return refuse(refusal, BAD_HOST, "there is no memory for the data of the requests: %zu bytes",
                      to_write + to_read);
    uint64_t *words = buffers->areas[WRITE_BUFFER].iov_base;
    for (size_t i = 0; i < to_write / sizeof *words; i++)
        words[i] = mix(~seed + i * UINT64_C(0x9e3779b97f4a7c15));
    return true;
}

/* Numbers of which none comes twice in one replay. */
static void stamp(struct buffers *buffers, unsigned char *at, uint32_t bytes)
{
    for (uint32_t done = 0; done < bytes; done += buffers->block_bytes) {
        uint64_t number = mix(++buffers->stamp);
        memcpy(at + done, &number, sizeof number);
    }
}

static struct piece take_spare(struct buffers *buffers, uint32_t bytes)
{
    const struct iovec *pool = &buffers->areas[WRITE_BUFFER];
    struct piece piece = {NULL, bytes, 0, true};
    size_t whole = rounded_up(bytes, PAGE_BYTES);
    if (whole > MOST_SPARE_BYTES - buffers->spare_bytes)
        return piece;
    piece.at = area(whole);
    if (piece.at) {
        memcpy(piece.at, pool->iov_base, bytes); /* the area is twice as long as the longest write */
        buffers->spare_bytes += whole;
    }
    return piece;
}

struct piece buffers_take(struct buffers *buffers, uint32_t bytes)
{
    uint32_t units = (bytes + buffers->unit_bytes - 1) / buffers->unit_bytes;
    struct piece piece = {NULL, bytes, units, false};
    size_t at = buffers->next_unit;
    /* On behind units that are in use, but once round at the most. */
    for (size_t passed = 0; passed <= buffers->units && !piece.at;) {
        if (at + units > buffers->units) {
            passed += buffers->units - at + 1;
            at = 0;
        }
        const unsigned char *used = memchr(buffers->busy + at, 1, units);
        if (used) {
            size_t beyond = (size_t)(used - buffers->busy) + 1;
            passed += beyond - at;
            at = beyond;
        } else {
            memset(buffers->busy + at, 1, units);
            piece.at = (unsigned char *)buffers->areas[WRITE_BUFFER].iov_base + at * buffers->unit_bytes;
            buffers->next_unit = at + units;
        }
    }
    if (!piece.at)
        piece = take_spare(buffers, bytes);
    if (piece.at)
        stamp(buffers, piece.at, bytes);
    return piece;
}

void buffers_give_back(struct buffers *buffers, struct piece *piece)
{
    if (!piece->at)
        return;
    if (piece->spare) {
        size_t whole = rounded_up(piece->bytes, PAGE_BYTES);
        munmap(piece->at, whole);
        buffers->spare_bytes -= whole;
    } else {
        size_t at = (size_t)(piece->at - (unsigned char *)buffers->areas[WRITE_BUFFER].iov_base);
        memset(buffers->busy + at / buffers->unit_bytes, 0, piece->units);
    }
    piece->at = NULL;
}

unsigned char *buffers_sink(struct buffers *buffers, uint32_t bytes)
{
    const struct iovec *sink = &buffers->areas[READ_BUFFER];
    if (buffers->next_read + bytes > sink->iov_len)
        buffers->next_read = 0;
    unsigned char *at = (unsigned char *)sink->iov_base + buffers->next_read;
    buffers->next_read += rounded_up(bytes, buffers->unit_bytes);
    return at;
}
