/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pages: checks the description, reads the contents into their destination, then checks each
 * page's hash. Called on the reader's thread. The cost of a section is limited: it has at most one
 * megabyte of contents, and in one round a memory gets at most as many pages as it has.
 */
#include "base/checked.h"
#include "stream/stream_internal.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

#define MOST GN_STREAM_MOST_PAGES_BYTES

/* Number of pages with data in a section, and their bytes. */
struct sums {
    uint64_t hashes, bytes;
};

static int check_runs(struct gn_stream_reader *r, struct gn_known_memory *m,
                      const struct gn_stream_run_head *runs, struct sums *sums)
{
    if (m->round != r->round) {
        m->round = r->round;
        m->n_in_round = 0;
    }
    for (uint32_t i = 0; i < r->pages.n_runs; i++) {
        const struct gn_stream_run_head *run = &runs[i];
        if (run->zeros > 1 || !run->n_pages ||
            !gn_range_ok(run->first_page, run->n_pages, m->n_pages))
            return gn_stream_damaged(r, "run %u of memory %#llx is malformed", i,
                                     (unsigned long long)m->m.id);
        m->n_in_round += run->n_pages;
        if (m->n_in_round > m->n_pages)
            return gn_stream_damaged(r, "memory %#llx gets a page twice in round %u",
                                     (unsigned long long)m->m.id, r->round);
        if (!run->zeros) {
            sums->hashes += run->n_pages;
            sums->bytes +=
                gn_stream_pages_bytes(m, r->about.page_bytes, run->first_page, run->n_pages);
        }
        if (sums->bytes > MOST)
            return gn_stream_damaged(r, "it has more than %llu bytes of pages",
                                     (unsigned long long)MOST);
    }
    return 0;
}

int gn_stream_check_pages(struct gn_stream_reader *r)
{
    struct gn_stream_pages *p = &r->pages;
    struct sums sums = {0, 0};
    if (r->body.n < sizeof *p)
        return gn_stream_damaged(r, "it is malformed");
    memcpy(p, r->body.bytes, sizeof *p);
    const struct gn_stream_run_head *runs = (const void *)(r->body.bytes + sizeof *p);
    const struct gn_stream_hash *hashes = (const void *)(runs + p->n_runs);
    if (p->zero || p->packing > GN_STREAM_ZSTD || !p->n_runs || p->n_runs > GN_STREAM_MOST_RUNS ||
        p->n_hashes > MOST / r->about.page_bytes + GN_STREAM_MOST_RUNS ||
        r->body.n != sizeof *p + p->n_runs * sizeof *runs + p->n_hashes * sizeof *hashes ||
        (p->packing == GN_STREAM_RAW && p->packed_checksum))
        return gn_stream_damaged(r, "it is malformed");
    struct gn_known_memory *m = gn_known_memory_find(&r->memories, p->memory);
    if (!m)
        return gn_stream_damaged(r, "its memory %#llx has not come", (unsigned long long)p->memory);
    if (!r->round)
        return gn_stream_damaged(r, "pages come before a round");
    if (check_runs(r, m, runs, &sums) < 0)
        return r->failed;
    if (sums.hashes != p->n_hashes ||
        (p->packing == GN_STREAM_RAW ? r->head.bulk_bytes != sums.bytes
                                     : !r->head.bulk_bytes || r->head.bulk_bytes >= sums.bytes))
        return gn_stream_damaged(r, "its lengths do not agree");
    for (uint32_t i = 0; i < p->n_runs; i++)
        gn_known_memory_came(m, runs[i].first_page, runs[i].n_pages);
    r->bulk_left = r->head.bulk_bytes;
    r->section.what = GN_STREAM_IS_PAGES;
    r->section.memory = &m->m;
    r->section.runs = runs;
    r->section.n_runs = p->n_runs;
    r->section.hashes = hashes;
    r->section.bulk_bytes = r->head.bulk_bytes;
    return 0;
}

uint64_t gn_stream_run_bytes(const struct gn_stream_reader *r, const struct gn_stream_section *s,
                             uint32_t run)
{
    const struct gn_known_memory *m = gn_known_memory_find(&r->memories, s->memory->id);
    return m ? gn_stream_pages_bytes(m, r->about.page_bytes, s->runs[run].first_page,
                                     s->runs[run].n_pages)
             : 0;
}

