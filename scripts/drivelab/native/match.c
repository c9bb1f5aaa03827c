/*
 * Requests are followed by their segments. A queued request is one segment; a split (X) cuts it; a merge (M, F) marks
 * the one that was merged. A dispatch is made of the queued segments that tile its sectors: one of them unmarked, the
 * request's origin, the others merged into it. Traces without merge or split events (an action mask) are matched by
 * tiling alone.
 *
 * Flushes follow block/blk-flush.c. A write with PREFLUSH, or with FUA on a device that lacks it, becomes flush, write,
 * flush and ends with a second completion of length zero at its sector. An empty flush becomes a flush request of the
 * device, shared by all that wait, and ends with a completion of length zero too. A matcher by sector and direction
 * alone takes those for completions of whatever else is there.
 */
#include "match.h"

#include <stdlib.h>
#include <string.h>

/* Bounds on memory: what is beyond them is forgotten, oldest first, and counted. */
#define MOST_WAITING (1u << 19)
#define WINDOW (1u << 19)           /* rows behind the oldest one that has not been given out */
#define MOST_REMEMBERED (1u << 16)  /* ends of flush sequences, dispatched flushes */
#define MOST_CORRECTIONS (1u << 20)
/* Rows stay so long although they are complete: the end of a flush sequence may come. */
#define HOLD 8192u
#define MOST_SCANNED 1024u /* entries of one place that are looked at */
#define MOST_TRIED 4096u   /* segments that are tried for one dispatch, and that it may have */

struct segment {
    struct entry entry;
    uint32_t bytes, row, next_member;
    bool marked;
};

struct dispatch {
    struct entry entry;
    uint32_t left_bytes, first_member;
    int64_t last_completion;
};

struct sequence_end {
    struct entry entry;
    uint32_t row;
};

struct empty_flush {
    struct entry entry;
    uint32_t row;
};

struct matcher {
    struct row *rows; /* a pool */
    uint32_t rows_used, rows_allocated, free_row;
    uint32_t *window; /* of rows in the order of time */
    uint64_t window_start, window_end;
    struct multimap segments, dispatches, ends, flushes;
    int64_t flush_dispatches[MOST_REMEMBERED];
    uint64_t flushes_dispatched, flushes_completed;
    int64_t last_flush;
    int64_t order, requeue_order, dispatch_ids;
    uint64_t device_flushes;
    uint64_t mismatches[MISMATCHES];
    struct correction *corrections;
    uint64_t correction_count;
    uint32_t parts[MOST_TRIED];
    int64_t last_time;
    struct row taken;
    bool finished, no_memory;
};

static struct segment *segment_at(const struct matcher *m, uint32_t i) { return multimap_at(&m->segments, i); }
static struct dispatch *dispatch_at(const struct matcher *m, uint32_t i) { return multimap_at(&m->dispatches, i); }

/* Discards carry the write bit too, so they come first. */
static unsigned direction(uint64_t action)
{
    if (action & BIT(CAT_DISCARD))
        return 2;
    if (action & BIT(CAT_WRITE_ZEROES))
        return 3;
    return action & (BIT(CAT_WRITE) | BIT(CAT_ZONE_APPEND)) ? 1 : 0;
}

static uint64_t key_of(uint64_t action, uint64_t sector) { return sector << 2 | direction(action); }
static uint64_t key_after(uint64_t key, uint32_t bytes) { return key + ((uint64_t)(bytes / SECTOR_BYTES) << 2); }
static uint64_t key_sector(uint64_t key) { return key >> 2; }

/* REQ_OP_FLUSH is even, so the kernel marks it as a read; an empty flush that was queued is a write. */
static bool is_device_flush(const struct event *event)
{
    return event->bytes == 0 && event->action & BIT(CAT_FLUSH) && !(event->action & BIT(CAT_WRITE));
}

