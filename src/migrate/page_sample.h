/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PAGE_SAMPLE_H
#define GN_MIGRATE_PAGE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The filter before the hash (gMig 3.3.2): a sample of a few bytes of a page as it was sent. A page
 * with a different sample has changed and need not be hashed; an equal sample proves nothing, so
 * the page is hashed. Samples are recorded in all three places of the paper, so that the
 * verification can choose which place to compare, if any.
 */
enum gn_sample_place {
    GN_SAMPLE_HEAD,   /* the first bytes of the page */
    GN_SAMPLE_TAIL,   /* the last */
    GN_SAMPLE_SPREAD, /* single bytes, from the middles of equal parts */
    GN_SAMPLE_PLACES,
    GN_SAMPLE_OFF = GN_SAMPLE_PLACES,
    /*
     * Only behind a changed page, in a place that detected that page: the pages that programs write
     * are often adjacent.
     */
    GN_SAMPLE_RUNS,
    GN_SAMPLE_AUTO, /* in options only: use gn_sample_choose */
};

struct gn_page_sample {
    uint32_t at[GN_SAMPLE_PLACES];
};

/*
 * n_bytes: 1, 2 or 4. n: the length of the page, at least 1; a page that is shorter than a sample
 * is sampled whole.
 */
uint32_t gn_page_sample_at(enum gn_sample_place place, unsigned n_bytes, const void *page,
                           size_t n);
struct gn_page_sample gn_page_sample_take(unsigned n_bytes, const void *page, size_t n);

/*
 * Decides whether to sample and where, from recent costs and hit rates. Pages come in batches. In
 * some batches without sampling, each page that has changed is examined while it is in the cache:
 * would a sample have detected it, and the page behind it? So the hit rate is known without the
 * cost of sampling. Pure: times are arguments. Not thread-safe.
 */
/*
 * A recent cost: the median of the last few measurements, so that a single outlier does not count
 * (the thread may have been preempted).
 */
#define GN_SAMPLE_RECENT 5u
struct gn_sample_cost {
    double ns[GN_SAMPLE_RECENT];
    unsigned n; /* number of measurements so far */
};

struct gn_sample_choice {
    struct gn_sample_cost hash; /* cost of a hashed page if all are hashed */
    /* Cost of a hashed page among pages that are not hashed: the prefetcher works less well. */
    struct gn_sample_cost hashed;
    struct gn_sample_cost sample[GN_SAMPLE_PLACES];
    double hit_rate[GN_SAMPLE_PLACES]; /* fraction of the verified pages that a sample detects */
    unsigned n_rated;
    /*
     * Pages behind a page that a sample detected, and the number of these that the sample detected
     * too. Recent pages count most.
     */
    double behind, told_behind;
    unsigned batches, in_use; /* in_use: consecutive batches with sampling */
    /* Batches without sampling since the costs of sampling were last measured, and their limit. */
    unsigned unused, retry_after;
};

struct gn_sample_batch {
    enum gn_sample_place place; /* as chosen */
    bool looked;                /* place is OFF, but hits were counted */
    uint32_t n_pages;           /* verified, at least 1 */
    uint32_t n_hashed;
    /*
     * If looked or RUNS: also counts the changed pages that were hashed; else only sampled pages.
     */
    uint32_t hits[GN_SAMPLE_PLACES];
    uint32_t behind, told_behind; /* If looked or RUNS: as in struct gn_sample_choice. */
    uint64_t sample_ns, hash_ns;
};

void gn_sample_choice_init(struct gn_sample_choice *c);
/* Chooses the place for the next batch. *ret_look: count hits (set only if OFF is chosen). */
enum gn_sample_place gn_sample_choose(struct gn_sample_choice *c, bool *ret_look);
void gn_sample_note(struct gn_sample_choice *c, const struct gn_sample_batch *b);

#endif
