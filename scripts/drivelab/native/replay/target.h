/* The approved targets: block devices or files. */
#ifndef DRIVELAB_REPLAY_TARGET_H
#define DRIVELAB_REPLAY_TARGET_H

#include <stdint.h>

#include "schedule.h"

struct target {
    int file;
    bool is_block_device;
    uint32_t block_bytes; /* logical block; 1 of a file */
    int nvme;             /* character device of the same namespace, if requests are NVMe commands; 0: none */
    uint32_t namespace;
};

/* Open the targets of the schedule with O_DIRECT, in its order; false with a refusal if they are not as many or not all
   different. Writes nothing.
   `identity` is "block MAJOR:MINOR DISKSEQ" (DISKSEQ "-" on a kernel before 5.15) or "file DEVICE:INODE". */
bool targets_open(struct target *, const char *const *paths, const char *const *identities, unsigned count,
                  const struct schedule *, struct refusal *);

#endif
