/* A thread that loads the next pages of schedule and results and drops old pages. So no page fault delays a request,
   and memory use stays small for any trace length. */
#pragma once

#include "results.h"
#include "schedule.h"

struct pager {
    const struct schedule *schedule;
    const struct results *results;
    uint64_t position; /* requests taken from the file; stored by the engine, atomically */
};

static inline void pager_set_position(struct pager *pager, uint64_t position)
{
    __atomic_store_n(&pager->position, position, __ATOMIC_RELAXED);
}

/* Load the first pages and start the thread, which ends with the program. */
bool pager_start(struct pager *, struct refusal *);
