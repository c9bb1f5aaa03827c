/* Memory of the requests: data to be written, no two blocks of it ever equal, and room for what is read. */
#ifndef DRIVELAB_REPLAY_BUFFERS_H
#define DRIVELAB_REPLAY_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "schedule.h"

enum { WRITE_BUFFER, READ_BUFFER, BUFFERS };

/* One area, given out in units; of each unit a byte tells whether a request in flight has it. */
struct pool {
    struct iovec area;
    unsigned char *busy;
    size_t units, next; /* where the search begins */
};

struct buffers {
    struct pool pools[BUFFERS];
    bool registered; /* false: all pieces are plain memory for the ring, those of the areas too */
    size_t read_registered_bytes; /* of the area for reads; that for writes is registered wholly */
    size_t spare_bytes;
    uint64_t stamp;
    uint32_t unit_bytes, block_bytes;
};

/* Memory that a read or write alone has until it is given back. */
struct piece {
    unsigned char *at; /* NULL: none */
    uint32_t bytes, units;
    bool registered; /* in the part of an area that is registered if anything is */
    uint8_t buffer; /* WRITE_BUFFER or READ_BUFFER */
};

bool buffers_make(struct buffers *, const struct schedule *, uint64_t seed, struct refusal *);
/* What is to be registered of each area. */
struct iovec buffers_to_register(const struct buffers *, unsigned buffer);

/* For a write: fresh data. While requests in flight have all of the area, memory beyond it, which costs more time;
   `at` NULL when there is none of that either. */
struct piece buffers_take_data(struct buffers *, uint32_t bytes);
/* For a read: the lowest room that is free, so that at small depths it stays within the CPU cache; `at` NULL when there
   is none. Never shared: a target that verifies what it has read in the very memory of the request (btrfs, T10-PI,
   dm-integrity) would find another one's data there and report an error. */
struct piece buffers_take_room(struct buffers *, uint32_t bytes);
void buffers_give_back(struct buffers *, struct piece *);

#endif
