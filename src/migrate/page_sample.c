/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of pages and the choice whether to use them. Pure arithmetic, called by a round's threads (the choice under
 * their lock).
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
    switch (place) {
    case GN_SAMPLE_HEAD:
        memcpy(&sample, p, n_bytes);
        break;
    case GN_SAMPLE_TAIL:
        memcpy(&sample, p + n - n_bytes, n_bytes);
        break;
    default:
        for (unsigned i = 0; i < n_bytes; i++)
            sample |= (uint32_t)p[(2 * i + 1) * n / (2 * n_bytes)] << 8 * i;
    }
    return sample;
}

struct gn_page_sample gn_page_sample_take(unsigned n_bytes, const void *page, size_t n)
{
    struct gn_page_sample s;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++)
        s.at[i] = gn_page_sample_at(i, n_bytes, page, n);
    return s;
}

/* Before anything was measured, in parts of a page's hash. */
#define SAMPLE_COST 0.06
#define HASHED_COST 1.2
/* Sampling has to promise this part of a page's hash: a choice at the border is noise, and to leave the one way for the other costs
 * something itself (the processor reads ahead anew). */
#define LEAST_GAIN 0.1
/* The first batches find nothing in the caches, and nothing read ahead: one alone would make hashing look dearer than it is. */
#define KNOWN_AFTER 3u
/* A look at many changed pages takes a quarter of the time of the batch that it looks over: the longer nothing has come of any, the rarer.
 */
#define LOOK_EVERY_FIRST 8u
#define LOOK_EVERY_LAST  64u
#define LOOK_EVERY_ON    64u
/* A trial that did not pay is repeated after so many batches, then after twice as many, for what made it dear may have passed. */
#define RETRY_FIRST 64u
#define RETRY_LAST  4096u

void gn_sample_choice_init(struct gn_sample_choice *c)
{
    memset(c, 0, sizeof *c);
    c->retry_after = RETRY_FIRST;
    c->look_every = LOOK_EVERY_FIRST;
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

static void add(struct gn_sample_cost *cost, double ns)
{
    cost->ns[cost->n++ % GN_SAMPLE_RECENT] = ns;
}

/* What a page saves on average. */
static double gain(const struct gn_sample_choice *c, enum gn_sample_place i, double hash_ns)
{
    double detour = median(&c->hashed, HASHED_COST * hash_ns) - hash_ns;
    return c->hit_rate[i] * hash_ns - median(&c->sample[i], SAMPLE_COST * hash_ns) - (detour > 0 ? (1 - c->hit_rate[i]) * detour : 0);
}

enum gn_sample_place gn_sample_choose(struct gn_sample_choice *c, bool *ret_look)
{
    enum gn_sample_place best = GN_SAMPLE_OFF;
    unsigned batch = c->batches++;
    *ret_look = true;
    if (c->hash.n < KNOWN_AFTER)
        return GN_SAMPLE_OFF;
    double hash_ns = median(&c->hash, 0), best_gain = LEAST_GAIN * hash_ns;
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++) {
        double g = gain(c, i, hash_ns);
        if (c->hit_rate[i] > 0 && g > best_gain) {
            best = i;
            best_gain = g;
        }
    }
    /* Now and then without, to see what the other places would have told and what a hash costs. */
    if (best != GN_SAMPLE_OFF && batch % LOOK_EVERY_ON == LOOK_EVERY_ON - 1)
        return GN_SAMPLE_OFF;
    *ret_look = best == GN_SAMPLE_OFF && batch % c->look_every == c->look_every - 1;
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

void gn_sample_note(struct gn_sample_choice *c, const struct gn_sample_batch *b)
{
    if (b->place == GN_SAMPLE_OFF) {
        if (b->n_hashed)
            add(&c->hash, (double)b->hash_ns / b->n_hashed);
        note_unused(c);
        if (b->looked && b->hits[GN_SAMPLE_HEAD] + b->hits[GN_SAMPLE_TAIL] + b->hits[GN_SAMPLE_SPREAD] && c->hash.n > KNOWN_AFTER &&
            c->look_every < LOOK_EVERY_LAST)
            c->look_every *= 2;
    } else {
        add(&c->sample[b->place], (double)b->sample_ns / b->n_pages);
        if (b->n_hashed >= 8)
            add(&c->hashed, (double)b->hash_ns / b->n_hashed);
        c->unused = 0;
        if (++c->in_use >= RETRY_FIRST / 4) {
            c->retry_after = RETRY_FIRST;
            c->look_every = LOOK_EVERY_FIRST;
        }
    }
    for (enum gn_sample_place i = 0; i < GN_SAMPLE_PLACES; i++) {
        if (b->looked || b->place == i)
            c->hit_rate[i] += ((double)b->hits[i] / b->n_pages - c->hit_rate[i]) / 2;
    }
}