struct matcher *matcher_new(void)
{
    struct matcher *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->rows_used = 1;
    m->last_flush = NEVER;
    m->last_time = NEVER;
    m->window = malloc(WINDOW * sizeof *m->window);
    bool tables = multimap_init(&m->segments, sizeof(struct segment));
    tables &= multimap_init(&m->dispatches, sizeof(struct dispatch));
    tables &= multimap_init(&m->ends, sizeof(struct sequence_end));
    tables &= multimap_init(&m->flushes, sizeof(struct empty_flush));
    if (m->window && tables)
        return m;
    matcher_free(m);
    return NULL;
}

void matcher_free(struct matcher *m)
{
    free(m->rows);
    free(m->window);
    free(m->corrections);
    multimap_free(&m->segments);
    multimap_free(&m->dispatches);
    multimap_free(&m->ends);
    multimap_free(&m->flushes);
    free(m);
}

static uint32_t new_row(struct matcher *m)
{
    uint32_t index = m->free_row;
    if (index) {
        m->free_row = m->rows[index].pid;
    } else {
        if (m->rows_used >= m->rows_allocated) {
            uint32_t wanted = m->rows_allocated ? 2 * m->rows_allocated : 4096;
            struct row *rows = realloc(m->rows, wanted * sizeof *rows);
            if (!rows)
                return 0;
            m->rows = rows;
            m->rows_allocated = wanted;
        }
        index = m->rows_used++;
    }
    memset(&m->rows[index], 0, sizeof m->rows[index]);
    return index;
}

/* Let go of a row that nothing refers to any more. */
static void drop_if_done(struct matcher *m, uint32_t index)
{
    struct row *row = &m->rows[index];
    if (!row->given_out || row->open || row->remembered)
        return;
    if (row->changed) {
        if (!m->corrections)
            m->corrections = malloc(MOST_CORRECTIONS * sizeof *m->corrections);
        if (m->corrections && m->correction_count < MOST_CORRECTIONS)
            m->corrections[m->correction_count] = (struct correction){
                row->number, row->dispatch, row->complete, row->dispatch_id, row->error, row->pieces, row->requeues, 0,
            };
        m->correction_count++;
        m->no_memory |= !m->corrections;
    }
    if (row->complete == NEVER)
        m->mismatches[row->dispatch == NEVER ? UNDISPATCHED : UNCOMPLETED]++;
    row->pid = m->free_row;
    m->free_row = index;
}

static void forget_end(struct matcher *m, uint32_t index)
{
    uint32_t row = ((struct sequence_end *)multimap_at(&m->ends, index))->row;
    multimap_remove(&m->ends, index);
    multimap_release(&m->ends, index);
    m->rows[row].remembered = false;
    drop_if_done(m, row);
}

static void close_segment(struct matcher *m, uint32_t index)
{
    uint32_t row = segment_at(m, index)->row;
    multimap_release(&m->segments, index);
    m->rows[row].open--;
    drop_if_done(m, row);
}

static void forget_segment(struct matcher *m)
{
    uint32_t index = m->segments.oldest;
    multimap_remove(&m->segments, index);
    close_segment(m, index);
}

static void forget_dispatch(struct matcher *m)
{
    uint32_t index = m->dispatches.oldest;
    multimap_remove(&m->dispatches, index);
    for (uint32_t member = dispatch_at(m, index)->first_member, next; member; member = next) {
        next = segment_at(m, member)->next_member;
        close_segment(m, member);
    }
    multimap_release(&m->dispatches, index);
}

static void close_flush(struct matcher *m, uint32_t index)
{
    uint32_t row = ((struct empty_flush *)multimap_at(&m->flushes, index))->row;
    multimap_remove(&m->flushes, index);
    multimap_release(&m->flushes, index);
    m->rows[row].open--;
    drop_if_done(m, row);
}

static void forget_beyond_bounds(struct matcher *m)
{
    if (m->segments.count > MOST_WAITING) {
        forget_segment(m);
        m->mismatches[FORGOTTEN]++;
    }
    if (m->dispatches.count > MOST_WAITING) {
        forget_dispatch(m);
        m->mismatches[FORGOTTEN]++;
    }
    if (m->flushes.count > MOST_WAITING) {
        close_flush(m, m->flushes.oldest);
        m->mismatches[FORGOTTEN]++;
    }
    if (m->ends.count > MOST_REMEMBERED)
        forget_end(m, m->ends.oldest);
}

