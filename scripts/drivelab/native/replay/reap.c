/* Process completions. */
#include "engine.h"

/* Take over the requests that waited for a completed one. */
static void release_waiters(struct issuer *issuer, uint64_t index)
{
    struct waiting *waiting = &issuer->engine->waiting;
    pthread_mutex_lock(&waiting->lock);
    for (uint32_t waiter; (waiter = waiting_release(waiting, (uint32_t)index));)
        issue_park(issuer, waiter);
    pthread_mutex_unlock(&waiting->lock);
}

static void record_failure(struct issuer *issuer, uint64_t index)
{
    struct results_header *header = issuer->engine->results->header;
    __atomic_fetch_add(&header->failed, 1, __ATOMIC_RELAXED);
    uint64_t first = __atomic_load_n(&header->first_failed, __ATOMIC_RELAXED);
    while ((!first || index + 1 < first) && !__atomic_compare_exchange_n(&header->first_failed, &first, index + 1, true,
                                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    if (!issuer->engine->options->go_on)
        engine_stop(issuer->engine, FAILED);
}

/* Record the completion of the request in a slot, and free the slot. */
static void complete(struct issuer *issuer, uint32_t number, int32_t outcome, int64_t at)
{
    struct slot *slot = &issuer->slots[number];
    struct result_record *result = &issuer->engine->results->records[slot->index];
    result->complete_ns = (uint64_t)at;
    result->result = outcome;
    __atomic_store_n(&result->state, COMPLETED, __ATOMIC_RELEASE);
    if (outcome < 0 || (slot->moves && (uint32_t)outcome != slot->length_bytes))
        record_failure(issuer, slot->index);
    buffers_give_back(&issuer->buffers, &slot->piece);
    issuer->free_slots[--issuer->in_flight] = (uint16_t)number;
    if (issuer->engine->schedule->dependencies)
        release_waiters(issuer, slot->index);
}

static void count_for_trial(struct issuer *issuer, uint32_t slot, int64_t at)
{
    bool watches = issuer_watches(issuer);
    const struct result_record *result = &issuer->engine->results->records[issuer->slots[slot].index];
    issuer->trial.latency_ns[watches] += (double)(at - (int64_t)result->issue_ns);
    issuer->trial.requests[watches]++;
}

/* Add requests whose completions were found at `now`, the last of them complete at `last`, to the results' header. */
static void count_completed(struct issuer *issuer, uint32_t count, int64_t last, int64_t now)
{
    struct results_header *header = issuer->engine->results->header;
    __atomic_fetch_add(&header->completed, count, __ATOMIC_RELAXED);
    results_raise(&header->end_ns, (uint64_t)last);
    __atomic_store_n(&issuer->progress_ns, now, __ATOMIC_RELAXED);
    if (issuer->blocked) /* also covers requests that became due behind the blocked one */
        issuer->blocked_ns = now;
}

static uint32_t reap_jobs(struct issuer *issuer, int64_t *last_ns)
{
    struct job jobs[MOST_TOGETHER];
    uint32_t count = 0, part;
    while ((part = blocking_reap(&issuer->blocking, jobs, MOST_TOGETHER))) {
        for (uint32_t i = 0; i < part; i++) {
            int64_t at = jobs[i].complete_ns - issuer->engine->start_ns;
            *last_ns = at > *last_ns ? at : *last_ns;
            complete(issuer, jobs[i].slot, jobs[i].result, at);
        }
        count += part;
    }
    return count;
}

void reap_listen(struct issuer *issuer)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&issuer->ring);
    io_uring_prep_read(sqe, issuer->blocking.event, &issuer->ended, sizeof issuer->ended, 0);
    io_uring_sqe_set_data64(sqe, JOBS_ENDED);
    issue_submit_rest(issuer);
}

uint32_t reap(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    struct io_uring *ring = &issuer->ring;
    bool jobs_ended = polls_jobs(issuer);
    if (!ring_has_news(ring) && !jobs_ended)
        return 0;
    if (!io_uring_cq_ready(ring))
        io_uring_get_events(ring);
    /* What completes after `now` is left for the next time, so that no recorded completion is too early. */
    uint32_t count = 0, seen = 0, ready = io_uring_cq_ready(ring);
    int64_t now = elapsed_ns(engine), last = INT64_MIN;
    unsigned head;
    struct io_uring_cqe *cqe;
    io_uring_for_each_cqe(ring, head, cqe) {
        if (seen == ready)
            break;
        seen++;
        if (cqe->user_data == JOBS_ENDED) {
            jobs_ended = true;
        } else {
            uint32_t number = (uint32_t)cqe->user_data;
            if (issuer->trial.counts)
                count_for_trial(issuer, number, now);
            complete(issuer, number, engine->target->nvme ? nvme_result(cqe->res, issuer->slots[number].length_bytes)
                                                          : cqe->res, now);
            last = now;
            count++;
        }
    }
    io_uring_cq_advance(ring, seen);
    if (jobs_ended) {
        count += reap_jobs(issuer, &last);
        if (!engine->options->polled)
            reap_listen(issuer);
    }
    if (count) {
        __atomic_fetch_sub(&engine->in_flight, count, __ATOMIC_RELAXED);
        count_completed(issuer, count, last, now);
    }
    return count;
}
