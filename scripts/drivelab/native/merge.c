#define _POSIX_C_SOURCE 200809L
#include "merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* An interrupt between the time stamp of a record and its place in the ring puts younger records before it (ftrace).
   This many records are sorted before the earliest is returned. */
#define LOOKAHEAD 64u

static bool fail(struct merge *merge, unsigned file, enum merge_error error, uint64_t byte, uint32_t detail)
{
    merge->failure = (struct failure){error, file, byte, detail};
    return false;
}

void merge_close(struct merge *merge)
{
    for (unsigned i = 0; i < merge->count; i++) {
        close(merge->cpus[i].file);
        free(merge->cpus[i].buffer);
    }
    free(merge->cpus);
    free(merge->heap);
    free(merge->spare);
}

/* Move all records that are not yet returned to the front of the buffer. */
static void move_to_front(struct merge *merge, struct cpu *cpu)
{
    uint32_t kept = 0, used = 0;
    for (; cpu->next < cpu->count; cpu->next++) {
        const uint8_t *record = cpu->buffer + cpu->places[cpu->next].offset;
        uint32_t header = header_bytes(get32(record)), size = header + record_payload_bytes(record, header);
        memcpy(merge->spare + used, record, size);
        cpu->places[kept] = cpu->places[cpu->next];
        cpu->places[kept++].offset = used;
        used += size;
    }
    memcpy(merge->spare + used, cpu->buffer + cpu->parsed, cpu->filled - cpu->parsed);
    cpu->filled = used + cpu->filled - cpu->parsed;
    cpu->parsed = used;
    cpu->count = kept;
    cpu->next = 0;
    uint8_t *buffer = cpu->buffer;
    cpu->buffer = merge->spare;
    merge->spare = buffer;
}

static void count_gap(struct cpu *file, const uint8_t *record)
{
    struct event event = parse_record(record);
    if (event.action & BIT(CAT_NOTIFY))
        return;
    uint32_t number = get32(record + 4), count = file->sequence_count, at = file->sequence_at, tried = 0;
    for (; tried < count; tried++, at = at + 1 < count ? at + 1 : 0)
        if (file->sequences[at].cpu == event.cpu && file->sequences[at].device == event.device)
            break;
    if (tried == count) {
        if (count == MOST_SEQUENCES)
            return;
        at = file->sequence_count++;
        file->sequences[at] = (struct sequence){event.device, event.cpu, number};
    }
    struct sequence *sequence = &file->sequences[at];
    if (number > sequence->last)
        file->sequence_gaps += number - sequence->last - 1;
    sequence->last = number;
    file->sequence_at = at;
}

static void insert_by_time(struct cpu *cpu, struct place place)
{
    uint32_t at = cpu->count++;
    for (; at > cpu->next && cpu->places[at - 1].time > place.time; at--)
        cpu->places[at] = cpu->places[at - 1];
    cpu->places[at] = place;
}

/* A note belongs to the record after it, and is never younger. In a merged dump, notes keep the time of the clock, but
   the other records count from the first one: such notes take the time of the next record, `time`. */
static void keep_notes_before(struct cpu *cpu, uint64_t time)
{
    uint32_t end = cpu->count, first = end;
    for (; cpu->waiting && first > cpu->next; first--)
        cpu->waiting -= cpu->places[first - 1].waits;
    cpu->waiting = 0;
    for (cpu->count = first; first < end; first++) {
        struct place place = cpu->places[first];
        if (place.waits && place.time > time) {
            place.time = time;
            memcpy(cpu->buffer + place.offset + 8, &time, sizeof time);
        }
        place.waits = false;
        insert_by_time(cpu, place);
    }
}

static void insert_record(struct cpu *cpu, const uint8_t *record, uint32_t header)
{
    bool note = record_action(record, header) & BIT(CAT_NOTIFY);
    if (!note && cpu->waiting)
        keep_notes_before(cpu, record_time(record));
    cpu->waiting += note;
    insert_by_time(cpu, (struct place){record_time(record), cpu->parsed, note});
}

