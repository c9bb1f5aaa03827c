#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

bool mapped_open(struct mapped *mapped, const char *path, const char *kind, bool writable, size_t least_bytes,
                 enum status status, struct refusal *refusal)
{
    struct stat about;
    int file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &about))
        return refuse(refusal, status, "%s: cannot open the replay's %s (%s)", path, kind, strerror(errno));
    if (!S_ISREG(about.st_mode) || about.st_size < (off_t)least_bytes)
        return refuse(refusal, status, "%s: is not a %s of a replay", path, kind);
    mapped->bytes = (size_t)about.st_size;
    mapped->at = mmap(NULL, mapped->bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    if (mapped->at == MAP_FAILED)
        return refuse(refusal, status, "%s: cannot map the replay's %s (%s)", path, kind, strerror(errno));
    close(file);
    return true;
}

void mapped_populate(const struct mapped *mapped, size_t from, size_t to, bool writable)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (to > mapped->bytes)
        to = mapped->bytes;
    if (from >= to)
        return;
    from -= from % page;
    if (!madvise(mapped->at + from, to - from, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) || errno != EINVAL)
        return;
    /* Before Linux 5.14. An atomic OR with 0 does not lose a concurrent store of another thread. */
    for (size_t at = from; at < to; at += page) {
        if (writable)
            __atomic_fetch_or(mapped->at + at, 0, __ATOMIC_RELAXED);
        else
            __atomic_load_n(mapped->at + at, __ATOMIC_RELAXED);
    }
}

void mapped_drop(const struct mapped *mapped, size_t from, size_t to)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    from += (page - from % page) % page;
    to -= to % page;
    if (from < to && to <= mapped->bytes)
        madvise(mapped->at + from, to - from, MADV_DONTNEED);
}

bool results_open(struct results *results, const char *path, uint64_t count, uint64_t schedule_checksum,
                  struct refusal *refusal)
{
    *results = (struct results){0};
    if (!mapped_open(&results->mapped, path, "results file", true, RESULTS_HEADER_BYTES, BAD_RESULTS, refusal))
        return false;
    struct results_header *header = (struct results_header *)results->mapped.at;
    results->header = header;
    results->records = (struct result_record *)(results->mapped.at + RESULTS_HEADER_BYTES);
    uint64_t room = (results->mapped.bytes - RESULTS_HEADER_BYTES) / sizeof(struct result_record);
    if (memcmp(header->magic, RESULTS_MAGIC, sizeof header->magic) || header->header_bytes != RESULTS_HEADER_BYTES ||
        header->record_bytes != sizeof(struct result_record) || header->capacity > room)
        return refuse(refusal, BAD_RESULTS, "%s: is not a results file of a replay", path);
    if (header->state != PREPARED)
        return refuse(refusal, BAD_RESULTS, "%s: the results file was already used; create a new one", path);
    if (header->schedule_checksum != schedule_checksum)
        return refuse(refusal, BAD_RESULTS, "%s: the results file belongs to another schedule", path);
    if (header->capacity < count)
        return refuse(refusal, BAD_RESULTS, "%s: the results file has room for %" PRIu64 " requests, but the replay "
                      "has %" PRIu64, path, header->capacity, count);
    return true;
}
