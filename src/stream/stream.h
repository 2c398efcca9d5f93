/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_STREAM_H
#define GN_STREAM_STREAM_H

#include "base/error.h"
#include "stream/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * A vGPU as a stream: written and read once, front to back, over a socket or in a file, without
 * seeking. Its contents are described in docs/migration-stream.md (Crane 4.1.1: objects and the
 * requests that made them; gMig 3.3.1: rounds of pages).
 *
 * Errors: functions return 0 or -errno. The first failure sticks: every later call returns it, with
 * the sentence of gn_stream_writer_error or gn_stream_reader_error. Threads: one at a time per
 * writer or reader.
 */

/* ---- sinks and sources */

/* Writes all of iov before it returns, or fails. May change iov. */
struct gn_stream_sink {
    int (*write)(void *ctx, struct iovec *iov, int n, struct gn_error *err);
    void *ctx;
};

/* Fills all of iov, or fails; -ENODATA when the stream ends first. May change iov. */
struct gn_stream_source {
    int (*read)(void *ctx, struct iovec *iov, int n, struct gn_error *err);
    void *ctx;
};

/*
 * A file, pipe or stream socket, blocking or not. Waits when the peer is slow, within the limits
 * below.
 */
struct gn_stream_fd {
    int fd;
    uint32_t stall_ms; /* without progress for this long, calls fail with -ETIMEDOUT; 0: no limit */
    uint64_t n_bytes;  /* bytes transferred so far */
    int kind;          /* internal; detected at first use */
    /*
     * Where fd is polled, but bytes go another way, such as TLS; else NULL. Bytes moved, -EAGAIN or
     * another -errno. send with n 0: 0 when nothing is buffered any more; recv: 0 at the end.
     */
    ssize_t (*send)(void *ctx, const struct iovec *iov, int n);
    ssize_t (*recv)(void *ctx, const struct iovec *iov, int n);
    void *ctx;
};
#define GN_STREAM_FD(fd_, stall_) ((struct gn_stream_fd){.fd = (fd_), .stall_ms = (stall_)})
struct gn_stream_sink gn_stream_sink_of_fd(struct gn_stream_fd *fd);
struct gn_stream_source gn_stream_source_of_fd(struct gn_stream_fd *fd);

/* ---- tables */

enum gn_stream_table {
    GN_STREAM_TENANT,
    GN_STREAM_DEVICES,
    GN_STREAM_OBJECTS, /* ids are handles; objects come after those that they refer to */
    GN_STREAM_EVENTS,
    GN_STREAM_CALLS,
    GN_STREAM_COMMANDS,
    GN_STREAM_MAPS,
    GN_STREAM_SESSION, /* parts of the vGPU itself */
    GN_STREAM_N_TABLES
};

/* ---- writing */

struct gn_stream_writer;

struct gn_stream_options {
    enum gn_stream_purpose purpose;
    const char *api;     /* "opencl" */
    const char *creator; /* "gantry 0.1.0" */
    uint32_t page_bytes; /* a power of two, 4096 to 65536; 0: 4096 */
    enum gn_stream_packing packing;
    int level; /* zstd level; 0: 1 */
};

/* Writes nothing until the first call that has data. `sink` is copied. */
int gn_stream_writer_create(const struct gn_stream_sink *sink,
                            const struct gn_stream_options *options, struct gn_stream_writer **ret,
                            struct gn_error *err);
void gn_stream_writer_destroy(struct gn_stream_writer *w); /* NULL: ignored */
const struct gn_error *gn_stream_writer_error(const struct gn_stream_writer *w);

/*
 * Announces upper limits of the data that follows. The first call, and again before data that
 * exceeds the limits.
 */
int gn_stream_announce(struct gn_stream_writer *w, const struct gn_stream_announce *most);

/*
 * An entry: begin, its parts, end. The data is copied. The writer gathers entries of one table into
 * sections; gn_stream_flush, or any call other than for this table's entries, sends them. An object
 * replaces an earlier one with the same id.
 */
int gn_stream_entry_begin(struct gn_stream_writer *w, enum gn_stream_table table, uint64_t id,
                          uint32_t kind, const uint64_t *refs, uint32_t n_refs);
int gn_stream_part(struct gn_stream_writer *w, uint32_t part, const void *bytes, uint64_t n);
int gn_stream_part_text(struct gn_stream_writer *w, uint32_t part, const char *text);
/* A part given as several pieces. */
int gn_stream_part_iov(struct gn_stream_writer *w, uint32_t part, const struct iovec *iov, int n);
int gn_stream_entry_end(struct gn_stream_writer *w);

/* Objects and memories that were sent earlier and no longer exist. */
int gn_stream_put_gone(struct gn_stream_writer *w, const struct gn_stream_gone *gone, uint32_t n);
/* Memories come before their pages. */
int gn_stream_put_memories(struct gn_stream_writer *w, const struct gn_stream_memory *memories,
                           uint32_t n);
int gn_stream_round_begin(struct gn_stream_writer *w, enum gn_stream_round_kind kind);

/*
 * Pages of a memory. They are sent from `bytes` without a copy, and must not change until the call
 * returns. Zero pages are detected and sent as such. The last page of a memory may be short;
 * `bytes` then ends with the memory.
 */
struct gn_stream_run {
    uint64_t first_page;
    uint32_t n_pages;
    const void *bytes; /* NULL: zero pages */
    /* One per page, if the caller has them; NULL: computed here. */
    const struct gn_stream_hash *hashes;
};
int gn_stream_put_pages(struct gn_stream_writer *w, uint64_t memory,
                        const struct gn_stream_run *runs, uint32_t n_runs);

