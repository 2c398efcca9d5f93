/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_SAMPLE_H
#define GN_MIGRATE_PAGE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The filter before the hash (gMig 3.3.2): a few bytes of a page as it was sent. A page whose
 * sample differs has changed and need not be hashed; one whose sample is equal says nothing, and is
 * hashed. All three places of the paper are recorded, so that which one is looked at, if any, can
 * be chosen while verifying.
 */
enum gn_sample_place {
    GN_SAMPLE_HEAD,   /* the first bytes of the page */
    GN_SAMPLE_TAIL,   /* the last */
    GN_SAMPLE_SPREAD, /* single bytes in the middles of equal parts */
    GN_SAMPLE_PLACES,
    GN_SAMPLE_OFF = GN_SAMPLE_PLACES,
    GN_SAMPLE_RUNS, /* only behind a page that has changed, in a place that told it: what programs
                       write lies together */
    GN_SAMPLE_AUTO, /* in options only: what gn_sample_choose says */
};

struct gn_page_sample {
    uint32_t at[GN_SAMPLE_PLACES];
};

/* n_bytes: 1, 2 or 4. n: the page's, at least 1; a page that is shorter than a sample is sampled
 * whole. */
uint32_t gn_page_sample_at(enum gn_sample_place place, unsigned n_bytes, const void *page,
                           size_t n);
struct gn_page_sample gn_page_sample_take(unsigned n_bytes, const void *page, size_t n);

/*
 * Whether to sample, and where, by what it cost and what it found lately. Pages come in batches; in
 * some batches without sampling each page that is found to have changed is looked at while it is in
 * the cache: would a sample have told it, and the page behind it? So the chance is known without
 * paying for it. Pure: times are arguments. Not thread-safe.
 */
/* What something cost lately: the median of the last few counts, so that no single one does (the
 * thread may have lost its processor in it). */
#define GN_SAMPLE_RECENT 5u
struct gn_sample_cost {
    double ns[GN_SAMPLE_RECENT];
    unsigned n; /* ever */
};

struct gn_sample_choice {
    struct gn_sample_cost hash; /* a page hashed, when all are */
    struct gn_sample_cost
        hashed; /* a page hashed among pages that were not: the processor reads ahead less well */
    struct gn_sample_cost sample[GN_SAMPLE_PLACES];
    double hit_rate[GN_SAMPLE_PLACES]; /* of the pages verified, those that a sample tells */
    unsigned n_rated;
    double behind, told_behind; /* pages behind one that a sample told; of these, those that it
                                   told, too. The last ones count most */
    unsigned batches, in_use;   /* in_use: batches sampled in a row */
    unsigned unused,
        retry_after; /* batches that were not, since the costs of sampling were last measured */
};

struct gn_sample_batch {
    enum gn_sample_place place; /* as chosen */
    bool looked;                /* place is OFF, and hits were counted all the same */
    uint32_t n_pages;           /* verified, at least 1 */
    uint32_t n_hashed;
    uint32_t hits[GN_SAMPLE_PLACES]; /* looked, or RUNS: of all changed pages that were hashed, too;
                                        else of those sampled */
    uint32_t behind, told_behind;    /* looked, or RUNS: as in the choice */
    uint64_t sample_ns, hash_ns;
};

void gn_sample_choice_init(struct gn_sample_choice *c);
/* For the next batch. *ret_look: count hits (only when OFF is chosen). */
enum gn_sample_place gn_sample_choose(struct gn_sample_choice *c, bool *ret_look);
void gn_sample_note(struct gn_sample_choice *c, const struct gn_sample_batch *b);

#endif
