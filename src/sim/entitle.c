/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes entitlements in rounds. Each round distributes the rest by weight among the claims that
 * are not fixed yet. If that breaks bounds, the claims that break them in the direction with the
 * larger sum are fixed at their bounds, because they would break them in every later round too. So
 * there are at most as many rounds as claims, and usually two or three.
 *
 * world.c calls it on the thread of the run. It never allocates.
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
