/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_VERIFY_H
#define GN_MIGRATE_VERIFY_H

#include "migrate/page_table.h"
#include "migrate/page_sample.h"

/*
 * Decides which of 64 pages must be sent: the classes of gMig 3.3.1, the filter of 3.3.2, the hash.
 * One group at a time, on any thread; different groups concurrently. It changes nothing in the
 * table but the host marks, which it takes. gn_verify_commit records the results in the table after
 * the pages have been sent.
 */

/*
 * Access to the content of a buffer. The engine's threads call the functions, concurrently if there
 * are several.
 */
struct gn_page_source {
    /*
     * The content itself, if this process can read it: a kernel may be writing it, except in the
     * stop round. NULL: read() is used.
     */
    const void *memory;
    /* Copies [offset, offset + n), which is inside the buffer, to dst. Returns 0 or -errno. */
    int (*read)(void *ctx, uint64_t offset, void *dst, uint64_t n);
    /*
     * For memory that is not the host's (gMig 5.1): the digests of n_pages whole pages (and the
     * buffer's short last one) by the table's own hasher, computed on the device. NULL: the pages
     * are read and hashed on the CPU. Returns 0; or -errno, and the remaining pages of this round
     * are hashed on the CPU. Used from the second round on: in the first round all pages cross the
     * bus anyway.
     */
    int (*digest)(void *ctx, uint64_t first_page, uint64_t n_pages, void *ret);
    void *ctx;
};

enum gn_round_kind {
    GN_ROUND_LIVE, /* pre-copy: kernels continue to write */
    GN_ROUND_STOP, /* no thread or kernel writes any more */
};

struct gn_verify_stats {
    uint64_t pages; /* pages examined: all of the round's buffers */
    /* Neither the host nor a kernel can have written the page: not even read. */
    uint64_t skipped;
    uint64_t unseen;     /* sent for the first time, or without a digest to compare with */
    uint64_t host;       /* sent without hashing: the host wrote it (T_d) */
    uint64_t sampled;    /* sent because its sample differs */
    uint64_t hashed;     /* hashed and compared (T_h) */
    uint64_t device;     /* hashed by the device */
    uint64_t missed;     /* hashed and changed: the sample had not detected it */
    uint64_t clean;      /* hashed and unchanged */
    uint64_t zero;       /* pages sent as zeros, without content */
    uint64_t read_bytes; /* content read by the source's read() */
    uint64_t verify_ns, hash_ns, sample_ns; /* Time of the thread: in total; hashing; sampling. */
};

/*
 * One group under verification. The owner provides `staging` with room for 64 pages and uses a slot
 * for one group at a time.
 */
struct gn_verify_slot {
    unsigned char *staging;

    /* written by gn_verify_group */

    /* Content of the group's page 0: staging, or the source's memory. */
    const unsigned char *content;
    uint64_t send, zero; /* bits: pages to send; pages of these that are zeros */
    uint64_t known;      /* pages of `send` with the digest of `content` below */
    /* Pages of `known` with a digest and sample that go into the table. */
    uint64_t hashed;
    unsigned char digests[GN_PAGE_GROUP * GN_PAGE_DIGEST_MAX];
    struct gn_page_sample samples[GN_PAGE_GROUP];
    struct gn_verify_stats stats;
    struct gn_sample_batch batch; /* n_pages 0: nothing to record */
};

struct gn_verify_how {
    enum gn_round_kind kind;
    enum gn_sample_place place;
    bool look;
    /* From source->digest for the group's pages, or NULL. */
    const unsigned char *device_digests;
};

/*
 * Verifies group g of t. Returns 0, or the source's error; then the marks that were taken are set
 * again.
 */
int gn_verify_group(struct gn_page_table *t, const struct gn_page_source *source, uint64_t g,
                    const struct gn_verify_how *how, struct gn_verify_slot *slot);
/* The slot's pages have been sent: records them in the table. */
void gn_verify_commit(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);
/* The slot's pages have not been sent, or that is unknown: marks them as unsent. */
void gn_verify_undo(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);

void gn_verify_stats_add(struct gn_verify_stats *sum, const struct gn_verify_stats *s);

#endif