static bool queue_segment(struct matcher *m, uint32_t index, uint64_t key, int64_t order)
{
    return multimap_insert(&m->segments, index, key, order);
}

static bool queue(struct matcher *m, const struct event *event, int64_t time, int32_t process)
{
    uint32_t number = new_row(m);
    if (!number)
        return false;
    m->rows[number] = (struct row){
        .queue = time, .dispatch = NEVER, .complete = NEVER, .dispatch_id = -1, .number = m->window_end,
        .sector = event->sector, .action = event->action, .bytes = event->bytes, .left_bytes = event->bytes,
        .pid = event->pid, .cpu = event->cpu, .process = process, .open = 1,
    };
    m->window[m->window_end++ % WINDOW] = number;
    int64_t order = m->order++;
    if (event->bytes == 0) {
        uint32_t index = multimap_allocate(&m->flushes);
        if (!index || !multimap_insert(&m->flushes, index, 0, order))
            return false;
        ((struct empty_flush *)multimap_at(&m->flushes, index))->row = number;
        return true;
    }
    uint64_t key = key_of(event->action, event->sector);
    uint32_t end = m->ends.count ? multimap_first(&m->ends, key) : 0;
    if (end)
        forget_end(m, end);
    uint32_t index = multimap_allocate(&m->segments);
    if (!index || !queue_segment(m, index, key, order))
        return false;
    struct segment *segment = segment_at(m, index);
    segment->bytes = event->bytes;
    segment->row = number;
    segment->next_member = 0;
    segment->marked = false;
    return true;
}

/* Cut a queued segment: its front stays what it is, the rest is queued at its own place. */
static bool cut(struct matcher *m, uint32_t index, uint32_t front_bytes)
{
    uint32_t rest = multimap_allocate(&m->segments);
    if (!rest)
        return false;
    struct segment *front = segment_at(m, index);
    uint64_t key = key_after(front->entry.key, front_bytes);
    if (!queue_segment(m, rest, key, front->entry.order))
        return false;
    struct segment *back = segment_at(m, rest);
    back->bytes = front->bytes - front_bytes;
    back->row = front->row;
    back->next_member = 0;
    back->marked = false;
    front->bytes = front_bytes;
    m->rows[front->row].open++;
    return true;
}

static bool split(struct matcher *m, const struct event *event)
{
    if (event->payload_bytes < 8)
        return true;
    uint64_t at = __builtin_bswap64(get64(event->payload));
    if (at <= event->sector || at - event->sector >= UINT32_MAX / SECTOR_BYTES)
        return true;
    uint32_t front_bytes = (uint32_t)(at - event->sector) * SECTOR_BYTES, chosen = 0, scanned = 0;
    uint32_t index = multimap_first(&m->segments, key_of(event->action, event->sector));
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->segments, index)) {
        uint32_t bytes = segment_at(m, index)->bytes;
        if (bytes <= front_bytes)
            continue;
        if (!chosen)
            chosen = index;
        if (bytes == event->bytes || front_bytes == event->bytes) {
            chosen = index;
            break;
        }
    }
    return !chosen || cut(m, chosen, front_bytes);
}

static void mark_merged(struct matcher *m, const struct event *event)
{
    uint32_t unmarked = 0, scanned = 0;
    uint32_t index = multimap_first(&m->segments, key_of(event->action, event->sector));
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->segments, index)) {
        struct segment *segment = segment_at(m, index);
        if (segment->marked)
            continue;
        if (segment->bytes == event->bytes) {
            segment->marked = true;
            return;
        }
        if (!unmarked)
            unmarked = index;
    }
    if (unmarked)
        segment_at(m, unmarked)->marked = true;
}

/* Segments that tile `bytes` from `key`, depth first in the order of their queues; with one of them unmarked if `one`.
   Their number, 0 if there are none; they are in `parts`. */
