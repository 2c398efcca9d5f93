/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a vGPU, as whoever sends one or wrote the file plays it. The first byte says what
 * the rest is: 'r' a stream as it is; anything else: sections without their checksums, which are
 * put in here, since no mutation would ever find a right one. Whatever comes: it is loaded or
 * refused by one sentence that sticks, costs no more than was allowed, and leaves nothing.
 */
#include "stream/stream.h"

#include <errno.h>

#include "fuzz.h"
#include "stream/hash.h"

#define MEMORY_LIMIT (64u << 10)
#define PAGE         4096u

static const char *const names[] = {"announce", "tenant", "devices", "objects", "events", "calls",
                                    "commands", "maps",   "session", "memory",  "gone",   "round",
                                    "pages",    "commit", "later",   "stream"};

struct bytes {
    unsigned char *at;
    size_t n, capacity, read;
};

static void append(struct bytes *b, const void *bytes, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n);
        b->at = realloc(b->at, b->capacity);
        FUZZ_CHECK(b->at);
    }
    if (n)
        memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

static int source_read(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct bytes *b = ctx;
    for (int i = 0; i < n; i++) {
        if (b->n - b->read < iov[i].iov_len)
            return -ENODATA;
        if (iov[i].iov_len)
            memcpy(iov[i].iov_base, b->at + b->read, iov[i].iov_len);
        b->read += iov[i].iov_len;
    }
    return 0;
}

/* Right hashes for pages that are not packed; a right checksum for those that are. */
static void mend_pages(unsigned char *body, size_t n_body, const unsigned char *bulk, size_t n_bulk)
{
    struct gn_stream_pages p;
    if (n_body < sizeof p)
        return;
    memcpy(&p, body, sizeof p);
    if (p.packing == GN_STREAM_ZSTD)
        p.packed_checksum = gn_stream_checksum(bulk, n_bulk);
    memcpy(body, &p, sizeof p);
    size_t at = sizeof p + (size_t)(p.n_runs & 0xffff) * sizeof(struct gn_stream_run_head),
           done = 0;
    for (; p.packing == GN_STREAM_RAW && at + 16 <= n_body && done < n_bulk; at += 16) {
        size_t n = n_bulk - done < PAGE ? n_bulk - done : PAGE;
        struct gn_stream_hash hash = gn_stream_hash(bulk + done, n);
        memcpy(body + at, &hash, sizeof hash);
        done += n;
    }
}

static void frame(struct bytes *out, struct fuzz *f)
{
    struct gn_stream_preamble preamble = {.magic = GN_STREAM_BEGINS, .format = GN_STREAM_FORMAT};
    struct gn_stream_about about = {
        .purpose = GN_STREAM_CHECKPOINT, .page_bytes = PAGE, .api = "opencl"};
    uint64_t chain = 0;
    preamble.checksum = gn_stream_checksum(&preamble, 16);
    append(out, &preamble, sizeof preamble);
    for (uint32_t number = 0; number == 0 || f->left; number++) {
        uint8_t which = number ? fuzz_u8(f) : 15, how = number ? fuzz_u8(f) : 0;
        size_t n_body = number ? fuzz_u16(f) : sizeof about,
               n_bulk = which % 16 == 12 ? fuzz_u16(f) : 0;
        const void *given = number ? fuzz_bytes(f, &n_body) : (const void *)&about;
        unsigned char *body = malloc(n_body + 1);
        FUZZ_CHECK(body);
        if (n_body)
            memcpy(body, given, n_body);
        const unsigned char *bulk = fuzz_bytes(f, &n_bulk);
        struct gn_stream_section_head head = {.version = (uint16_t)(1 + (how >> 1 & 3)),
                                              .flags = how & 1,
                                              .number = number,
                                              .body_bytes = n_body,
                                              .bulk_bytes = n_bulk};
        snprintf(head.name, sizeof head.name, "%s", names[which % 16]);
        head.checksum = gn_stream_checksum(&head, 40);
        if (which % 16 == 12)
            mend_pages(body, n_body, bulk, n_bulk);
        if (which % 16 == 13 && n_body == sizeof(struct gn_stream_commit)) {
            struct gn_stream_commit commit = {
                .n_sections = number, .stream_bytes = out->n, .chain = chain};
            memcpy(body, &commit, sizeof commit);
        }
        uint64_t sum = gn_stream_checksum(body, n_body), link[3] = {chain, head.checksum, sum};
        append(out, &head, sizeof head);
        append(out, body, n_body);
        append(out, &sum, sizeof sum);
        append(out, bulk, n_bulk);
        chain = gn_stream_checksum(link, sizeof link);
        free(body);
    }
}

