/*
 * The matcher tracks requests by segments. A queued request is one segment; a split (X) cuts it; a merge (M, F) marks
 * the merged segment. A dispatch consists of the queued segments that tile its sectors. One of them is unmarked, the
 * origin of the request; the others were merged into it. Traces without merge or split events (because of an action
 * mask) are matched by tiling alone.
 */
#include "matcher.h"

#include <stdlib.h>

static struct dispatch *dispatch_at(const struct matcher *m, uint32_t i) { return multimap_at(&m->dispatches, i); }

bool matcher_init(struct matcher *m, bool from_dispatch)
{
    m->rows.bytes = sizeof(struct row);
    m->from_dispatch = from_dispatch;
    m->last_flush = NEVER;
    return multimap_init(&m->segments, sizeof(struct segment)) &&
           multimap_init(&m->dispatches, sizeof(struct dispatch)) &&
           multimap_init(&m->ends, sizeof(struct flush)) && multimap_init(&m->flushes, sizeof(struct flush));
}

void matcher_free(struct matcher *m)
{
    free(m->rows.content);
    multimap_free(&m->segments);
    multimap_free(&m->dispatches);
    multimap_free(&m->ends);
    multimap_free(&m->flushes);
}

/* Release a row that nothing refers to. */
void drop_if_done(struct matcher *m, uint32_t index)
{
    struct row *row = row_at(m, index);
    if (!row->given_out || row->open || row->remembered)
        return;
    if (row->changed) {
        if (m->correction_count < MOST_CORRECTIONS)
            m->corrections[m->correction_count] = (struct correction){
                row->number, row->dispatch, row->complete, row->dispatch_id, row->error, row->pieces, row->requeues, 0,
            };
        m->correction_count++;
    }
    if (row->complete == NEVER)
        m->mismatches[row->dispatch == NEVER ? UNDISPATCHED : UNCOMPLETED]++;
    pool_release(&m->rows, index);
}

bool matcher_take(struct matcher *m, struct row *to)
{
    uint64_t waiting = m->window_end - m->window_start;
    if (!waiting)
        return false;
    uint32_t number = m->window[m->window_start % WINDOW];
    struct row *row = row_at(m, number);
    if (!m->finished && (row->open || waiting <= HOLD) && waiting < WINDOW)
        return false;
    m->window_start++;
    row->given_out = true;
    *to = *row;
    drop_if_done(m, number);
    return true;
}

static void forget_segment(struct matcher *m)
{
    uint32_t index = m->segments.oldest;
    multimap_remove(&m->segments, index);
    close_segment(m, index);
}

static void forget_dispatch(struct matcher *m)
{
    uint32_t member = dispatch_at(m, m->dispatches.oldest)->first_member;
    multimap_drop(&m->dispatches, m->dispatches.oldest);
    for (uint32_t next; member; member = next) {
        next = segment_at(m, member)->next_member;
        close_segment(m, member);
    }
}

