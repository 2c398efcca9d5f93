/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_TABLE_H
#define GN_MIGRATE_PAGE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "migrate/page_hash.h"
#include "migrate/page_sample.h"

/*
 * What is known of a buffer's pages while it is being moved: which of them the destination has, and
 * by what to tell that one has changed since. gMig's sets (3.3.1), a bit a page:
 *
 *   host   D_c: the host wrote it (a write, copy or fill command, an unmapping) since a round last
 * took it. Sent without hashing: T_d. kernel the union of S_g: a kernel may have written it at any
 * time since the beginning. Hashed and compared before it is sent again, unless the host wrote it
 * too: T_h. A page in both is hashed as it is sent (H), because the digest must be that of the
 * content that the destination has. sent   the destination has some content of it. Without, it is
 * sent unseen. hashed the digest is that of the content that was sent. A page that only the host
 * writes is never hashed; when a kernel writes it later all the same, it is sent once more unseen.
 *
 * Pages go in groups of 64, the bits of one word. The table of a buffer of n pages takes n *
 * (digest_bytes + 12.5) bytes.
 *
 * Threads: marks may be made by any thread at any time. All else belongs to the round in progress
 * (rounds.h), or, between rounds, to whoever may start one.
 */
#define GN_PAGE_GROUP 64u

struct gn_page_table {
    /* set once */
    const struct gn_page_hasher *hasher;
    uint64_t bytes, n_pages, n_groups;
    unsigned sample_bytes;

    /* marks */
    _Atomic uint64_t *host, *kernel;
    _Atomic bool kernel_all; /* stands for all bits of `kernel` */

    /* the round's */
    bool doubts; /* all pages are hashed and compared, whoever is known to have written them; the
                    caller's, between rounds */
    uint64_t *sent, *hashed;
    unsigned char *digests; /* n_pages of hasher->digest_bytes */
    struct gn_page_sample *samples;
};

/*
 * For a buffer of `bytes`, all of it unsent. kernel_written: a kernel has, or may have, written
 * somewhere in it before now. sample_bytes: 1, 2 or 4. The hasher is the caller's and outlives the
 * table. 0, -EINVAL (bytes is 0, sample_bytes), -EFBIG or -ENOMEM.
 */
int gn_page_table_create(const struct gn_page_hasher *hasher, uint64_t bytes, bool kernel_written,
                         unsigned sample_bytes, struct gn_page_table **ret);
/* NULL is fine. No round may be using it. */
void gn_page_table_destroy(struct gn_page_table *t);

/*
 * The host wrote [offset, offset + n), or changed what it can only guess at (a region mapped for
 * writing). Called when the write is over: a round that reads the page between the mark and the end
 * of the write would take the old content for the last. Ranges beyond the end are cut off. Any
 * thread; one atomic operation a 64 pages.
 */
void gn_page_table_cpu_wrote(struct gn_page_table *t, uint64_t offset, uint64_t n);
/*
 * A kernel that may write there is going to run; called before it is submitted or at any time
 * before the round that stops. The whole buffer costs one load once it is marked; ranges
 * (sub-buffers) one load a 64 pages.
 */
void gn_page_table_kernel_writes(struct gn_page_table *t, uint64_t offset, uint64_t n);

/*
 * Before the first round: the destination has this content of the page, which came from there.
 * content NULL: that is all that is known of it. digest: by the table's hasher; NULL: it is worked
 * out here. Once a page holds the last of it.
 */
void gn_page_table_has(struct gn_page_table *t, uint64_t page, const void *content,
                       const void *digest);

/* The destination has nothing any more (it was lost, or the move failed): all is unsent. */
void gn_page_table_forget(struct gn_page_table *t);

/* The length of page i: page_bytes, or less for the last one. */
static inline uint32_t gn_page_table_length(const struct gn_page_table *t, uint64_t page)
{
    uint64_t left = t->bytes - page * t->hasher->page_bytes;
    return left < t->hasher->page_bytes ? (uint32_t)left : t->hasher->page_bytes;
}

#endif
