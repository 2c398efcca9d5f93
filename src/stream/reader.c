/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a stream from an untrusted sender. Called by the thread that loads a vGPU. Each section is
 * checked completely before any of it is returned. The cost of a section is limited by the
 * announcement and by the caller's limits, and memory use grows with received data, not with
 * announced sizes. Never reads past the end of the stream. Entries are read by entries_in.c, pages
 * by pages_in.c.
 */
#include "base/checked.h"
#include "stream/stream_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define SECTION_VERSION 1u

const struct gn_stream_limits gn_stream_limits_default = {.memory_bytes = UINT64_C(1) << 30,
                                                          .entries_bytes = UINT64_C(256) << 20,
                                                          .n_objects = 65536,
                                                          .n_memories = 65536,
                                                          .n_rounds = 64,
                                                          .body_bytes = UINT64_C(64) << 20};

static const char damage[] = "take another copy; this one is no use";

static int fail_v(struct gn_stream_reader *r, int code, const char *fix, const char *fmt,
                  va_list ap)
{
    if (r->failed)
        return r->failed;
    vsnprintf(r->err.what, sizeof r->err.what, fmt, ap);
    snprintf(r->err.fix, sizeof r->err.fix, "%s", fix ? fix : "");
    r->failed = -code;
    return r->failed;
}

int gn_stream_reader_fail(struct gn_stream_reader *r, int code, const char *fix, const char *fmt,
                          ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = fail_v(r, code, fix, fmt, ap);
    va_end(ap);
    return rc;
}

/* Fails with a message about the current section. */
static int about_section(struct gn_stream_reader *r, int code, const char *fix, const char *fmt,
                         va_list ap)
{
    char why[256];
    vsnprintf(why, sizeof why, fmt, ap);
    return gn_stream_reader_fail(r, code, fix, "section '%s' at byte %llu: %s", r->section.name,
                                 (unsigned long long)r->head_offset, why);
}

int gn_stream_damaged(struct gn_stream_reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = about_section(r, EBADMSG, damage, fmt, ap);
    va_end(ap);
    return rc;
}

int gn_stream_refused(struct gn_stream_reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = about_section(r, EDQUOT, "allow more, or send less", fmt, ap);
    va_end(ap);
    return rc;
}

static int no_memory(struct gn_stream_reader *r)
{
    return gn_stream_reader_fail(r, ENOMEM, NULL, "no memory left to read the stream");
}

int gn_stream_fetch(struct gn_stream_reader *r, struct iovec *iov, int n, uint64_t bytes)
{
    struct gn_error err = {{0}, {0}};
    if (!bytes)
        return 0;
    int rc = r->source.read(r->source.ctx, iov, n, &err);
    if (rc == -ENODATA && !r->offset)
        return gn_stream_reader_fail(r, EBADMSG, damage,
                                     "this is no stream of a vGPU: it is too short");
    if (rc == -ENODATA && r->section.name[0])
        return gn_stream_reader_fail(r, EBADMSG, damage,
                                     "the stream ends in section '%s', which began at byte %llu",
                                     r->section.name, (unsigned long long)r->head_offset);
    if (rc == -ENODATA)
        return gn_stream_reader_fail(r, EBADMSG, damage,
                                     "the stream ends at byte %llu, before its commit",
                                     (unsigned long long)r->offset);
    if (rc < 0)
        return gn_stream_reader_fail(r, -rc, err.fix, "%s",
                                     err.what[0] ? err.what : "cannot read the stream");
    r->offset += bytes;
    return 0;
}

static int fetch(struct gn_stream_reader *r, void *to, size_t n)
{
    struct iovec iov = {to, n};
    return gn_stream_fetch(r, &iov, 1, n);
}

/* ---- section heads and bodies */

static bool name_ok(const char *name)
{
    size_t n = strnlen(name, GN_STREAM_NAME_BYTES);
    if (n == 0 || n == GN_STREAM_NAME_BYTES)
        return false;
    for (size_t i = 0; i < GN_STREAM_NAME_BYTES; i++)
        if (i < n ? name[i] < 'a' || name[i] > 'z' : name[i] != 0)
            return false;
    return true;
}

