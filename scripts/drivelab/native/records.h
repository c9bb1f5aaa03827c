/* The records of blktrace files (include/uapi/linux/blktrace_api.h): versions 7 and 8, little-endian. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "blktrace files are read without byte swapping, which needs a little-endian machine"
#endif

#define MAGIC 0x65617400u
#define HEADER_7 48u
#define HEADER_8 64u
#define SECTOR_BYTES 512u

enum kind {
    QUEUE = 1, BACK_MERGE, FRONT_MERGE, GET_REQUEST, SLEEP, REQUEUE, DISPATCH, COMPLETE, SPLIT = 13
};

enum category {
    CAT_READ, CAT_WRITE, CAT_FLUSH, CAT_SYNC, CAT_PASSTHROUGH = 9, CAT_NOTIFY, CAT_READAHEAD, CAT_META, CAT_DISCARD,
    CAT_FUA = 15, CAT_ZONE_APPEND = 16, CAT_ZONE_RESET = 17, CAT_ZONE_CLOSE = 21, CAT_WRITE_ZEROES = 22
};

#define BIT(category) (UINT64_C(1) << (16 + (category)))
/* Zone commands except the append, CAT_ZONE_RESET to CAT_ZONE_CLOSE: they transfer no data. */
#define ZONE_MANAGEMENT (BIT(CAT_ZONE_CLOSE + 1) - BIT(CAT_ZONE_RESET))
#define KIND(action) ((unsigned)((action) & 0xff))
#define CGROUP UINT64_C(0x100) /* the payload begins with a cgroup id of 8 bytes */
#define NOTE_PROCESS 0

struct event {
    uint64_t time, sector, action;
    uint32_t bytes, pid, device, cpu;
    uint16_t error, payload_bytes;
    const uint8_t *payload;
};

static inline uint16_t get16(const uint8_t *at) { uint16_t v; memcpy(&v, at, 2); return v; }
static inline uint32_t get32(const uint8_t *at) { uint32_t v; memcpy(&v, at, 4); return v; }
static inline uint64_t get64(const uint8_t *at) { uint64_t v; memcpy(&v, at, 8); return v; }

/* Return the size of the header with this magic number, or 0 if the version is not supported. */
static inline uint32_t header_bytes(uint32_t magic)
{
    return magic == (MAGIC | 7) ? HEADER_7 : magic == (MAGIC | 8) ? HEADER_8 : 0;
}

static inline uint64_t record_time(const uint8_t *at) { return get64(at + 8); }

/* The kernel stores negative errno values. */
static inline uint16_t positive_errno(uint16_t error) { return error < 0x8000 ? error : (uint16_t)-error; }

static inline uint16_t record_payload_bytes(const uint8_t *at, uint32_t header)
{
    return get16(at + (header == HEADER_7 ? 46 : 50));
}

static inline uint64_t record_action(const uint8_t *at, uint32_t header)
{
    return header == HEADER_7 ? get32(at + 28) : get64(at + 32);
}

static inline struct event parse_record(const uint8_t *at)
{
    uint32_t header = header_bytes(get32(at));
    bool wide = header == HEADER_8;
    const uint8_t *end = at + (wide ? 40 : 36);
    struct event event = {
        .time = record_time(at), .sector = get64(at + 16), .action = record_action(at, header),
        .bytes = get32(at + 24), .pid = get32(at + (wide ? 28 : 32)), .device = get32(end), .cpu = get32(end + 4),
        .error = positive_errno(get16(end + 8)), .payload_bytes = get16(end + 10), .payload = at + header,
    };
    if (event.action & CGROUP) {
        uint16_t skipped = event.payload_bytes < 8 ? event.payload_bytes : 8;
        event.payload += skipped;
        event.payload_bytes -= skipped;
    }
    return event;
}
