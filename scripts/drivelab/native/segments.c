#include "matcher.h"

bool queue_segment(struct matcher *m, uint32_t row, uint64_t key, uint32_t bytes, int64_t order)
{
    struct segment *segment = multimap_add(&m->segments, key, order);
    if (!segment)
        return false;
    *segment = (struct segment){.entry = segment->entry, .bytes = bytes, .row = row};
    row_at(m, row)->open++;
    return true;
}

void close_segment(struct matcher *m, uint32_t index)
{
    uint32_t row = segment_at(m, index)->row;
    pool_release(&m->segments.pool, index);
    row_at(m, row)->open--;
    drop_if_done(m, row);
}

/* Cut a queued segment: it keeps its front, and the rest is queued as a new segment at its place. */
static bool cut(struct matcher *m, uint32_t index, uint32_t front_bytes)
{
    struct segment *front = segment_at(m, index);
    uint32_t rest_bytes = front->bytes - front_bytes;
    front->bytes = front_bytes;
    return queue_segment(m, front->row, key_after(front->entry.key, front_bytes), rest_bytes, front->entry.order);
}

bool split(struct matcher *m, const struct event *event)
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

/* Merging follows queueing at once, so the merged bio is the last one queued at this place. If a whole request was
   merged into its neighbour, the first bio of that request has another length. */
void mark_merged(struct matcher *m, const struct event *event)
{
    uint32_t first = multimap_first(&m->segments, key_of(event->action, event->sector));
    uint32_t index = first ? segment_at(m, first)->entry.last : 0, unmarked = 0, scanned = 0;
    for (; index && scanned++ < MOST_SCANNED; index = segment_at(m, index)->entry.previous) {
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

/* Find segments that tile `bytes` from `key`, depth first in queue order; with `one_unmarked`, exactly one of them is
   unmarked. Store them in `parts` and return their number, 0 if there are none. */
static uint32_t tile(struct matcher *m, uint64_t key, uint32_t bytes, bool one_unmarked)
{
    uint32_t depth = 0, tried = 0, covered = 0, unmarked = 0;
    uint32_t candidate = multimap_first(&m->segments, key);
    for (;;) {
        while (candidate) {
            const struct segment *segment = segment_at(m, candidate);
            if (++tried > MOST_TRIED)
                return 0;
            if (segment->bytes <= bytes - covered && !(one_unmarked && unmarked && !segment->marked))
                break;
            candidate = segment->entry.next;
        }
        if (candidate && depth < MOST_TRIED) {
            const struct segment *segment = segment_at(m, candidate);
            m->parts[depth++] = candidate;
            covered += segment->bytes;
            unmarked += !segment->marked;
            if (covered == bytes && !(one_unmarked && unmarked != 1))
                return depth;
            /* Parts do not overlap, so no segment occurs twice. */
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

/* Discards merge at any place and without an event (bio_attempt_discard_merge in block/blk-merge.c). Gather the first
   discard at `key` and those that the same process queued after it, until their lengths add up to `bytes`. */
static uint32_t gather_discards(struct matcher *m, uint64_t key, uint32_t bytes)
{
    uint32_t index = multimap_first(&m->segments, key), depth = 0, scanned = 0;
    uint64_t sum = 0;
    if ((key & 3) != DISCARDS || !index)
        return 0;
    uint32_t pid = row_at(m, segment_at(m, index)->row)->pid;
    for (; index && sum < bytes && scanned++ < MOST_SCANNED; index = segment_at(m, index)->entry.younger) {
        const struct segment *segment = segment_at(m, index);
        if ((segment->entry.key & 3) != DISCARDS || row_at(m, segment->row)->pid != pid)
            continue;
        sum += segment->bytes;
        m->parts[depth++] = index;
    }
    return sum == bytes ? depth : 0;
}

/* Take all segments from `key` without a gap, and cut the last one to fit. */
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

/* Move the queued segments of a dispatch into `parts`. False without memory. */
bool take_segments(struct matcher *m, uint64_t key, uint32_t bytes, uint32_t *count)
{
    *count = tile(m, key, bytes, true);
    if (!*count)
        *count = tile(m, key, bytes, false);
    if (!*count)
        *count = gather_discards(m, key, bytes);
    if (!*count && !tile_greedily(m, key, bytes, count))
        return false;
    for (uint32_t i = 0; i < *count; i++) {
        multimap_remove(&m->segments, m->parts[i]);
        struct segment *segment = segment_at(m, m->parts[i]);
        segment->first = segment->entry.key;
        segment->next_member = i + 1 < *count ? m->parts[i + 1] : 0;
    }
    return true;
}
