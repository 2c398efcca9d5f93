/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_INTERNAL_H
#define GN_STREAM_INTERNAL_H

#include "stream/hash.h"
#include "stream/known.h"
#include "stream/stream.h"

/* What writer.c and pages_out.c share, and what reader.c, entries_in.c and pages_in.c share. */

#define GN_STREAM_OPEN_TABLE_BYTES (256u << 10) /* entries go out when so much has gathered */

struct gn_buffer {
    unsigned char *bytes;
    size_t n, capacity;
};
/* Room for n more; -ENOMEM. */
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
    struct gn_buffer
        entries; /* the head's room, then whole entries of `table`, then one that is being made */
    enum gn_stream_table table;
    size_t entry_at;        /* 0: none is being made */
    struct gn_buffer small; /* of other sections, the head's room first */
    struct gn_buffer packed;
    void *zstd;
    struct gn_known_memories memories;
    struct gn_stream_counts counts;
};

/* Fails the writer for good, with a sentence. */
int gn_stream_writer_fail(struct gn_stream_writer *w, int code, const char *fix, const char *fmt,
                          ...) __attribute__((format(printf, 4, 5)));
/* Sends a section: `b` begins with room for a head, its body follows. bulk[0] is the sender's own,
 * to be filled in; the n after it name bulk_bytes. */
int gn_stream_send_section(struct gn_stream_writer *w, const char *name, struct gn_buffer *b,
                           struct iovec *bulk, int n, uint64_t bulk_bytes);
/* Empties b but for a head's room. */
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
    /* the section at hand */
    struct gn_stream_section_head head;
    uint64_t head_offset;
    struct gn_buffer body;
    struct gn_stream_section section;
    const unsigned char *entry; /* the next one */
    struct gn_stream_pages pages;
    uint64_t bulk_left;
    struct gn_buffer scratch, packed; /* pages that nobody takes; a packed bulk */
    void *zstd;
};

int gn_stream_reader_fail(struct gn_stream_reader *r, int code, const char *fix, const char *fmt,
                          ...) __attribute__((format(printf, 4, 5)));
/* A stream that is not what it says: names the section and where it begins. */
int gn_stream_damaged(struct gn_stream_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int gn_stream_refused(struct gn_stream_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Fills all of iov from the stream. */
int gn_stream_fetch(struct gn_stream_reader *r, struct iovec *iov, int n, uint64_t bytes);
/* Checks a table's body whole: after that gn_stream_next_entry and gn_stream_next_part believe it.
 */
int gn_stream_check_entries(struct gn_stream_reader *r);
/* Checks the body of "pages" and fills in r->section. */
int gn_stream_check_pages(struct gn_stream_reader *r);
/* The first page after a run's, and bytes of its contents. */
uint64_t gn_stream_pages_bytes(const struct gn_known_memory *m, uint32_t page_bytes, uint64_t first,
                               uint64_t n);

#endif