static int read_head(struct gn_stream_reader *r)
{
    struct gn_stream_section_head *h = &r->head;
    r->section = (struct gn_stream_section){.offset = r->offset};
    r->head_offset = r->offset;
    r->entry = NULL;
    if (fetch(r, h, sizeof *h) < 0)
        return r->failed;
    if (h->checksum != gn_stream_checksum(h, offsetof(struct gn_stream_section_head, checksum)) ||
        !name_ok(h->name))
        return gn_stream_reader_fail(
            r, EBADMSG, damage, "section %llu at byte %llu: its head is damaged",
            (unsigned long long)r->n_sections, (unsigned long long)r->head_offset);
    memcpy(r->section.name, h->name, GN_STREAM_NAME_BYTES);
    r->section.number = h->number;
    if (h->number != r->n_sections)
        return gn_stream_damaged(
            r, "it has number %u where %llu was due: some are missing, or come twice", h->number,
            (unsigned long long)r->n_sections);
    if (h->flags & ~GN_STREAM_OPTIONAL)
        return gn_stream_damaged(r, "its flags %#x mean nothing", h->flags);
    if (h->body_bytes > r->limits.body_bytes || h->body_bytes > GN_STREAM_MOST_BODY_BYTES)
        return gn_stream_refused(r, "its %llu bytes are more than the %llu that are allowed",
                                 (unsigned long long)h->body_bytes,
                                 (unsigned long long)r->limits.body_bytes);
    return 0;
}

/* Allocates as bytes arrive, so that a false length costs only as much as was sent. */
static int read_body(struct gn_stream_reader *r)
{
    uint64_t bytes = r->head.body_bytes + 8, sum;
    struct gn_buffer *b = &r->body;
    for (b->n = 0; b->n < bytes;) {
        size_t step = b->n < (1u << 20) ? 1u << 20 : b->n;
        if (step > bytes - b->n)
            step = bytes - b->n;
        if (gn_buffer_room(b, step) < 0)
            return no_memory(r);
        if (fetch(r, b->bytes + b->n, step) < 0)
            return r->failed;
        b->n += step;
    }
    b->n -= 8;
    memcpy(&sum, b->bytes + b->n, 8);
    if (sum != gn_stream_checksum(b->bytes, b->n))
        return gn_stream_damaged(r, "its checksum is wrong");
    return 0;
}

/* Adds the section to the chain of checksums, which the commit verifies. */
static void link_section(struct gn_stream_reader *r)
{
    uint64_t link[3] = {r->chain, r->head.checksum, 0};
    memcpy(&link[2], r->body.bytes + r->body.n, 8);
    r->chain = gn_stream_checksum(link, sizeof link);
    r->n_sections++;
}

static int next_section(struct gn_stream_reader *r)
{
    int rc = read_head(r);
    if (rc == 0)
        rc = read_body(r);
    return rc;
}

/* ---- contents of sections */

static int read_announce(struct gn_stream_reader *r)
{
    const struct gn_stream_announce *a = (const void *)r->body.bytes;
    const struct gn_stream_limits *l = &r->limits;
    if (r->body.n != sizeof *a || a->zero)
        return gn_stream_damaged(r, "it is malformed");
    if (a->memory_bytes > l->memory_bytes)
        return gn_stream_refused(r, "%llu bytes of memory are announced, and %llu are allowed",
                                 (unsigned long long)a->memory_bytes,
                                 (unsigned long long)l->memory_bytes);
    if (a->entries_bytes > l->entries_bytes)
        return gn_stream_refused(r, "%llu bytes of entries are announced, and %llu are allowed",
                                 (unsigned long long)a->entries_bytes,
                                 (unsigned long long)l->entries_bytes);
    if (a->n_objects > l->n_objects || a->n_memories > l->n_memories || a->n_rounds > l->n_rounds)
        return gn_stream_refused(
            r, "%u objects, %u memories and %u rounds are announced, and %u, %u and %u are allowed",
            a->n_objects, a->n_memories, a->n_rounds, l->n_objects, l->n_memories, l->n_rounds);
    r->announce = *a;
    r->announced = true;
    r->section.what = GN_STREAM_IS_ANNOUNCE;
    r->section.announce = a;
    return 0;
}