static unsigned sum_of(const void *bytes, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((const unsigned char *)bytes)[i];
    return sum;
}

static int take(struct gn_stream_reader *r, const struct gn_stream_section *s, bool all)
{
    void *where[GN_STREAM_MOST_RUNS] = {NULL};
    FUZZ_CHECK(s->n_runs && s->n_runs <= GN_STREAM_MOST_RUNS && s->memory->bytes <= MEMORY_LIMIT);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        uint64_t n = gn_stream_run_bytes(r, s, i);
        FUZZ_CHECK(n && s->runs[i].first_page * PAGE + n <= s->memory->bytes);
        /* Exactly as long as it says, so that a sanitizer sees a byte beyond it. */
        where[i] = all || i % 2 ? malloc(n) : NULL;
    }
    int rc = gn_stream_read_pages(r, where);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        if (rc == 0 && where[i])
            (void)sum_of(where[i], gn_stream_run_bytes(r, s, i));
        free(where[i]);
    }
    return rc;
}

static void walk(struct gn_stream_reader *r)
{
    struct gn_stream_entry e;
    struct gn_stream_part p;
    while (gn_stream_next_entry(r, &e)) {
        unsigned sum = sum_of(e.refs, e.n_refs * sizeof *e.refs);
        while (gn_stream_next_part(&e, &p)) {
            FUZZ_CHECK((uintptr_t)p.bytes % 8 == 0);
            sum += sum_of(p.bytes, p.n);
        }
        FUZZ_CHECK(sum != UINT32_MAX); /* of at most 128 KiB: it is only there to be read */
    }
}

static void load(struct bytes *stream)
{
    struct gn_stream_source source = {source_read, stream};
    const struct gn_stream_limits limits = {.memory_bytes = MEMORY_LIMIT,
                                            .entries_bytes = 1 << 16,
                                            .n_objects = 100,
                                            .n_memories = 100,
                                            .n_rounds = 16,
                                            .body_bytes = 1 << 17};
    struct gn_stream_section s = {0};
    struct gn_stream_reader *r = NULL;
    struct gn_error err = {{0}, {0}};
    int rc = gn_stream_reader_create(&source, &limits, &r, &err);
    for (unsigned i = 0; rc == 0 && s.what != GN_STREAM_IS_COMMIT; i++) {
        rc = gn_stream_next(r, &s);
        FUZZ_CHECK(rc < 0 || (s.what >= GN_STREAM_IS_TABLE && s.what <= GN_STREAM_IS_COMMIT));
        if (rc == 0 && s.what == GN_STREAM_IS_TABLE)
            walk(r);
        if (rc == 0 && s.what == GN_STREAM_IS_PAGES && i % 3)
            rc = take(r, &s, i % 3 == 1);
    }
    if (r && rc < 0) {
        err = *gn_stream_reader_error(r);
        FUZZ_CHECK(gn_stream_next(r, &s) == rc);
    }
    FUZZ_CHECK(rc == 0 || rc == -EBADMSG || rc == -EPROTONOSUPPORT || rc == -EDQUOT);
    FUZZ_CHECK((rc == 0) == !err.what[0] && !strchr(err.what, '\n') &&
               memchr(err.what, 0, sizeof err.what));
    gn_stream_reader_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    struct bytes stream = {0};
    if (fuzz_u8(&f) == 'r')
        append(&stream, f.at, f.left);
    else
        frame(&stream, &f);
    load(&stream);
    free(stream.at);
    return 0;
}
