/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_VERIFY_H
#define GN_MIGRATE_VERIFY_H

#include "migrate/page_table.h"
#include "migrate/page_sample.h"

/*
 * Finds which of 64 pages have to be sent: the classes of gMig 3.3.1, the filter of 3.3.2, the
 * hash. One group at a time, on any thread; different groups at once. It changes nothing in the
 * table but the host's marks, which it clears; gn_verify_commit puts the result into the table when
 * the pages have been sent.
 */

/*
 * Access to a buffer's content. The engine's threads call the functions, several at once if the
 * engine has several.
 */
struct gn_page_source {
    /*
     * The content itself, where this process can read it: bytes that a kernel may be writing
     * meanwhile, except in the round of the stop. NULL: use read().
     */
    const void *memory;
    /* Copies [offset, offset + n), which is inside the buffer, to dst. Returns 0 or -errno. */
    int (*read)(void *ctx, uint64_t offset, void *dst, uint64_t n);
    /*
     * For memory that is not the host's (gMig 5.1): computes on the device the digests of n_pages
     * whole pages (and of the buffer's short last one), with the table's hasher. NULL: the pages
     * are read and hashed on the host. Returns 0, or -errno; then the rest of this round's pages
     * are hashed on the host. Used from the second round on: in the first, all pages cross the bus
     * anyway.
     */
    int (*digest)(void *ctx, uint64_t first_page, uint64_t n_pages, void *ret);
    void *ctx;
};

enum gn_round_kind {
    GN_ROUND_LIVE, /* pre-copy: kernels go on writing */
    GN_ROUND_STOP, /* no writer runs any more */
};

struct gn_verify_stats {
    uint64_t pages;      /* examined: all of the round's buffers */
    uint64_t skipped;    /* neither the host nor a kernel can have written it: not even read */
    uint64_t unseen;     /* sent for the first time, or for lack of a digest to compare with */
    uint64_t host;       /* sent without hashing: the host wrote it (T_d) */
    uint64_t sampled;    /* sent because its sample differs */
    uint64_t hashed;     /* hashed and compared (T_h) */
    uint64_t device;     /* of these, by the device */
    uint64_t missed;     /* of these, changed: the sample did not detect it */
    uint64_t clean;      /* of these, unchanged */
    uint64_t zero;       /* of the pages sent, zero pages, which are sent without data */
    uint64_t read_bytes; /* content read by the source's read() */
    uint64_t verify_ns, hash_ns; /* time of the thread: in total; for hashing */
};

/*
 * One group being verified. The owner provides `staging` for 64 pages and uses a slot for one group
 * at a time.
 */
struct gn_verify_slot {
    unsigned char *staging;

    /* set by gn_verify_group */
    /* the address of the group's page 0: in staging, or in the source's memory */
    const unsigned char *content;
    uint64_t send, zero; /* bits: to be sent; of these, zeros */
    uint64_t known;      /* of `send`: the digest below is the one of `content` */
    uint64_t hashed;     /* of `known`: commit stores it in the table with the sample below */
    unsigned char digests[GN_PAGE_GROUP * GN_PAGE_DIGEST_MAX];
    struct gn_page_sample samples[GN_PAGE_GROUP];
    struct gn_verify_stats stats;
    struct gn_sample_batch batch; /* n_pages 0: no measurement */
};

/* The pages of a group from the first one on, of which there are n, as bits; n is at least 1. */
static inline uint64_t gn_page_run(uint64_t first, uint64_t n)
{
    return UINT64_MAX >> (GN_PAGE_GROUP - n) << first;
}

/* The number of bits that are set in a row from `first` on, which is set. */
static inline uint64_t gn_page_run_length(uint64_t bits, uint64_t first)
{
    const uint64_t others = ~(bits >> first);
    return others ? (uint64_t)__builtin_ctzll(others) : GN_PAGE_GROUP;
}

struct gn_verify_how {
    enum gn_round_kind kind;
    enum gn_sample_place place;
    bool look;
    /* From source->digest for the group's pages, or NULL. */
    const unsigned char *device_digests;
};

/* Verifies group g of t. Returns 0, or the source's error; then the cleared marks are set again. */
int gn_verify_group(struct gn_page_table *t, const struct gn_page_source *source, uint64_t g,
                    const struct gn_verify_how *how, struct gn_verify_slot *slot);
/* Records in the table that the slot's pages have been sent. */
void gn_verify_commit(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);
/* Marks the slot's pages unsent: they have not been sent, or that is unknown. */
void gn_verify_undo(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot);

void gn_verify_stats_add(struct gn_verify_stats *sum, const struct gn_verify_stats *s);

#endif
