#include "results.h"

#include <inttypes.h>
#include <string.h>

bool results_open(struct results *results, const char *path, uint64_t count, uint64_t schedule_checksum,
                  struct refusal *refusal)
{
    *results = (struct results){0};
    if (!mapped_open(&results->mapped, path, "results file", true, RESULTS_HEADER_BYTES, BAD_RESULTS, refusal))
        return false;
    struct results_header *header = (struct results_header *)results->mapped.at;
    results->header = header;
    results->records = (struct result_record *)(results->mapped.at + RESULTS_HEADER_BYTES);
    uint64_t room = (results->mapped.bytes - RESULTS_HEADER_BYTES) / sizeof(struct result_record);
    if (memcmp(header->magic, RESULTS_MAGIC, sizeof header->magic) || header->header_bytes != RESULTS_HEADER_BYTES ||
        header->record_bytes != sizeof(struct result_record) || header->capacity > room)
        return refuse(refusal, BAD_RESULTS, "%s: is not a results file of a replay", path);
    if (header->state != PREPARED)
        return refuse(refusal, BAD_RESULTS, "%s: the results file was already used; create a new one", path);
    if (header->schedule_checksum != schedule_checksum)
        return refuse(refusal, BAD_RESULTS, "%s: the results file belongs to another schedule", path);
    if (header->capacity < count)
        return refuse(refusal, BAD_RESULTS, "%s: the results file has room for %" PRIu64 " requests, but the replay "
                      "has %" PRIu64, path, header->capacity, count);
    return true;
}
