/* Read the events of a capture in order of time, ahead of their use, in a thread of its own. */
#ifndef DRIVELAB_AHEAD_H
#define DRIVELAB_AHEAD_H

#include "merge.h"

#define AHEAD_PAYLOAD_BYTES 16u /* of a payload, the bytes after these are dropped */

struct ahead;

/* Start to read `merge`, which nothing else may use until the end; NULL without memory or a thread. */
struct ahead *ahead_start(struct merge *merge);

/* End the thread, at whatever event it is. */
void ahead_stop(struct ahead *);

/* Get the next event; false at the end and on an error, and then `merge` may be used. Its payload is valid until the
   next call. */
bool ahead_next(struct ahead *, struct event *);

#endif
