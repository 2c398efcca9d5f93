/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a stream: gathers entries into sections and sends sections to the sink. Called by the
 * thread that saves a vGPU. Never seeks, and buffers no more than the entries being gathered (256
 * KiB, or one longer entry). Pages are written by pages_out.c.
 */
#include "base/checked.h"
#include "base/clock.h"
#include "stream/stream_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define HEAD sizeof(struct gn_stream_section_head)

static const char *const table_names[GN_STREAM_N_TABLES] = {
    "tenant", "devices", "objects", "events", "calls", "commands", "maps", "session"};

const char *gn_stream_table_name(enum gn_stream_table table)
{
    return table < GN_STREAM_N_TABLES ? table_names[table] : "?";
}

int gn_buffer_room(struct gn_buffer *b, size_t n)
{
    if (n <= b->capacity - b->n)
        return 0;
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity - b->n < n)
        capacity *= 2;
    unsigned char *bytes = realloc(b->bytes, capacity);
    if (!bytes)
        return -ENOMEM;
    b->bytes = bytes;
    b->capacity = capacity;
    return 0;
}

int gn_stream_writer_fail(struct gn_stream_writer *w, int code, const char *fix, const char *fmt,
                          ...)
{
    if (w->failed)
        return w->failed;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->err.what, sizeof w->err.what, fmt, ap);
    va_end(ap);
    snprintf(w->err.fix, sizeof w->err.fix, "%s", fix ? fix : "");
    w->failed = -code;
    return w->failed;
}

static int no_memory(struct gn_stream_writer *w)
{
    return gn_stream_writer_fail(w, ENOMEM, NULL, "no memory left to write the stream");
}

int gn_stream_body_add(struct gn_stream_writer *w, struct gn_buffer *b, const void *bytes, size_t n)
{
    if (gn_buffer_room(b, n) < 0)
        return no_memory(w);
    if (n)
        memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return 0;
}

int gn_stream_body_begin(struct gn_stream_writer *w, struct gn_buffer *b)
{
    static const struct gn_stream_section_head room;
    b->n = 0;
    return gn_stream_body_add(w, b, &room, sizeof room);
}

static int put(struct gn_stream_writer *w, struct iovec *iov, int n)
{
    struct gn_error err = {{0}, {0}};
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += iov[i].iov_len;
    int rc = w->sink.write(w->sink.ctx, iov, n, &err);
    if (rc < 0)
        return gn_stream_writer_fail(w, -rc, err.fix, "%s",
                                     err.what[0] ? err.what : "cannot write the stream");
    w->counts.stream_bytes += bytes;
    return 0;
}

int gn_stream_send_section(struct gn_stream_writer *w, const char *name, struct gn_buffer *b,
                           struct iovec *bulk, int n, uint64_t bulk_bytes)
{
    struct gn_stream_section_head head = {
        .version = 1, .number = w->n_sections, .body_bytes = b->n - HEAD, .bulk_bytes = bulk_bytes};
    uint64_t sum = gn_stream_checksum(b->bytes + HEAD, b->n - HEAD);
    snprintf(head.name, sizeof head.name, "%s", name); /* all names are shorter */
    head.checksum = gn_stream_checksum(&head, offsetof(struct gn_stream_section_head, checksum));
    memcpy(b->bytes, &head, sizeof head);
    int rc = gn_stream_body_add(w, b, &sum, sizeof sum);
    if (rc < 0)
        return rc;
    uint64_t link[3] = {w->chain, head.checksum, sum};
    bulk[0] = (struct iovec){b->bytes, b->n};
    rc = put(w, bulk, n + 1);
    if (rc < 0)
        return rc;
    w->chain = gn_stream_checksum(link, sizeof link);
    w->n_sections++;
    return 0;
}

static int send_small(struct gn_stream_writer *w, const char *name)
{
    struct iovec own;
    return gn_stream_send_section(w, name, &w->small, &own, 0, 0);
}

/* ---- entries */

