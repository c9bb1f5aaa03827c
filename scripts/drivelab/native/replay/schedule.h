/* The schedule: mapped, and trusted only after every record has been looked at. */
#ifndef DRIVELAB_REPLAY_SCHEDULE_H
#define DRIVELAB_REPLAY_SCHEDULE_H

#include "mapped.h"
#include "records.h"

/* Longer than anything, and so short that sums of two stay far from the end of 64 bits: 36 years. */
#define LONGEST_NS (UINT64_C(1) << 60)

struct schedule {
    struct mapped mapped;
    struct schedule_header header;
    const struct schedule_record *records;
    uint64_t operations[OPERATIONS]; /* records of each */
    uint32_t longest_read, longest_write;
    bool dependencies, deadlines; /* whether any record has one */
};

/* Map and validate wholly. False, and nothing is left open, when it is refused. */
bool schedule_open(struct schedule *, const char *path, struct refusal *);
void schedule_close(struct schedule *);

#endif
