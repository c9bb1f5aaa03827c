/* Match events to requests: which dispatches and completions belong to which queued request. Parts of the matcher:
   match.c (events and rows), segments.c (queued segments), flushes.c (flushes). */
#pragma once

#include "multimap.h"
#include "records.h"

#define NEVER INT64_MIN
/* Memory limits: entries beyond them are dropped, oldest first, and counted. */
#define MOST_WAITING (1u << 19)
#define WINDOW (1u << 19)          /* rows from the oldest one that has not been given out */
#define MOST_REMEMBERED (1u << 16) /* ends of flush sequences, dispatched flushes */
#define MOST_CORRECTIONS (1u << 20)
/* Number of rows held back although they are complete, because the end of a flush sequence may still come. */
#define HOLD 8192u
#define MOST_SCANNED 1024u /* entries of one place that are scanned */
#define MOST_TRIED 4096u   /* segments that are tried for one dispatch, and that it may contain */

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

struct segment {
    struct entry entry;
    uint64_t first; /* the key at dispatch; partial completions advance the key */
    uint32_t bytes, row, next_member;
    bool marked;
};

struct dispatch {
    struct entry entry;
    uint32_t left_bytes, first_member;
};

/* A queued flush without data, or the end of a flush sequence. */
struct flush {
    struct entry entry;
    uint64_t kinds; /* of an end: SYNC and META of the completion of the data */
    uint32_t row;
};

struct matcher {
    struct pool rows;
    uint32_t window[WINDOW]; /* rows in order of time */
    uint64_t window_start, window_end;
    struct multimap segments, dispatches, ends, flushes;
    int64_t flush_dispatches[MOST_REMEMBERED];
    uint64_t flushes_dispatched, flushes_completed;
    int64_t last_flush;
    int64_t order, requeue_order, dispatch_ids;
    uint64_t device_flushes;
    uint64_t mismatches[MISMATCHES];
    struct correction corrections[MOST_CORRECTIONS];
    uint64_t correction_count; /* may exceed MOST_CORRECTIONS */
    uint32_t parts[MOST_TRIED];
    int64_t last_time;
    bool finished, from_dispatch;
};

/* Begin with a matcher of zeros. With `from_dispatch`, requests begin with their dispatch, for a trace without queue
   events. False without memory. */
bool matcher_init(struct matcher *, bool from_dispatch);
void matcher_free(struct matcher *);

/* Handle an event other than a note. `process` is an index chosen by the caller. False without memory. */
bool matcher_event(struct matcher *, const struct event *, int64_t time, int32_t process);
/* End the trace; open requests stay open. */
void matcher_finish(struct matcher *);

/* Take the earliest row if it will not change, or if too many rows wait; else return false. */
bool matcher_take(struct matcher *, struct row *to);

static inline struct row *row_at(const struct matcher *m, uint32_t i) { return (struct row *)m->rows.content + i; }

static inline struct segment *segment_at(const struct matcher *m, uint32_t i)
{
    return multimap_at(&m->segments, i);
}

enum direction { READS, WRITES, DISCARDS, ZEROES };

/* Discards also have the write bit, so they are checked first. */
static inline enum direction direction(uint64_t action)
{
    if (action & BIT(CAT_DISCARD))
        return DISCARDS;
    if (action & BIT(CAT_WRITE_ZEROES))
        return ZEROES;
    return action & (BIT(CAT_WRITE) | BIT(CAT_ZONE_APPEND)) ? WRITES : READS;
}

static inline uint64_t key_of(uint64_t action, uint64_t sector) { return sector << 2 | direction(action); }
static inline uint64_t key_after(uint64_t key, uint32_t bytes) { return key + ((uint64_t)(bytes / SECTOR_BYTES) << 2); }

/* REQ_OP_FLUSH is even, so the kernel marks it as a read; a queued empty flush is a write. */
static inline bool is_device_flush(const struct event *event)
{
    return event->bytes == 0 && event->action & BIT(CAT_FLUSH) && !(event->action & BIT(CAT_WRITE));
}

/* match.c */
void drop_if_done(struct matcher *, uint32_t row);

/* segments.c */
bool queue_segment(struct matcher *, uint32_t row, uint64_t key, uint32_t bytes, int64_t order);
void close_segment(struct matcher *, uint32_t segment);
bool split(struct matcher *, const struct event *);
void mark_merged(struct matcher *, const struct event *);
bool take_segments(struct matcher *, uint64_t key, uint32_t bytes, uint32_t *count);

/* flushes.c */
bool queue_flush(struct matcher *, uint32_t row, int64_t order);
void close_flush(struct matcher *, uint32_t flush);
uint32_t find_flush(const struct matcher *, bool dispatched);
void dispatch_flush(struct matcher *, int64_t time);
bool remember_end(struct matcher *, uint32_t row, uint64_t key, uint64_t action);
void forget_end(struct matcher *, uint32_t end);
void requeue_flush(struct matcher *);
void complete_empty(struct matcher *, const struct event *, int64_t time);
