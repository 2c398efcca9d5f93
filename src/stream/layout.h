/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_LAYOUT_H
#define GN_STREAM_LAYOUT_H

#include <assert.h>
#include <stdint.h>

/*
 * The format of a vGPU in a file, or on its way to another worker; docs/migration-stream.md is
 * normative. Little endian, fixed width, naturally aligned. Fields named zero must be zero, or the
 * stream is rejected. The API defines the numbers in its own entries and parts.
 */
#define GN_STREAM_FORMAT 1u /* version of the framing; each section has its own version besides */

#define GN_STREAM_NAME_BYTES 16u
/* The longest body of a section, and so the most that a reader holds of a stream at once. */
#define GN_STREAM_MOST_BODY_BYTES (UINT64_C(256) << 20)
/* Limits per section: bytes of pages before compression, and runs of pages. */
#define GN_STREAM_MOST_PAGES_BYTES (UINT64_C(1) << 20)
#define GN_STREAM_MOST_RUNS        256u

struct gn_stream_preamble {
    unsigned char magic[8]; /* GN_STREAM_BEGINS */
    uint32_t format;
    uint32_t zero;
    uint64_t checksum; /* of the preceding fields */
};
static_assert(sizeof(struct gn_stream_preamble) == 24, "stream");
#define GN_STREAM_BEGINS "\x89GVGPU\r\n"

/* Sections follow. Each has this head, the body, the body's checksum, the bulk. */
struct gn_stream_section_head {
    char name[GN_STREAM_NAME_BYTES]; /* padded with zeros */
    uint16_t version;
    uint16_t flags;  /* GN_STREAM_OPTIONAL */
    uint32_t number; /* 0, 1, 2, ... */
    uint64_t body_bytes;
    uint64_t bulk_bytes; /* contents of pages; the body has their checksums */
    uint64_t checksum;   /* of the preceding fields */
};
static_assert(sizeof(struct gn_stream_section_head) == 48, "stream");
#define GN_STREAM_OPTIONAL 1u /* readers that do not know the section skip it */

struct gn_stream_hash {
    uint64_t low, high; /* XXH3-128 */
};
static_assert(sizeof(struct gn_stream_hash) == 16, "stream");

/* "stream": the first section. */
enum gn_stream_purpose { GN_STREAM_CHECKPOINT = 1, GN_STREAM_MOVE = 2 };
struct gn_stream_about {
    uint32_t purpose;      /* enum gn_stream_purpose */
    uint32_t page_bytes;   /* a power of two, 4,096 to 65,536 */
    uint64_t created_ns;   /* CLOCK_REALTIME, the sender's */
    uint64_t monotonic_ns; /* CLOCK_MONOTONIC, the sender's, at the same moment */
    char api[16];          /* "opencl" */
    char creator[32];      /* "gantry 0.1.0" */
};
static_assert(sizeof(struct gn_stream_about) == 72, "stream");

/* "announce": upper limits of the data that follows; sent again when they grow. */
struct gn_stream_announce {
    uint64_t memory_bytes;  /* of all memories */
    uint64_t entries_bytes; /* of all entries, each time that they are sent */
    uint32_t n_objects;
    uint32_t n_memories;
    uint32_t n_rounds;
    uint32_t zero;
};
static_assert(sizeof(struct gn_stream_announce) == 32, "stream");

/* An entry of a table section: this head, its references, its parts. */
struct gn_stream_entry_head {
    uint64_t id;
    uint32_t kind;
    uint32_t n_refs;
    uint32_t n_parts;
    uint32_t zero;
    uint64_t bytes; /* of the whole entry, including this head; a multiple of 8 */
};
static_assert(sizeof(struct gn_stream_entry_head) == 32, "stream");

struct gn_stream_part_head {
    uint32_t part; /* GN_PART_* */
    uint32_t zero;
    uint64_t bytes; /* of the contents, without the zeros that pad them to a multiple of 8 */
};
static_assert(sizeof(struct gn_stream_part_head) == 16, "stream");

/* Contents of parts. A part may occur more than once where the API allows it. */
enum gn_stream_part_number {
    GN_PART_STATE = 1, /* struct gn_stream_*_state of the table; an object's: the API's own */
    /* a complete request that made or changed the object, in order: docs/wire.md */
    GN_PART_REQUEST = 2,
    GN_PART_NAME = 3, /* texts, without a terminating zero */
    GN_PART_VENDOR = 4,
    GN_PART_VERSION = 5,
    GN_PART_DRIVER_VERSION = 6,
    GN_PART_TYPE = 7,
    GN_PART_FACT = 8,     /* of a device: u32 number, u32 zero, value */
    GN_PART_SOURCE = 16,  /* of a program object, concatenated */
    GN_PART_OPTIONS = 17, /* of its last build */
    GN_PART_HEADER = 18,  /* u32 bytes of the name, u32 zero, name, contents */
    GN_PART_IL = 19,
    GN_PART_BINARY = 20,    /* u32 device, u32 zero, contents */
    GN_PART_ARGUMENTS = 32, /* of a kernel, or of a launch: docs/wire.md */
    GN_PART_WAITS = 33,     /* u32 indices of events */
    GN_PART_DATA = 34,      /* bulk data of a command */
    GN_PART_API = 1024,     /* first number of the API's own parts */
};

/* GN_PART_STATE of "tenant": one entry; its id is the vGPU's, its name the tenant's. */
struct gn_stream_tenant_state {
    uint32_t weight;
    uint32_t zero;
    uint64_t memory_limit_bytes; /* 0: as much as the device has */
    uint64_t memory_bytes;       /* currently charged */
};
static_assert(sizeof(struct gn_stream_tenant_state) == 24, "stream");

