/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_ENTITLE_H
#define GN_SIM_ENTITLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Computes the part of a device that each tenant is entitled to, next to others: in proportion to
 * weights, at least `least`, at most `most`. The part that one tenant does not use goes to the
 * others. 1 is the whole device. Pure.
 */
struct gn_sim_claim {
    double weight;
    double least, most; /* least <= most <= 1; the sum of all `least` is at most 1 */
    double part;        /* the result */
    bool fixed;         /* internal */
};

void gn_sim_entitle(struct gn_sim_claim *claims, uint32_t n);

#endif
