/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_RECORD_H
#define GN_LINK_RECORD_H

#include <stdint.h>

/*
 * What a session's stream over tcp consists of, either way. Both ends hold memory of the same
 * layout as on shared memory; the stream carries what changes. docs/link.md is normative.
 * Little-endian, naturally aligned.
 */
#define GN_STREAM_MAGIC   UINT64_C(0x316d61657274736e) /* "nstream1", read backwards */
#define GN_STREAM_VERSION 1u

/* The first bytes of every connection, each way; after a return the other side's `received` says
 * from where to go on. */
struct gn_stream_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    uint64_t received; /* bytes of whole records that this side has taken since the session began */
    uint64_t now_ns;   /* this side's CLOCK_MONOTONIC */
};
_Static_assert(sizeof(struct gn_stream_hello) == 32, "stream");

struct gn_stream_record {
    uint32_t bytes; /* of the payload that follows */
    uint16_t type;
    uint16_t
        part; /* DATA, SEGMENT: the data segment; EVENT: the phase; FRAME: its op; PRINT: 1 or 2 */
    uint64_t at;
};
_Static_assert(sizeof(struct gn_stream_record) == 16, "stream");

enum gn_record_type {
    /* Both ways. ACK is not part of what is counted: at, bytes taken so far. */
    GN_RECORD_ACK = 1,
    GN_RECORD_DATA = 2,     /* the payload lies at `at` of data segment `part` */
    GN_RECORD_DATA_END = 3, /* the same, and a batch of bulk data is complete with it */
    GN_RECORD_FRAME = 4,    /* a session's frame (wire.h), at: its seq */
    GN_RECORD_BYE = 5,      /* the session ends and is not coming back */
    /* program -> worker */
    /* as on the ring; at: how many batches of bulk data must have come before it acts */
    GN_RECORD_MESSAGE = 8,
    GN_RECORD_SEGMENT = 9, /* data segment `part` begins to exist, with `at` bytes */
    GN_RECORD_WAIT = 10,   /* somebody waits for event `at`: its end is wanted at once */
    GN_RECORD_PAUSED = 12, /* behind the last message and all data before it, until the move of
                              number `at` is decided */
    GN_RECORD_FREE = 11,   /* a u64 of bytes at `at` of segment `part` are not needed any more, nor
                              what they hold */
    /* worker -> program */
    GN_RECORD_REPLY = 16, /* at: token, result in the upper half; the payload */
    GN_RECORD_EVENT = 17, /* event `at` got to phase `part` */
    /* at: event, error in the upper half; the payload: nothing or gn_stream_times */
    GN_RECORD_EVENT_END = 18,
    GN_RECORD_PRINT = 19, /* text for the program's stdout or stderr */
};

/* In the worker's CLOCK_MONOTONIC. */
struct gn_stream_times {
    uint64_t submit_ns, start_ns, end_ns;
};
_Static_assert(sizeof(struct gn_stream_times) == 24, "stream");

/* A longer record is a fault: bulk data come in pieces. */
#define GN_RECORD_MAX_BYTES (1u << 20)
/* How much bulk data goes between two looks for small records. */
#define GN_RECORD_PIECE_BYTES (256u << 10)

static inline uint64_t gn_record_pair(uint32_t low, int32_t high)
{
    return (uint64_t)(uint32_t)high << 32 | low;
}

#endif
