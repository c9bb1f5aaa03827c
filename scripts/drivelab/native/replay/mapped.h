/* Files mapped as a whole, of which only what is about to be used is resident. */
#ifndef DRIVELAB_REPLAY_MAPPED_H
#define DRIVELAB_REPLAY_MAPPED_H

#include <stddef.h>
#include <stdbool.h>

#include "refusal.h"

struct mapped {
    unsigned char *at;
    size_t bytes;
};

/* Map a regular file; `kind` is its name in a refusal. At least `least_bytes`, or it is refused. */
bool mapped_open(struct mapped *, const char *path, const char *kind, bool writable, size_t least_bytes,
                 enum status, struct refusal *);
void mapped_close(struct mapped *);

/* Bring the pages of [from, to) into memory and the page table, so that touching them faults no more. */
void mapped_populate(const struct mapped *, size_t from, size_t to, bool writable);
/* Forget the pages that lie wholly in [from, to); the file keeps what was written to them. */
void mapped_drop(const struct mapped *, size_t from, size_t to);

#endif
