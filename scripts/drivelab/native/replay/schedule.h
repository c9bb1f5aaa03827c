/* The schedule: mapped, and used only after every record is validated. */
#pragma once

#include "mapped.h"
#include "records.h"

/* Limit of all times, 36 years: longer than any replay, but the sum of two times is far below the limit of 64 bits. */
#define LONGEST_NS (UINT64_C(1) << 60)

struct schedule {
    struct mapped mapped;
    struct schedule_header header;
    const struct schedule_record *records;
    uint64_t operations[OPERATIONS]; /* records of each */
    uint64_t longest[OPERATIONS]; /* bytes */
    bool dependencies; /* whether any record has one */
    bool changes; /* whether any record changes the target */
};

/* Map and validate the whole schedule; false with a refusal on failure. */
bool schedule_open(struct schedule *, const char *path, struct refusal *);
