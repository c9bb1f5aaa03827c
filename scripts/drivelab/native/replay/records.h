/* The formats of the two files of a replay, as in `drivelab/replay/engine_records.py`; a test compares them. */
#pragma once

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "schedules are used without byte swapping, which needs a little-endian machine"
#endif

enum operation { READ, WRITE, FLUSH, DISCARD, WRITE_ZEROES, OPERATIONS };

#define FUA 1u
#define LONGEST_TRANSFER_BYTES (UINT32_C(64) << 20)
#define MOST_IN_FLIGHT 4096u

#define SCHEDULE_MAGIC "DLSCHED1"
struct schedule_header {
    char magic[8];
    uint32_t header_bytes, record_bytes;
    uint64_t count, checksum, target_bytes;
    uint32_t block_bytes, longest_bytes;
};

struct schedule_record {
    uint64_t deadline_ns, offset_bytes, length_bytes, think_ns;
    uint32_t after;
    uint16_t depth;
    uint8_t operation, flags;
};

#define RESULTS_MAGIC "DLRESLT1"
#define RESULTS_HEADER_BYTES 4096u

enum state { PREPARED, RUNNING, FINISHED, INTERRUPTED, FAILED, HUNG, TIME_IS_UP };

struct results_header {
    char magic[8];
    uint32_t header_bytes, record_bytes;
    uint64_t capacity, schedule_checksum;
    int64_t start_monotonic_ns, start_realtime_ns;
    uint64_t issued, completed, failed, first_failed, end_ns, heartbeat_ns, most_in_flight;
    uint32_t state, signal;
    uint64_t wakeup_p50_ns, wakeup_p95_ns, wakeup_p99_ns, wakeup_max_ns, spin_ns;
    uint32_t plain_buffers, threads, watching;
    uint32_t polled, kernel_thread, nvme;
};

enum request_state { NOT_ISSUED, ISSUED, COMPLETED };
enum waited { NOT_WAITED, WAITED_FOR_DEPTH, WAITED_FOR_DEPENDENCY };

struct result_record {
    uint64_t issue_ns, complete_ns;
    int32_t result;
    uint8_t state, waited;
    uint16_t in_flight;
};

_Static_assert(sizeof(struct schedule_header) == 48 && sizeof(struct schedule_record) == 40, "schedule's layout");
_Static_assert(sizeof(struct results_header) <= RESULTS_HEADER_BYTES && sizeof(struct result_record) == 24,
               "results' layout");
