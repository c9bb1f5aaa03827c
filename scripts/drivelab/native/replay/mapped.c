#include "mapped.h"

#include <errno.h>
#include <fcntl.h>
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
