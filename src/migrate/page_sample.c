/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of pages, and the choice whether to use them. Pure arithmetic; a round's threads call it
 * (the choice under their lock). It never reads the clock.
 */
#include "migrate/page_sample.h"

#include <string.h>

uint32_t gn_page_sample_at(enum gn_sample_place place, unsigned n_bytes, const void *page, size_t n)
{
    const unsigned char *p = page;
    uint32_t sample = 0;
    if (n < n_bytes) {
        memcpy(&sample, p, n);
        return sample;
    }
    if (place != GN_SAMPLE_SPREAD)
        memcpy(&sample, place == GN_SAMPLE_HEAD ? p : p + n - n_bytes, n_bytes);
    for (unsigned i = 0; place == GN_SAMPLE_SPREAD && i < n_bytes; i++)
        sample |= (uint32_t)p[(2 * i + 1) * n / (2 * n_bytes)] << 8 * i;
    return sample;
}

struct gn_page_sample gn_page_sample_draw(unsigned n_bytes, const void *page, size_t n)
{
    struct gn_page_sample s;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++)
        s.at[i] = gn_page_sample_at(i, n_bytes, page, n);
    return s;
}

/* Assumed before the first measurement, in parts of a page's hash. */
#define SAMPLE_COST 0.06
#define HASHED_COST 1.2
/*
 * Sampling starts when it promises to save the first part of a page's hash, and continues while it
 * promises the second. A choice at the border would follow noise, and each switch has a cost (the
 * processor's prefetch starts anew).
 */
#define LEAST_GAIN    0.1
#define LEAST_GAIN_ON 0.03
/*
 * Sampling behind changed pages pays where it detects this part of those pages, however few they
 * are.
 */
#define RUNS_FROM 0.8
/*
 * In parts of a hash: a sample in a run, and the end of a run, where the processor's prefetch
 * starts anew.
 */
#define RUNS_COST     0.15
#define RUNS_END_COST 0.7
/* A rate from fewer pages is chance. Of more pages, the last batches weigh most. */
#define RUNS_KNOWN  32
#define RECENT_PART 0.125
/*
 * The first batches find cold caches and no prefetch: one alone would make hashing look more
 * expensive than it is.
 */
#define KNOWN_AFTER 3u
/* A batch that also looks at the samples of hashed pages costs an eighth more. */
#define LOOK_EVERY 16u
#define OFF_EVERY  64u
/*
 * A trial that did not pay is repeated after so many batches, then after twice as many, because the
 * cause of the cost may have passed.
 */
#define RETRY_FIRST 64u
#define RETRY_LAST  4096u

void gn_sample_choice_init(struct gn_sample_choice *c)
{
    memset(c, 0, sizeof *c);
    c->retry_after = RETRY_FIRST;
}

static double median(const struct gn_sample_cost *cost, double unknown)
{
    double v[GN_SAMPLE_RECENT];
    unsigned n = cost->n < GN_SAMPLE_RECENT ? cost->n : GN_SAMPLE_RECENT;
    if (n == 0)
        return unknown;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;
        for (; at > 0 && v[at - 1] > cost->ns[i]; at--)
            v[at] = v[at - 1];
        v[at] = cost->ns[i];
    }
    return v[(n - 1) / 2];
}

static void add_cost(struct gn_sample_cost *cost, double ns)
{
    cost->ns[cost->n++ % GN_SAMPLE_RECENT] = ns;
}

/* The extra cost of a hashed page when the pages before it were not hashed. */
static double prefetch_loss(const struct gn_sample_choice *c, double hash_ns)
{
    const double more = median(&c->hashed, HASHED_COST * hash_ns) - hash_ns;
    return more > 0 ? more : 0;
}

/* The time saved on one page, on average. */
static double gain(const struct gn_sample_choice *c, enum gn_sample_place i, double hash_ns)
{
    return c->hit_rate[i] * hash_ns - median(&c->sample[i], SAMPLE_COST * hash_ns) -
           (1 - c->hit_rate[i]) * prefetch_loss(c, hash_ns);
}

