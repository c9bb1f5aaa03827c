/* Match events to requests: which dispatches and completions belong to which queued request. */
#pragma once

#include "multimap.h"
#include "records.h"

#define NEVER INT64_MIN

struct row {
    int64_t queue, dispatch, complete; /* NEVER if there was none */
    int64_t dispatch_id;               /* -1 if there is none */
    uint64_t number;                   /* of the row, from 0 */
    uint64_t sector, action;
    uint32_t bytes, left_bytes; /* total, and not yet complete */
    uint32_t pid, cpu;
    int32_t process;
    uint32_t pieces, requeues;
    uint32_t open;    /* queued segments, and segments in flight */
    uint16_t error;
    uint32_t remembered; /* ends of flush sequences that may still come */
    bool given_out;
    bool changed; /* after it was given out */
};

enum mismatch {
    DISPATCHES, COMPLETIONS, REQUEUES, UNDISPATCHED, UNCOMPLETED, TIME_BACKWARDS, IMPOSSIBLE, FORGOTTEN, MISMATCHES
};

/* A row that changed after it had been given out. */
struct correction {
    uint64_t number;
    int64_t dispatch, complete, dispatch_id;
    uint32_t error, pieces, requeues, unused;
};

struct matcher;

/* With `from_dispatch`, requests begin with their dispatch, for a trace without queue events. */
struct matcher *matcher_new(bool from_dispatch);
void matcher_free(struct matcher *);

/* Handle an event other than a note. `process` is an index chosen by the caller. False without memory. */
bool matcher_event(struct matcher *, const struct event *, int64_t time, int32_t process);
/* End the trace; open requests stay open. */
void matcher_finish(struct matcher *);

/* Take the earliest row if it will not change, or if too many rows wait; else return false. */
bool matcher_take(struct matcher *, struct row *to);

const uint64_t *matcher_mismatches(const struct matcher *);
uint64_t matcher_device_flushes(const struct matcher *);
uint64_t matcher_rows(const struct matcher *);
const struct correction *matcher_corrections(const struct matcher *, uint64_t *count);