static int read_memory(struct gn_stream_reader *r)
{
    const struct gn_stream_memory *all = (const void *)r->body.bytes;
    size_t n = r->body.n / sizeof *all;
    if (r->body.n % sizeof *all)
        return gn_stream_damaged(r, "it is malformed");
    for (size_t i = 0; i < n; i++) {
        const struct gn_stream_memory *m = &all[i];
        uint64_t bytes;
        if (!m->id || m->flags & ~GN_STREAM_MEMORY_KEPT || m->zero)
            return gn_stream_damaged(r, "memory %zu of %zu is malformed", i, n);
        if (!gn_add_u64(r->memories.bytes, m->bytes, &bytes) || bytes > r->announce.memory_bytes ||
            r->memories.n >= r->announce.n_memories)
            return gn_stream_refused(r, "memory %#llx of %llu bytes is more than was announced",
                                     (unsigned long long)m->id, (unsigned long long)m->bytes);
        int rc = gn_known_memory_put(&r->memories, m, r->about.page_bytes, true);
        if (rc == -EEXIST)
            return gn_stream_damaged(r, "memory %#llx comes twice", (unsigned long long)m->id);
        if (rc < 0)
            return no_memory(r);
    }
    r->section.what = GN_STREAM_IS_MEMORY;
    r->section.memories = all;
    r->section.n_memories = (uint32_t)n;
    return 0;
}

static int read_gone(struct gn_stream_reader *r)
{
    const struct gn_stream_gone *all = (const void *)r->body.bytes;
    size_t n = r->body.n / sizeof *all;
    if (r->body.n % sizeof *all)
        return gn_stream_damaged(r, "it is malformed");
    for (size_t i = 0; i < n; i++) {
        bool object = all[i].what == GN_STREAM_GONE_OBJECT;
        if (all[i].zero || (!object && all[i].what != GN_STREAM_GONE_MEMORY))
            return gn_stream_damaged(r, "%zu of %zu is malformed", i, n);
        if (object ? !gn_known_find(&r->objects, all[i].id)
                   : !gn_known_memory_find(&r->memories, all[i].id))
            return gn_stream_damaged(r, "%s %#llx never came", object ? "object" : "memory",
                                     (unsigned long long)all[i].id);
        if (object)
            gn_known_remove(&r->objects, all[i].id);
        else
            gn_known_memory_remove(&r->memories, all[i].id);
    }
    r->section.what = GN_STREAM_IS_GONE;
    r->section.gone = all;
    r->section.n_gone = (uint32_t)n;
    return 0;
}

static int read_round(struct gn_stream_reader *r)
{
    const struct gn_stream_round *round = (const void *)r->body.bytes;
    if (r->body.n != sizeof *round || round->number != r->round + 1 ||
        round->kind < GN_STREAM_PRECOPY || round->kind > GN_STREAM_STOP)
        return gn_stream_damaged(r, "it is malformed");
    if (r->round_kind == GN_STREAM_STOP)
        return gn_stream_damaged(r, "a round follows the last one");
    if (round->number > r->announce.n_rounds)
        return gn_stream_refused(r, "round %u is more than was announced", round->number);
    r->round = round->number;
    r->round_kind = round->kind;
    r->section.what = GN_STREAM_IS_ROUND;
    r->section.round = round;
    return 0;
}

