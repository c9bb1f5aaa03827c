/* Read the events of all CPUs of a capture in order of time, from one file per CPU, in bounded memory. */
#pragma once

#include "records.h"

#define BUFFER_BYTES (256u * 1024)
#define LARGEST_RECORD (HEADER_8 + 65535u)
#define MOST_RECORDS ((BUFFER_BYTES + LARGEST_RECORD) / HEADER_7)
/* The kernel numbers the records of each device on each CPU. A file of one CPU has one such sequence for each device, a
   merged dump (`blkparse -d`) has those of all CPUs. */
#define MOST_SEQUENCES 8192u

enum merge_error { MERGE_OK, MERGE_CANNOT_READ, MERGE_NO_RECORD, MERGE_NO_MEMORY };

struct failure {
    enum merge_error error;
    unsigned file;
    uint64_t byte;
    uint32_t detail; /* magic number or errno */
};

struct place {
    uint64_t time;
    uint32_t offset;
    bool waits; /* a note without a record after it yet */
};

struct sequence {
    uint32_t device, cpu, last;
};

/* The next event of a CPU. */
struct head {
    uint64_t time;
    unsigned cpu;
};

struct cpu {
    int file;
    bool ended;
    uint8_t *buffer;
    uint32_t filled, parsed; /* bytes in the buffer, and of whole records in it; at the end the rest is cut off */
    uint32_t next, count, waiting;
    uint64_t position; /* in the file, after the parsed records */
    uint32_t sequence_count, sequence_at; /* the latter is the last one used */
    uint64_t sequence_gaps; /* records missing in the sequence; notes and ftrace records have no numbers */
    struct place places[MOST_RECORDS]; /* in order of time */
    struct sequence sequences[MOST_SEQUENCES];
};

struct merge {
    unsigned count;
    struct cpu *cpus;
    struct head *heap; /* CPUs with events, the CPU with the earliest event first */
    unsigned heap_count;
    uint8_t *spare; /* a buffer to swap with a CPU's buffer */
    struct failure failure;
};

/* Open the files into a merge of zeros, or note the failure; false without memory. The paths are not used after the
   call. */
bool merge_open(struct merge *, const char *const *paths, unsigned count);
void merge_close(struct merge *);

/* Get the next event; false at the end and on a failure. Its payload is valid until the next call. */
bool merge_next(struct merge *, struct event *);
