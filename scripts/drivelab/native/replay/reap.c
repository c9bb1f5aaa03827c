/* Process completions. */
#include <stdlib.h>

#include "engine.h"

static void release_waiters(struct engine *engine, uint64_t index, uint64_t complete_ns)
{
    uint32_t waiter;
    while (parked_release(&engine->parked, (uint32_t)index, &waiter)) {
        const struct schedule_record *record = &engine->schedule->records[waiter];
        uint64_t due = complete_ns + record->think_ns;
        if (!parked_due(&engine->parked, waiter, due > record->deadline_ns ? due : record->deadline_ns)) {
            fputs("drivelab-replay: out of memory\n", stderr);
            abort();
        }
    }
}

static void complete(struct engine *engine, uint32_t number, int32_t outcome, int64_t at)
{
    struct slot *slot = &engine->slots[number];
    struct results_header *header = engine->results->header;
    struct result_record *result = &engine->results->records[slot->index];
    result->complete_ns = (uint64_t)at;
    result->result = outcome;
    __atomic_store_n(&result->state, COMPLETED, __ATOMIC_RELEASE);
    header->completed++;
    if ((uint64_t)at > header->end_ns)
        header->end_ns = (uint64_t)at;
    if (outcome < 0 || (slot->moves && (uint32_t)outcome != slot->length_bytes)) {
        header->failed++;
        if (!header->first_failed)
            header->first_failed = slot->index + 1;
        if (!engine->options->go_on)
            engine_stop(engine, FAILED);
    }
    buffers_give_back(engine->buffers, &slot->piece);
    engine->free_slots[--engine->in_flight] = (uint16_t)number;
    if (engine->schedule->dependencies)
        release_waiters(engine, slot->index, (uint64_t)at);
}

static uint32_t reap_jobs(struct engine *engine)
{
    static struct job jobs[MOST_IN_FLIGHT];
    uint32_t count = blocking_reap(engine->blocking, jobs);
    for (uint32_t i = 0; i < count; i++)
        complete(engine, jobs[i].slot, jobs[i].result, jobs[i].complete_ns - engine->start_ns);
    return count;
}

void reap_listen(struct engine *engine)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(engine->ring);
    io_uring_prep_read(sqe, engine->blocking->event, &engine->ended, sizeof engine->ended, 0);
    io_uring_sqe_set_data64(sqe, JOBS_ENDED);
    issue_submit_rest(engine);
}

uint32_t reap(struct engine *engine)
{
    if (!ring_has_news(engine->ring))
        return 0;
    if (!io_uring_cq_ready(engine->ring))
        io_uring_get_events(engine->ring);
    int64_t now = elapsed_ns(engine);
    uint32_t count = 0, seen = 0;
    unsigned head;
    bool jobs_ended = false;
    struct io_uring_cqe *cqe;
    io_uring_for_each_cqe(engine->ring, head, cqe) {
        seen++;
        if (cqe->user_data == JOBS_ENDED) {
            jobs_ended = true;
        } else {
            complete(engine, (uint32_t)cqe->user_data, cqe->res, now);
            count++;
        }
    }
    io_uring_cq_advance(engine->ring, seen);
    if (jobs_ended) {
        count += reap_jobs(engine);
        reap_listen(engine);
    }
    if (count) {
        engine->progress_ns = now;
        if (engine->blocked) /* also covers requests that became due behind the blocked one */
            engine->blocked_ns = now;
    }
    return count;
}
