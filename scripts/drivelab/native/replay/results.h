/* The results: mapped, made by whoever starts the engine, up to date at every moment. */
#ifndef DRIVELAB_REPLAY_RESULTS_H
#define DRIVELAB_REPLAY_RESULTS_H

#include "mapped.h"
#include "records.h"

struct results {
    struct mapped mapped;
    struct results_header *header;
    struct result_record *records;
};

/* Map an empty results file of that schedule with room for `count` requests. */
bool results_open(struct results *, const char *path, uint64_t count, uint64_t schedule_checksum, struct refusal *);

/* Last of all that is stored: who reads the state finds what it tells of. */
static inline void results_set_state(struct results *results, enum state state)
{
    __atomic_store_n(&results->header->state, (uint32_t)state, __ATOMIC_RELEASE);
}

#endif
