/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes pages. Called on the writer's thread. A section has at most one megabyte of pages, so that
 * a page is sent while it is still in the cache after hashing, and so that a reader knows the cost
 * of decompression. Never copies pages that it does not compress.
 */
#include "base/checked.h"
#include "stream/stream_internal.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

/* A section that is being assembled. */
struct part_of_pages {
    const struct gn_known_memory *memory;
    uint32_t n_runs, n_hashes, n_iov;
    uint64_t raw_bytes;
    struct gn_stream_run_head runs[GN_STREAM_MOST_RUNS];
    struct gn_stream_hash hashes[GN_STREAM_MOST_PAGES_BYTES / 4096];
    struct iovec iov[1 + GN_STREAM_MOST_PAGES_BYTES / 4096]; /* [0] is for the section's body */
};

uint64_t gn_stream_pages_bytes(const struct gn_known_memory *m, uint32_t page_bytes, uint64_t first,
                               uint64_t n)
{
    uint64_t begin = first * page_bytes,
             end = first + n == m->n_pages ? m->m.bytes : (first + n) * page_bytes;
    return end - begin;
}

/* 0: compressed to packed.n bytes; 1: compression does not pay; or -errno. */
static int compress_pages(struct gn_stream_writer *w, struct part_of_pages *p)
{
    if (!w->zstd) {
        w->zstd = ZSTD_createCCtx();
        if (!w->zstd ||
            ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, w->level)) ||
            ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_windowLog, 20)))
            return gn_stream_writer_fail(w, ENOMEM, NULL, "no memory left to compress the stream");
    }
    w->packed.n = 0;
    if (gn_buffer_room(&w->packed, GN_STREAM_MOST_PAGES_BYTES) < 0)
        return gn_stream_writer_fail(w, ENOMEM, NULL, "no memory left to compress the stream");
    /* The output is smaller than the input by 1/16: pages that do not fit are sent uncompressed. */
    ZSTD_outBuffer out = {w->packed.bytes, p->raw_bytes - p->raw_bytes / 16, 0};
    ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(w->zstd, p->raw_bytes);
    for (uint32_t i = 1; i <= p->n_iov; i++) {
        ZSTD_inBuffer in = {p->iov[i].iov_base, p->iov[i].iov_len, 0};
        ZSTD_EndDirective how = i == p->n_iov ? ZSTD_e_end : ZSTD_e_continue;
        size_t left;
        do {
            left = ZSTD_compressStream2(w->zstd, &out, &in, how);
            if (ZSTD_isError(left))
                return gn_stream_writer_fail(w, EINVAL, NULL, "cannot compress the stream: %s",
                                             ZSTD_getErrorName(left));
            if (out.pos == out.size && (left || in.pos < in.size))
                return 1;
        } while (how == ZSTD_e_end ? left != 0 : in.pos < in.size);
    }
    w->packed.n = out.pos;
    return 0;
}

static int send_pages(struct gn_stream_writer *w, struct part_of_pages *p)
{
    struct gn_stream_pages head = {
        .memory = p->memory->m.id, .n_runs = p->n_runs, .n_hashes = p->n_hashes};
    uint64_t bulk_bytes = p->raw_bytes;
    if (!p->n_runs)
        return 0;
    if (w->packing == GN_STREAM_ZSTD && p->raw_bytes) {
        int rc = compress_pages(w, p);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            head.packing = GN_STREAM_ZSTD;
            head.packed_checksum = gn_stream_checksum(w->packed.bytes, w->packed.n);
            bulk_bytes = w->packed.n;
            p->iov[1] = (struct iovec){w->packed.bytes, w->packed.n};
            p->n_iov = 1;
        }
    }
    if (gn_stream_body_begin(w, &w->small) < 0 ||
        gn_stream_body_add(w, &w->small, &head, sizeof head) < 0 ||
        gn_stream_body_add(w, &w->small, p->runs, p->n_runs * sizeof *p->runs) < 0 ||
        gn_stream_body_add(w, &w->small, p->hashes, p->n_hashes * sizeof *p->hashes) < 0 ||
        gn_stream_send_section(w, "pages", &w->small, p->iov, (int)p->n_iov, bulk_bytes) < 0)
        return w->failed;
    w->counts.packed_bytes += bulk_bytes;
    w->counts.pages_bytes += p->raw_bytes;
    p->n_runs = p->n_hashes = p->n_iov = 0;
    p->raw_bytes = 0;
    return 0;
}