/*
 * In "session": a vGPU with a program that waits for it has one entry of this kind, with this
 * state.
 */
#define GN_STREAM_SESSION_STOP 3u
struct gn_stream_stop {
    uint64_t ring_at;    /* position of the next message in the request ring */
    uint32_t n_segments; /* data segments */
    uint32_t zero;
    uint8_t key[32]; /* shared secret with the program until it resumes */
};
static_assert(sizeof(struct gn_stream_stop) == 48, "stream");

/* GN_PART_STATE of "devices": the id is the device's index in the vGPU. */
struct gn_stream_device_state {
    uint64_t memory_bytes;
    uint64_t largest_bytes; /* largest single allocation */
    uint64_t work_group;    /* most work-items per work-group */
    uint32_t n_units;
    uint32_t flags; /* 0 */
};
static_assert(sizeof(struct gn_stream_device_state) == 32, "stream");

/* GN_PART_STATE of "events": the id is the index in the session's table. */
enum gn_stream_event_phase { GN_STREAM_EVENT_OVER = 0, GN_STREAM_EVENT_PENDING = 3 };
#define GN_STREAM_EVENT_USER 1u
struct gn_stream_event_state {
    uint32_t phase; /* enum gn_stream_event_phase */
    int32_t error;
    uint32_t flags; /* GN_STREAM_EVENT_* */
    uint32_t zero;
    uint64_t submit_ns, start_ns, end_ns; /* the program's CLOCK_MONOTONIC */
};
static_assert(sizeof(struct gn_stream_event_state) == 40, "stream");

/* In "calls", callbacks that have not run: the id is the program's cookie. */
struct gn_stream_call_state {
    uint32_t event;
    int32_t phase;
};
static_assert(sizeof(struct gn_stream_call_state) == 8, "stream");

/* In "commands": ids ascend in the order of admission; the first reference is the queue. */
struct gn_stream_command_state {
    uint32_t event; /* UINT32_MAX: none */
    uint32_t zero;
    uint64_t done;                /* of a sliced launch: work-groups that have run */
    uint64_t submit_ns, start_ns; /* of a sliced launch, by the sender's CLOCK_MONOTONIC; else 0 */
};
static_assert(sizeof(struct gn_stream_command_state) == 32, "stream");

/* In "maps", mapped regions: the first reference is the object, the id is the program's address. */
struct gn_stream_map_state {
    uint64_t offset, bytes; /* range in the object's contents */
    uint64_t area_offset;   /* in the data segment */
    uint32_t segment;       /* the data segment's index + 1 */
    uint32_t flags;         /* the API's */
};
static_assert(sizeof(struct gn_stream_map_state) == 32, "stream");

/* "memory": array of this; each is a range of contents that is sent in pages. */
struct gn_stream_memory {
    uint64_t id;     /* chosen by the sender; usually the object's */
    uint64_t object; /* owner of the contents; 0: none */
    uint64_t bytes;
    uint32_t flags; /* GN_STREAM_MEMORY_* */
    uint32_t zero;
};
static_assert(sizeof(struct gn_stream_memory) == 32, "stream");
/* The reader has retained the contents: only changed pages are sent. */
#define GN_STREAM_MEMORY_KEPT 1u

/* "gone": array of this. Objects and memories that were sent earlier and no longer exist. */
enum gn_stream_gone_what { GN_STREAM_GONE_OBJECT = 1, GN_STREAM_GONE_MEMORY = 2 };
struct gn_stream_gone {
    uint64_t id;
    uint32_t what; /* enum gn_stream_gone_what */
    uint32_t zero;
};
static_assert(sizeof(struct gn_stream_gone) == 16, "stream");

/* "round": pages from here on replace those of earlier rounds. */
enum gn_stream_round_kind { GN_STREAM_PRECOPY = 1, GN_STREAM_STOP = 2 };
struct gn_stream_round {
    uint32_t number; /* 1, 2, ... */
    uint32_t kind;   /* enum gn_stream_round_kind */
    uint64_t monotonic_ns;
};
static_assert(sizeof(struct gn_stream_round) == 16, "stream");

/*
 * "pages": this head, the runs, one hash for each page in runs with data. The bulk has the contents
 * of these runs, in order.
 */
enum gn_stream_packing { GN_STREAM_RAW = 0, GN_STREAM_ZSTD = 1 };
struct gn_stream_pages {
    uint64_t memory;
    uint32_t n_runs;
    uint32_t n_hashes;
    uint32_t packing; /* enum gn_stream_packing */
    uint32_t zero;
    uint64_t packed_checksum; /* of a compressed bulk; else 0 */
};
static_assert(sizeof(struct gn_stream_pages) == 32, "stream");

struct gn_stream_run_head {
    uint64_t first_page;
    uint32_t n_pages;
    uint32_t zeros; /* 1: all pages are zero and have no contents in the bulk; 0: data */
};
static_assert(sizeof(struct gn_stream_run_head) == 16, "stream");

/* "commit": the last section. */
struct gn_stream_commit {
    uint64_t n_sections;   /* before this section */
    uint64_t stream_bytes; /* before this section's head */
    uint64_t chain;        /* over the checksums of all sections before: docs/migration-stream.md */
    uint64_t zero;
};
static_assert(sizeof(struct gn_stream_commit) == 32, "stream");

#endif
