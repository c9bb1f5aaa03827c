/* Requests that the issuing thread executes by system calls, for zram since Linux 6.5: its driver completes a request in
   the call, but takes none without waiting, so io_uring hands each to another thread. That costs about as much CPU time
   as the request itself, and its latency would be that of a wake-up. Long requests would delay those behind, so they
   stay in the ring.

   Without deadlines, if the depth is enough for both and CPUs are left over, those other threads execute requests too:
   then one issuing thread reads 1.5 instead of 0.9 million blocks a second. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine.h"

#define LONGEST_BYTES 16384
/* A thread shares its requests only from this depth on. It then hands over until MOST_HANDED are in flight, and again
   when FEW_HANDED are left, because each hand-over wakes a thread. */
#define LEAST_SHARED 32
#define MOST_HANDED 28
#define FEW_HANDED 14

/* Return whether a block device is a zram device that keeps all data in memory, not on a backing device. */
static bool is_zram(const struct target *target)
{
    struct stat about;
    char path[64], link[256], backing[8] = "";
    if (!target->is_block_device || fstat(target->file, &about))
        return false;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(about.st_rdev), minor(about.st_rdev));
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return false;
    link[length] = '\0';
    const char *name = strrchr(link, '/');
    if (!name || strncmp(name, "/zram", 5))
        return false;
    strcat(path, "/backing_dev");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) /* the kernel has none */
        return errno == ENOENT;
    bool is_read = read(file, backing, sizeof backing - 1) >= 0;
    close(file);
    return is_read && !strcmp(backing, "none\n");
}

/* Return whether the driver takes no request without waiting. Reads nothing, because it asks at the device's end. */
static bool always_waits(const struct target *target)
{
    struct iovec block = {.iov_len = target->block_bytes};
    off_t end = lseek(target->file, 0, SEEK_END);
    if (end <= 0 || posix_memalign(&block.iov_base, 4096, block.iov_len))
        return false;
    bool refused = preadv2(target->file, &block, 1, end, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP;
    free(block.iov_base);
    return refused;
}

bool may_execute(const struct engine *engine)
{
    const struct options *options = engine->options;
    /* With real-time priority, a thread must sleep while the device works (see loop.c). */
    bool possible = !options->nvme && !options->polled && !options->kernel_thread && !options->priority;
    for (unsigned i = 0; i < options->targets; i++)
        possible = possible && is_zram(&engine->targets[i]) && always_waits(&engine->targets[i]);
    return possible;
}

static bool hands_over(struct issuer *issuer, uint32_t limit)
{
    const struct engine *engine = issuer->engine;
    if (!issuer->watch_ns || engine->schedule->deadlines || limit / engine->options->threads < LEAST_SHARED)
        return false;
    if (issuer->in_flight <= FEW_HANDED || issuer->in_flight >= MOST_HANDED)
        issuer->hands_over = issuer->in_flight <= FEW_HANDED;
    return issuer->hands_over;
}

bool execute_next(struct issuer *issuer, const struct schedule_record *record, uint32_t limit)
{
    return issuer->engine->may_execute && record->operation <= WRITE && record->length_bytes <= LONGEST_BYTES &&
           !hands_over(issuer, limit);
}

void execute(struct issuer *issuer, uint32_t number, uint32_t limit)
{
    struct engine *engine = issuer->engine;
    struct slot *slot = &issuer->slots[number];
    const struct schedule_record *record = engine_record(engine, slot->index);
    struct result_record *result = &engine->results->records[slot->index];
    int file = engine->targets[target_of(record)].file;
    struct iovec data = {.iov_base = slot->piece.at, .iov_len = slot->length_bytes};
    result->issue_ns = (uint64_t)elapsed_ns(engine);
    __atomic_store_n(&result->state, ISSUED, __ATOMIC_RELEASE);
    ssize_t moved = record->operation == READ
                        ? pread(file, data.iov_base, data.iov_len, (off_t)record->offset_bytes)
                        : pwritev2(file, &data, 1, (off_t)record->offset_bytes, record->flags & FUA ? RWF_DSYNC : 0);
    int32_t outcome = moved < 0 ? -errno : (int32_t)moved;
    issuer->executed_ns = elapsed_ns(engine);
    issuer->executed++;
    issuer->places++; /* its place is free again */
    if (result->in_flight > issuer->most_executed)
        issuer->most_executed = result->in_flight;
    if (result->in_flight >= limit) /* a request that became due meanwhile had no place */
        issuer->blocked_ns = issuer->executed_ns;
    complete(issuer, number, outcome, issuer->executed_ns);
}

void count_executed(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    struct results_header *header = engine->results->header;
    __atomic_store_n(&header->synchronous, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->issued, issuer->executed, __ATOMIC_RELAXED);
    results_raise(&header->most_in_flight, issuer->most_executed);
    count_completed(issuer, issuer->executed, issuer->executed_ns, issuer->executed_ns);
    pager_set_position(&engine->pager, __atomic_load_n(&engine->taken, __ATOMIC_RELAXED));
    issuer->executed = issuer->most_executed = 0;
}