static bool may_take_runs(const struct gn_sample_choice *c)
{
    return c->behind >= RUNS_KNOWN && c->told_behind >= RUNS_FROM * c->behind;
}

/* Same as gain(), when samples are taken only in runs: behind a page that a sample detected. */
static double gain_in_runs(const struct gn_sample_choice *c, double hash_ns)
{
    const double reported = c->told_behind / c->behind;
    double most = 0;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++)
        most = c->hit_rate[i] > most ? c->hit_rate[i] : most;
    return most * hash_ns * (reported - RUNS_COST - (1 - reported) * RUNS_END_COST);
}

enum gn_sample_place gn_sample_choose(struct gn_sample_choice *c, bool *ret_look)
{
    enum gn_sample_place best = GN_SAMPLE_OFF;
    const unsigned batch = c->batches++;
    *ret_look = false;
    if (c->hash.n < KNOWN_AFTER)
        return GN_SAMPLE_OFF;
    const double hash_ns = median(&c->hash, 0);
    double best_gain = (c->in_use ? LEAST_GAIN_ON : LEAST_GAIN) * hash_ns;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++) {
        double g = gain(c, i, hash_ns);
        if (c->hit_rate[i] > 0 && g > best_gain) {
            best = i;
            best_gain = g;
        }
    }
    if (may_take_runs(c) && (best == GN_SAMPLE_OFF || gain_in_runs(c, hash_ns) > best_gain))
        best = GN_SAMPLE_RUNS;
    /*
     * Sometimes a batch without sampling, to measure the hit rates of the other places or the cost
     * of a hash.
     */
    if (best != GN_SAMPLE_OFF && batch % OFF_EVERY == OFF_EVERY - 1) {
        *ret_look = batch / OFF_EVERY % 2;
        return GN_SAMPLE_OFF;
    }
    *ret_look = best == GN_SAMPLE_OFF && batch % LOOK_EVERY == KNOWN_AFTER;
    return best;
}

static void note_unused(struct gn_sample_choice *c)
{
    c->in_use = 0;
    if (++c->unused < c->retry_after)
        return;
    c->unused = 0;
    c->retry_after = c->retry_after < RETRY_LAST ? 2 * c->retry_after : RETRY_LAST;
    c->hashed.n = 0;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++)
        c->sample[i].n = 0;
}

static void note_hits(struct gn_sample_choice *c, const struct gn_sample_batch *b)
{
    if (b->behind) { /* a batch without changes teaches nothing about changed pages */
        c->behind += b->behind - RECENT_PART * c->behind;
        c->told_behind += b->told_behind - RECENT_PART * c->told_behind;
    }
    const double part = 1. / ++c->n_rated > RECENT_PART ? 1. / c->n_rated : RECENT_PART;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++) {
        if (b->looked || b->place == i || b->place == GN_SAMPLE_RUNS)
            c->hit_rate[i] += part * ((double)b->hits[i] / b->n_pages - c->hit_rate[i]);
    }
}

void gn_sample_note(struct gn_sample_choice *c, const struct gn_sample_batch *b)
{
    if (b->place == GN_SAMPLE_OFF) {
        if (!b->looked)
            add_cost(&c->hash, (double)b->hash_ns / b->n_pages);
        note_unused(c);
    } else if (b->place < GN_SAMPLE_PLACES) {
        add_cost(&c->sample[b->place], (double)b->sample_ns / b->n_pages);
        if (b->n_hashed >= 8)
            add_cost(&c->hashed, (double)b->hash_ns / b->n_hashed);
        c->unused = 0;
        if (++c->in_use >= RETRY_FIRST / 4)
            c->retry_after = RETRY_FIRST;
    } else if (b->n_hashed == b->n_pages) {
        add_cost(&c->hash, (double)b->hash_ns / b->n_pages);
    }
    if (b->looked || b->place != GN_SAMPLE_OFF)
        note_hits(c, b);
}