static uint32_t tile(struct matcher *m, uint64_t key, uint32_t bytes, bool one)
{
    uint32_t depth = 0, tried = 0, covered = 0, unmarked = 0;
    uint32_t candidate = multimap_first(&m->segments, key);
    for (;;) {
        while (candidate) {
            const struct segment *segment = segment_at(m, candidate);
            if (++tried > MOST_TRIED)
                return 0;
            if (segment->bytes <= bytes - covered && !(one && unmarked && !segment->marked))
                break;
            candidate = segment->entry.next;
        }
        if (candidate && depth < MOST_TRIED) {
            const struct segment *segment = segment_at(m, candidate);
            m->parts[depth++] = candidate;
            covered += segment->bytes;
            unmarked += !segment->marked;
            if (covered == bytes && !(one && unmarked != 1))
                return depth;
            /* A place that is covered has no part of the tiling but this one, so no segment comes twice. */
            candidate = covered < bytes ? multimap_first(&m->segments, key_after(key, covered)) : 0;
        } else if (depth) {
            const struct segment *last = segment_at(m, m->parts[--depth]);
            covered -= last->bytes;
            unmarked -= !last->marked;
            candidate = last->entry.next;
        } else {
            return 0;
        }
    }
}

/* What there is of the sectors from `key`, cut to fit at the end. */
static bool tile_greedily(struct matcher *m, uint64_t key, uint32_t bytes, uint32_t *count)
{
    uint32_t covered = 0;
    *count = 0;
    while (covered < bytes) {
        uint32_t index = *count < MOST_TRIED ? multimap_first(&m->segments, key_after(key, covered)) : 0;
        if (!index) {
            m->mismatches[DISPATCHES]++;
            return true;
        }
        uint32_t wanted = bytes - covered;
        if (segment_at(m, index)->bytes > wanted && !cut(m, index, wanted))
            return false;
        covered += segment_at(m, index)->bytes;
        m->parts[(*count)++] = index;
    }
    return true;
}

static bool dispatch(struct matcher *m, const struct event *event, int64_t time)
{
    if (is_device_flush(event)) {
        m->device_flushes++;
        m->flush_dispatches[m->flushes_dispatched++ % MOST_REMEMBERED] = time;
        if (m->flushes_dispatched - m->flushes_completed > MOST_REMEMBERED) {
            m->flushes_completed++;
            m->mismatches[FORGOTTEN]++;
        }
        return true;
    }
    if (event->bytes == 0)
        return true;
    uint64_t key = key_of(event->action, event->sector);
    uint32_t count = tile(m, key, event->bytes, true);
    if (!count)
        count = tile(m, key, event->bytes, false);
    if (!count && !tile_greedily(m, key, event->bytes, &count))
        return false;
    /* One of requests from before the trace has no members; its completion is not to be taken for another's. */
    uint32_t index = multimap_allocate(&m->dispatches);
    if (!index || !multimap_insert(&m->dispatches, index, key, m->order++))
        return false;
    struct dispatch *made = dispatch_at(m, index);
    made->left_bytes = event->bytes;
    made->first_member = count ? m->parts[0] : 0;
    made->last_completion = NEVER;
    for (uint32_t i = 0; i < count; i++) {
        multimap_remove(&m->segments, m->parts[i]);
        struct segment *segment = segment_at(m, m->parts[i]);
        segment->next_member = i + 1 < count ? m->parts[i + 1] : 0;
        struct row *row = &m->rows[segment->row];
        if (row->dispatch == NEVER) {
            row->dispatch = time;
            row->dispatch_id = m->dispatch_ids;
        }
        row->pieces++;
        row->changed |= row->given_out;
    }
    m->dispatch_ids += count > 0;
    return true;
}

static bool remember_end(struct matcher *m, uint32_t row, uint64_t key)
{
    uint32_t index = multimap_first(&m->ends, key);
    if (index)
        forget_end(m, index);
    index = multimap_allocate(&m->ends);
    if (!index || !multimap_insert(&m->ends, index, key, 0))
        return false;
    ((struct sequence_end *)multimap_at(&m->ends, index))->row = row;
    m->rows[row].remembered = true;
    return true;
}

