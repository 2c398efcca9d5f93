/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_ENTITLE_H
#define GN_SIM_ENTITLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a tenant is entitled to of a device beside others: parts in proportion to weights, at least
 * `least`, at most `most`; what one does not take is the others'. 1 is the whole device. Pure.
 */
struct gn_sim_claim {
    double weight;
    double least, most; /* least <= most <= 1; the sum of all `least` is at most 1 */
    double part;        /* the result */
    bool fixed;         /* used while reckoning */
};

void gn_sim_entitle(struct gn_sim_claim *claims, uint32_t n);

#endif
