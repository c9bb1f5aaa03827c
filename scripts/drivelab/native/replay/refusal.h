/* Why the engine does not start: one sentence, and the exit status for its kind. The program ends after a refusal, so
   nothing that is open is closed before. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum status {
    ORDERLY, /* the state in the results says how the replay ended */
    BAD_COMMAND = 2,
    BAD_SCHEDULE,
    BAD_TARGET,
    BAD_HOST, /* no io_uring, too little lockable memory, a priority that is not granted */
    BAD_RESULTS,
    TARGET_HANGS /* the results are complete except for requests still in flight */
};

struct refusal {
    enum status status;
    char message[1024];
};

/* Store a refusal; always false, for `return refuse(...)`. */
__attribute__((format(printf, 3, 4))) static inline bool refuse(struct refusal *refusal, enum status status,
                                                                const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refusal->status = status;
    vsnprintf(refusal->message, sizeof refusal->message, format, arguments);
    va_end(arguments);
    return false;
}
