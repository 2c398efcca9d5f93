/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_TABLE_H
#define GN_MIGRATE_PAGE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "migrate/page_hash.h"
#include "migrate/page_sample.h"

/*
 * The state of a buffer's pages during a migration: which pages the destination has, and how to
 * detect that one has changed since. gMig's sets (3.3.1), a bit for each page:
 *
 * host   D_c: the host wrote it (a write, copy or fill command, an unmapping) since a round last
 *        cleared the bit. Sent without hashing: T_d.
 * sent   the destination has some content of it. A page without this bit is sent without
 *        comparison.
 * hashed the digest is that of the content that was sent. A page that only the host writes is
 *        never hashed; if a kernel writes it later, it is sent once more without comparison.
 *
 * and one bit for all pages, as no interface reports which of them a kernel writes:
 *
 * kernel the union of S_g: a kernel may have written the buffer at any time since the beginning.
 *        A page is hashed and compared before it is sent again, unless the host wrote it too: T_h.
 *        A page in both is hashed as it is sent (H), because the digest must be that of the content
 *        that the destination has.
 *
 * Pages form groups of 64, the bits of one word. The table of a buffer of n pages takes n *
 * (digest_bytes + 12.4) bytes.
 *
 * Threads: any thread may set marks at any time. Everything else belongs to the round in progress
 * (rounds.h), or, between rounds, to the thread that may start one.
 */
#define GN_PAGE_GROUP 64u

struct gn_page_table {
    /* set once */
    const struct gn_page_hasher *hasher;
    uint64_t bytes, n_pages, n_groups;
    unsigned sample_bytes;

    /* marks, set by any thread */
    _Atomic uint64_t *host;
    _Atomic bool kernel;

    /* used by the round */
    /*
     * all pages are hashed and compared, whether or not a write is known; set by the caller,
     * between rounds
     */
    bool doubts;
    uint64_t *sent, *hashed;
    unsigned char *digests; /* n_pages of hasher->digest_bytes */
    struct gn_page_sample *samples;
};

/*
 * Makes the table of a buffer of `bytes`, all of it unsent. kernel_written: a kernel has, or may
 * have, written somewhere in it before now. sample_bytes: 1, 2 or 4. The caller owns the hasher,
 * which outlives the table. Returns 0, -EINVAL (bytes is 0, sample_bytes), -EFBIG or -ENOMEM.
 */
int gn_page_table_create(const struct gn_page_hasher *hasher, uint64_t bytes, bool kernel_written,
                         unsigned sample_bytes, struct gn_page_table **ret);
/* NULL is allowed. No round may be using the table. */
void gn_page_table_destroy(struct gn_page_table *t);

/*
 * Marks [offset, offset + n) as written by the host, or as possibly written (a region mapped for
 * writing). Call it when the write is over: a round that reads the page between the mark and the
 * end of the write would take the old content for the final one. Ranges beyond the end are cut off.
 * Any thread; one atomic operation for 64 pages.
 */
void gn_page_table_cpu_wrote(struct gn_page_table *t, uint64_t offset, uint64_t n);
/*
 * Marks the buffer as one that a kernel may write. Call it before the kernel is submitted, or at
 * any later time before the round of the stop. Any thread.
 */
static inline void gn_page_table_kernel_writes(struct gn_page_table *t)
{
    atomic_store_explicit(&t->kernel, true, memory_order_release);
}

/*
 * Before the first round: the destination already has this content of the page, because the page
 * came from there. content NULL: the destination has an unknown content. digest: computed by the
 * table's hasher; NULL: it is computed here. The last call for a page counts.
 */
void gn_page_table_has(struct gn_page_table *t, uint64_t page, const void *content,
                       const void *digest);

/* The length of page i: page_bytes, or less for the last one. */
static inline uint32_t gn_page_table_length(const struct gn_page_table *t, uint64_t page)
{
    uint64_t left = t->bytes - page * t->hasher->page_bytes;
    return left < t->hasher->page_bytes ? (uint32_t)left : t->hasher->page_bytes;
}

#endif
