/* The results file: mapped, created by the caller of the engine, always up to date. */
#pragma once

#include "mapped.h"
#include "records.h"

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
