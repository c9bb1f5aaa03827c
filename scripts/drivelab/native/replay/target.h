/* The approved target: a block device or a file. */
#pragma once

#include <liburing.h>

#include "files.h"

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

/* NVMe passthrough: requests as NVMe commands to the character device of the target's namespace (/dev/ngXnY), past the
   block layer. */

/* A range to deallocate: NVM command set specification 1.0, figure 40. */
struct nvme_range {
    uint32_t attributes, blocks;
    uint64_t start;
};

/* Open the character device and make it the way to the opened block device `target`. False with a refusal, and nothing
   written, if it is another namespace, or if a request of the schedule does not fit into one command. */
bool nvme_open(struct target *, const char *path, const struct schedule *, struct refusal *);
/* Put a request into an entry of a ring with large entries; `data` is its buffer, `range` memory for a deallocation. */
void nvme_put(struct io_uring_sqe *, const struct target *, const struct schedule_record *, void *data,
              struct nvme_range *range);
/* Return a completion's result as the block layer gives it: bytes, 0, or -errno. */
static inline int32_t nvme_result(int32_t result, uint32_t bytes)
{
    return result < 0 ? result : result ? -EIO : (int32_t)bytes;
}
