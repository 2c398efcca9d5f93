/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_RECORD_H
#define GN_LINK_RECORD_H

#include <stdint.h>

/*
 * The records of a tcp session's stream, in both directions. Each side has memory of the same
 * layout that shared memory would have, and the stream carries the changes. docs/link.md is
 * normative. Little-endian, naturally aligned.
 */
#define GN_STREAM_MAGIC   UINT64_C(0x316d61657274736e) /* "nstream1", backwards */
#define GN_STREAM_VERSION 1u

/*
 * The first bytes of every data connection, in both directions. After a reconnect the sender
 * resumes at the peer's `received`.
 */
struct gn_stream_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    uint64_t received; /* bytes of whole records processed since the session began */
    uint64_t now_ns;   /* the sender's CLOCK_MONOTONIC */
};
_Static_assert(sizeof(struct gn_stream_hello) == 32, "stream");

struct gn_stream_record {
    uint32_t bytes; /* of the payload that follows */
    uint16_t type;
    uint16_t part; /* DATA, SEGMENT, FREE: the data segment; EVENT: the phase; FRAME: the op; PRINT:
                    * 1 or 2 */
    uint64_t at;
};
_Static_assert(sizeof(struct gn_stream_record) == 16, "stream");

enum gn_record_type {
    /*
     * Both ways. ACK: `at` is the number of bytes processed so far; an ACK itself is not counted.
     */
    GN_RECORD_ACK = 1,
    GN_RECORD_DATA = 2,     /* the payload belongs at `at` of data segment `part` */
    GN_RECORD_DATA_END = 3, /* as DATA, and completes a batch of bulk data */
    GN_RECORD_FRAME = 4,    /* a frame of the session (wire.h); at: its seq */
    GN_RECORD_BYE = 5,      /* the session has ended for good */
    /* program -> worker */
    /*
     * a message as on the request ring; at: the number of batches that must be complete before the
     * worker serves it
     */
    GN_RECORD_MESSAGE = 8,
    GN_RECORD_SEGMENT = 9, /* data segment `part` now exists, with `at` bytes */
    GN_RECORD_WAIT = 10,   /* a thread waits for event `at`: report its end at once */
    GN_RECORD_PAUSED = 12, /* follows the last message and all data before it; none will follow
                            * until migration number `at` is decided */
    GN_RECORD_FREE = 11,   /* the payload is a u64 n: n bytes at `at` of segment `part` are
                            * unused, and their contents may be dropped */
    /* worker -> program */
    GN_RECORD_REPLY = 16, /* at: the token, in the upper half the result; the payload is the
                           * reply's */
    GN_RECORD_EVENT = 17, /* event `at` has reached phase `part` */
    /* at: the event, in the upper half its error; the payload is empty or gn_stream_times */
    GN_RECORD_EVENT_END = 18,
    GN_RECORD_PRINT = 19, /* text for the program's stdout (1) or stderr (2) */
};

/* In the worker's CLOCK_MONOTONIC. */
struct gn_stream_times {
    uint64_t submit_ns, start_ns, end_ns;
};
_Static_assert(sizeof(struct gn_stream_times) == 24, "stream");

/* The largest payload; a longer record is a fault. Bulk data is split. */
#define GN_RECORD_MAX_BYTES (1u << 20)
/* The most bulk data that is sent before pending small records. */
#define GN_RECORD_PIECE_BYTES (256u << 10)

static inline uint64_t gn_record_pair(uint32_t low, int32_t high)
{
    return (uint64_t)(uint32_t)high << 32 | low;
}

#endif
