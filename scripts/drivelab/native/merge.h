/* The events of all CPUs of a capture in the order of time, read from one file a CPU in bounded memory. */
#ifndef DRIVELAB_MERGE_H
#define DRIVELAB_MERGE_H

#include "records.h"

struct file_facts {
    uint64_t sequence_gaps;   /* records missing by their numbers; notes are not numbered, ftrace numbers nothing */
    uint64_t truncated_bytes; /* of a last record that is not whole */
};

enum merge_error { MERGE_OK, MERGE_CANNOT_READ, MERGE_NO_RECORD, MERGE_NO_MEMORY };

struct merge;

/* Returns NULL without memory. The paths are copied. */
struct merge *merge_open(const char *const *paths, unsigned count);
void merge_close(struct merge *);

/* The next event, false at the end and on an error. Its payload is valid until the next call. */
bool merge_next(struct merge *, struct event *);

/* What went wrong: in which file, at which byte, with which magic number or errno there. */
enum merge_error merge_error(const struct merge *, unsigned *file, uint64_t *byte, uint32_t *detail);
struct file_facts merge_facts(const struct merge *, unsigned file);

#endif