/* Decompresses the bulk into the destinations of the runs. */
static int decompress(struct gn_stream_reader *r, const unsigned char *packed, size_t n,
                      const struct iovec *to, int n_to)
{
    ZSTD_inBuffer in = {packed, n, 0};
    size_t left = 1;
    if (!r->zstd) {
        r->zstd = ZSTD_createDCtx();
        /* A window larger than a section's pages is invalid and would waste memory. */
        if (!r->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, 20)))
            return gn_stream_reader_fail(r, ENOMEM, NULL, "no memory left to read the stream");
    }
    ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
    for (int i = 0; i < n_to; i++) {
        ZSTD_outBuffer out = {to[i].iov_base, to[i].iov_len, 0};
        while (out.pos < out.size) {
            size_t before = in.pos + out.pos;
            left = ZSTD_decompressStream(r->zstd, &out, &in);
            if (ZSTD_isError(left) || (in.pos + out.pos == before && out.pos < out.size))
                return gn_stream_damaged(r, "its pages cannot be unpacked");
        }
    }
    /* The end of the frame may not have been read yet. */
    unsigned char none;
    ZSTD_outBuffer out = {&none, 0, 0};
    if (left)
        left = ZSTD_decompressStream(r->zstd, &out, &in);
    if (left || in.pos != n)
        return gn_stream_damaged(r, "its pages unpack to another length");
    return 0;
}

static int check_contents(struct gn_stream_reader *r, const struct gn_known_memory *m,
                          const struct iovec *where)
{
    const struct gn_stream_hash *hash = r->section.hashes;
    uint32_t page_bytes = r->about.page_bytes;
    for (uint32_t i = 0; i < r->section.n_runs; i++) {
        const struct gn_stream_run_head *run = &r->section.runs[i];
        if (run->zeros)
            continue;
        for (uint32_t k = 0; k < run->n_pages; k++) {
            const unsigned char *at =
                (const unsigned char *)where->iov_base + (uint64_t)k * page_bytes;
            size_t n = gn_stream_pages_bytes(m, page_bytes, run->first_page + k, 1);
            if (!gn_stream_hash_equal(gn_stream_hash(at, n), *hash++))
                return gn_stream_damaged(r, "page %llu of memory %#llx is damaged",
                                         (unsigned long long)(run->first_page + k),
                                         (unsigned long long)m->m.id);
        }
        where++;
    }
    return 0;
}

int gn_stream_read_pages(struct gn_stream_reader *r, void *const *where)
{
    struct iovec to[GN_STREAM_MOST_RUNS], iov[GN_STREAM_MOST_RUNS];
    int n = 0;
    uint64_t passed = 0;
    if (r->failed)
        return r->failed;
    if (r->section.what != GN_STREAM_IS_PAGES || r->section.n_runs == 0)
        return gn_stream_reader_fail(r, EINVAL, NULL, "there are no pages to take");
    const struct gn_known_memory *m = gn_known_memory_find(&r->memories, r->pages.memory);
    bool packed = r->pages.packing == GN_STREAM_ZSTD;
    for (uint32_t i = 0; i < r->section.n_runs; i++)
        if (!r->section.runs[i].zeros && !(where && where[i]))
            passed += gn_stream_run_bytes(r, &r->section, i);
    if (gn_buffer_room(&r->scratch, passed) < 0 ||
        gn_buffer_room(&r->packed, packed ? r->bulk_left : 0) < 0)
        return gn_stream_reader_fail(r, ENOMEM, NULL, "no memory left to read the stream");
    passed = 0;
    for (uint32_t i = 0; i < r->section.n_runs; i++) {
        const struct gn_stream_run_head *run = &r->section.runs[i];
        uint64_t bytes =
            gn_stream_pages_bytes(m, r->about.page_bytes, run->first_page, run->n_pages);
        void *at = where ? where[i] : NULL;
        if (run->zeros && at)
            memset(at, 0, bytes);
        if (run->zeros)
            continue;
        if (!at) {
            at = r->scratch.bytes + passed;
            passed += bytes;
        }
        to[n++] = (struct iovec){at, bytes};
    }
    uint64_t bulk = r->bulk_left;
    r->bulk_left = 0;
    if (packed) {
        struct iovec whole = {r->packed.bytes, bulk};
        if (gn_stream_fetch(r, &whole, 1, bulk) < 0)
            return r->failed;
        if (gn_stream_checksum(r->packed.bytes, bulk) != r->pages.packed_checksum)
            return gn_stream_damaged(r, "its pages are damaged");
        if (decompress(r, r->packed.bytes, bulk, to, n) < 0)
            return r->failed;
    } else {
        memcpy(iov, to, (size_t)n * sizeof *to);
        if (gn_stream_fetch(r, iov, n, bulk) < 0)
            return r->failed;
    }
    int rc = check_contents(r, m, to);
    r->section.n_runs = 0; /* they have been read */
    return rc;
}
