/* Memory of the requests: data to be written, no two blocks of it ever equal, and a sink for what is read. */
#ifndef DRIVELAB_REPLAY_BUFFERS_H
#define DRIVELAB_REPLAY_BUFFERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "schedule.h"

enum { WRITE_BUFFER, READ_BUFFER, BUFFERS };

struct buffers {
    struct iovec areas[BUFFERS]; /* to be registered */
    unsigned char *busy;         /* one byte for each unit of the write area: a request in flight has it */
    size_t units, next_unit, next_read, spare_bytes;
    uint64_t stamp;
    uint32_t unit_bytes, block_bytes;
};

/* A piece of memory that a write has until it is given back. */
struct piece {
    unsigned char *at; /* NULL: none */
    uint32_t bytes, units;
    bool spare; /* beyond the registered area */
};

bool buffers_make(struct buffers *, const struct schedule *, uint64_t seed, struct refusal *);

/* Fresh data. While requests in flight have all of the area, memory beyond it, which costs more time; `at` NULL when
   there is none of that either. */
struct piece buffers_take(struct buffers *, uint32_t bytes);
void buffers_give_back(struct buffers *, struct piece *);

/* Where to read to; others may be reading to the same place. */
unsigned char *buffers_sink(struct buffers *, uint32_t bytes);

#endif