/* Read until there are more than LOOKAHEAD records, the buffer is full, or the file ends. */
static bool fill(struct merge *merge, unsigned number)
{
    struct cpu *cpu = &merge->cpus[number];
    move_to_front(merge, cpu);
    while (!cpu->ended && cpu->count <= LOOKAHEAD && cpu->filled < BUFFER_BYTES + LARGEST_RECORD) {
        ssize_t got = read(cpu->file, cpu->buffer + cpu->filled, BUFFER_BYTES + LARGEST_RECORD - cpu->filled);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(merge, number, MERGE_CANNOT_READ, cpu->position, (uint32_t)errno);
        cpu->filled += (uint32_t)got;
        cpu->ended = got == 0;
        for (;;) {
            uint32_t left = cpu->filled - cpu->parsed;
            const uint8_t *record = cpu->buffer + cpu->parsed;
            if (left < 4)
                break;
            uint32_t header = header_bytes(get32(record));
            if (!header)
                return fail(merge, number, MERGE_NO_RECORD, cpu->position, get32(record));
            if (left < header || left < header + record_payload_bytes(record, header))
                break;
            uint32_t size = header + record_payload_bytes(record, header);
            insert_record(cpu, record, header);
            count_gap(cpu, record);
            cpu->parsed += size;
            cpu->position += size;
        }
    }
    return true;
}

static struct head head_of(const struct merge *merge, unsigned number)
{
    const struct cpu *cpu = &merge->cpus[number];
    return (struct head){cpu->places[cpu->next].time, number};
}

static bool earlier(struct head a, struct head b) { return a.time != b.time ? a.time < b.time : a.cpu < b.cpu; }

static void sift_down(struct merge *merge, unsigned at, struct head moving)
{
    struct head *heap = merge->heap;
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child >= merge->heap_count)
            break;
        if (child + 1 < merge->heap_count && earlier(heap[child + 1], heap[child]))
            child++;
        if (!earlier(heap[child], moving))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

bool merge_open(struct merge *merge, const char *const *paths, unsigned count)
{
    merge->cpus = calloc(count, sizeof *merge->cpus);
    merge->heap = calloc(count, sizeof *merge->heap);
    merge->spare = malloc(BUFFER_BYTES + LARGEST_RECORD);
    if (!merge->cpus || !merge->heap || !merge->spare)
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct cpu *cpu = &merge->cpus[i];
        cpu->file = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (cpu->file < 0) {
            fail(merge, i, MERGE_CANNOT_READ, 0, (uint32_t)errno);
            return true;
        }
        merge->count++;
        cpu->buffer = malloc(BUFFER_BYTES + LARGEST_RECORD);
        if (!cpu->buffer)
            return false;
    }
    for (unsigned i = 0; i < count && fill(merge, i); i++)
        if (merge->cpus[i].count)
            merge->heap[merge->heap_count++] = head_of(merge, i);
    for (unsigned i = merge->heap_count / 2; i-- > 0;)
        sift_down(merge, i, merge->heap[i]);
    return true;
}

bool merge_next(struct merge *merge, struct event *event)
{
    if (merge->failure.error || !merge->heap_count)
        return false;
    unsigned number = merge->heap[0].cpu;
    struct cpu *cpu = &merge->cpus[number];
    /* Refill before returning the event, so that its payload does not move until the next call. */
    if (cpu->count - cpu->next <= LOOKAHEAD && !cpu->ended && !fill(merge, number))
        return false;
    *event = parse_record(cpu->buffer + cpu->places[cpu->next++].offset);
    if (cpu->next < cpu->count)
        sift_down(merge, 0, head_of(merge, number));
    else if (--merge->heap_count)
        sift_down(merge, 0, merge->heap[merge->heap_count]);
    return true;
}