/* Sends the section if it has no room for another run, or for n_bytes more. */
static int make_room(struct gn_stream_writer *w, struct part_of_pages *p, uint64_t n_bytes)
{
    if (p->n_runs < GN_STREAM_MOST_RUNS && p->raw_bytes + n_bytes <= GN_STREAM_MOST_PAGES_BYTES)
        return 0;
    return send_pages(w, p);
}

static int add_zeros(struct gn_stream_writer *w, struct part_of_pages *p, uint64_t first,
                     uint32_t n)
{
    struct gn_stream_run_head *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    w->counts.pages += n;
    w->counts.pages_zero += n;
    if (last && last->zeros && last->first_page + last->n_pages == first &&
        last->n_pages <= UINT32_MAX - n) {
        last->n_pages += n;
        return 0;
    }
    if (make_room(w, p, 0) < 0)
        return w->failed;
    p->runs[p->n_runs++] = (struct gn_stream_run_head){first, n, 1};
    return 0;
}

static int add_page(struct gn_stream_writer *w, struct part_of_pages *p, uint64_t page,
                    const unsigned char *bytes, size_t n, const struct gn_stream_hash *hash)
{
    if (make_room(w, p, n) < 0)
        return w->failed;
    struct gn_stream_run_head *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    struct iovec *iov = &p->iov[p->n_iov];
    if (!last || last->zeros || last->first_page + last->n_pages != page) {
        p->runs[p->n_runs++] = (struct gn_stream_run_head){page, 1, 0};
        iov = NULL;
    } else {
        last->n_pages++;
    }
    if (iov && (const unsigned char *)iov->iov_base + iov->iov_len == bytes) {
        iov->iov_len += n;
    } else {
        /* No more vectors than hashes: at most one per page. */
        p->iov[++p->n_iov] = (struct iovec){(void *)(uintptr_t)bytes, n};
    }
    p->hashes[p->n_hashes++] = hash ? *hash : gn_stream_hash(bytes, n);
    p->raw_bytes += n;
    w->counts.pages++;
    return 0;
}

int gn_stream_put_pages(struct gn_stream_writer *w, uint64_t memory,
                        const struct gn_stream_run *runs, uint32_t n_runs)
{
    struct part_of_pages p = {.memory = gn_known_memory_find(&w->memories, memory)};
    uint32_t page_bytes = w->about.page_bytes;
    if (gn_stream_flush(w) < 0)
        return w->failed;
    if (!p.memory || !w->round)
        return gn_stream_writer_fail(w, EINVAL, NULL, "pages of %#llx come before the %s",
                                     (unsigned long long)memory, p.memory ? "round" : "memory");
    for (uint32_t i = 0; i < n_runs; i++) {
        const struct gn_stream_run *run = &runs[i];
        if (!gn_range_ok(run->first_page, run->n_pages, p.memory->n_pages))
            return gn_stream_writer_fail(w, EINVAL, NULL, "pages lie outside of memory %#llx",
                                         (unsigned long long)memory);
        if (!run->bytes && run->n_pages && add_zeros(w, &p, run->first_page, run->n_pages) < 0)
            return w->failed;
        for (uint32_t k = 0; run->bytes && k < run->n_pages; k++) {
            const unsigned char *bytes =
                (const unsigned char *)run->bytes + (uint64_t)k * page_bytes;
            uint64_t page = run->first_page + k;
            size_t n = gn_stream_pages_bytes(p.memory, page_bytes, page, 1);
            int rc = gn_stream_all_zero(bytes, n)
                         ? add_zeros(w, &p, page, 1)
                         : add_page(w, &p, page, bytes, n, run->hashes ? &run->hashes[k] : NULL);
            if (rc < 0)
                return rc;
        }
    }
    return send_pages(w, &p);
}
