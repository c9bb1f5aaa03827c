/* Choose the next request and put it into the ring. */
#include <stdlib.h>

#include "engine.h"

/* Number of dependent requests to park before completions are checked again. */
#define MOST_PARKED_TOGETHER 256
/* Delay before looking again for what another thread frees. */
#define LOOK_AGAIN_NS 20000

/* Return whether the dependency of a request that has one is incomplete; otherwise raise `due` to the end of the wait
   for it. */
static bool is_awaited(const struct engine *engine, const struct schedule_record *record, uint64_t *due)
{
    const struct result_record *result = &engine->results->records[record->after - 1];
    if (__atomic_load_n(&result->state, __ATOMIC_ACQUIRE) != COMPLETED)
        return true;
    if (result->complete_ns + record->think_ns > *due)
        *due = result->complete_ns + record->think_ns;
    return false;
}

void issue_park(struct issuer *issuer, uint32_t index)
{
    struct engine *engine = issuer->engine;
    const struct schedule_record *record = &engine->schedule->records[index];
    uint64_t due = record->deadline_ns;
    if (is_awaited(engine, record, &due)) {
        waiting_add(&engine->waiting, index, record->after - 1);
    } else if (!due_add(&issuer->due, index, due)) {
        fputs("drivelab-replay: out of memory\n", stderr);
        abort();
    }
}

/* Return whether the next request of the file, whose deadline has passed, is not due because it waits for another, or
   for the think time after it. Otherwise set `due`. Most dependencies were complete long before, so the request can be
   issued like one without. */
static bool must_park(const struct engine *engine, uint64_t index, int64_t now, uint64_t *due)
{
    const struct schedule_record *record = &engine->schedule->records[index];
    *due = record->deadline_ns;
    return record->after && (is_awaited(engine, record, due) || (int64_t)*due > now);
}

/* Park the thread's next request, which depends on another request. */
static void park_next(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    pthread_mutex_lock(&engine->waiting.lock);
    issue_park(issuer, (uint32_t)issuer->next++);
    pthread_mutex_unlock(&engine->waiting.lock);
}

/* Tell the other threads whether this one has a due request and no place for it. */
static void tell_shortage(struct issuer *issuer, bool is_short)
{
    if (is_short == issuer->short_of_places)
        return;
    issuer->short_of_places = is_short;
    __atomic_fetch_add(&issuer->engine->short_of_places, is_short ? 1u : UINT32_MAX, __ATOMIC_RELAXED);
}

/* Return the free places for a thread's requests among at most `limit` in flight. Threads share them equally: otherwise
   one could hold all, and the others would have to ask again and again. */
static uint32_t room_of(const struct issuer *issuer, uint32_t limit, uint32_t used)
{
    uint32_t threads = (uint32_t)issuer->engine->options->threads, share = (limit + threads - 1) / threads;
    uint32_t own = share > issuer->in_flight ? share - issuer->in_flight : 0, all = limit > used ? limit - used : 0;
    return own < all ? own : all;
}

/* Return whether a request has a place among at most `limit` in flight; reserve up to `wished` places for it and
   those after it. */
