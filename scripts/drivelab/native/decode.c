/* Decode a capture into columns, batch by batch; the interface for Python. Process names are stored once and referred
   to by number. They come from the caller (decoder_name) and from notes in the capture. */
#include "matcher.h"
#include "merge.h"

#include <stdlib.h>

#define MOST_PROCESSES (1u << 20)
#define MOST_NAMES (1u << 16)
#define COMMAND_BYTES 16

struct columns {
    int64_t *queue, *dispatch, *complete, *offset, *length, *dispatch_id;
    uint8_t *has_dispatch, *has_complete, *has_dispatch_id;         /* bitmaps */
    uint8_t *sync, *meta, *fua, *readahead, *preflush;              /* bitmaps */
    int8_t *operation;
    int32_t *process, *pid, *cpu, *error, *pieces, *requeues;
};

struct counts {
    uint64_t events, notes, passthrough, rows, device_flushes;
    uint64_t data_completions, empty_completions, empty_queued; /* the last two without device flushes */
    uint64_t by_kind[256];
    uint64_t mismatches[MISMATCHES];
    uint64_t sequence_gaps, truncated_files;
    uint64_t other_devices;        /* number of events of devices other than `device` */
    uint32_t device, other_device; /* the chosen device or that of the first event; the last other device */
    uint32_t names, dropped_names;
    uint64_t origin;
};

struct process {
    struct entry entry; /* the key is the pid */
    int32_t name;       /* its number */
};

struct decoder {
    struct merge merge;
    struct matcher matcher;
    struct counts counts;
    uint64_t first_sector;
    const struct correction *corrections; /* one for each row at most, in order of the rows */
    uint64_t correction_count, corrected;
    char names[MOST_NAMES][COMMAND_BYTES]; /* number 0 is the empty name */
    struct multimap processes;
};

void decoder_close(struct decoder *d)
{
    merge_close(&d->merge);
    matcher_free(&d->matcher);
    multimap_free(&d->processes);
    free(d);
}

/* Offsets are relative to `first_sector`. `device` is the device to decode (0: that of the first event). With
   `from_dispatch`, requests begin with their dispatch, for a trace without queue events. `corrections` are those of an
   earlier decoder of the files, and are used until the end. */
struct decoder *decoder_open(const char *const *paths, unsigned count, uint64_t first_sector, uint32_t device,
                             bool from_dispatch, const struct correction *corrections, uint64_t correction_count)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->first_sector = first_sector;
    d->corrections = corrections;
    d->correction_count = correction_count;
    d->counts.device = device;
    d->counts.names = 1;
    if (multimap_init(&d->processes, sizeof(struct process)) && matcher_init(&d->matcher, from_dispatch) &&
        merge_open(&d->merge, paths, count))
        return d;
    decoder_close(d);
    return NULL;
}

static struct process *process_of(const struct decoder *d, uint32_t pid)
{
    uint32_t index = multimap_first(&d->processes, pid);
    return index ? multimap_at(&d->processes, index) : NULL;
}

/* Return the number of a name: a recent number if the name is recent, else a new one; 0 (no name) if there are too
   many. */
static int32_t number_of(struct decoder *d, const char *name)
{
    uint32_t count = d->counts.names;
    for (uint32_t i = count; i > 1 && count - i < 64; i--)
        if (!memcmp(d->names[i - 1], name, COMMAND_BYTES))
            return (int32_t)(i - 1);
    if (count >= MOST_NAMES) {
        d->counts.dropped_names++;
        return 0;
    }
    memcpy(d->names[d->counts.names++], name, COMMAND_BYTES);
    return (int32_t)count;
}

/* Set the name of a process from now on; `name` ends with a zero or after 15 bytes. False without memory. */
bool decoder_name(struct decoder *d, uint32_t pid, const char *name)
{
    char padded[COMMAND_BYTES] = {0};
    for (unsigned i = 0; i + 1 < COMMAND_BYTES && name[i]; i++)
        padded[i] = name[i];
    struct process *process = process_of(d, pid);
    if (!process && d->processes.count >= MOST_PROCESSES) {
        d->counts.dropped_names++;
        return true;
    }
    if (!process && !(process = multimap_add(&d->processes, pid, 0)))
        return false;
    process->name = padded[0] ? number_of(d, padded) : 0;
    return true;
}

static bool handle_note(struct decoder *d, const struct event *event)
{
    d->counts.notes++;
    if (KIND(event->action) != NOTE_PROCESS)
        return true;
    char name[COMMAND_BYTES] = {0};
    uint32_t bytes = event->payload_bytes < COMMAND_BYTES - 1 ? event->payload_bytes : COMMAND_BYTES - 1;
    memcpy(name, event->payload, bytes);
    return decoder_name(d, event->pid, name);
}

static bool handle_event(struct decoder *d, const struct event *event)
{
    if (!d->counts.events++)
        d->counts.origin = event->time;
    if (event->action & BIT(CAT_NOTIFY))
        return handle_note(d, event);
    d->counts.by_kind[KIND(event->action)]++;
    if (event->action & BIT(CAT_PASSTHROUGH)) {
        d->counts.passthrough++;
        return true;
    }
    if (!d->counts.device)
        d->counts.device = event->device;
    if (event->device != d->counts.device) {
        d->counts.other_device = event->device;
        d->counts.other_devices++;
        return true;
    }
    if (event->action & ZONE_MANAGEMENT)
        return true;
    bool completes = KIND(event->action) == COMPLETE, queues = KIND(event->action) == QUEUE;
    d->counts.data_completions += completes && event->bytes;
    d->counts.empty_completions += completes && !event->bytes && !is_device_flush(event);
    d->counts.empty_queued += queues && !event->bytes;
    const struct process *process = queues ? process_of(d, event->pid) : NULL;
    return matcher_event(&d->matcher, event, (int64_t)(event->time - d->counts.origin), process ? process->name : 0);
}

