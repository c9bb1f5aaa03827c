/* Devices that complete requests in the system call, such as zram. If their driver takes no request without waiting,
   io_uring hands each to another thread. That costs about as much CPU time as the request itself, and its latency would
   be that of a wake-up. So the issuing thread executes short requests itself; long ones would delay those behind.

   Without deadlines, if the depth is enough for both and CPUs are left over, those other threads execute requests too:
   then one issuing thread reads 1.5 instead of 0.9 million blocks a second from zram. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine.h"

/* Reads of one block in which the thread must not have slept. */
#define TRIES 16
#define LONGEST_BYTES 16384
/* Requests of an issuing thread, from which on it hands some over; the most of them at a time; and how few of them are
   left when it hands over more, because each hand-over wakes a thread. */
#define LEAST_SHARE 32
#define MOST_HANDED 28
#define FEW_HANDED 14

static long sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* Return whether a block device takes no request without waiting. Reads nothing, because it asks at the device's
   end. */
static bool always_waits(const struct target *target, struct iovec *block)
{
    off_t end = lseek(target->file, 0, SEEK_END);
    return target->is_block_device && end > 0 && preadv2(target->file, block, 1, end, RWF_NOWAIT) < 0 &&
           errno == EOPNOTSUPP;
}

void target_find_synchronous(struct target *target)
{
    struct iovec block = {.iov_len = target->block_bytes};
    if (posix_memalign(&block.iov_base, 4096, block.iov_len))
        return;
    if (always_waits(target, &block)) {
        long before = sleeps();
        unsigned tries = 0;
        while (tries < TRIES && pread(target->file, block.iov_base, block.iov_len, 0) == (ssize_t)block.iov_len &&
               sleeps() == before)
            tries++;
        target->synchronous = tries == TRIES;
    }
    free(block.iov_base);
}

static bool hands_over(struct issuer *issuer, uint32_t limit)
{
    const struct engine *engine = issuer->engine;
    if (!issuer->watch_ns || engine->schedule->deadlines || limit / engine->options->threads < LEAST_SHARE)
        return false;
    if (issuer->in_flight <= FEW_HANDED || issuer->in_flight >= MOST_HANDED)
        issuer->hands_over = issuer->in_flight <= FEW_HANDED;
    return issuer->hands_over;
}

bool is_synchronous(struct issuer *issuer, const struct schedule_record *record, uint32_t limit)
{
    return issuer->engine->targets[target_of(record)].synchronous && record->operation <= WRITE &&
           record->length_bytes <= LONGEST_BYTES && !hands_over(issuer, limit);
}

void issue_synchronously(struct issuer *issuer, uint32_t number)
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
    issuer->synchronous_ns = elapsed_ns(engine);
    issuer->synchronous++;
    issuer->places++; /* its place is free again */
    if (result->in_flight > issuer->synchronous_most)
        issuer->synchronous_most = result->in_flight;
    complete(issuer, number, outcome, issuer->synchronous_ns);
}

void count_synchronous(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    struct results_header *header = engine->results->header;
    __atomic_store_n(&header->synchronous, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->issued, issuer->synchronous, __ATOMIC_RELAXED);
    results_raise(&header->most_in_flight, issuer->synchronous_most);
    count_completed(issuer, issuer->synchronous, issuer->synchronous_ns, issuer->synchronous_ns);
    pager_set_position(&engine->pager, __atomic_load_n(&engine->taken, __ATOMIC_RELAXED));
    issuer->synchronous = issuer->synchronous_most = 0;
}
