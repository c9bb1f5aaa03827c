/* A thread that brings in the pages of schedule and results that are needed next and drops those that are behind:
   no page fault stands between a request and its time, and memory stays small however long the trace is. */
#ifndef DRIVELAB_REPLAY_PAGER_H
#define DRIVELAB_REPLAY_PAGER_H

#include "results.h"
#include "schedule.h"

struct pager {
    const struct schedule *schedule;
    const struct results *results;
    uint64_t position; /* requests taken from the file; stored by the engine, atomically */
};

static inline void pager_tell(struct pager *pager, uint64_t position)
{
    __atomic_store_n(&pager->position, position, __ATOMIC_RELAXED);
}

/* What is needed first is there when it returns. The thread ends with the program. */
bool pager_start(struct pager *, struct refusal *);

#endif
