/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each round shares out what is left by weight among those not fixed yet. Where that breaks bounds,
 * those are fixed at theirs that break them in the direction that weighs more: they would break
 * them in every later round too. So there are at most as many rounds as claims, and mostly two or
 * three.
 */
#include "sim/entitle.h"

static double clamped(const struct gn_sim_claim *c, double part)
{
    return part < c->least ? c->least : part > c->most ? c->most : part;
}

void gn_sim_entitle(struct gn_sim_claim *claims, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        claims[i].fixed = false;
    for (bool again = true; again;) {
        double left = 1, weights = 0, broken = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (claims[i].fixed)
                left -= claims[i].part;
            else
                weights += claims[i].weight;
        }
        if (left < 0)
            left = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct gn_sim_claim *c = &claims[i];
            if (c->fixed)
                continue;
            c->part = left * c->weight / weights;
            broken += clamped(c, c->part) - c->part;
        }
        again = false;
        for (uint32_t i = 0; i < n; i++) {
            struct gn_sim_claim *c = &claims[i];
            const double want = clamped(c, c->part);
            if (c->fixed || want == c->part)
                continue;
            if (broken == 0 || (broken > 0) == (want > c->part)) {
                c->part = want;
                c->fixed = again = true;
            }
        }
    }
}