/* The bytes of a segment have been transferred; the segment is gone afterwards. */
static bool complete_segment(struct matcher *m, uint32_t index, int64_t time, uint16_t error)
{
    struct segment *segment = segment_at(m, index);
    uint32_t number = segment->row;
    struct row *row = &m->rows[number];
    row->left_bytes -= segment->bytes;
    row->error = row->error ? row->error : error;
    row->changed |= row->given_out;
    bool fine = true;
    if (!row->left_bytes) {
        row->complete = time;
        if (row->action & (BIT(CAT_FLUSH) | BIT(CAT_FUA)))
            fine = remember_end(m, number, key_of(row->action, row->sector));
    }
    close_segment(m, index);
    return fine;
}

static bool complete_empty(struct matcher *m, const struct event *event, int64_t time)
{
    if (is_device_flush(event)) {
        if (m->flushes_completed < m->flushes_dispatched)
            m->last_flush = m->flush_dispatches[m->flushes_completed++ % MOST_REMEMBERED];
        else
            m->mismatches[COMPLETIONS]++;
        return true;
    }
    uint32_t end = m->ends.count ? multimap_first(&m->ends, key_of(event->action, event->sector)) : 0;
    uint32_t number = end ? ((struct sequence_end *)multimap_at(&m->ends, end))->row : 0;
    uint64_t kinds = BIT(CAT_SYNC) | BIT(CAT_META);
    if (end && (!m->flushes.oldest || !((m->rows[number].action ^ event->action) & kinds))) {
        struct row *row = &m->rows[number];
        row->complete = time;
        row->error = row->error ? row->error : event->error;
        row->changed |= row->given_out;
        forget_end(m, end);
        return true;
    }
    uint32_t oldest = multimap_first(&m->flushes, 0);
    if (!oldest) {
        m->mismatches[COMPLETIONS]++;
        return true;
    }
    number = ((struct empty_flush *)multimap_at(&m->flushes, oldest))->row;
    struct row *row = &m->rows[number];
    if (m->last_flush != NEVER && m->last_flush >= row->queue)
        row->dispatch = m->last_flush;
    row->complete = time;
    row->error = event->error;
    row->changed |= row->given_out;
    close_flush(m, oldest);
    return true;
}

/* Devices without a request queue (dm, md, zram) complete what was queued and dispatch nothing. */
static bool complete_undispatched(struct matcher *m, const struct event *event, int64_t time)
{
    uint32_t scanned = 0, index = multimap_first(&m->segments, key_of(event->action, event->sector));
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->segments, index)) {
        struct segment *segment = segment_at(m, index);
        if (segment->bytes != event->bytes || m->rows[segment->row].pieces)
            continue;
        multimap_remove(&m->segments, index);
        return complete_segment(m, index, time, event->error);
    }
    m->mismatches[COMPLETIONS]++;
    return true;
}

/* The dispatch in flight at an event's place: one with its length, else the first (or the first longer one). */
static uint32_t in_flight(struct matcher *m, const struct event *event, bool longer)
{
    uint32_t scanned = 0, other = 0, index = multimap_first(&m->dispatches, key_of(event->action, event->sector));
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->dispatches, index)) {
        uint32_t left = dispatch_at(m, index)->left_bytes;
        if (left == event->bytes)
            return index;
        if (!other && (!longer || left > event->bytes))
            other = index;
    }
    return other;
}

static bool complete(struct matcher *m, const struct event *event, int64_t time)
{
    if (event->bytes == 0)
        return complete_empty(m, event, time);
    uint32_t index = in_flight(m, event, true);
    if (!index)
        return complete_undispatched(m, event, time);
    multimap_remove(&m->dispatches, index);
    struct dispatch *found = dispatch_at(m, index);
    found->left_bytes -= event->bytes;
    found->last_completion = time;
    if (found->left_bytes) {
        for (uint32_t member = found->first_member; member; member = segment_at(m, member)->next_member) {
            struct row *row = &m->rows[segment_at(m, member)->row];
            row->error = row->error ? row->error : event->error;
        }
        return multimap_insert(&m->dispatches, index, key_after(found->entry.key, event->bytes), found->entry.order);
    }
    bool fine = true;
    for (uint32_t member = found->first_member, next; member; member = next) {
        next = segment_at(m, member)->next_member;
        fine &= complete_segment(m, member, time, event->error);
    }
    multimap_release(&m->dispatches, index);
    return fine;
}

