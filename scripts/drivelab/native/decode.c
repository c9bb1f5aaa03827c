/* Decode a capture into columns, batch by batch; the interface for Python. Process names are stored once and referred
   to by number. They come from the caller (decoder_name) and from notes in the capture. */
#include "match.h"
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
    uint64_t other_devices;        /* number of events of devices other than `device` */
    uint32_t device, other_device; /* the chosen device or that of the first event; the last other device */
    uint32_t names, dropped_names;
    uint64_t origin;
};

struct process {
    uint32_t pid;
    int32_t name; /* 1 + number of the name; 0: an empty slot */
};

struct decoder {
    struct merge *merge;
    struct matcher *matcher;
    struct counts counts;
    uint64_t first_sector;
    char (*names)[COMMAND_BYTES];
    struct process *processes; /* open addressing */
    uint32_t process_bits, process_count;
    bool ended, no_memory;
};

struct decoder *decoder_open(const char *const *paths, unsigned count, uint64_t first_sector, uint32_t device,
                             bool from_dispatch);
void decoder_close(struct decoder *);
bool decoder_name(struct decoder *, uint32_t pid, const char *name);
int64_t decoder_next(struct decoder *, struct row *, uint64_t capacity);
uint64_t decoder_row_bytes(void);
void decoder_columns(const struct decoder *, const struct row *, uint64_t count, const struct columns *);
void decoder_counts(struct decoder *, struct counts *);
const char *decoder_names(const struct decoder *);
void decoder_file_facts(const struct decoder *, unsigned file, struct file_facts *);
unsigned decoder_error(const struct decoder *, unsigned *file, uint64_t *byte, uint32_t *detail);
const struct correction *decoder_corrections(const struct decoder *, uint64_t *count);

/* Offsets are relative to `first_sector`. `device` is the device to decode (0: that of the first event). With
   `from_dispatch`, requests begin with their dispatch, for a trace without queue events. */
struct decoder *decoder_open(const char *const *paths, unsigned count, uint64_t first_sector, uint32_t device,
                             bool from_dispatch)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->process_bits = 10;
    d->first_sector = first_sector;
    d->counts.device = device;
    d->processes = calloc((size_t)1 << d->process_bits, sizeof *d->processes);
    d->names = calloc(1, sizeof *d->names); /* name 0 is the empty name */
    d->counts.names = 1;
    d->merge = merge_open(paths, count);
    d->matcher = matcher_new(from_dispatch);
    if (d->processes && d->names && d->merge && d->matcher)
        return d;
    decoder_close(d);
    return NULL;
}

void decoder_close(struct decoder *d)
{
    if (d->merge)
        merge_close(d->merge);
    if (d->matcher)
        matcher_free(d->matcher);
    free(d->processes);
    free(d->names);
    free(d);
}

static struct process *slot_of(const struct decoder *d, uint32_t pid)
{
    uint32_t mask = (1u << d->process_bits) - 1, at = pid * 2654435769u >> (32 - d->process_bits);
    while (d->processes[at].name && d->processes[at].pid != pid)
        at = (at + 1) & mask;
    return &d->processes[at];
}

static bool grow_processes(struct decoder *d)
{
    struct process *old = d->processes;
    uint32_t count = 1u << d->process_bits;
    struct process *larger = calloc((size_t)count * 4, sizeof *larger);
    if (!larger)
        return false;
    d->processes = larger;
    d->process_bits += 2;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].name)
            *slot_of(d, old[i].pid) = old[i];
    free(old);
    return true;
}

/* Return the number of a name: a recent number if the name is recent, else a new one; 0 (no name) if there are too
   many; -1 without memory. */
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
    if ((count & (count - 1)) == 0) {
        void *larger = realloc(d->names, (size_t)count * 2 * sizeof *d->names);
        if (!larger)
            return -1;
        d->names = larger;
    }
    memcpy(d->names[count], name, COMMAND_BYTES);
    d->counts.names++;
    return (int32_t)count;
}

/* Set the name of a process from now on; `name` ends with a zero or after 15 bytes. False without memory. */
bool decoder_name(struct decoder *d, uint32_t pid, const char *name)
{
    char padded[COMMAND_BYTES] = {0};
    for (unsigned i = 0; i + 1 < COMMAND_BYTES && name[i]; i++)
        padded[i] = name[i];
    struct process *slot = slot_of(d, pid);
    if (!slot->name && d->process_count >= MOST_PROCESSES) {
        d->counts.dropped_names++;
        return true;
    }
    int32_t number = padded[0] ? number_of(d, padded) : 0;
    if (number < 0)
        return false;
    d->process_count += !slot->name;
    *slot = (struct process){pid, number + 1};
    return d->process_count < (1u << d->process_bits) / 2 || grow_processes(d);
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
    bool completes = KIND(event->action) == COMPLETE;
    bool device_flush = event->action & BIT(CAT_FLUSH) && !(event->action & BIT(CAT_WRITE));
    d->counts.data_completions += completes && event->bytes;
    d->counts.empty_completions += completes && !event->bytes && !device_flush;
    d->counts.empty_queued += KIND(event->action) == QUEUE && !event->bytes;
    int32_t known = KIND(event->action) == QUEUE ? slot_of(d, event->pid)->name : 0, process = known ? known - 1 : 0;
    return matcher_event(d->matcher, event, (int64_t)(event->time - d->counts.origin), process);
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

uint64_t decoder_row_bytes(void) { return sizeof(struct row); }

/* Fill the columns with rows. Another thread may decode the next rows meanwhile. */
void decoder_columns(const struct decoder *d, const struct row *rows, uint64_t count, const struct columns *columns)
{
    for (uint64_t i = 0; i < count; i++)
        put(d, columns, i, &rows[i]);
}

/* Decode at most `capacity` rows; return their number, 0 at the end, or -1 (see decoder_error). */
int64_t decoder_next(struct decoder *d, struct row *rows, uint64_t capacity)
{
    uint64_t filled = 0;
    struct event event;
    for (;;) {
        while (filled < capacity && matcher_take(d->matcher, &rows[filled]))
            filled++;
        if (filled == capacity || d->ended)
            return (int64_t)filled;
        if (merge_next(d->merge, &event)) {
            if (!handle_event(d, &event)) {
                d->no_memory = true;
                return -1;
            }
            continue;
        }
        unsigned file;
        uint64_t byte;
        uint32_t detail;
        if (merge_error(d->merge, &file, &byte, &detail))
            return -1;
        d->ended = true;
        matcher_finish(d->matcher);
    }
}

void decoder_counts(struct decoder *d, struct counts *counts)
{
    *counts = d->counts;
    counts->rows = matcher_rows(d->matcher);
    counts->device_flushes = matcher_device_flushes(d->matcher);
    memcpy(counts->mismatches, matcher_mismatches(d->matcher), sizeof counts->mismatches);
}

/* Return `counts.names` names of 16 bytes each, the first one empty; valid until the next call of decoder_next. */
const char *decoder_names(const struct decoder *d) { return d->names[0]; }

void decoder_file_facts(const struct decoder *d, unsigned file, struct file_facts *facts)
{
    *facts = merge_facts(d->merge, file);
}

unsigned decoder_error(const struct decoder *d, unsigned *file, uint64_t *byte, uint32_t *detail)
{
    enum merge_error error = merge_error(d->merge, file, byte, detail);
    return d->no_memory ? MERGE_NO_MEMORY : error;
}

const struct correction *decoder_corrections(const struct decoder *d, uint64_t *count)
{
    return matcher_corrections(d->matcher, count);
}
