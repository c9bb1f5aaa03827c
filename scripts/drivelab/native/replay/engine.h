/* A replay under way: what has been taken from the schedule, what is in flight, what waits. */
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
/* user_data of what tells that jobs of the threads have ended; others have their slot's number. */
#define JOBS_ENDED UINT64_MAX

/* A request in flight. */
struct slot {
    uint64_t index;
    uint32_t length_bytes; /* that a read or write has to move */
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
    struct blocking *blocking; /* NULL: the schedule does not need it */
    struct io_uring *ring;
    struct pager pager;
    struct parked parked;

    int64_t start_ns;  /* of the monotonic clock */
    int64_t margin_ns; /* no sleep for less */
    int64_t watch_ns;  /* nor so soon after a submission or completion; 0 where the one CPU serves the drive too, and
                          with real-time priority */
    uint64_t total;    /* requests to be issued */
    uint64_t taken;    /* of the file: issued or parked */
    uint64_t place;    /* in the schedule of the next one: taken modulo its length */
    uint32_t in_flight;
    bool blocked;        /* one that is due finds no place in flight */
    int64_t blocked_ns;  /* until when that was last so */
    int64_t submitted_ns; /* when something was submitted last */
    int64_t progress_ns; /* when last something completed, or was issued with nothing in flight */
    int64_t beat_ns;     /* of the last heartbeat */

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

/* A signal that asks for an end; 0: none so far. */
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

/* Prepare those that are due, at most MOST_TOGETHER; when the next may go without a completion before it, or NEVER. */
int64_t issue_due(struct engine *, int64_t now);
/* Submit what is prepared. */
void issue_submit(struct engine *);
/* Submit what the ring still holds; false while the kernel has no memory for it. Never waits, so that signals, the
   watchdog and the heartbeat go on meanwhile. */
bool issue_submit_rest(struct engine *);

/* Take in all completions that are there; their number. */
uint32_t reap(struct engine *);
/* Ask to be told of jobs that end. */
void reap_listen(struct engine *);

/* Replay it all; returns the state in which it ended, with the results complete but for that. */
enum state engine_run(struct engine *);

#endif
