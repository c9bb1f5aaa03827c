/* What is read and written: a block device or a file, and only the very one that was approved. */
#ifndef DRIVELAB_REPLAY_TARGET_H
#define DRIVELAB_REPLAY_TARGET_H

#include <stdint.h>

#include "schedule.h"

struct target {
    int file;
    bool is_block_device;
};

/* Open with O_DIRECT, for writing only if the schedule changes anything. Nothing is written.
   `identity` is "block MAJOR:MINOR DISKSEQ" ("-" from a kernel before 5.15, which has none) or "file DEVICE:INODE". */
bool target_open(struct target *, const char *path, const char *identity, const struct schedule *, struct refusal *);

#endif
