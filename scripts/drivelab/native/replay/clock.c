#include "clock.h"

#include <errno.h>
#include <stdlib.h>

#define SLEEPS 320
/* A sleep and a wake-up take about this long, so a shorter sleep gains nothing. */
#define LEAST_MARGIN_NS 20000u
/* From the wake-up to the first reading of the clock. */
#define RESERVE_NS 5000u

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

bool sleep_for(struct io_uring *ring, int64_t ns)
{
    struct __kernel_timespec timeout = {.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
    struct timespec plain = {.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
    struct io_uring_cqe *cqe;
    return ring ? io_uring_wait_cqe_timeout(ring, &cqe, &timeout) == -ETIME : !nanosleep(&plain, NULL);
}

void measure_wakeups(struct io_uring *ring, struct results_header *header)
{
    /* During longer sleeps the CPU enters deeper idle states, which take longer to leave. */
    static const int64_t lengths_ns[] = {50000, 100000, 200000, 1000000};
    uint64_t late_ns[SLEEPS];
    for (unsigned i = 0; i < SLEEPS; i++) {
        int64_t length_ns = lengths_ns[i % (sizeof lengths_ns / sizeof *lengths_ns)];
        int64_t due_ns = now_ns() + length_ns;
        sleep_for(ring, length_ns);
        int64_t late = now_ns() - due_ns;
        late_ns[i] = late > 0 ? (uint64_t)late : 0;
    }
    qsort(late_ns, SLEEPS, sizeof *late_ns, by_size);
    header->wakeup_p50_ns = late_ns[SLEEPS / 2];
    header->wakeup_p95_ns = late_ns[SLEEPS * 95 / 100];
    header->wakeup_p99_ns = late_ns[SLEEPS * 99 / 100];
    header->wakeup_max_ns = late_ns[SLEEPS - 1];
    uint64_t margin = header->wakeup_p99_ns + RESERVE_NS;
    header->spin_ns = margin < LEAST_MARGIN_NS ? LEAST_MARGIN_NS : margin > MOST_MARGIN_NS ? MOST_MARGIN_NS : margin;
}