int gn_stream_flush(struct gn_stream_writer *w)
{
    if (w->failed)
        return w->failed;
    if (w->committed)
        return gn_stream_writer_fail(w, EINVAL, NULL, "the stream has its end already");
    if (w->entry_at)
        return gn_stream_writer_fail(w, EINVAL, NULL, "an entry of the stream was not ended");
    if (!w->begun) {
        struct gn_stream_preamble p = {.magic = GN_STREAM_BEGINS, .format = GN_STREAM_FORMAT};
        p.checksum = gn_stream_checksum(&p, offsetof(struct gn_stream_preamble, checksum));
        struct iovec iov = {&p, sizeof p};
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        w->about.created_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        w->about.monotonic_ns = gn_now_ns();
        w->begun = true;
        if (put(w, &iov, 1) < 0 || gn_stream_body_begin(w, &w->small) < 0 ||
            gn_stream_body_add(w, &w->small, &w->about, sizeof w->about) < 0 ||
            send_small(w, "stream") < 0)
            return w->failed;
    }
    if (w->entries.n > HEAD) {
        struct iovec own;
        int rc = gn_stream_send_section(w, table_names[w->table], &w->entries, &own, 0, 0);
        w->entries.n = 0;
        return rc;
    }
    return 0;
}

int gn_stream_entry_begin(struct gn_stream_writer *w, enum gn_stream_table table, uint64_t id,
                          uint32_t kind, const uint64_t *refs, uint32_t n_refs)
{
    if (w->failed)
        return w->failed;
    if (w->entry_at || table >= GN_STREAM_N_TABLES)
        return gn_stream_writer_fail(w, EINVAL, NULL, "an entry of the stream begins out of turn");
    if (!w->begun || table != w->table || w->entries.n >= GN_STREAM_OPEN_TABLE_BYTES) {
        int rc = gn_stream_flush(w);
        if (rc < 0)
            return rc;
        w->table = table;
    }
    if (!w->entries.n && gn_stream_body_begin(w, &w->entries) < 0)
        return w->failed;
    struct gn_stream_entry_head head = {.id = id, .kind = kind, .n_refs = n_refs};
    w->entry_at = w->entries.n;
    if (gn_stream_body_add(w, &w->entries, &head, sizeof head) < 0)
        return w->failed;
    return gn_stream_body_add(w, &w->entries, refs, n_refs * sizeof *refs);
}

int gn_stream_part_iov(struct gn_stream_writer *w, uint32_t part, const struct iovec *iov, int n)
{
    static const unsigned char zeros[8];
    struct gn_stream_part_head head = {.part = part};
    if (w->failed)
        return w->failed;
    if (!w->entry_at)
        return gn_stream_writer_fail(w, EINVAL, NULL, "a part of the stream belongs to no entry");
    for (int i = 0; i < n; i++)
        if (!gn_add_u64(head.bytes, iov[i].iov_len, &head.bytes))
            head.bytes = UINT64_MAX;
    if (head.bytes > GN_STREAM_MOST_BODY_BYTES ||
        head.bytes + w->entries.n > GN_STREAM_MOST_BODY_BYTES)
        return gn_stream_writer_fail(w, E2BIG, NULL,
                                     "an entry of the stream is longer than %llu bytes",
                                     (unsigned long long)GN_STREAM_MOST_BODY_BYTES);
    int rc = gn_stream_body_add(w, &w->entries, &head, sizeof head);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = gn_stream_body_add(w, &w->entries, iov[i].iov_base, iov[i].iov_len);
    if (rc == 0)
        rc = gn_stream_body_add(w, &w->entries, zeros, (size_t)(-head.bytes & 7));
    if (rc == 0)
        ((struct gn_stream_entry_head *)(void *)(w->entries.bytes + w->entry_at))->n_parts++;
    return rc;
}

int gn_stream_part(struct gn_stream_writer *w, uint32_t part, const void *bytes, uint64_t n)
{
    return gn_stream_part_iov(w, part, &(struct iovec){(void *)(uintptr_t)bytes, n}, 1);
}

int gn_stream_part_text(struct gn_stream_writer *w, uint32_t part, const char *text)
{
    return gn_stream_part(w, part, text, strlen(text));
}

int gn_stream_entry_end(struct gn_stream_writer *w)
{
    if (w->failed)
        return w->failed;
    if (!w->entry_at)
        return gn_stream_writer_fail(w, EINVAL, NULL,
                                     "an entry of the stream ends that has not begun");
    struct gn_stream_entry_head *head = (void *)(w->entries.bytes + w->entry_at);
    head->bytes = w->entries.n - w->entry_at;
    w->counts.entries++;
    w->counts.entries_bytes += head->bytes;
    w->entry_at = 0;
    return 0;
}

