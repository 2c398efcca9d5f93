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
 * A vGPU as a stream: written and read once, front to back, over a socket or into a file, never
 * sought in. What it holds is in docs/migration-stream.md (Crane 4.1.1: what exists and what it was
 * made from; gMig 3.3.1: rounds of pages).
 *
 * Errors: functions return 0 or -errno. The first failure sticks: every later call returns it, and
 * its sentence is gn_stream_writer_error's or gn_stream_reader_error's. Threads: one at a time for
 * a writer, and for a reader.
 */

/* ---- ends */

/* Takes all of what iov names before it returns, or fails. It may change iov. */
struct gn_stream_sink {
    int (*write)(void *ctx, struct iovec *iov, int n, struct gn_error *err);
    void *ctx;
};

/* Fills all of iov or fails; -ENODATA when the stream ends before. It may change iov. */
struct gn_stream_source {
    int (*read)(void *ctx, struct iovec *iov, int n, struct gn_error *err);
    void *ctx;
};

/* A file, pipe or stream socket, blocking or not. Back-pressure is a wait, but none without an end.
 */
struct gn_stream_fd {
    int fd;
    int stop_fd;       /* becomes readable: give up, -ECANCELED. -1: never */
    uint32_t stall_ms; /* nothing moves for so long: -ETIMEDOUT; 0: wait for ever */
    uint64_t n_bytes;  /* how many have passed */
    int kind;          /* found out at the first use */
};
#define GN_STREAM_FD(fd_, stop_, stall_)                                                           \
    ((struct gn_stream_fd){.fd = (fd_), .stop_fd = (stop_), .stall_ms = (stall_)})
struct gn_stream_sink gn_stream_sink_of_fd(struct gn_stream_fd *fd);
struct gn_stream_source gn_stream_source_of_fd(struct gn_stream_fd *fd);

/* ---- what the tables are */

enum gn_stream_table {
    GN_STREAM_TENANT,
    GN_STREAM_DEVICES,
    GN_STREAM_OBJECTS, /* ids are handles; parents come before what is made from them */
    GN_STREAM_EVENTS,
    GN_STREAM_CALLS,
    GN_STREAM_COMMANDS,
    GN_STREAM_MAPS,
    GN_STREAM_SESSION, /* parts of the vGPU's own */
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
    int level; /* zstd's; 0: 1 */
};

/* Nothing is written before the first call that has something to write. `sink` is copied. */
int gn_stream_writer_create(const struct gn_stream_sink *sink,
                            const struct gn_stream_options *options, struct gn_stream_writer **ret,
                            struct gn_error *err);
void gn_stream_writer_destroy(struct gn_stream_writer *w); /* NULL does nothing */
const struct gn_error *gn_stream_writer_error(const struct gn_stream_writer *w);

/* The most that will come; first, and again before something comes that goes beyond it. */
int gn_stream_announce(struct gn_stream_writer *w, const struct gn_stream_announce *most);

/*
 * An entry: begin, its parts, end. What is given is copied. Entries gather in the writer and go out
 * in sections; gn_stream_flush, or anything that is no entry of the same table, sends them on. An
 * object whose id came before replaces that one.
 */
int gn_stream_entry_begin(struct gn_stream_writer *w, enum gn_stream_table table, uint64_t id,
                          uint32_t kind, const uint64_t *refs, uint32_t n_refs);
int gn_stream_part(struct gn_stream_writer *w, uint32_t part, const void *bytes, uint64_t n);
int gn_stream_part_text(struct gn_stream_writer *w, uint32_t part, const char *text);
/* A part that lies in pieces. */
int gn_stream_part_iov(struct gn_stream_writer *w, uint32_t part, const struct iovec *iov, int n);
int gn_stream_entry_end(struct gn_stream_writer *w);

/* Objects and memories that came before and are no more. */
int gn_stream_put_gone(struct gn_stream_writer *w, const struct gn_stream_gone *gone, uint32_t n);
/* Memories: before their pages. */
int gn_stream_put_memories(struct gn_stream_writer *w, const struct gn_stream_memory *memories,
                           uint32_t n);
int gn_stream_round_begin(struct gn_stream_writer *w, enum gn_stream_round_kind kind);

/*
 * Pages in their place. Their bytes are sent from where they lie, with no copy, and are the
 * caller's again when the call returns; they must not change meanwhile. Pages of zeros are found
 * and named. The last page of a memory may be short: then the run has memory's bytes left.
 */
struct gn_stream_run {
    uint64_t first_page;
    uint32_t n_pages;
    const void *bytes;                   /* NULL: zeros */
    const struct gn_stream_hash *hashes; /* one a page, when the caller has them; NULL: made here */
};
int gn_stream_put_pages(struct gn_stream_writer *w, uint64_t memory,
                        const struct gn_stream_run *runs, uint32_t n_runs);

int gn_stream_flush(struct gn_stream_writer *w);
/* The end: only what ends with a commit is a stream. Nothing may follow. */
int gn_stream_commit(struct gn_stream_writer *w);

