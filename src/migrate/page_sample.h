/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_SAMPLE_H
#define GN_MIGRATE_PAGE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The filter before the hash (gMig 3.3.2): a few bytes of a page as it was sent. A page with a
 * different sample has changed and is not hashed; a page with an equal sample is hashed. Samples of
 * all three places of the paper are recorded, so that the place can be chosen while verifying.
 */
enum gn_sample_place {
    GN_SAMPLE_HEAD,   /* the first bytes of the page */
    GN_SAMPLE_TAIL,   /* the last */
    GN_SAMPLE_SPREAD, /* single bytes in the middles of equal parts of the page */
    GN_SAMPLE_PLACES,
    GN_SAMPLE_OFF = GN_SAMPLE_PLACES,
    /*
     * only behind a changed page, in the place that detected the change: programs write adjacent
     * pages
     */
    GN_SAMPLE_RUNS,
    GN_SAMPLE_AUTO, /* in options only: the choice of gn_sample_choose */
};

struct gn_page_sample {
    uint32_t at[GN_SAMPLE_PLACES];
};

/*
 * n_bytes: 1, 2 or 4. n: the page's length, at least 1; a page that is shorter than a sample is
 * sampled whole.
 */
uint32_t gn_page_sample_at(enum gn_sample_place place, unsigned n_bytes, const void *page,
                           size_t n);
struct gn_page_sample gn_page_sample_draw(unsigned n_bytes, const void *page, size_t n);

/*
 * Chooses whether to sample, and in which place, by recent costs and hit rates. Pages come in
 * batches. In some batches without sampling, each page found changed is also sampled while it is in
 * the cache, to learn whether a sample would have detected it and the page behind it; so hit rates
 * are known at little cost. Pure: times are arguments. Not thread-safe.
 */
/*
 * A recent cost: the median of the last few measurements, so that a single outlier has no effect
 * (the thread may have been preempted during it).
 */
#define GN_SAMPLE_RECENT 5u
struct gn_sample_cost {
    double ns[GN_SAMPLE_RECENT];
    unsigned n; /* number of measurements ever */
};

struct gn_sample_choice {
    struct gn_sample_cost hash; /* of one page, when all are hashed */
    /*
     * of one page among pages that were not hashed: the processor's prefetch works less well there
     */
    struct gn_sample_cost hashed;
    struct gn_sample_cost sample[GN_SAMPLE_PLACES];
    double hit_rate[GN_SAMPLE_PLACES]; /* of the pages verified, the part that a sample detects */
    unsigned n_rated;
    /*
     * pages behind one that a sample detected; those of them that it detected too. Recent ones
     * weigh most
     */
    double behind, told_behind;
    unsigned batches, in_use; /* in_use: batches sampled in a row */
    unsigned unused,
        retry_after; /* batches without sampling since the costs of sampling were last measured */
};

struct gn_sample_batch {
    enum gn_sample_place place; /* as chosen */
    bool looked;                /* place is OFF, and hits were counted nevertheless */
    uint32_t n_pages;           /* verified, at least 1 */
    uint32_t n_hashed;
    /* looked, or RUNS: counts changed pages that were hashed, too; else only sampled ones */
    uint32_t hits[GN_SAMPLE_PLACES];
    uint32_t behind, told_behind; /* looked, or RUNS: as in gn_sample_choice */
    uint64_t sample_ns, hash_ns;
};

void gn_sample_choice_init(struct gn_sample_choice *c);
/* The place for the next batch. *ret_look: count hits (only when OFF is chosen). */
enum gn_sample_place gn_sample_choose(struct gn_sample_choice *c, bool *ret_look);
void gn_sample_note(struct gn_sample_choice *c, const struct gn_sample_batch *b);

#endif