int gn_stream_flush(struct gn_stream_writer *w);
/* Ends the stream. A stream without a commit is invalid, and nothing may follow it. */
int gn_stream_commit(struct gn_stream_writer *w);

struct gn_stream_counts {
    uint64_t stream_bytes;
    uint64_t entries, entries_bytes;
    uint64_t pages, pages_zero; /* pages_zero are included in pages */
    uint64_t pages_bytes;       /* of pages with contents */
    uint64_t packed_bytes;      /* of these pages in the stream */
};
const struct gn_stream_counts *gn_stream_writer_counts(const struct gn_stream_writer *w);

/* ---- reading */

struct gn_stream_reader;

/*
 * Limits on the cost of reading. An announcement that exceeds them is rejected before the data
 * comes.
 */
struct gn_stream_limits {
    uint64_t memory_bytes;
    uint64_t entries_bytes;
    uint32_t n_objects, n_memories, n_rounds;
    /* Per section: the most that the reader holds at once; at most GN_STREAM_MOST_BODY_BYTES. */
    uint64_t body_bytes;
};
/* 1 GiB of memory, 256 MiB of entries, 65,536 objects and memories, 64 rounds, 64 MiB per body. */
extern const struct gn_stream_limits gn_stream_limits_default;

/* Creates a reader and reads the start of the stream. limits NULL: the default ones. */
int gn_stream_reader_create(const struct gn_stream_source *source,
                            const struct gn_stream_limits *limits, struct gn_stream_reader **ret,
                            struct gn_error *err);
void gn_stream_reader_destroy(struct gn_stream_reader *r); /* NULL: ignored */
const struct gn_error *gn_stream_reader_error(const struct gn_stream_reader *r);
const struct gn_stream_about *gn_stream_reader_about(const struct gn_stream_reader *r);

enum gn_stream_what {
    GN_STREAM_IS_TABLE = 1,
    GN_STREAM_IS_ANNOUNCE,
    GN_STREAM_IS_MEMORY,
    GN_STREAM_IS_GONE,
    GN_STREAM_IS_ROUND,
    GN_STREAM_IS_PAGES,
    GN_STREAM_IS_COMMIT, /* the stream is complete and valid; nothing behind it has been read */
};

/* A checked section. Its pointers are valid until the next gn_stream_next. */
struct gn_stream_section {
    enum gn_stream_what what;
    char name[GN_STREAM_NAME_BYTES + 1];
    uint64_t offset; /* of its head in the stream */
    uint32_t number;
    /* For GN_STREAM_IS_TABLE; gn_stream_next_entry returns its entries. */
    enum gn_stream_table table;
    const struct gn_stream_announce *announce;
    const struct gn_stream_memory *memories;
    uint32_t n_memories;
    const struct gn_stream_gone *gone;
    uint32_t n_gone;
    const struct gn_stream_round *round;
    /* For GN_STREAM_IS_PAGES: the memory that they belong to. */
    const struct gn_stream_memory *memory;
    const struct gn_stream_run_head *runs;
    uint32_t n_runs;
    const struct gn_stream_hash *hashes; /* of the pages with data, in order */
    uint64_t bulk_bytes;                 /* size of their contents in the stream */
};

/*
 * Returns 0 and the next section, or fails. -EINVAL after GN_STREAM_IS_COMMIT. Pages that the
 * caller has not read are checked and skipped.
 */
int gn_stream_next(struct gn_stream_reader *r, struct gn_stream_section *ret);

/*
 * Reads the section's pages into their destination: where[i] has room for the i-th run (the last
 * page of a memory may be short), or is NULL to skip it. Zero pages are set to zero. The contents
 * are checked after they have been written: after a failure the caller must discard them, with
 * everything else that it has loaded.
 */
int gn_stream_read_pages(struct gn_stream_reader *r, void *const *where);
/* The size of a run in bytes. */
uint64_t gn_stream_run_bytes(const struct gn_stream_reader *r, const struct gn_stream_section *s,
                             uint32_t run);

struct gn_stream_entry {
    uint64_t id;
    uint32_t kind;
    const uint64_t *refs;
    uint32_t n_refs;
    uint32_t n_parts;
    uint64_t bytes;          /* size of the whole entry in the stream */
    const unsigned char *at; /* internal to gn_stream_next_part */
    uint32_t parts_left;
};

struct gn_stream_part {
    uint32_t part;
    const void *bytes; /* aligned to 8 */
    uint64_t n;
};

/* True and the table's next entry; false: no more entries. */
bool gn_stream_next_entry(struct gn_stream_reader *r, struct gn_stream_entry *ret);
bool gn_stream_next_part(struct gn_stream_entry *e, struct gn_stream_part *ret);
/* The first part with this number; false: none. Does not affect gn_stream_next_part. */
bool gn_stream_find_part(const struct gn_stream_entry *e, uint32_t part,
                         struct gn_stream_part *ret);
/* Copies the part with this number, of a fixed size. False: there is none, or its size differs. */
bool gn_stream_copy_part(const struct gn_stream_entry *e, uint32_t part, void *ret, size_t n);

/* After the commit of a file: fails if data follows. Not for a socket, which would wait. */
int gn_stream_expect_end(struct gn_stream_reader *r);
uint64_t gn_stream_reader_offset(const struct gn_stream_reader *r);
const char *gn_stream_table_name(enum gn_stream_table table);

#endif