/* ---- small sections */

static int put_small(struct gn_stream_writer *w, const char *name, const void *bytes, size_t n)
{
    if (gn_stream_flush(w) < 0 || gn_stream_body_begin(w, &w->small) < 0 ||
        gn_stream_body_add(w, &w->small, bytes, n) < 0)
        return w->failed;
    return send_small(w, name);
}

int gn_stream_announce(struct gn_stream_writer *w, const struct gn_stream_announce *most)
{
    return put_small(w, "announce", most, sizeof *most);
}

int gn_stream_put_gone(struct gn_stream_writer *w, const struct gn_stream_gone *gone, uint32_t n)
{
    int rc = n ? put_small(w, "gone", gone, n * sizeof *gone) : w->failed;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        if (gone[i].what == GN_STREAM_GONE_MEMORY)
            gn_known_memory_remove(&w->memories, gone[i].id);
    return rc;
}

int gn_stream_put_memories(struct gn_stream_writer *w, const struct gn_stream_memory *memories,
                           uint32_t n)
{
    for (uint32_t i = 0; !w->failed && i < n; i++) {
        int rc = memories[i].id
                     ? gn_known_memory_put(&w->memories, &memories[i], w->about.page_bytes, false)
                     : -EINVAL;
        if (rc == -ENOMEM)
            no_memory(w);
        else if (rc < 0)
            gn_stream_writer_fail(w, -rc, NULL, "memory %#llx is in the stream already",
                                  (unsigned long long)memories[i].id);
    }
    return n && !w->failed ? put_small(w, "memory", memories, n * sizeof *memories) : w->failed;
}

int gn_stream_round_begin(struct gn_stream_writer *w, enum gn_stream_round_kind kind)
{
    struct gn_stream_round round = {
        .number = ++w->round, .kind = kind, .monotonic_ns = gn_now_ns()};
    return put_small(w, "round", &round, sizeof round);
}

int gn_stream_commit(struct gn_stream_writer *w)
{
    if (gn_stream_flush(w) < 0)
        return w->failed;
    struct gn_stream_commit commit = {
        .n_sections = w->n_sections, .stream_bytes = w->counts.stream_bytes, .chain = w->chain};
    int rc = put_small(w, "commit", &commit, sizeof commit);
    w->committed = rc == 0;
    return rc;
}

/* ---- the writer */

int gn_stream_writer_create(const struct gn_stream_sink *sink,
                            const struct gn_stream_options *options, struct gn_stream_writer **ret,
                            struct gn_error *err)
{
    uint32_t page_bytes = options->page_bytes ? options->page_bytes : 4096;
    if (page_bytes < 4096 || page_bytes > 65536 || page_bytes & (page_bytes - 1) ||
        options->packing > GN_STREAM_ZSTD)
        return gn_fail(err, EINVAL, "take a power of two from 4096 to 65536",
                       "a stream's pages cannot have %u bytes", page_bytes);
    struct gn_stream_writer *w = calloc(1, sizeof *w);
    if (!w)
        return gn_fail(err, ENOMEM, NULL, "no memory left to write the stream");
    w->sink = *sink;
    w->about = (struct gn_stream_about){.purpose = options->purpose, .page_bytes = page_bytes};
    snprintf(w->about.api, sizeof w->about.api, "%s", options->api ? options->api : "");
    snprintf(w->about.creator, sizeof w->about.creator, "%s",
             options->creator ? options->creator : "");
    w->packing = options->packing;
    w->level = options->level ? options->level : 1;
    *ret = w;
    return 0;
}

void gn_stream_writer_destroy(struct gn_stream_writer *w)
{
    if (!w)
        return;
    free(w->entries.bytes);
    free(w->small.bytes);
    free(w->packed.bytes);
    ZSTD_freeCCtx(w->zstd);
    gn_known_memories_fini(&w->memories);
    free(w);
}

const struct gn_error *gn_stream_writer_error(const struct gn_stream_writer *w)
{
    return &w->err;
}

const struct gn_stream_counts *gn_stream_writer_counts(const struct gn_stream_writer *w)
{
    return &w->counts;
}
