/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits and digests of a buffer's pages. A vGPU's threads set marks while a round reads them;
 * the accesses here and in verify.c carry the memory order that this needs. Nothing here blocks.
 */
#include "migrate/page_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More pages than any machine has memory for; so products of counts stay far below 2^64. */
#define MAX_PAGES (UINT64_C(1) << 40)

int gn_page_table_create(const struct gn_page_hasher *hasher, uint64_t bytes, bool kernel_written,
                         unsigned sample_bytes, struct gn_page_table **ret)
{
    if (bytes == 0 || (sample_bytes != 1 && sample_bytes != 2 && sample_bytes != 4))
        return -EINVAL;
    uint64_t n_pages = bytes / hasher->page_bytes + (bytes % hasher->page_bytes != 0);
    if (n_pages > MAX_PAGES)
        return -EFBIG;
    struct gn_page_table *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->hasher = hasher;
    t->bytes = bytes;
    t->n_pages = n_pages;
    t->n_groups = (n_pages + GN_PAGE_GROUP - 1) / GN_PAGE_GROUP;
    t->sample_bytes = sample_bytes;
    t->host = calloc(t->n_groups, sizeof *t->host);
    t->sent = calloc(t->n_groups, sizeof *t->sent);
    t->hashed = calloc(t->n_groups, sizeof *t->hashed);
    /*
     * Untouched memory of calloc takes no pages: a buffer that no kernel writes needs no memory for
     * digests.
     */
    t->digests = calloc(n_pages, hasher->digest_bytes ? hasher->digest_bytes : 1);
    t->samples = calloc(n_pages, sizeof *t->samples);
    atomic_init(&t->kernel, kernel_written);
    if (!t->host || !t->sent || !t->hashed || !t->digests || !t->samples) {
        gn_page_table_destroy(t);
        return -ENOMEM;
    }
    *ret = t;
    return 0;
}

void gn_page_table_destroy(struct gn_page_table *t)
{
    if (!t)
        return;
    free(t->host);
    free(t->sent);
    free(t->hashed);
    free(t->digests);
    free(t->samples);
    free(t);
}

void gn_page_table_cpu_wrote(struct gn_page_table *t, uint64_t offset, uint64_t n)
{
    if (n == 0 || offset >= t->bytes)
        return;
    uint64_t last_byte = n > t->bytes - offset ? t->bytes - 1 : offset + n - 1;
    uint64_t first = offset / t->hasher->page_bytes, last = last_byte / t->hasher->page_bytes;
    for (uint64_t g = first / GN_PAGE_GROUP; g <= last / GN_PAGE_GROUP; g++) {
        uint64_t mask = UINT64_MAX;
        if (g == first / GN_PAGE_GROUP)
            mask &= UINT64_MAX << first % GN_PAGE_GROUP;
        if (g == last / GN_PAGE_GROUP)
            mask &= UINT64_MAX >> (GN_PAGE_GROUP - 1 - last % GN_PAGE_GROUP);
        /*
         * M0: releases the write before the mark to the round that clears the mark (V0). A mark is
         * always written: one that is already set orders only the thread that set it.
         */
        atomic_fetch_or_explicit(&t->host[g], mask, memory_order_release);
    }
}

void gn_page_table_has(struct gn_page_table *t, uint64_t page, const void *content,
                       const void *digest)
{
    const uint32_t n = gn_page_table_length(t, page), digest_bytes = t->hasher->digest_bytes;
    const uint64_t g = page / GN_PAGE_GROUP, bit = UINT64_C(1) << page % GN_PAGE_GROUP;
    t->sent[g] |= bit;
    t->hashed[g] &= ~bit;
    if (!content || !digest_bytes)
        return;
    if (digest)
        memcpy(t->digests + page * digest_bytes, digest, digest_bytes);
    else
        gn_page_digest(t->hasher, content, n, t->digests + page * digest_bytes);
    t->samples[page] = gn_page_sample_draw(t->sample_bytes, content, n);
    t->hashed[g] |= bit;
}