static bool has_place(struct issuer *issuer, uint32_t limit, uint32_t wished)
{
    uint32_t *shared = &issuer->engine->in_flight, used = __atomic_load_n(shared, __ATOMIC_RELAXED), more;
    if (issuer->places)
        return room_of(issuer, limit, used - issuer->places);
    do {
        uint32_t room = room_of(issuer, limit, used);
        tell_shortage(issuer, !room && used >= limit);
        if (!room)
            return false;
        more = room < wished ? room : wished;
    } while (!__atomic_compare_exchange_n(shared, &used, used + more, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    issuer->places = more;
    return true;
}

static void give_back_places(struct issuer *issuer)
{
    if (issuer->places)
        __atomic_fetch_sub(&issuer->engine->in_flight, issuer->places, __ATOMIC_RELAXED);
    issuer->places = 0;
}

static uint32_t limit_of(const struct engine *engine, const struct schedule_record *record)
{
    uint32_t most = (uint32_t)engine->options->depth;
    return record->depth && record->depth < most ? record->depth : most;
}

/* Take the next requests from the file: those that are due and have a place, or the next one if it is due later. Return
   false at the end of the file, or if a due request has no place or another thread has none. */
static bool take(struct issuer *issuer, int64_t now)
{
    struct engine *engine = issuer->engine;
    uint64_t count = engine->schedule->header.count;
    uint64_t first = __atomic_load_n(&engine->taken, __ATOMIC_RELAXED), end;
    do {
        if (first >= count)
            return false;
        const struct schedule_record *record = &engine->schedule->records[first];
        end = first + 1;
        if ((int64_t)record->deadline_ns <= now) {
            uint32_t used = __atomic_load_n(&engine->in_flight, __ATOMIC_RELAXED), limit = limit_of(engine, record);
            uint32_t others = __atomic_load_n(&engine->short_of_places, __ATOMIC_RELAXED) - issuer->short_of_places;
            uint32_t room = others ? 0 : room_of(issuer, limit, used - issuer->places);
            uint64_t due;
            if (!room && !must_park(engine, first, now, &due)) { /* a parked request needs no place yet */
                issuer->blocked = true;
                return false;
            }
            if (room > MOST_TOGETHER - issuer->prepared)
                room = MOST_TOGETHER - issuer->prepared;
            while (end - first < room && end < count && (int64_t)engine->schedule->records[end].deadline_ns <= now)
                end++;
        }
    } while (!__atomic_compare_exchange_n(&engine->taken, &first, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    issuer->next = first;
    issuer->taken_to = end;
    return true;
}

static void put_into_ring(struct issuer *issuer, const struct schedule_record *record, struct slot *slot)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&issuer->ring);
    uint32_t bytes = (uint32_t)record->length_bytes;
    bool fixed = issuer->buffers.registered && slot->piece.registered;
    int file = 0; /* registered */
    if (issuer->engine->target->nvme) {
        nvme_put(sqe, issuer->engine->target, record, slot->piece.at, &issuer->ranges[slot - issuer->slots]);
    } else if (record->operation == READ) {
        if (fixed)
            io_uring_prep_read_fixed(sqe, file, slot->piece.at, bytes, record->offset_bytes, READ_BUFFER);
        else
            io_uring_prep_read(sqe, file, slot->piece.at, bytes, record->offset_bytes);
    } else if (record->operation == FLUSH) {
        io_uring_prep_fsync(sqe, file, 0);
    } else {
        if (fixed)
            io_uring_prep_write_fixed(sqe, file, slot->piece.at, bytes, record->offset_bytes, WRITE_BUFFER);
        else
            io_uring_prep_write(sqe, file, slot->piece.at, bytes, record->offset_bytes);
        if (record->flags & FUA)
            sqe->rw_flags = RWF_DSYNC;
    }
    sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(sqe, (uint64_t)(slot - issuer->slots));
}

/* Prepare a request in the next free slot; false if there is no memory for its data until other requests complete. */
static bool prepare(struct issuer *issuer, const struct schedule_record *record, uint64_t index, uint64_t due)
{
    struct engine *engine = issuer->engine;
    struct slot *slot = &issuer->slots[issuer->free_slots[issuer->in_flight]];
    *slot = (struct slot){.index = index, .moves = record->operation <= WRITE};
    if (slot->moves) {
        slot->length_bytes = (uint32_t)record->length_bytes;
        slot->piece = record->operation == WRITE ? buffers_take_data(&issuer->buffers, slot->length_bytes, index)
                                                 : buffers_take_room(&issuer->buffers, slot->length_bytes);
        if (!slot->piece.at)
            return false;
    }
    if (needs_thread(engine, record->operation))
        issuer->jobs[issuer->job_count++] = (struct job){
            .offset_bytes = record->offset_bytes, .length_bytes = record->length_bytes,
            .slot = (uint32_t)(slot - issuer->slots), .operation = record->operation};
    else
        put_into_ring(issuer, record, slot);

    struct result_record *result = &engine->results->records[index];
    result->waited = due > record->deadline_ns          ? WAITED_FOR_DEPENDENCY
                     : (int64_t)due < issuer->blocked_ns ? WAITED_FOR_DEPTH
                                                         : NOT_WAITED;
    issuer->places--;
    issuer->in_flight++;
    result->in_flight = (uint16_t)(__atomic_load_n(&engine->in_flight, __ATOMIC_RELAXED) - issuer->places);
    issuer->batch[issuer->prepared++] = index;
    return true;
}

/* Return when to look again, if nothing of this thread's own is due before. A thread with requests in flight looks when
   one of them completes; others sleep in between. */
static int64_t look_again(const struct issuer *issuer, int64_t now)
{
    return issuer->engine->options->threads > 1 && !issuer->in_flight ? now + issuer->margin_ns + LOOK_AGAIN_NS : NEVER;
}

static int64_t prepare_due(struct issuer *issuer, int64_t now)
{
    struct engine *engine = issuer->engine;
    const struct due *first = NULL;
    bool dependencies = engine->schedule->dependencies;
    for (unsigned parked = 0; issuer->prepared < MOST_TOGETHER;) {
        const struct schedule_record *next = NULL;
        if (issuer->next < issuer->taken_to || take(issuer, now))
            next = &engine->schedule->records[issuer->next];
        if (dependencies)
            first = due_first(&issuer->due);
        /* A due parked request comes first, because it precedes the next request in the file. Otherwise, if all
           deadlines are 0, it would wait for the end of the file. */
        bool from_parked = first && (!next || first->due_ns <= next->deadline_ns || (int64_t)first->due_ns <= now);
        if (!from_parked && !next)
            return issuer->blocked || __atomic_load_n(&engine->waiting.count, __ATOMIC_RELAXED)
                       ? look_again(issuer, now) : NEVER;
        uint64_t due = from_parked ? first->due_ns : next->deadline_ns;
        uint64_t index = from_parked ? first->index : issuer->next;
        if (!from_parked && now >= (int64_t)due && must_park(engine, index, now, &due)) {
            if (__atomic_load_n(&engine->waiting.count, __ATOMIC_RELAXED) + issuer->due.count < MOST_PARKED) {
                if (parked++ == MOST_PARKED_TOGETHER)
                    return now;
                park_next(issuer);
                continue;
            }
            /* No room to park it: it delays all later requests, and only parked requests can be issued. */
            if (!first)
                return look_again(issuer, now);
            from_parked = true;
            due = first->due_ns;
            index = first->index;
        }
        if (now < (int64_t)due)
            return (int64_t)due;
        const struct schedule_record *record = from_parked ? &engine->schedule->records[index] : next;
        uint32_t wished = from_parked ? 1 : (uint32_t)(issuer->taken_to - issuer->next);
        if (!has_place(issuer, limit_of(engine, record), wished) || !prepare(issuer, record, index, due)) {
            issuer->blocked = true;
            int64_t again = look_again(issuer, now);
            /* `first` may have another depth limit */
            return first && !from_parked && (int64_t)first->due_ns < again ? (int64_t)first->due_ns : again;
        }
        if (from_parked)
            due_take_first(&issuer->due);
        else
            issuer->next++;
    }
    return now;
}

int64_t issue_due(struct issuer *issuer, int64_t now)
{
    issuer->blocked = false;
    int64_t next = prepare_due(issuer, now);
    give_back_places(issuer);
    if (!issuer->blocked)
        tell_shortage(issuer, false);
    return next;
}

bool issue_submit_rest(struct issuer *issuer)
{
    while (io_uring_sq_ready(&issuer->ring)) {
        int status = io_uring_submit(&issuer->ring);
        if (status == -EBUSY || status == -EAGAIN || (status <= 0 && asked_to_stop)) {
            io_uring_get_events(&issuer->ring);
            return false;
        }
        if (status < 0 && status != -EINTR) {
            fprintf(stderr, "drivelab-replay: io_uring failed (error %d)\n", -status);
            abort();
        }
    }
    return true;
}

void issue_submit(struct issuer *issuer)
{
    struct engine *engine = issuer->engine;
    struct results_header *header = engine->results->header;
    uint64_t now = (uint64_t)elapsed_ns(engine);
    uint32_t most = 0;
    for (uint32_t i = 0; i < issuer->prepared; i++) {
        struct result_record *result = &engine->results->records[issuer->batch[i]];
        result->issue_ns = now;
        if (result->in_flight > most)
            most = result->in_flight;
        __atomic_store_n(&result->state, ISSUED, __ATOMIC_RELEASE);
    }
    if (issuer->in_flight == issuer->prepared)
        __atomic_store_n(&issuer->progress_ns, (int64_t)now, __ATOMIC_RELAXED);
    __atomic_fetch_add(&header->issued, issuer->prepared, __ATOMIC_RELAXED);
    results_raise(&header->most_in_flight, most);
    for (uint32_t i = 0; i < issuer->job_count; i++)
        blocking_submit(&issuer->blocking, &issuer->jobs[i]);
    issuer->prepared = issuer->job_count = 0;
    issue_submit_rest(issuer);
    issuer->submitted_ns = (int64_t)now;
    __atomic_store_n(&engine->pager.position, __atomic_load_n(&engine->taken, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
