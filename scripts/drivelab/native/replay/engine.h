/* The state of a running replay: what its issuing threads share, and what each has.

   A thread takes the next requests of the file only when it can issue them (or will be the one to wait for the next
   deadline), so all threads have work as long as there is any, and requests begin in the order of the file. Each
   request that waits for another becomes the task of the thread that completes the other. */
#pragma once

#include <liburing.h>
#include <signal.h>

#include "blocking.h"
#include "clock.h"
#include "parked.h"
#include "ring.h"

#define NEVER INT64_MAX
/* user_data of the read that completes when jobs of the threads end; requests have their slot's number. */
#define JOBS_ENDED UINT64_MAX
#define TURNS 2u /* of a trial */
#define OWN_LINE _Alignas(64) /* of the cache, so that threads do not wait for each other's stores */

/* Times are ns after the start, negative before it. */
struct engine {
    const struct options *options;
    struct schedule *schedule;
    struct results *results;
    struct target *target;
    struct issuer *issuers; /* as many as options->threads are in use */
    struct pager pager;
    struct waiting waiting;
    int64_t start_ns; /* of the monotonic clock */
    sigset_t signals; /* that the main thread blocks when it issues requests */
    bool refused;     /* a thread could not begin */
    /* Stored and read by all threads, atomically: */
    OWN_LINE uint64_t taken;     /* requests taken from the file: issued, parked, or the next of a thread */
    OWN_LINE uint32_t in_flight; /* places of the depth limit in use */
    OWN_LINE uint32_t short_of_places; /* threads with a due request and no place; the others then take no more */
    OWN_LINE uint32_t state;     /* RUNNING until the end begins */
};

/* A request in flight. */
struct slot {
    uint64_t index;
    uint32_t length_bytes; /* bytes that a read or write must transfer */
    bool moves;
    struct piece piece;
};

/* Trial of the ways to wait for completions: watching the ring [1], then asleep [0]. */
struct trial {
    unsigned turn; /* TURNS: over */
    bool counts; /* whether requests that complete now count for the way in use */
    uint64_t requests[2];
    double latency_ns[2]; /* sums */
};

/* An issuing thread. */
struct issuer {
    struct engine *engine;
    pthread_t thread;
    unsigned number; /* 0: the main thread, which gets the signals and stores the heartbeat */
    struct refusal refusal;

    struct io_uring ring;
    struct buffers buffers;
    struct blocking blocking; /* not started if the schedule does not need it */
    struct due_heap due;
    int64_t margin_ns; /* shortest time to sleep; spin if less is left */
    int64_t watch_ns;  /* no sleep within this time after a submission or completion, if the thread watches; 0 if the
                          threads use all CPUs, which also serve the drive, and with real-time priority */
    struct trial trial;
    uint64_t next, taken_to; /* indexes of requests that it has taken from the file and not yet issued or parked */
    uint32_t places;         /* reserved for requests that it has not yet prepared */
    uint32_t in_flight;
    bool blocked;         /* a due request waits for the depth limit or for memory */
    bool short_of_places; /* for the depth limit, as counted in the engine's */
    int64_t blocked_ns;   /* last time at which `blocked` was so */
    int64_t submitted_ns; /* time of the last submission */
    int64_t beat_ns;      /* time of the last heartbeat */

    uint32_t prepared; /* requests for the next submission */
    uint64_t batch[MOST_TOGETHER];
    struct job jobs[MOST_TOGETHER];
    uint32_t job_count;
    uint64_t ended; /* read from the threads' eventfd */

    struct slot slots[MOST_IN_FLIGHT];
    struct nvme_range ranges[MOST_IN_FLIGHT]; /* of deallocations as NVMe commands */
    uint16_t free_slots[MOST_IN_FLIGHT];
    OWN_LINE int64_t progress_ns; /* time of the last completion, or of the last issue with nothing in flight; read by
                                     all threads */
};

/* The signal that asked for an end; 0 if none. */
extern volatile sig_atomic_t asked_to_stop;

static inline int64_t elapsed_ns(const struct engine *engine) { return now_ns() - engine->start_ns; }

static inline uint32_t engine_state(const struct engine *engine)
{
    return __atomic_load_n(&engine->state, __ATOMIC_ACQUIRE);
}

/* Begin the end: issue nothing more. The first reason counts. */
static inline void engine_stop(struct engine *engine, enum state state)
{
    uint32_t running = RUNNING;
    __atomic_compare_exchange_n(&engine->state, &running, (uint32_t)state, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Return whether a thread of `blocking` executes an operation, because the ring cannot. A polled ring takes only what
   the driver can poll for. */
static inline bool needs_thread(const struct engine *engine, unsigned operation)
{
    return !engine->target->nvme && (operation > FLUSH || (operation == FLUSH && engine->options->polled));
}

/* Return whether a thread must ask for ended jobs: nothing announces them to a polled ring, whose thread never sleeps
   while it has requests in flight. */
static inline bool polls_jobs(const struct issuer *issuer)
{
    return issuer->engine->options->polled && issuer->blocking.target && issuer->in_flight;
}

/* Prepare due requests, at most MOST_TOGETHER. Return when the next request can be issued without a completion of this
   thread before it, or NEVER. */
int64_t issue_due(struct issuer *, int64_t now);
/* Let a request wait for its dependency, or become due if that is complete. The caller holds the lock of the waiting
   requests. */
void issue_park(struct issuer *, uint32_t index);
/* Submit the prepared requests. */
void issue_submit(struct issuer *);
/* Submit what is still in the ring; false while the kernel has no memory for it. Never waits, so that signals,
   watchdog and heartbeat keep working. */
bool issue_submit_rest(struct issuer *);

/* Process all available completions; return their number. */
uint32_t reap(struct issuer *);
/* Listen for ended jobs of the threads. */
void reap_listen(struct issuer *);

/* Return whether a thread watches for completions instead of sleeping. */
bool issuer_watches(const struct issuer *);
/* Run a thread's part of the replay until its end. */
void issuer_run(struct issuer *);
