#include "files.h"

#include <inttypes.h>
#include <string.h>

#define LEAST_BLOCK_BYTES 512u
#define MOST_BLOCK_BYTES (1u << 20)
#define WORDS (sizeof(struct schedule_record) / sizeof(uint64_t))
/* Records that are validated before they are dropped from memory again. */
#define PART ((size_t)1 << 16)

static bool check_header(const struct schedule *schedule, const char *path, struct refusal *refusal)
{
    const struct schedule_header *header = &schedule->header;
    if (memcmp(header->magic, SCHEDULE_MAGIC, sizeof header->magic))
        return refuse(refusal, BAD_SCHEDULE, "%s: is not a schedule of a replay", path);
    if (header->header_bytes != sizeof *header || header->record_bytes != sizeof(struct schedule_record))
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule has another version; prepare the replay again", path);
    size_t content = schedule->mapped.bytes - sizeof *header;
    if (content % sizeof(struct schedule_record) || header->count != content / sizeof(struct schedule_record))
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule should have %" PRIu64 " records but has %zu; it is "
                      "truncated or damaged; prepare the replay again", path, header->count,
                      content / sizeof(struct schedule_record));
    if (header->count >= UINT32_MAX)
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule has more than 2^32 - 2 records; cut the trace", path);
    if (header->block_bytes < LEAST_BLOCK_BYTES || header->block_bytes > MOST_BLOCK_BYTES ||
        header->block_bytes & (header->block_bytes - 1))
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule has blocks of %" PRIu32 " bytes, which is not a valid "
                      "block size", path, header->block_bytes);
    if (header->longest_bytes > LONGEST_TRANSFER_BYTES)
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule has transfers of %" PRIu32 " bytes; the limit is %"
                      PRIu32, path, header->longest_bytes, LONGEST_TRANSFER_BYTES);
    return true;
}

/* Return what is wrong with a record, or NULL. */
static const char *fault(const struct schedule *schedule, const struct schedule_record *record, uint64_t index,
                         uint64_t least_deadline)
{
    const struct schedule_header *header = &schedule->header;
    if (record->operation >= OPERATIONS)
        return "has an unknown operation";
    if (record->flags & ~FUA || (record->flags & FUA && record->operation != WRITE))
        return "has flags that its operation does not support";
    if (record->deadline_ns > LONGEST_NS || record->think_ns > LONGEST_NS)
        return "has a time beyond 36 years";
    if (record->deadline_ns < least_deadline)
        return "is due before the record that precedes it";
    if (record->after > index)
        return "waits for a request that does not precede it";
    if ((record->offset_bytes | record->length_bytes) & (header->block_bytes - 1))
        return "does not begin and end at block boundaries";
    if (record->offset_bytes > header->target_bytes ||
        record->length_bytes > header->target_bytes - record->offset_bytes)
        return "reaches beyond the end of the target";
    if ((record->operation == FLUSH) != !record->length_bytes)
        return "has a length that its operation cannot have";
    if (record->operation <= WRITE && record->length_bytes > header->longest_bytes)
        return "is longer than the longest transfer in the schedule's header";
    return NULL;
}

static bool check_records(struct schedule *schedule, const char *path, struct refusal *refusal)
{
    const struct schedule_header *header = &schedule->header;
    uint64_t sum = 0, factor = 1, deadline = 0;
    for (uint64_t first = 0; first < header->count; first += PART) {
        uint64_t end = first + PART < header->count ? first + PART : header->count;
        size_t from = sizeof *header + first * sizeof(struct schedule_record);
        size_t to = sizeof *header + end * sizeof(struct schedule_record);
        mapped_populate(&schedule->mapped, from, to, false);
        for (uint64_t i = first; i < end; i++) {
            const struct schedule_record *record = &schedule->records[i];
            const char *wrong = fault(schedule, record, i, deadline);
            if (wrong)
                return refuse(refusal, BAD_SCHEDULE, "%s: record %" PRIu64 " %s; prepare the replay again", path, i,
                              wrong);
            uint64_t words[WORDS];
            memcpy(words, record, sizeof words);
            for (size_t word = 0; word < WORDS; word++, factor += 2)
                sum += factor * words[word];
            deadline = record->deadline_ns;
            schedule->operations[record->operation]++;
            schedule->changes |= record->operation != READ && record->operation != FLUSH;
            schedule->dependencies |= record->after != 0;
            if (record->length_bytes > schedule->longest[record->operation])
                schedule->longest[record->operation] = record->length_bytes;
        }
        mapped_drop(&schedule->mapped, from, to);
    }
    if (sum != header->checksum)
        return refuse(refusal, BAD_SCHEDULE, "%s: the schedule is damaged: its checksum is wrong; prepare the replay "
                      "again", path);
    return true;
}

bool schedule_open(struct schedule *schedule, const char *path, struct refusal *refusal)
{
    *schedule = (struct schedule){0};
    if (!mapped_open(&schedule->mapped, path, "schedule", false, sizeof schedule->header, BAD_SCHEDULE, refusal))
        return false;
    memcpy(&schedule->header, schedule->mapped.at, sizeof schedule->header);
    schedule->records = (const struct schedule_record *)(schedule->mapped.at + sizeof schedule->header);
    return check_header(schedule, path, refusal) && check_records(schedule, path, refusal);
}
