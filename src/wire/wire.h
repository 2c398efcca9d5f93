/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WIRE_WIRE_H
#define GN_WIRE_WIRE_H

#include <assert.h>
#include <stdint.h>

/*
 * The parts that all messages between a front end and its vGPU share, for every API and every link.
 * Little endian, fixed width, naturally aligned. docs/wire.md is normative.
 */

/* A message travels whole in ring slots. Longer data lies in the data area, and a span names it. */
#define GN_MSG_MAX_BYTES 896u
/* Bytes that a reply carries itself. */
#define GN_REPLY_MAX_BYTES 48u

#define GN_NO_REPLY 0u
#define GN_NO_EVENT UINT32_MAX

struct gn_msg {
    uint32_t size; /* of the whole message, this header included */
    uint16_t op;
    uint16_t flags;  /* GN_MSG_* */
    uint32_t reply;  /* response slot, or GN_NO_REPLY */
    int32_t assumed; /* with GN_MSG_ASK: the answer when the driver cannot be asked now; else 0 */
};
static_assert(sizeof(struct gn_msg) == 16, "wire");

/*
 * The guest cannot judge the command: the vGPU gives it to the driver at once and replies with the
 * driver's result. A command that still waits for another cannot be given to the driver. Then, when
 * `assumed` is not 0, it is dropped and `assumed` is the reply; when it is 0, the vGPU judges the
 * command itself, and either keeps it or drops it and replies with the error.
 */
#define GN_MSG_ASK 1u

/* Bytes that belong to a message: in the message, in a data segment, or none (the program passed
 * NULL). */
#define GN_SPAN_INLINE 0u
#define GN_SPAN_NULL   UINT32_MAX

struct gn_span {
    uint32_t segment; /* GN_SPAN_INLINE, GN_SPAN_NULL, or the data segment's index + 1 */
    uint32_t bytes;   /* length of an input, room of an output */
    uint64_t offset;  /* in the message (outputs: in the reply's payload), or in the segment */
};
static_assert(sizeof(struct gn_span) == 16, "wire");

/* Bulk data in the data area; other fields of the message give its length. */
struct gn_area_ref {
    uint32_t segment; /* the data segment's index + 1, or GN_SPAN_NULL */
    uint32_t zero;
    uint64_t offset;
};
static_assert(sizeof(struct gn_area_ref) == 16, "wire");

/* Every command begins with its queue, its wait list and its event. */
struct gn_command_head {
    uint64_t queue;
    struct gn_span waits; /* event indices, uint32_t each */
    uint32_t event;       /* index in the event table, or GN_NO_EVENT */
    uint32_t zero;
};
static_assert(sizeof(struct gn_command_head) == 32, "wire");

/* A handle on the wire: index in the low half, generation (never 0) in the high half. 0 is NULL. */
static inline uint32_t gn_id_index(uint64_t id)
{
    return (uint32_t)id;
}

static inline uint32_t gn_id_generation(uint64_t id)
{
    return (uint32_t)(id >> 32);
}

static inline uint64_t gn_id_make(uint32_t index, uint32_t generation)
{
    return (uint64_t)generation << 32 | index;
}

/* The status of an event whose command did not run because an event in its wait list failed. */
#define GN_EVENT_WAIT_FAILED (-1)

/* Frames on the session's socket between program and worker: those that carry a descriptor, and
 * those that the worker sends on its own. */
enum gn_session_op {
    GN_SESSION_EVENT = 1,   /* worker -> program: gn_session_event */
    GN_SESSION_CONTEXT = 2, /* worker -> program: gn_session_context and its text */
    /* program -> worker: the descriptor of stdout; a request names it by this seq */
    GN_SESSION_FOLDERS = 3,
    /* worker -> program: gn_session_want and a file's name; the answer repeats seq */
    GN_SESSION_WANT = 4,
    GN_SESSION_FILE = 5, /* program -> worker: gn_session_file, and the file's descriptor when its
                            contents were wanted */
};

struct gn_session_event {
    uint64_t cookie;
    int32_t status;
    uint32_t zero;
};
static_assert(sizeof(struct gn_session_event) == 16, "wire");

struct gn_session_context {
    uint64_t cookie;
    uint32_t text_bytes; /* the terminating zero included */
    uint32_t private_bytes;
};
static_assert(sizeof(struct gn_session_context) == 16, "wire");

/* Over tcp the contents follow the gn_session_file in its frame and continue in frames of this op
 * and the same seq. */
#define GN_SESSION_FILE_MORE    6
#define GN_SESSION_HAS_CONTENTS 1u
#define GN_SESSION_FILE_MOST    (UINT64_C(64) << 20) /* bytes of one file */

/* worker -> program, over tcp: nothing follows until migration `seq` is decided. No payload */
#define GN_SESSION_STANDS 7
/* worker -> program, over tcp: the program stops sending messages until migration `seq` is decided,
 * and confirms it (GN_RECORD_PAUSED). No payload */
#define GN_SESSION_PAUSE 8

/* A build asks for a file that it includes. The name follows, with its terminating zero. */
enum { GN_SESSION_WANT_CONTENTS = 1, GN_SESSION_WANT_FACTS = 2 };
struct gn_session_want {
    uint32_t number; /* the number under which the build's folders were sent */
    uint32_t how;    /* GN_SESSION_WANT_* */
};
static_assert(sizeof(struct gn_session_want) == 8, "wire");

struct gn_session_file {
    uint32_t error; /* an errno; 0: the other fields are valid */
    uint32_t mode;  /* st_mode */
    uint64_t bytes;
    uint64_t device;
    uint64_t inode;
    uint64_t modified_ns;
    uint64_t zero; /* over tcp: GN_SESSION_HAS_CONTENTS */
};
static_assert(sizeof(struct gn_session_file) == 48, "wire");

#endif