static void set_bit(uint8_t *bitmap, uint64_t at, bool value)
{
    uint8_t bit = (uint8_t)(1u << (at & 7));
    bitmap[at >> 3] = value ? bitmap[at >> 3] | bit : bitmap[at >> 3] & (uint8_t)~bit;
}

static void put(const struct decoder *d, const struct columns *to, uint64_t at, const struct row *row)
{
    uint64_t action = row->action;
    bool data = row->bytes > 0, flush = action & BIT(CAT_FLUSH);
    to->queue[at] = row->queue;
    to->dispatch[at] = row->dispatch == NEVER ? 0 : row->dispatch;
    to->complete[at] = row->complete == NEVER ? 0 : row->complete;
    to->dispatch_id[at] = row->dispatch_id < 0 ? 0 : row->dispatch_id;
    set_bit(to->has_dispatch, at, row->dispatch != NEVER);
    set_bit(to->has_complete, at, row->complete != NEVER);
    set_bit(to->has_dispatch_id, at, row->dispatch_id >= 0);
    set_bit(to->sync, at, action & BIT(CAT_SYNC));
    set_bit(to->meta, at, action & BIT(CAT_META));
    set_bit(to->fua, at, action & BIT(CAT_FUA));
    set_bit(to->readahead, at, action & BIT(CAT_READAHEAD));
    set_bit(to->preflush, at, flush && data);
    /* In the order of drivelab.trace.parquet_schema.OPERATIONS. */
    to->operation[at] = action & BIT(CAT_DISCARD) ? 3 : action & BIT(CAT_WRITE_ZEROES) ? 4 : flush && !data ? 2
                      : action & (BIT(CAT_WRITE) | BIT(CAT_ZONE_APPEND)) ? 1 : 0;
    to->offset[at] = data ? ((int64_t)row->sector - (int64_t)d->first_sector) * SECTOR_BYTES : 0;
    to->length[at] = row->bytes;
    to->process[at] = row->process;
    to->pid[at] = (int32_t)row->pid;
    to->cpu[at] = (int32_t)row->cpu;
    to->error[at] = row->error;
    to->pieces[at] = (int32_t)row->pieces;
    to->requeues[at] = (int32_t)row->requeues;
}

/* Give a row that was just taken its last state, if an earlier decoder found another one. */
static const struct row *corrected(struct decoder *d, struct row *row)
{
    uint64_t number = d->matcher.window_start - 1;
    if (d->corrected == d->correction_count || d->corrections[d->corrected].number != number)
        return row;
    const struct correction *last = &d->corrections[d->corrected++];
    row->dispatch = last->dispatch;
    row->complete = last->complete;
    row->dispatch_id = last->dispatch_id;
    row->error = (uint16_t)last->error;
    row->pieces = last->pieces;
    row->requeues = last->requeues;
    return row;
}

/* Fill the columns with at most `capacity` rows; return their number, 0 at the end, or -1 (see decoder_error). */
int64_t decoder_next(struct decoder *d, const struct columns *columns, uint64_t capacity)
{
    uint64_t filled = 0;
    struct event event;
    struct row row;
    for (;;) {
        while (filled < capacity && matcher_take(&d->matcher, &row))
            put(d, columns, filled++, corrected(d, &row));
        if (filled == capacity || d->matcher.finished)
            return (int64_t)filled;
        if (merge_next(&d->merge, &event)) {
            if (!handle_event(d, &event))
                d->merge.failure.error = MERGE_NO_MEMORY;
        } else if (!d->merge.failure.error) {
            matcher_finish(&d->matcher);
        }
        if (d->merge.failure.error)
            return -1;
    }
}

void decoder_counts(struct decoder *d, struct counts *counts)
{
    *counts = d->counts;
    counts->rows = d->matcher.window_end;
    counts->device_flushes = d->matcher.device_flushes;
    memcpy(counts->mismatches, d->matcher.mismatches, sizeof counts->mismatches);
    for (const struct cpu *cpu = d->merge.cpus; cpu < d->merge.cpus + d->merge.count; cpu++) {
        counts->sequence_gaps += cpu->sequence_gaps;
        counts->truncated_files += cpu->ended && cpu->filled > cpu->parsed;
    }
}

/* Return `counts.names` names of 16 bytes each, the first one empty; valid until the next call of decoder_next. */
const char *decoder_names(const struct decoder *d) { return d->names[0]; }

unsigned decoder_error(const struct decoder *d, unsigned *file, uint64_t *byte, uint32_t *detail)
{
    const struct failure *failure = &d->merge.failure;
    *file = failure->file;
    *byte = failure->byte;
    *detail = failure->detail;
    return failure->error;
}

const struct correction *decoder_corrections(const struct decoder *d, uint64_t *count)
{
    *count = d->matcher.correction_count;
    return d->matcher.corrections;
}
