/* The approved target: a block device or a file. */
#pragma once

#include <stdint.h>

#include "schedule.h"

struct target {
    int file;
    bool is_block_device;
    uint32_t block_bytes; /* logical block; 1 of a file */
    int nvme;             /* character device of the same namespace, if requests are NVMe commands; 0: none */
    uint32_t namespace;
};

/* Open the target of the schedule with O_DIRECT, for writing only if the schedule changes it; false with a refusal.
   Writes nothing.
   `identity` is "block MAJOR:MINOR DISKSEQ" (DISKSEQ "-" on a kernel before 5.15) or "file DEVICE:INODE". */
bool target_open(struct target *, const char *path, const char *identity, const struct schedule *, struct refusal *);
