/* The two files of a replay. They are mapped completely, but only the part in use is resident. */
#pragma once

#include <stddef.h>

#include "records.h"
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

/* Limit of all times, 36 years: longer than any replay, but the sum of two times is far below the limit of 64 bits. */
#define LONGEST_NS (UINT64_C(1) << 60)

/* Used only after every record is validated. */
struct schedule {
    struct mapped mapped;
    struct schedule_header header;
    const struct schedule_record *records;
    uint64_t operations[OPERATIONS]; /* records of each */
    uint64_t longest[OPERATIONS]; /* bytes */
    bool dependencies; /* whether any record has one */
    bool changes; /* whether any record changes the target */
};

/* Map and validate the whole schedule; false with a refusal on failure. */
bool schedule_open(struct schedule *, const char *path, struct refusal *);

/* Created by the caller of the engine, always up to date. */
struct results {
    struct mapped mapped;
    struct results_header *header;
    struct result_record *records;
};

/* Map an empty results file for this schedule with room for `count` requests. */
bool results_open(struct results *, const char *path, uint64_t count, uint64_t schedule_checksum, struct refusal *);

/* Store the state after everything else, so that a reader of the state also sees the results. */
static inline void results_set_state(struct results *results, enum state state)
{
    __atomic_store_n(&results->header->state, (uint32_t)state, __ATOMIC_RELEASE);
}

/* Raise a number of the header; threads may do so at the same time. */
static inline void results_raise(uint64_t *number, uint64_t value)
{
    uint64_t now = __atomic_load_n(number, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(number, &now, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* A thread that loads the next pages of schedule and results and drops old pages. So no page fault delays a request,
   and memory use stays small for any trace length. */
struct pager {
    const struct schedule *schedule;
    const struct results *results;
    uint64_t position; /* requests taken from the file; stored by the engine, atomically */
};

/* Load the first pages and start the thread, which ends with the program. */
bool pager_start(struct pager *, struct refusal *);
