/* Choose the next request and put it into the ring. */
#include <stdlib.h>

#include "engine.h"

/* Number of dependent requests to park before completions are checked again. */
#define MOST_PARKED_TOGETHER 256

static void out_of_memory(void)
{
    static const char message[] = "drivelab-replay: out of memory\n";
    fputs(message, stderr);
    abort();
}

/* Park the next request of the file, which depends on another request. */
static void park_next(struct engine *engine)
{
    const struct schedule_record *record = &engine->schedule->records[engine->place];
    uint32_t index = (uint32_t)engine->taken, awaited = record->after - 1;
    const struct result_record *dependency = &engine->results->records[awaited];
    bool parked;
    if (dependency->state == COMPLETED) {
        uint64_t due = dependency->complete_ns + record->think_ns;
        parked = parked_due(&engine->parked, index, due > record->deadline_ns ? due : record->deadline_ns);
    } else {
        parked = parked_wait(&engine->parked, index, awaited);
    }
    if (!parked)
        out_of_memory();
    engine->taken++;
    engine->place++;
}

static void put_into_ring(struct engine *engine, const struct schedule_record *record, struct slot *slot)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(engine->ring);
    uint32_t bytes = (uint32_t)record->length_bytes;
    if (record->operation == READ) {
        if (engine->buffers->registered && slot->piece.registered)
            io_uring_prep_read_fixed(sqe, 0, slot->piece.at, bytes, record->offset_bytes, READ_BUFFER);
        else
            io_uring_prep_read(sqe, 0, slot->piece.at, bytes, record->offset_bytes);
    } else if (record->operation == FLUSH) {
        io_uring_prep_fsync(sqe, 0, 0);
    } else {
        if (engine->buffers->registered && slot->piece.registered)
            io_uring_prep_write_fixed(sqe, 0, slot->piece.at, bytes, record->offset_bytes, WRITE_BUFFER);
        else
            io_uring_prep_write(sqe, 0, slot->piece.at, bytes, record->offset_bytes);
        if (record->flags & FUA)
            sqe->rw_flags = RWF_DSYNC;
    }
    sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(sqe, (uint64_t)(slot - engine->slots));
}

/* Prepare a request; false if there is no memory for its data until other requests complete. */
static bool prepare(struct engine *engine, const struct schedule_record *record, uint64_t index, uint64_t due)
{
    struct slot *slot = &engine->slots[engine->free_slots[engine->in_flight]];
    *slot = (struct slot){.index = index, .moves = record->operation <= WRITE};
    if (slot->moves) {
        slot->length_bytes = (uint32_t)record->length_bytes;
        slot->piece = record->operation == WRITE ? buffers_take_data(engine->buffers, slot->length_bytes)
                                                 : buffers_take_room(engine->buffers, slot->length_bytes);
        if (!slot->piece.at)
            return false;
    }
    if (record->operation == DISCARD || record->operation == WRITE_ZEROES)
        engine->jobs[engine->job_count++] = (struct job){
            .offset_bytes = record->offset_bytes, .length_bytes = record->length_bytes,
            .slot = (uint32_t)(slot - engine->slots), .operation = record->operation};
    else
        put_into_ring(engine, record, slot);

    struct result_record *result = &engine->results->records[index];
    result->waited = due > record->deadline_ns          ? WAITED_FOR_DEPENDENCY
                     : (int64_t)due < engine->blocked_ns ? WAITED_FOR_DEPTH
                                                         : NOT_WAITED;
    result->in_flight = (uint16_t)++engine->in_flight;
    engine->batch[engine->prepared++] = index;
    return true;
}

int64_t issue_due(struct engine *engine, int64_t now)
{
    const struct due *first = NULL;
    bool dependencies = engine->schedule->dependencies;
    engine->blocked = false;
    for (unsigned parked = 0; engine->prepared < MOST_TOGETHER;) {
        const struct schedule_record *next = NULL;
        if (engine->taken < engine->total) {
            if (engine->place == engine->schedule->header.count)
                engine->place = 0;
            next = &engine->schedule->records[engine->place];
        }
        if (dependencies)
            first = parked_first(&engine->parked);
        /* A due parked request comes first, because it precedes the next request in the file. Otherwise, if all
           deadlines are 0, it would wait for the end of the file. */
        bool from_parked = first && (!next || first->due_ns <= next->deadline_ns || (int64_t)first->due_ns <= now);
        if (!from_parked && !next)
            return NEVER;
        uint64_t due = from_parked ? first->due_ns : next->deadline_ns;
        uint64_t index = from_parked ? first->index : engine->taken;
        if (!from_parked && next->after && now >= (int64_t)due) {
            if (parked_count(&engine->parked) < MOST_PARKED) {
                if (parked++ == MOST_PARKED_TOGETHER)
                    return now;
                park_next(engine);
                continue;
            }
            /* No room to park it: it delays all later requests, and only parked requests can be issued. */
            if (!first)
                return NEVER;
            from_parked = true;
            due = first->due_ns;
            index = first->index;
        }
        if (now < (int64_t)due)
            return (int64_t)due;
        const struct schedule_record *record = from_parked ? &engine->schedule->records[index] : next;
        uint32_t places = record->depth && record->depth < engine->options->depth ? record->depth
                                                                                  : (uint32_t)engine->options->depth;
        if (engine->in_flight >= places || !prepare(engine, record, index, due)) {
            engine->blocked = true;
            return first && !from_parked ? (int64_t)first->due_ns : NEVER; /* `first` may have another depth limit */
        }
        if (from_parked) {
            parked_take_first(&engine->parked);
        } else {
            engine->taken++;
            engine->place++;
        }
    }
    return now;
}

bool issue_submit_rest(struct engine *engine)
{
    while (io_uring_sq_ready(engine->ring)) {
        int status = io_uring_submit(engine->ring);
        if (status == -EBUSY || status == -EAGAIN || (status <= 0 && asked_to_stop)) {
            io_uring_get_events(engine->ring);
            return false;
        }
        if (status < 0 && status != -EINTR) {
            fprintf(stderr, "drivelab-replay: io_uring failed (error %d)\n", -status);
            abort();
        }
    }
    return true;
}

void issue_submit(struct engine *engine)
{
    struct results_header *header = engine->results->header;
    uint64_t now = (uint64_t)elapsed_ns(engine);
    for (uint32_t i = 0; i < engine->prepared; i++) {
        struct result_record *result = &engine->results->records[engine->batch[i]];
        result->issue_ns = now;
        __atomic_store_n(&result->state, ISSUED, __ATOMIC_RELEASE);
    }
    if (engine->in_flight == engine->prepared)
        engine->progress_ns = (int64_t)now;
    header->issued += engine->prepared;
    if (engine->in_flight > header->most_in_flight)
        header->most_in_flight = engine->in_flight;
    for (uint32_t i = 0; i < engine->job_count; i++)
        blocking_submit(engine->blocking, &engine->jobs[i]);
    engine->prepared = engine->job_count = 0;
    issue_submit_rest(engine);
    engine->submitted_ns = (int64_t)now;
    pager_set_position(&engine->pager, engine->taken);
}