struct gn_stream_counts {
    uint64_t stream_bytes;
    uint64_t entries, entries_bytes;
    uint64_t pages, pages_zero; /* zero ones are among pages */
    uint64_t pages_bytes;       /* of those with contents */
    uint64_t packed_bytes;      /* what these took in the stream */
};
const struct gn_stream_counts *gn_stream_writer_counts(const struct gn_stream_writer *w);

/* ---- reading */

struct gn_stream_reader;

/* What the stream may cost whoever reads it: what it announces beyond that is refused before it
 * comes. */
struct gn_stream_limits {
    uint64_t memory_bytes;
    uint64_t entries_bytes;
    uint32_t n_objects, n_memories, n_rounds;
    uint64_t body_bytes; /* of one section: what the reader holds at once; at most
                            GN_STREAM_MOST_BODY_BYTES */
};
/* 1 GiB of memory, 256 MiB of entries, 65,536 objects and memories, 64 rounds, 64 MiB a body. */
extern const struct gn_stream_limits gn_stream_limits_default;

/* Reads the beginning. */
int gn_stream_reader_create(const struct gn_stream_source *source,
                            const struct gn_stream_limits *limits, struct gn_stream_reader **ret,
                            struct gn_error *err);
void gn_stream_reader_destroy(struct gn_stream_reader *r); /* NULL does nothing */
const struct gn_error *gn_stream_reader_error(const struct gn_stream_reader *r);
const struct gn_stream_about *gn_stream_reader_about(const struct gn_stream_reader *r);
/* Changes what is allowed from now on, for instance when the tenant is known. */
void gn_stream_reader_limit(struct gn_stream_reader *r, const struct gn_stream_limits *limits);

enum gn_stream_what {
    GN_STREAM_IS_TABLE = 1,
    GN_STREAM_IS_ANNOUNCE,
    GN_STREAM_IS_MEMORY,
    GN_STREAM_IS_GONE,
    GN_STREAM_IS_ROUND,
    GN_STREAM_IS_PAGES,
    GN_STREAM_IS_COMMIT, /* all came and all is whole; the reader has taken nothing that lies behind
                            it */
};

/* A section, checked. Pointers hold until the next gn_stream_next. */
struct gn_stream_section {
    enum gn_stream_what what;
    char name[GN_STREAM_NAME_BYTES + 1];
    uint64_t offset; /* of its head in the stream */
    uint32_t number;
    enum gn_stream_table table; /* IS_TABLE; gn_stream_next_entry gives its entries */
    const struct gn_stream_announce *announce;
    const struct gn_stream_memory *memories;
    uint32_t n_memories;
    const struct gn_stream_gone *gone;
    uint32_t n_gone;
    const struct gn_stream_round *round;
    const struct gn_stream_memory *memory; /* IS_PAGES: of which */
    const struct gn_stream_run_head *runs;
    uint32_t n_runs;
    const struct gn_stream_hash *hashes; /* of the pages that hold data, in order */
    uint64_t bulk_bytes;                 /* what their contents take in the stream */
};

/* 0 and the next section, or a failure. After IS_COMMIT: -EINVAL. Pages that were not taken are
 * checked and passed over. */
int gn_stream_next(struct gn_stream_reader *r, struct gn_stream_section *ret);

/*
 * Reads the pages of the section straight to where they belong: where[i] has room for the i-th run
 * (whose last page may be short), or is NULL: passed over. Runs of zeros are set. The bytes are
 * checked after they have landed: on a failure what lies there is to be thrown away, with all that
 * was loaded.
 */
int gn_stream_read_pages(struct gn_stream_reader *r, void *const *where);
/* How many bytes a run has. */
uint64_t gn_stream_run_bytes(const struct gn_stream_reader *r, const struct gn_stream_section *s,
                             uint32_t run);

struct gn_stream_entry {
    uint64_t id;
    uint32_t kind;
    const uint64_t *refs;
    uint32_t n_refs;
    uint32_t n_parts;
    uint64_t bytes;          /* of the whole entry in the stream */
    const unsigned char *at; /* gn_stream_next_part's */
    uint32_t parts_left;
};

struct gn_stream_part {
    uint32_t part;
    const void *bytes; /* aligned to 8 */
    uint64_t n;
};

/* True and the table's next entry; false: no more. */
bool gn_stream_next_entry(struct gn_stream_reader *r, struct gn_stream_entry *ret);
bool gn_stream_next_part(struct gn_stream_entry *e, struct gn_stream_part *ret);
/* The first part of that number; false: there is none. e's place stays. */
bool gn_stream_find_part(const struct gn_stream_entry *e, uint32_t part,
                         struct gn_stream_part *ret);
/* The same of a fixed size: copied. False: there is none, or of another size. */
bool gn_stream_copy_part(const struct gn_stream_entry *e, uint32_t part, void *ret, size_t n);

/* After the commit, of a file: nothing may follow. Not for a socket, where it would wait. */
int gn_stream_expect_end(struct gn_stream_reader *r);
uint64_t gn_stream_reader_offset(const struct gn_stream_reader *r);
const char *gn_stream_table_name(enum gn_stream_table table);

#endif
