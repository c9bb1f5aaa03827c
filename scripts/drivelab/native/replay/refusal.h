/* Why the engine does not start: one sentence, and the exit status that tells the kind. */
#ifndef DRIVELAB_REPLAY_REFUSAL_H
#define DRIVELAB_REPLAY_REFUSAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum status {
    ORDERLY, /* the state in the results tells how it ended */
    BAD_COMMAND = 2,
    BAD_SCHEDULE,
    BAD_TARGET,
    BAD_HOST, /* no io_uring, too little memory to be locked, a priority that is not granted */
    BAD_RESULTS,
    TARGET_HANGS /* the results are whole, but for what is still in flight */
};

struct refusal {
    enum status status;
    char words[1024];
};

/* Always false: `return refuse(...)`. */
__attribute__((format(printf, 3, 4))) static inline bool refuse(struct refusal *refusal, enum status status,
                                                                const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refusal->status = status;
    vsnprintf(refusal->words, sizeof refusal->words, format, arguments);
    va_end(arguments);
    return false;
}

#endif