/* What of a dispatch had been completed stays so; the rest is queued again, in front. */
static bool requeue(struct matcher *m, const struct event *event)
{
    uint32_t index = in_flight(m, event, false);
    if (!index) {
        m->mismatches[REQUEUES]++;
        return true;
    }
    multimap_remove(&m->dispatches, index);
    struct dispatch found = *dispatch_at(m, index);
    multimap_release(&m->dispatches, index);
    uint64_t from = key_sector(found.entry.key);
    for (uint32_t member = found.first_member, next; member; member = next) {
        struct segment *segment = segment_at(m, member);
        next = segment->next_member;
        struct row *row = &m->rows[segment->row];
        uint64_t sector = key_sector(segment->entry.key), end = sector + segment->bytes / SECTOR_BYTES;
        row->requeues++;
        row->changed |= row->given_out;
        if (end <= from) {
            if (!complete_segment(m, member, found.last_completion, 0))
                return false;
            continue;
        }
        uint32_t done_bytes = from > sector ? (uint32_t)(from - sector) * SECTOR_BYTES : 0;
        segment->bytes -= done_bytes;
        row->left_bytes -= done_bytes;
        if (!--row->pieces) {
            row->dispatch = NEVER;
            row->dispatch_id = -1;
        }
        segment->next_member = 0;
        uint64_t key = key_after(segment->entry.key, done_bytes);
        if (!queue_segment(m, member, key, --m->requeue_order))
            return false;
    }
    return true;
}

static bool take_in(struct matcher *m, const struct event *event, int64_t time, int32_t process)
{
    switch (KIND(event->action)) {
    case QUEUE: return queue(m, event, time, process);
    case BACK_MERGE:
    case FRONT_MERGE: mark_merged(m, event); return true;
    case SPLIT: return split(m, event);
    case REQUEUE: return requeue(m, event);
    case DISPATCH: return dispatch(m, event, time);
    case COMPLETE: return complete(m, event, time);
    default: return true;
    }
}

bool matcher_event(struct matcher *m, const struct event *event, int64_t time, int32_t process)
{
    if (event->sector >= UINT64_C(1) << 53 || event->bytes % SECTOR_BYTES) {
        unsigned kind = KIND(event->action);
        m->mismatches[IMPOSSIBLE] += kind == QUEUE || kind == DISPATCH || kind == COMPLETE || kind == REQUEUE;
        return true;
    }
    if (time < m->last_time) {
        m->mismatches[TIME_BACKWARDS]++;
        time = m->last_time;
    }
    m->last_time = time;
    bool fine = take_in(m, event, time, process);
    forget_beyond_bounds(m);
    return fine && !m->no_memory;
}

void matcher_finish(struct matcher *m)
{
    while (m->segments.oldest)
        forget_segment(m);
    while (m->dispatches.oldest)
        forget_dispatch(m);
    while (m->flushes.oldest)
        close_flush(m, m->flushes.oldest);
    while (m->ends.oldest)
        forget_end(m, m->ends.oldest);
    m->finished = true;
}

const struct row *matcher_take(struct matcher *m)
{
    uint64_t waiting = m->window_end - m->window_start;
    if (!waiting)
        return NULL;
    uint32_t number = m->window[m->window_start % WINDOW];
    struct row *row = &m->rows[number];
    if (!m->finished && (row->open || waiting <= HOLD) && waiting < WINDOW)
        return NULL;
    m->window_start++;
    row->given_out = true;
    m->taken = *row;
    drop_if_done(m, number);
    return &m->taken;
}

const uint64_t *matcher_mismatches(const struct matcher *m) { return m->mismatches; }
uint64_t matcher_device_flushes(const struct matcher *m) { return m->device_flushes; }
uint64_t matcher_rows(const struct matcher *m) { return m->window_end; }

const struct correction *matcher_corrections(const struct matcher *m, uint64_t *count)
{
    *count = m->correction_count;
    return m->corrections;
}
