#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef BLKGETDISKSEQ
#define BLKGETDISKSEQ _IOR(0x12, 128, uint64_t)
#endif

static void format_identity(int file, const struct stat *about, char *identity, size_t size)
{
    uint64_t number;
    if (S_ISREG(about->st_mode))
        snprintf(identity, size, "file %ju:%ju", (uintmax_t)about->st_dev, (uintmax_t)about->st_ino);
    else if (!S_ISBLK(about->st_mode))
        snprintf(identity, size, "neither a block device nor a file");
    else if (ioctl(file, BLKGETDISKSEQ, &number))
        snprintf(identity, size, "block %u:%u -", major(about->st_rdev), minor(about->st_rdev));
    else
        snprintf(identity, size, "block %u:%u %" PRIu64, major(about->st_rdev), minor(about->st_rdev), number);
}

static bool fits(struct target *target, const char *path, const struct stat *about, const struct schedule *schedule,
                 struct refusal *refusal)
{
    uint64_t needed = schedule->header.target_bytes;
    uint64_t bytes = (uint64_t)about->st_size;
    int block_bytes = 1;
    if (target->is_block_device &&
        (ioctl(target->file, BLKGETSIZE64, &bytes) || ioctl(target->file, BLKSSZGET, &block_bytes)))
        return refuse(refusal, BAD_TARGET, "%s: cannot get the size of the target (%s)", path, strerror(errno));
    if (bytes < needed)
        return refuse(refusal, BAD_TARGET, "%s: the target has %" PRIu64 " bytes, the schedule is for %" PRIu64
                      "; prepare the replay for this target", path, bytes, needed);
    if (schedule->header.block_bytes % (uint32_t)block_bytes)
        return refuse(refusal, BAD_TARGET, "%s: the target has logical blocks of %d bytes, the schedule is for %" PRIu32
                      "; prepare the replay for this target", path, block_bytes, schedule->header.block_bytes);
    target->block_bytes = (uint32_t)block_bytes;
    return true;
}

bool target_open(struct target *target, const char *path, const char *identity, const struct schedule *schedule,
                 struct refusal *refusal)
{
    /* O_NONBLOCK: opening a pipe by mistake must not wait. The flag has no effect on other files. */
    int access = schedule->changes ? O_RDWR : O_RDONLY;
    target->file = open(path, access | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
    if (target->file < 0 && errno == EINVAL)
        return refuse(refusal, BAD_TARGET, "%s: the target's file system does not support direct I/O (O_DIRECT); use "
                      "another", path);
    if (target->file < 0)
        return refuse(refusal, BAD_TARGET, "%s: cannot open the target (%s)", path, strerror(errno));
    struct stat about;
    char actual[128];
    if (fstat(target->file, &about))
        return refuse(refusal, BAD_TARGET, "%s: cannot examine the target (%s)", path, strerror(errno));
    format_identity(target->file, &about, actual, sizeof actual);
    target->is_block_device = S_ISBLK(about.st_mode);
    if (strcmp(actual, identity))
        return refuse(refusal, BAD_TARGET, "%s: the target is '%s', but '%s' was approved; nothing was written", path,
                      actual, identity);
    if (fcntl(target->file, F_SETFL, O_DIRECT))
        return refuse(refusal, BAD_TARGET, "%s: the target refuses direct I/O (%s)", path, strerror(errno));
    return fits(target, path, &about, schedule, refusal);
}
