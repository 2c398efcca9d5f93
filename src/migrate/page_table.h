/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_TABLE_H
#define GN_MIGRATE_PAGE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "migrate/page_hash.h"
#include "migrate/page_sample.h"

/*
 * State of a buffer's pages during a migration: which of them the destination has, and the digests
 * that tell whether a page has changed since. gMig's sets (3.3.1), one bit for each page:
 *
 *   host    D_c: the host wrote the page (a write, copy or fill command, an
 *           unmapping) since a round last took the mark. Sent without hashing: T_d.
 *   kernel  the union of S_g: a kernel may have written the page at any time
 *           since the beginning. It is hashed and compared before it is sent
 *           again, unless the host wrote it too: T_h. A page in both sets is
 *           hashed as it is sent (H), because the digest must be that of the
 *           content that the destination has.
 *   sent    the destination has some content of the page. A page without this
 *           bit is sent without comparison.
 *   hashed  the digest is that of the content that was sent. A page that only
 *           the host writes is never hashed; if a kernel writes it later, it is
 *           sent once more without comparison.
 *
 * Pages form groups of 64, the bits of one word. The table of a buffer of n pages takes n *
 * (digest_bytes + 12.5) bytes.
 *
 * Threads: any thread may set marks at any time. Everything else belongs to the round in progress
 * (rounds.h) or, between rounds, to the thread that may start one.
 */
#define GN_PAGE_GROUP 64u

struct gn_page_table {
    /* set once */
    const struct gn_page_hasher *hasher;
    uint64_t bytes, n_pages, n_groups;
    unsigned sample_bytes;

    /* marks, set by any thread */
    _Atomic uint64_t *host, *kernel;
    _Atomic bool kernel_all; /* equivalent to all bits of `kernel` */

    /* owned by the round */

    /* Hash and compare all pages, even if no writer is known. Set by the caller between rounds. */
    bool doubts;
    uint64_t *sent, *hashed;
    unsigned char *digests; /* n_pages of hasher->digest_bytes */
    struct gn_page_sample *samples;
};

/*
 * For a buffer of `bytes`, all of it unsent. kernel_written: a kernel has written, or may have
 * written, into it before. sample_bytes: 1, 2 or 4. The caller owns the hasher, which must outlive
 * the table. Returns 0, -EINVAL (bytes is 0, sample_bytes), -EFBIG or -ENOMEM.
 */
int gn_page_table_create(const struct gn_page_hasher *hasher, uint64_t bytes, bool kernel_written,
                         unsigned sample_bytes, struct gn_page_table **ret);
/* NULL is allowed. No round may be using the table. */
void gn_page_table_destroy(struct gn_page_table *t);

/*
 * The host wrote [offset, offset + n), or may have written it (a region mapped for writing). Call
 * it when the write is complete: a round that reads the page between the mark and the end of the
 * write would take the old content for the final one. Ranges beyond the end are cut off. Any
 * thread; one atomic operation for each 64 pages.
 */
void gn_page_table_cpu_wrote(struct gn_page_table *t, uint64_t offset, uint64_t n);
/*
 * A kernel that may write there is going to run. Call it before the kernel is submitted, or at any
 * time before the stop round. For a whole buffer that is marked already it costs one load; for
 * ranges (sub-buffers) one load for each 64 pages.
 */
void gn_page_table_kernel_writes(struct gn_page_table *t, uint64_t offset, uint64_t n);

/*
 * Before the first round: the destination has this content of the page, because the content came
 * from there. content NULL: the content itself is not known here. digest: by the table's hasher;
 * NULL: it is computed here. If called again for a page, the last call counts.
 */
void gn_page_table_has(struct gn_page_table *t, uint64_t page, const void *content,
                       const void *digest);

/*
 * The destination has nothing any more (it was lost, or the migration failed): all pages are
 * unsent.
 */
void gn_page_table_forget(struct gn_page_table *t);

/* The length of page i: page_bytes, or less for the last one. */
static inline uint32_t gn_page_table_length(const struct gn_page_table *t, uint64_t page)
{
    uint64_t left = t->bytes - page * t->hasher->page_bytes;
    return left < t->hasher->page_bytes ? (uint32_t)left : t->hasher->page_bytes;
}

#endif