static int read_commit(struct gn_stream_reader *r)
{
    const struct gn_stream_commit *c = (const void *)r->body.bytes;
    if (r->body.n != sizeof *c || c->zero)
        return gn_stream_damaged(r, "it is malformed");
    if (c->n_sections != r->n_sections || c->stream_bytes != r->head_offset || c->chain != r->chain)
        return gn_stream_damaged(r, "it is of another stream than what came before it");
    for (uint32_t i = 0; i < r->memories.n; i++) {
        const struct gn_known_memory *m = r->memories.all[i];
        if (m->n_missing)
            return gn_stream_damaged(r, "%llu of %llu pages of memory %#llx never came",
                                     (unsigned long long)m->n_missing,
                                     (unsigned long long)m->n_pages, (unsigned long long)m->m.id);
        if (m->m.object && !gn_known_find(&r->objects, m->m.object))
            return gn_stream_damaged(r, "memory %#llx is of object %#llx, which never came",
                                     (unsigned long long)m->m.id, (unsigned long long)m->m.object);
    }
    r->section.what = GN_STREAM_IS_COMMIT;
    r->over = true;
    return 0;
}

static int read_table(struct gn_stream_reader *r, enum gn_stream_table table)
{
    r->section.what = GN_STREAM_IS_TABLE;
    r->section.table = table;
    int rc = gn_stream_check_entries(r);
    r->entry = r->body.bytes;
    return rc;
}

static const struct {
    const char *name;
    int (*take)(struct gn_stream_reader *r);
} kinds[] = {{"announce", read_announce}, {"memory", read_memory},
             {"gone", read_gone},         {"round", read_round},
             {"commit", read_commit},     {"pages", gn_stream_check_pages}};

/* 0; 1: an unknown optional section, to be skipped; or -errno. */
static int read_section(struct gn_stream_reader *r)
{
    const char *name = r->section.name;
    int (*take)(struct gn_stream_reader *) = NULL;
    int table = -1;
    for (size_t i = 0; i < GN_ARRAY_SIZE(kinds); i++)
        if (!strcmp(name, kinds[i].name))
            take = kinds[i].take;
    for (int i = 0; i < GN_STREAM_N_TABLES; i++)
        if (!strcmp(name, gn_stream_table_name((enum gn_stream_table)i)))
            table = i;
    if (!take && table < 0 && !(r->head.flags & GN_STREAM_OPTIONAL))
        return gn_stream_reader_fail(
            r, EPROTONOSUPPORT, "use a gantry that is as new as the one that wrote it",
            "section '%s' at byte %llu: this gantry does not know such a section, and it may not "
            "be left out",
            name, (unsigned long long)r->head_offset);
    if (!take && table < 0)
        return r->head.bulk_bytes ? gn_stream_damaged(r, "it has a bulk that nothing checks") : 1;
    if (r->head.version != SECTION_VERSION)
        return gn_stream_reader_fail(
            r, EPROTONOSUPPORT, "use a gantry that is as new as the one that wrote it",
            "section '%s' at byte %llu is of version %u, and this gantry reads version %u", name,
            (unsigned long long)r->head_offset, r->head.version, SECTION_VERSION);
    if (r->head.flags || (r->head.bulk_bytes && take != gn_stream_check_pages))
        return gn_stream_damaged(r, "it is malformed");
    if (!r->announced && take != read_announce)
        return gn_stream_damaged(r, "it comes before the announcement");
    return take ? take(r) : read_table(r, (enum gn_stream_table)table);
}

int gn_stream_next(struct gn_stream_reader *r, struct gn_stream_section *ret)
{
    int rc = 1;
    if (r->failed)
        return r->failed;
    if (r->over)
        return gn_stream_reader_fail(r, EINVAL, NULL, "the stream is over");
    if (r->bulk_left && gn_stream_read_pages(r, NULL) < 0)
        return r->failed;
    while (rc == 1) {
        rc = next_section(r);
        if (rc == 0)
            rc = read_section(r);
        if (rc >= 0)
            link_section(r);
    }
    if (rc == 0)
        *ret = r->section;
    return rc;
}

