/* Completely mapped files, of which only the part in use is resident. */
#pragma once

#include <stddef.h>
#include <stdbool.h>

#include "refusal.h"

struct mapped {
    unsigned char *at;
    size_t bytes;
};

/* Map a regular file of at least `least_bytes`, until the end of the program; `kind` is its name in a refusal. */
bool mapped_open(struct mapped *, const char *path, const char *kind, bool writable, size_t least_bytes,
                 enum status, struct refusal *);

/* Bring the pages of [from, to) into memory and the page table, so that accesses cause no page faults. */
void mapped_populate(const struct mapped *, size_t from, size_t to, bool writable);
/* Drop the pages completely within [from, to) from memory; the file keeps their content. */
void mapped_drop(const struct mapped *, size_t from, size_t to);
