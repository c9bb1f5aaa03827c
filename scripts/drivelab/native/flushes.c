/*
 * Flushes follow block/blk-flush.c. A write with PREFLUSH, or with FUA on a device without FUA, becomes flush, write,
 * flush. It ends with a second completion of length zero at its sector. An empty flush becomes a device flush, shared
 * by all waiting flushes, and also ends with a completion of length zero. A matcher that uses only sector and direction
 * would assign these completions to other requests.
 */
#include "matcher.h"

#define KINDS (BIT(CAT_SYNC) | BIT(CAT_META))

static struct flush *flush_at(const struct multimap *map, uint32_t i) { return multimap_at(map, i); }

static struct row *row_of(const struct matcher *m, const struct multimap *map, uint32_t i)
{
    return row_at(m, flush_at(map, i)->row);
}

static bool add(struct multimap *map, uint64_t key, int64_t order, uint64_t kinds, uint32_t row)
{
    struct flush *flush = multimap_add(map, key, order);
    if (!flush)
        return false;
    flush->kinds = kinds;
    flush->row = row;
    return true;
}

bool queue_flush(struct matcher *m, uint32_t row, int64_t order)
{
    row_at(m, row)->open++;
    return add(&m->flushes, 0, order, 0, row);
}

void close_flush(struct matcher *m, uint32_t index)
{
    uint32_t row = flush_at(&m->flushes, index)->row;
    multimap_drop(&m->flushes, index);
    row_at(m, row)->open--;
    drop_if_done(m, row);
}

/* Return the oldest flush that is dispatched, or is not; 0 if there is none. Only for traces without queue events. */
uint32_t find_flush(const struct matcher *m, bool dispatched)
{
    uint32_t scanned = 0, index = multimap_first(&m->flushes, 0);
    while (index && (row_of(m, &m->flushes, index)->dispatch != NEVER) != dispatched)
        index = scanned++ < MOST_SCANNED ? multimap_next(&m->flushes, index) : 0;
    return index;
}

void dispatch_flush(struct matcher *m, int64_t time)
{
    m->device_flushes++;
    if (m->from_dispatch) {
        uint32_t index = find_flush(m, false);
        if (index)
            row_of(m, &m->flushes, index)->dispatch = time;
        return;
    }
    m->flush_dispatches[m->flushes_dispatched++ % MOST_REMEMBERED] = time;
    if (m->flushes_dispatched - m->flushes_completed > MOST_REMEMBERED) {
        m->flushes_completed++;
        m->mismatches[FORGOTTEN]++;
    }
}

/* Without a flush in flight, the driver had no room for this one. The kernel itself creates device flushes, so the
   trace shows no other sign of them. */
void requeue_flush(struct matcher *m)
{
    uint32_t index = m->from_dispatch ? find_flush(m, true) : 0;
    if (index) {
        struct row *row = row_of(m, &m->flushes, index);
        row->dispatch = NEVER;
        row->requeues++;
        row->changed |= row->given_out;
        return;
    }
    m->flushes_completed += m->flushes_completed < m->flushes_dispatched;
}

/* The data of a write with preflush or FUA is transferred; the end of its flush sequence may still come, at the same
   place and with the flags of this completion, `action`. Each part of a split write has its own flush sequence. */
bool remember_end(struct matcher *m, uint32_t row, uint64_t key, uint64_t action)
{
    row_at(m, row)->remembered++;
    return add(&m->ends, key, 0, action & KINDS, row);
}

/* Return the last end at an event's place with the event's flags, else the last end at this place. */
static uint32_t find_end(const struct matcher *m, const struct event *event, bool *same_flags)
{
    uint32_t end = 0, scanned = 0, index = multimap_first(&m->ends, key_of(event->action, event->sector));
    *same_flags = false;
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->ends, index)) {
        bool same = flush_at(&m->ends, index)->kinds == (event->action & KINDS);
        if (same || !*same_flags)
            end = index;
        *same_flags |= same;
    }
    return end;
}

void forget_end(struct matcher *m, uint32_t index)
{
    uint32_t row = flush_at(&m->ends, index)->row;
    multimap_drop(&m->ends, index);
    row_at(m, row)->remembered--;
    drop_if_done(m, row);
}

/* Without queue events, each device flush is a request; the ends of flush sequences say nothing about the drive. */
static void complete_dispatched_flush(struct matcher *m, const struct event *event, int64_t time)
{
    uint32_t flush = find_flush(m, true);
    if (!is_device_flush(event))
        return;
    if (!flush) {
        m->mismatches[COMPLETIONS]++;
        return;
    }
    struct row *row = row_of(m, &m->flushes, flush);
    row->complete = time;
    row->error = event->error;
    row->changed |= row->given_out;
    close_flush(m, flush);
}

void complete_empty(struct matcher *m, const struct event *event, int64_t time)
{
    if (m->from_dispatch) {
        complete_dispatched_flush(m, event, time);
        return;
    }
    if (is_device_flush(event)) {
        if (m->flushes_completed < m->flushes_dispatched)
            m->last_flush = m->flush_dispatches[m->flushes_completed++ % MOST_REMEMBERED];
        else
            m->mismatches[COMPLETIONS]++;
        return;
    }
    bool same_flags;
    uint32_t end = find_end(m, event, &same_flags), flush = multimap_first(&m->flushes, 0);
    bool ends = end && (same_flags || !flush);
    if (!ends && !flush) {
        m->mismatches[COMPLETIONS]++;
        return;
    }
    struct row *row = ends ? row_of(m, &m->ends, end) : row_of(m, &m->flushes, flush);
    if (!row->left_bytes)
        row->complete = time;
    row->error = row->error ? row->error : event->error;
    row->changed |= row->given_out;
    if (ends) {
        forget_end(m, end);
        return;
    }
    if (m->last_flush != NEVER && m->last_flush >= row->queue)
        row->dispatch = m->last_flush;
    close_flush(m, flush);
}