int gn_stream_expect_end(struct gn_stream_reader *r)
{
    unsigned char more;
    struct iovec iov = {&more, 1};
    struct gn_error err = {{0}, {0}};
    if (r->failed)
        return r->failed;
    int rc = r->source.read(r->source.ctx, &iov, 1, &err);
    if (rc == -ENODATA)
        return 0;
    if (rc < 0)
        return gn_stream_reader_fail(r, -rc, err.fix, "%s",
                                     err.what[0] ? err.what : "cannot read the stream");
    return gn_stream_reader_fail(r, EBADMSG, damage,
                                 "something follows the stream's end at byte %llu",
                                 (unsigned long long)r->offset);
}

/* ---- the reader */

static bool text_ok(const char *text, size_t n)
{
    size_t length = strnlen(text, n);
    if (length == n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (i < length ? text[i] < ' ' || text[i] > '~' : text[i] != 0)
            return false;
    return true;
}

static int begin(struct gn_stream_reader *r)
{
    struct gn_stream_preamble p;
    if (fetch(r, &p, sizeof p) < 0)
        return r->failed;
    if (memcmp(p.magic, GN_STREAM_BEGINS, sizeof p.magic) != 0)
        return gn_stream_reader_fail(r, EBADMSG, "name a file that `gantry checkpoint` has written",
                                     "this is no stream of a vGPU: it begins otherwise");
    if (p.checksum != gn_stream_checksum(&p, offsetof(struct gn_stream_preamble, checksum)))
        return gn_stream_reader_fail(r, EBADMSG, damage, "the stream's first 24 bytes are damaged");
    if (p.format != GN_STREAM_FORMAT || p.zero)
        return gn_stream_reader_fail(
            r, EPROTONOSUPPORT, "use a gantry that is as new as the one that wrote it",
            "the stream is of version %u, and this gantry reads version %u", p.format,
            GN_STREAM_FORMAT);
    if (next_section(r) < 0)
        return r->failed;
    memcpy(&r->about, r->body.bytes, r->body.n < sizeof r->about ? r->body.n : sizeof r->about);
    if (strcmp(r->section.name, "stream") != 0)
        return gn_stream_damaged(r, "'stream' was due first");
    if (r->head.version != SECTION_VERSION)
        return gn_stream_reader_fail(
            r, EPROTONOSUPPORT, "use a gantry that is as new as the one that wrote it",
            "section 'stream' is of version %u, and this gantry reads version %u", r->head.version,
            SECTION_VERSION);
    const struct gn_stream_about *a = &r->about;
    if (r->body.n != sizeof *a || r->head.flags || r->head.bulk_bytes ||
        a->purpose < GN_STREAM_CHECKPOINT || a->purpose > GN_STREAM_MOVE || a->page_bytes < 4096 ||
        a->page_bytes > 65536 || a->page_bytes & (a->page_bytes - 1) ||
        !text_ok(a->api, sizeof a->api) || !text_ok(a->creator, sizeof a->creator))
        return gn_stream_damaged(r, "it is malformed");
    link_section(r);
    return 0;
}

int gn_stream_reader_create(const struct gn_stream_source *source,
                            const struct gn_stream_limits *limits, struct gn_stream_reader **ret,
                            struct gn_error *err)
{
    struct gn_stream_reader *r = calloc(1, sizeof *r);
    if (!r)
        return gn_fail(err, ENOMEM, NULL, "no memory left to read the stream");
    r->source = *source;
    r->limits = limits ? *limits : gn_stream_limits_default;
    int rc = begin(r);
    if (rc < 0) {
        if (err)
            *err = r->err;
        gn_stream_reader_destroy(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void gn_stream_reader_destroy(struct gn_stream_reader *r)
{
    if (!r)
        return;
    free(r->body.bytes);
    free(r->scratch.bytes);
    free(r->packed.bytes);
    ZSTD_freeDCtx(r->zstd);
    gn_known_fini(&r->objects);
    gn_known_memories_fini(&r->memories);
    free(r);
}

const struct gn_error *gn_stream_reader_error(const struct gn_stream_reader *r)
{
    return &r->err;
}

const struct gn_stream_about *gn_stream_reader_about(const struct gn_stream_reader *r)
{
    return &r->about;
}

uint64_t gn_stream_reader_offset(const struct gn_stream_reader *r)
{
    return r->offset;
}
