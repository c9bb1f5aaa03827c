/* The state of a running replay: what has been taken from the schedule, what is in flight, what waits. */
#ifndef DRIVELAB_REPLAY_ENGINE_H
#define DRIVELAB_REPLAY_ENGINE_H

#include <liburing.h>
#include <signal.h>

#include "blocking.h"
#include "buffers.h"
#include "clock.h"
#include "options.h"
#include "pager.h"
#include "parked.h"
#include "results.h"
#include "ring.h"
#include "schedule.h"
#include "target.h"

#define NEVER INT64_MAX
/* user_data of the read that completes when jobs of the threads end; requests have their slot's number. */
#define JOBS_ENDED UINT64_MAX

/* A request in flight. */
struct slot {
    uint64_t index;
    uint32_t length_bytes; /* bytes that a read or write must transfer */
    bool moves;
    struct piece piece;
};

/* Times are ns after the start, negative before it. */
struct engine {
    const struct options *options;
    struct schedule *schedule;
    struct results *results;
    struct target *target;
    struct buffers *buffers;
    struct blocking *blocking; /* NULL if the schedule does not need it */
    struct io_uring *ring;
    struct pager pager;
    struct parked parked;

    int64_t start_ns;  /* of the monotonic clock */
    int64_t margin_ns; /* shortest time to sleep; spin if less is left */
    int64_t watch_ns;  /* no sleep within this time after a submission or completion; 0 on a single CPU, which also
                          serves the drive, and with real-time priority */
    uint64_t total;    /* requests to issue */
    uint64_t taken;    /* requests taken from the file: issued or parked */
    uint64_t place;    /* index of the next request in the schedule: taken modulo its length */
    uint32_t in_flight;
    bool blocked;        /* a due request waits for the depth limit or for memory */
    int64_t blocked_ns;  /* last time at which this was so */
    int64_t submitted_ns; /* time of the last submission */
    int64_t progress_ns; /* time of the last completion, or of the last issue with nothing in flight */
    int64_t beat_ns;     /* time of the last heartbeat */

    uint32_t prepared; /* requests for the next submission */
    uint64_t batch[MOST_TOGETHER];
    struct job jobs[MOST_TOGETHER];
    uint32_t job_count;
    uint64_t ended; /* read from the threads' eventfd */

    bool stopping;
    enum state state; /* at the end */
    struct slot slots[MOST_IN_FLIGHT];
    uint16_t free_slots[MOST_IN_FLIGHT];
};

/* The signal that asked for an end; 0 if none. */
extern volatile sig_atomic_t asked_to_stop;

static inline int64_t elapsed_ns(const struct engine *engine) { return now_ns() - engine->start_ns; }

static inline void engine_stop(struct engine *engine, enum state state)
{
    if (!engine->stopping)
        engine->state = state;
    engine->stopping = true;
}

static inline const struct schedule_record *engine_record(const struct engine *engine, uint64_t index)
{
    return &engine->schedule->records[index < engine->schedule->header.count
                                          ? index : index % engine->schedule->header.count];
}

/* Prepare due requests, at most MOST_TOGETHER. Return when the next request can be issued without a completion before
   it, or NEVER. */
int64_t issue_due(struct engine *, int64_t now);
/* Submit the prepared requests. */
void issue_submit(struct engine *);
/* Submit what is still in the ring; false while the kernel has no memory for it. Never waits, so that signals, watchdog
   and heartbeat keep working. */
bool issue_submit_rest(struct engine *);

/* Process all available completions; return their number. */
uint32_t reap(struct engine *);
/* Listen for ended jobs of the threads. */
void reap_listen(struct engine *);

/* Run the whole replay; return its final state. The results are then complete except for the state. */
enum state engine_run(struct engine *);

#endif
