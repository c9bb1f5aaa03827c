/* Which write the data of each read came from: a file with a word for each block that the schedule reads, created by
   the caller. The writes are those of the schedule, and behind them those of the prefill before it. The caller compares
   afterwards, when the order of all requests is known. Issuing threads look at returned data only while no request is
   due and no completion is there; until then they keep the memory of the read. */
#ifndef DRIVELAB_REPLAY_ORIGINS_H
#define DRIVELAB_REPLAY_ORIGINS_H

#include "buffers.h"
#include "mapped.h"
#include "records.h"

struct origins {
    struct mapped file, firsts, blocks; /* file: all; the two parts of it, for the pager */
    const uint64_t *first; /* place of each request's first block in `block` */
    uint64_t *block;
    uint64_t prefilled; /* requests of the prefill */
};

/* Map the file for this schedule. */
bool origins_open(struct origins *, const char *path, const struct schedule *, uint64_t prefilled, struct refusal *);

/* A completed read whose data is not yet looked at. */
struct returned {
    struct piece piece;
    uint64_t index;
    uint32_t done; /* bytes */
};

/* Those of one thread, oldest first. */
struct unseen {
    struct returned reads[MOST_IN_FLIGHT];
    uint32_t first, count;
};

/* Take over the memory of a completed read. */
void origins_take(const struct origins *, struct unseen *, struct buffers *, const struct schedule *,
                  struct piece *, uint64_t index);
/* Look at the next block; give the memory of the read back after its last. At least one read is unseen. */
void origins_look(const struct origins *, struct unseen *, struct buffers *, const struct schedule *);

#endif
