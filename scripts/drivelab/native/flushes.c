/*
 * Flushes follow block/blk-flush.c. A write with PREFLUSH, or with FUA on a device without FUA, becomes flush, write,
 * flush. It ends with a second completion of length zero at its sector. An empty flush becomes a device flush, shared
 * by all waiting flushes, and also ends with a completion of length zero. A matcher that uses only sector and direction
 * would assign these completions to other requests.
 */
#include "matcher.h"

#define KINDS (BIT(CAT_SYNC) | BIT(CAT_META))

static uint32_t row_of_flush(const struct matcher *m, uint32_t i)
{
    return ((struct empty_flush *)multimap_at(&m->flushes, i))->row;
}

static uint32_t row_of_end(const struct matcher *m, uint32_t i)
{
    return ((struct sequence_end *)multimap_at(&m->ends, i))->row;
}

bool queue_flush(struct matcher *m, uint32_t row, int64_t order)
{
    uint32_t index = multimap_allocate(&m->flushes);
    if (!index || !multimap_insert(&m->flushes, index, 0, order))
        return false;
    ((struct empty_flush *)multimap_at(&m->flushes, index))->row = row;
    m->rows[row].open++;
    return true;
}

void close_flush(struct matcher *m, uint32_t index)
{
    uint32_t row = row_of_flush(m, index);
    multimap_remove(&m->flushes, index);
    multimap_release(&m->flushes, index);
    m->rows[row].open--;
    drop_if_done(m, row);
}

/* Return the oldest flush that is dispatched, or is not; 0 if there is none. Only for traces without queue events. */
uint32_t find_flush(const struct matcher *m, bool dispatched)
{
    uint32_t scanned = 0, index = multimap_first(&m->flushes, 0);
    while (index && (m->rows[row_of_flush(m, index)].dispatch != NEVER) != dispatched)
        index = scanned++ < MOST_SCANNED ? multimap_next(&m->flushes, index) : 0;
    return index;
}

void dispatch_flush(struct matcher *m, int64_t time)
{
    m->device_flushes++;
    if (m->from_dispatch) {
        uint32_t index = find_flush(m, false);
        if (index)
            m->rows[row_of_flush(m, index)].dispatch = time;
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
        struct row *row = &m->rows[row_of_flush(m, index)];
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
    uint32_t index = multimap_allocate(&m->ends);
    if (!index || !multimap_insert(&m->ends, index, key, 0))
        return false;
    struct sequence_end *end = multimap_at(&m->ends, index);
    end->row = row;
    end->kinds = action & KINDS;
    m->rows[row].remembered++;
    return true;
}

/* Return the last end at an event's place with the event's flags, else the last end at this place. */
static uint32_t find_end(const struct matcher *m, const struct event *event, bool *same_flags)
{
    uint32_t end = 0, scanned = 0, index = multimap_first(&m->ends, key_of(event->action, event->sector));
    *same_flags = false;
    for (; index && scanned++ < MOST_SCANNED; index = multimap_next(&m->ends, index)) {
        bool same = ((struct sequence_end *)multimap_at(&m->ends, index))->kinds == (event->action & KINDS);
        if (same || !*same_flags)
            end = index;
        *same_flags |= same;
    }
    return end;
}

void forget_end(struct matcher *m, uint32_t index)
{
    uint32_t row = row_of_end(m, index);
    multimap_remove(&m->ends, index);
    multimap_release(&m->ends, index);
    m->rows[row].remembered--;
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
    struct row *row = &m->rows[row_of_flush(m, flush)];
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
    struct row *row = &m->rows[ends ? row_of_end(m, end) : row_of_flush(m, flush)];
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
