#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <linux/nvme_ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target.h"

/* NVM Express base specification 2.0, section 5.17, and NVM command set specification 1.0, section 3. */
enum { FLUSH_COMMAND = 0x00, WRITE_COMMAND = 0x01, READ_COMMAND = 0x02, ZEROES_COMMAND = 0x08, DATASET_COMMAND = 0x09 };
#define IDENTIFY_COMMAND 0x06u
#define IDENTIFY_CONTROLLER 1u
#define IDENTIFY_BYTES 4096u
#define NAMES_AT 4u /* serial number, model number and firmware revision */
#define NAMES_BYTES 68u
#define FORCE_UNIT_ACCESS (UINT32_C(1) << 30)
#define DEALLOCATE (UINT32_C(1) << 2)
#define MOST_ZEROED_BLOCKS 65536u
#define PAGE_BYTES 4096u

/* Read the kernel's name of an open device; sysfs has a link for each device number. */
static bool name_of(const char *kind, dev_t number, char *name, size_t size)
{
    char link[64], place[PATH_MAX];
    snprintf(link, sizeof link, "/sys/dev/%s/%u:%u", kind, major(number), minor(number));
    ssize_t length = readlink(link, place, sizeof place - 1);
    if (length < 0)
        return false;
    place[length] = '\0';
    snprintf(name, size, "%s", basename(place));
    return true;
}

static bool controller(int file, unsigned char *page)
{
    struct nvme_admin_cmd command = {.opcode = IDENTIFY_COMMAND, .addr = (uint64_t)(uintptr_t)page,
                                     .data_len = IDENTIFY_BYTES, .cdw10 = IDENTIFY_CONTROLLER};
    return ioctl(file, NVME_IOCTL_ADMIN_CMD, &command) == 0;
}

/* The kernel names the two nodes of a namespace nvmeXnY and ngXnY, and keeps both names while one is open. The
   controller's own names are compared as well, as the drive itself gives them. */
static bool same_namespace(int block, int character, const struct stat *of_block, const struct stat *of_character)
{
    char name[64], other[64];
    static unsigned char mine[IDENTIFY_BYTES], its[IDENTIFY_BYTES];
    int number = ioctl(block, NVME_IOCTL_ID);
    return name_of("block", of_block->st_rdev, name, sizeof name) &&
           name_of("char", of_character->st_rdev, other, sizeof other) && !strncmp(name, "nvme", 4) &&
           !strncmp(other, "ng", 2) && !strcmp(name + 4, other + 2) && number > 0 &&
           ioctl(character, NVME_IOCTL_ID) == number && controller(block, mine) && controller(character, its) &&
           !memcmp(mine + NAMES_AT, its + NAMES_AT, NAMES_BYTES);
}

static uint64_t queue_limit(dev_t number, const char *name)
{
    char path[128], text[32] = "";
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/%s", major(number), minor(number), name);
    FILE *file = fopen(path, "r");
    if (file) {
        if (!fgets(text, sizeof text, file))
            text[0] = '\0';
        fclose(file);
    }
    return strtoull(text, NULL, 10);
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Unlike the block layer, the driver does not split a request. */
static bool fits_commands(const char *path, dev_t number, const struct schedule *schedule, uint32_t block_bytes,
                          struct refusal *refusal)
{
    uint64_t most_zeroes = (uint64_t)MOST_ZEROED_BLOCKS * block_bytes;
    uint64_t zeroes = smaller(queue_limit(number, "write_zeroes_max_bytes"), most_zeroes);
    /* a buffer may begin within a page */
    uint64_t moved = smaller(queue_limit(number, "max_hw_sectors_kb") << 10,
                             (queue_limit(number, "max_segments") - 1) * PAGE_BYTES);
    const uint64_t most[OPERATIONS] = {
        [READ] = moved, [WRITE] = moved, [FLUSH] = UINT64_MAX,
        [DISCARD] = queue_limit(number, "discard_max_bytes"), [WRITE_ZEROES] = zeroes,
    };
    static const char *const words[OPERATIONS] = {"reads", "writes", "flushes", "discards", "write-zeroes requests"};
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        if (schedule->longest[operation] > most[operation])
            return refuse(refusal, BAD_TARGET, "%s: the schedule has %s of %" PRIu64 " bytes, but one NVMe command of "
                          "this drive has at most %" PRIu64 "; replay without NVMe passthrough, as the block layer "
                          "divides long requests", path, words[operation], schedule->longest[operation],
                          most[operation]);
    }
    return true;
}

bool nvme_open(struct target *target, const char *path, const struct schedule *schedule, struct refusal *refusal)
{
    struct stat block, character;
    int file = open(path, (schedule->changes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return refuse(refusal, BAD_TARGET, "%s: cannot open the NVMe device (%s)", path, strerror(errno));
    if (fstat(target->file, &block) || fstat(file, &character) || !S_ISBLK(block.st_mode) ||
        !S_ISCHR(character.st_mode) || !same_namespace(target->file, file, &block, &character))
        return refuse(refusal, BAD_TARGET, "%s: is not the NVMe character device of the approved target; nothing was "
                      "written", path);
    target->nvme = file;
    target->namespace = (uint32_t)ioctl(file, NVME_IOCTL_ID);
    return fits_commands(path, block.st_rdev, schedule, target->block_bytes, refusal);
}

void nvme_put(struct io_uring_sqe *sqe, const struct target *target, const struct schedule_record *record, void *data,
              struct nvme_range *range)
{
    uint64_t start = record->offset_bytes / target->block_bytes;
    uint32_t blocks = (uint32_t)(record->length_bytes / target->block_bytes);
    struct nvme_uring_cmd *command = (struct nvme_uring_cmd *)sqe->cmd;
    memset(sqe, 0, 2 * sizeof *sqe);
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->cmd_op = NVME_URING_CMD_IO;
    command->nsid = target->namespace;
    if (record->operation == FLUSH) {
        command->opcode = FLUSH_COMMAND;
    } else if (record->operation == DISCARD) {
        *range = (struct nvme_range){.blocks = blocks, .start = start};
        command->opcode = DATASET_COMMAND;
        command->addr = (uint64_t)(uintptr_t)range;
        command->data_len = sizeof *range;
        command->cdw11 = DEALLOCATE; /* cdw10 is the number of ranges minus 1 */
    } else {
        bool moves = record->operation != WRITE_ZEROES;
        command->opcode = !moves ? ZEROES_COMMAND : record->operation == READ ? READ_COMMAND : WRITE_COMMAND;
        command->addr = (uint64_t)(uintptr_t)data;
        command->data_len = moves ? (uint32_t)record->length_bytes : 0;
        command->cdw10 = (uint32_t)start;
        command->cdw11 = (uint32_t)(start >> 32);
        command->cdw12 = (blocks - 1) | (record->flags & FUA ? FORCE_UNIT_ACCESS : 0);
    }
}