static void forget_beyond_bounds(struct matcher *m)
{
    if (m->segments.count > MOST_WAITING) {
        forget_segment(m);
        m->mismatches[FORGOTTEN]++;
    }
    bool crowded = m->segments.pool.live > 2 * MOST_WAITING && m->dispatches.count;
    if (crowded || m->dispatches.count > MOST_WAITING) {
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

static bool queue(struct matcher *m, const struct event *event, int64_t time, int32_t process)
{
    uint32_t number = pool_take(&m->rows);
    if (!number)
        return false;
    *row_at(m, number) = (struct row){
        .queue = time, .dispatch = NEVER, .complete = NEVER, .dispatch_id = -1, .number = m->window_end,
        .sector = event->sector, .action = event->action, .bytes = event->bytes, .left_bytes = event->bytes,
        .pid = event->pid, .cpu = event->cpu, .process = process,
    };
    m->window[m->window_end++ % WINDOW] = number;
    if (event->bytes == 0)
        return queue_flush(m, number, m->order++);
    uint64_t key = key_of(event->action, event->sector);
    for (uint32_t end; m->ends.count && (end = multimap_first(&m->ends, key));)
        forget_end(m, end);
    return queue_segment(m, number, key, event->bytes, m->order++);
}

static bool dispatch(struct matcher *m, const struct event *event, int64_t time)
{
    if (event->bytes == 0 && !is_device_flush(event))
        return true;
    uint64_t key = key_of(event->action, event->sector);
    if (m->from_dispatch && !(event->bytes ? multimap_first(&m->segments, key) : find_flush(m, false))) {
        /* The request begins here. Who queued it is unknown: a dispatch may come from any process. */
        struct event unknown = *event;
        unknown.pid = unknown.cpu = UINT32_MAX;
        if (!queue(m, &unknown, time, 0))
            return false;
    }
    if (event->bytes == 0) {
        dispatch_flush(m, time);
        return true;
    }
    uint32_t count;
    if (!take_segments(m, key, event->bytes, &count))
        return false;
    /* A dispatch of requests from before the trace has no members. It is kept so that its completion is not assigned to
       another request. */
    struct dispatch *dispatch = multimap_add(&m->dispatches, key, m->order++);
    if (!dispatch)
        return false;
    dispatch->left_bytes = event->bytes;
    dispatch->first_member = count ? m->parts[0] : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct row *row = row_at(m, segment_at(m, m->parts[i])->row);
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

/* The first `bytes` of a segment are transferred; a completely transferred segment is closed. */
static bool complete_segment(struct matcher *m, uint32_t index, uint32_t bytes, const struct event *event, int64_t time)
{
    struct segment *segment = segment_at(m, index);
    struct row *row = row_at(m, segment->row);
    row->left_bytes -= bytes;
    row->error = row->error ? row->error : event->error;
    row->changed |= row->given_out;
    if (!row->left_bytes)
        row->complete = time;
    if (bytes < segment->bytes) {
        segment->entry.key = key_after(segment->entry.key, bytes);
        segment->bytes -= bytes;
        return true;
    }
    bool sequence = !m->from_dispatch && row->action & (BIT(CAT_FLUSH) | BIT(CAT_FUA));
    bool ok = !sequence || remember_end(m, segment->row, segment->first, event->action);
    close_segment(m, index);
    return ok;
}

/* Devices without a request queue (dm, md, zram) complete queued requests without a dispatch. */
static bool complete_undispatched(struct matcher *m, const struct event *event, int64_t time)
{
    uint32_t scanned = 0, index = multimap_first(&m->segments, key_of(event->action, event->sector));
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->segments, index)) {
        struct segment *segment = segment_at(m, index);
        if (segment->bytes != event->bytes || row_at(m, segment->row)->pieces)
            continue;
        multimap_remove(&m->segments, index);
        segment->first = segment->entry.key;
        return complete_segment(m, index, segment->bytes, event, time);
    }
    m->mismatches[COMPLETIONS]++;
    return true;
}

/* Return the dispatch in flight at an event's place: one with the event's length, else the first (or, with `longer`,
   the first longer one). */
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
    if (event->bytes == 0) {
        complete_empty(m, event, time);
        return true;
    }
    uint32_t index = in_flight(m, event, true);
    if (!index)
        return complete_undispatched(m, event, time);
    multimap_remove(&m->dispatches, index);
    struct dispatch *dispatch = dispatch_at(m, index);
    /* A partial completion completes the first bytes (blk_update_request in block/blk-mq.c). */
    for (uint32_t left = event->bytes; left && dispatch->first_member;) {
        uint32_t member = dispatch->first_member, bytes = segment_at(m, member)->bytes;
        uint32_t done = bytes < left ? bytes : left;
        left -= done;
        if (done == bytes)
            dispatch->first_member = segment_at(m, member)->next_member;
        if (!complete_segment(m, member, done, event, time))
            return false;
    }
    dispatch->left_bytes -= event->bytes;
    if (dispatch->left_bytes)
        return multimap_insert(&m->dispatches, index, key_after(dispatch->entry.key, event->bytes),
                               dispatch->entry.order);
    pool_release(&m->dispatches.pool, index);
    return true;
}

/* The completed part of a dispatch stays completed; the rest is queued again, at the front. */
static bool requeue(struct matcher *m, const struct event *event)
{
    if (is_device_flush(event)) {
        requeue_flush(m);
        return true;
    }
    uint32_t index = in_flight(m, event, false);
    if (!index) {
        /* A driver without room for a request returns it before its dispatch is traced (BLK_STS_RESOURCE). */
        m->mismatches[REQUEUES] += !multimap_first(&m->segments, key_of(event->action, event->sector));
        return true;
    }
    uint32_t member = dispatch_at(m, index)->first_member;
    multimap_drop(&m->dispatches, index);
    for (uint32_t next; member; member = next) {
        struct segment *segment = segment_at(m, member);
        struct row *row = row_at(m, segment->row);
        next = segment->next_member;
        row->requeues++;
        row->changed |= row->given_out;
        row->pieces -= segment->entry.key == segment->first;
        if (!row->pieces) {
            row->dispatch = NEVER;
            row->dispatch_id = -1;
        }
        segment->next_member = 0;
        if (!multimap_insert(&m->segments, member, segment->entry.key, --m->requeue_order))
            return false;
    }
    return true;
}

static bool handle(struct matcher *m, const struct event *event, int64_t time, int32_t process)
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
    bool ok = handle(m, event, time, process);
    forget_beyond_bounds(m);
    return ok;
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
