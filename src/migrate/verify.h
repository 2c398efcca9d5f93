/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_VERIFY_H
#define GN_MIGRATE_VERIFY_H

#include "migrate/page_table.h"
#include "migrate/page_sample.h"

/*
 * Which of 64 pages have to be sent: the classes of gMig 3.3.1, the filter of 3.3.2, the hash. One
 * group at a time, on any thread; different groups at once. Nothing of the table is changed but the
 * host's marks, which are taken: what was found is put into the table by gn_verify_commit, when it
 * has been sent.
 */

/* How the content of a buffer is come by. The functions are called by the engine's threads, several
 * at once when it has several. */
struct gn_page_source {
    /* The content itself, where this process can look at it: bytes that a kernel may be writing at
     * the moment, except in the round that stops. NULL: read() is asked. */
    const void *memory;
    /* Copies [offset, offset + n), inside the buffer, to dst. 0 or -errno. */
    int (*read)(void *ctx, uint64_t offset, void *dst, uint64_t n);
    /*
     * Where the memory is not the host's (gMig 5.1): the digests of n_pages whole pages (and the
     * buffer's short last one) by the table's own hasher, worked out on the device. NULL: the pages
     * are read and hashed here. 0; or -errno, then the rest of this round's are hashed here. Used
     * from the second round on: in the first all pages cross the bus anyway.
     */
    int (*digest)(void *ctx, uint64_t first_page, uint64_t n_pages, void *ret);
    void *ctx;
};

enum gn_round_kind {
    GN_ROUND_LIVE, /* pre-copy: kernels go on writing */
    GN_ROUND_STOP, /* nothing writes any more */
};

struct gn_verify_stats {
    uint64_t pages;      /* looked at: all of the round's buffers */
    uint64_t skipped;    /* neither the host nor a kernel can have written it: not even read */
    uint64_t unseen;     /* sent for the first time, or without a digest to compare with */
    uint64_t host;       /* sent without hashing: the host wrote it (T_d) */
    uint64_t sampled;    /* sent because its sample differs */
    uint64_t hashed;     /* hashed and compared (T_h) */
    uint64_t device;     /* of these, by the device */
    uint64_t missed;     /* of these, changed: the sample had not told */
    uint64_t clean;      /* of these, unchanged */
    uint64_t zero;       /* of the pages sent, those that are named instead */
    uint64_t read_bytes; /* of the content, by the source's read() */
    uint64_t verify_ns, hash_ns, sample_ns; /* of the thread: all of it; hashing; sampling */
};

/* One group being verified. The owner gives `staging` room for 64 pages and uses a slot for one
 * group at a time. */
struct gn_verify_slot {
    unsigned char *staging;

    /* by gn_verify_group */
    const unsigned char *content; /* of the group's page 0: staging, or the source's memory */
    uint64_t send, zero;          /* bits: to be sent; of these, zeros */
    uint64_t known;               /* of `send`: the digest below is that of `content` */
    uint64_t hashed;              /* of `known`: it goes into the table with the sample below */
    unsigned char digests[GN_PAGE_GROUP * GN_PAGE_DIGEST_MAX];
    struct gn_page_sample samples[GN_PAGE_GROUP];
    struct gn_verify_stats stats;
    struct gn_sample_batch batch; /* n_pages 0: nothing to note */
};

struct gn_verify_how {
    enum gn_round_kind kind;
    enum gn_sample_place place;
    bool look;
    /* From source->digest for the group's pages, or NULL. */
    const unsigned char *device_digests;
};

/* Group g of t. 0, or what the source said; then the marks that were taken are set again. */
int gn_verify_group(struct gn_page_table *t, const struct gn_page_source *source, uint64_t g,
                    const struct gn_verify_how *how, struct gn_verify_slot *slot);
/* What the slot says has been sent: the table knows it from now on. */
void gn_verify_commit(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);
/* It has not, or nobody knows: the slot's pages are unsent. */
void gn_verify_undo(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);

void gn_verify_stats_add(struct gn_verify_stats *sum, const struct gn_verify_stats *s);

#endif
