/* Read the events of all CPUs of a capture in order of time, from one file per CPU, in bounded memory. */
#pragma once

#include "records.h"

struct file_facts {
    uint64_t sequence_gaps;   /* records missing in the sequence; notes and ftrace records have no numbers */
    uint64_t truncated_bytes; /* of an incomplete last record */
};

enum merge_error { MERGE_OK, MERGE_CANNOT_READ, MERGE_NO_RECORD, MERGE_NO_MEMORY };

struct merge;

/* Open the files; NULL without memory. The paths are not used after the call. */
struct merge *merge_open(const char *const *paths, unsigned count);
void merge_close(struct merge *);

/* Get the next event; false at the end and on an error. Its payload is valid until the next call. */
bool merge_next(struct merge *, struct event *);

/* Return what went wrong, in which file, at which byte, with which magic number or errno. */
enum merge_error merge_error(const struct merge *, unsigned *file, uint64_t *byte, uint32_t *detail);
struct file_facts merge_facts(const struct merge *, unsigned file);
