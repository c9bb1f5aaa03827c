/* Memory for the requests: write data in which no two blocks are equal, and room for reads.

   Each block of a write has a key, a function of the seed, the request's index and the block's number in the request.
   The first word of a block is the key, and the rest is the random data of the area, which costs no time: to write all
   words would take about 1 us for 4 KiB. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "files.h"

#define BLOCK_BITS 17 /* of a block's number in its request, at most 64 MiB of 512 bytes */

enum { WRITE_BUFFER, READ_BUFFER, BUFFERS };

/* One area, allocated in units; a byte for each unit says whether a request in flight uses it. */
struct pool {
    struct iovec area;
    unsigned char *busy;
    size_t units, next; /* where the search begins */
};

struct buffers {
    struct pool pools[BUFFERS];
    bool registered; /* false: all pieces, also those in the areas, are plain memory for the ring */
    size_t read_registered_bytes; /* of the read area; the write area is registered completely */
    size_t spare_bytes;
    uint64_t seed;
    uint32_t unit_bytes, block_bytes;
};

/* Memory that one read or write uses exclusively until it is given back. */
struct piece {
    unsigned char *at; /* NULL: none */
    uint32_t bytes, units;
    bool registered; /* in the part of an area that is registered if buffers->registered */
    uint8_t buffer; /* WRITE_BUFFER or READ_BUFFER */
};

bool buffers_make(struct buffers *, const struct schedule *, uint64_t seed, struct refusal *);
/* Return the part of an area to register. */
struct iovec buffers_to_register(const struct buffers *, unsigned buffer);

/* Take the data of a write, which is request `index` of the replay. If requests in flight use the whole area, take
   memory beyond it, which costs more time; `at` is NULL if that is also used up. */
struct piece buffers_take_data(struct buffers *, uint32_t bytes, uint64_t index);
/* Take the lowest free room for a read, which stays in the CPU cache at small depths; `at` is NULL if there is none.
   Reads never share memory: a target that verifies data in the memory of the request (btrfs, T10-PI, dm-integrity)
   would find the data of another request and report an error. */
struct piece buffers_take_room(struct buffers *, uint32_t bytes);
void buffers_give_back(struct buffers *, struct piece *);
