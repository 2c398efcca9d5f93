/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_INTERNAL_H
#define GN_STREAM_INTERNAL_H

#include "stream/hash.h"
#include "stream/known.h"
#include "stream/stream.h"

/* Shared by writer.c and pages_out.c, and by reader.c, entries_in.c and pages_in.c. */

/* a section of entries is sent from this size on */
#define GN_STREAM_OPEN_TABLE_BYTES (256u << 10)

struct gn_buffer {
    unsigned char *bytes;
    size_t n, capacity;
};
/* Makes room for n more bytes. 0 or -ENOMEM. */
int gn_buffer_room(struct gn_buffer *b, size_t n);

struct gn_stream_writer {
    /* set once */
    struct gn_stream_sink sink;
    struct gn_stream_about about;
    enum gn_stream_packing packing;
    int level;
    /* the writer's thread */
    int failed; /* sticky */
    struct gn_error err;
    bool begun, committed;
    uint32_t n_sections, round;
    uint64_t chain;
    /* Room for a head, complete entries of `table`, then the unfinished entry. */
    struct gn_buffer entries;
    enum gn_stream_table table;
    size_t entry_at;        /* offset of the unfinished entry; 0: none */
    struct gn_buffer small; /* body of other sections, after room for a head */
    struct gn_buffer packed;
    void *zstd;
    struct gn_known_memories memories;
    struct gn_stream_counts counts;
};

/* Puts the writer into the failed state, with a message. Returns -code. */
int gn_stream_writer_fail(struct gn_stream_writer *w, int code, const char *fix, const char *fmt,
                          ...) __attribute__((format(printf, 4, 5)));
/*
 * Sends a section. `b` has room for a head, followed by the body. bulk[0] is filled in here; the n
 * entries after it are the bulk, of bulk_bytes.
 */
int gn_stream_send_section(struct gn_stream_writer *w, const char *name, struct gn_buffer *b,
                           struct iovec *bulk, int n, uint64_t bulk_bytes);
/* Empties b, except for room for a head. */
int gn_stream_body_begin(struct gn_stream_writer *w, struct gn_buffer *b);
int gn_stream_body_add(struct gn_stream_writer *w, struct gn_buffer *b, const void *bytes,
                       size_t n);

struct gn_stream_reader {
    /* set once */
    struct gn_stream_source source;
    struct gn_stream_about about;
    /* the reader's thread */
    struct gn_stream_limits limits;
    int failed; /* sticky */
    struct gn_error err;
    uint64_t offset, chain, n_sections;
    bool announced, over;
    struct gn_stream_announce announce;
    struct gn_known_ids objects; /* the value is the kind */
    struct gn_known_memories memories;
    uint64_t entries_bytes;
    uint32_t round, round_kind;
    /* the current section */
    struct gn_stream_section_head head;
    uint64_t head_offset;
    struct gn_buffer body;
    struct gn_stream_section section;
    const unsigned char *entry; /* the next entry */
    struct gn_stream_pages pages;
    uint64_t bulk_left;
    struct gn_buffer scratch, packed; /* destination of skipped pages; a compressed bulk */
    void *zstd;
};

int gn_stream_reader_fail(struct gn_stream_reader *r, int code, const char *fix, const char *fmt,
                          ...) __attribute__((format(printf, 4, 5)));
/* For an invalid stream: fails with the section's name and offset. */
int gn_stream_damaged(struct gn_stream_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int gn_stream_refused(struct gn_stream_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fills all of iov from the stream. */
int gn_stream_fetch(struct gn_stream_reader *r, struct iovec *iov, int n, uint64_t bytes);
/* Checks a table's whole body; gn_stream_next_entry and gn_stream_next_part rely on it. */
int gn_stream_check_entries(struct gn_stream_reader *r);
/* Checks the body of "pages" and fills in r->section. */
int gn_stream_check_pages(struct gn_stream_reader *r);
/* The number of bytes in n pages from `first`; the memory's last page may be short. */
uint64_t gn_stream_pages_bytes(const struct gn_known_memory *m, uint32_t page_bytes, uint64_t first,
                               uint64_t n);

#endif
