#include "origins.h"

#include <inttypes.h>

/* Both parts begin at a page, whatever its size. */
#define ALIGNED_BYTES ((size_t)64 << 10)
/* The longest request of a prefill (drivelab/replay/prefill.py). */
#define PREFILL_BYTES (UINT64_C(128) << 10)

static bool is_for(const struct origins *origins, const struct schedule *schedule)
{
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < schedule->header.count; i++) {
        if (origins->first[i] != blocks)
            return false;
        if (schedule->records[i].operation == READ)
            blocks += schedule->records[i].length_bytes / schedule->header.block_bytes;
    }
    return blocks * sizeof *origins->block <= origins->blocks.bytes;
}

bool origins_open(struct origins *origins, const char *path, const struct schedule *schedule, uint64_t prefilled,
                  struct refusal *refusal)
{
    origins->prefilled = prefilled;
    size_t firsts = schedule->header.count * sizeof *origins->first;
    size_t start = (firsts / ALIGNED_BYTES + 1) * ALIGNED_BYTES;
    if (!mapped_open(&origins->file, path, "file of origins", true, start, BAD_RESULTS, refusal))
        return false;
    origins->firsts = (struct mapped){origins->file.at, firsts};
    origins->blocks = (struct mapped){origins->file.at + start, origins->file.bytes - start};
    origins->first = (const uint64_t *)origins->firsts.at;
    origins->block = (uint64_t *)origins->blocks.at;
    if (is_for(origins, schedule))
        return true;
    mapped_close(&origins->file);
    return refuse(refusal, BAD_RESULTS, "%s: the file of origins belongs to another schedule", path);
}

static bool is_zero(const uint64_t *words, size_t count)
{
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= words[i];
    return !any;
}

/* Return whether a number is one of a block that the schedule or the prefill writes. */
static bool is_written(const struct origins *origins, const struct schedule *schedule, uint64_t number)
{
    uint64_t index = number >> BLOCK_BITS, block = number & ((UINT64_C(1) << BLOCK_BITS) - 1);
    uint64_t at = block * schedule->header.block_bytes, count = schedule->header.count;
    if (index >= count)
        return index - count < origins->prefilled && at < PREFILL_BYTES;
    return schedule->records[index].operation == WRITE && at < schedule->records[index].length_bytes;
}

static uint64_t origin_of(const struct origins *origins, const struct buffers *buffers,
                          const struct schedule *schedule, const uint64_t *words)
{
    size_t count = buffers->block_bytes / sizeof *words;
    uint64_t number;
    if (buffers_number(buffers, words, &number))
        return number < FOREIGN ? 1 + number : FOREIGN;
    if (is_zero(words, count))
        return ZEROES;
    for (size_t i = 0; i < count; i++)
        if (is_written(origins, schedule, buffers_number_of_word(buffers, words, i)))
            return MIXED;
    return FOREIGN;
}

void origins_look(const struct origins *origins, struct unseen *unseen, struct buffers *buffers,
                  const struct schedule *schedule)
{
    struct returned *read = &unseen->reads[unseen->first];
    uint64_t place = origins->first[read->index] + read->done / buffers->block_bytes;
    const uint64_t *words = (const uint64_t *)(read->piece.at + read->done);
    origins->block[place] = origin_of(origins, buffers, schedule, words);
    read->done += buffers->block_bytes;
    if (read->done < read->piece.bytes)
        return;
    buffers_give_back(buffers, &read->piece);
    unseen->first = (unseen->first + 1) % MOST_IN_FLIGHT;
    unseen->count--;
}

void origins_take(const struct origins *origins, struct unseen *unseen, struct buffers *buffers,
                  const struct schedule *schedule, struct piece *piece, uint64_t index)
{
    while (unseen->count == MOST_IN_FLIGHT)
        origins_look(origins, unseen, buffers, schedule);
    unseen->reads[(unseen->first + unseen->count++) % MOST_IN_FLIGHT] = (struct returned){*piece, index, 0};
    piece->at = NULL;
}
