/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_WAITS_H
#define GN_SIM_WAITS_H

#include <stdint.h>

#include "sim/draw.h"

/*
 * Waiting times, counted in classes whose width is a 64th of their value at most: mean and longest
 * are exact, a percentile is right to 1.6 %. Memory is bounded whatever comes. Zeroed is empty.
 */
#define GN_SIM_WAIT_ROWS 59

struct gn_sim_waits {
    uint64_t n, longest_ns;
    gn_sim_wide sum_ns;
    uint64_t *rows[GN_SIM_WAIT_ROWS]; /* 64 counts each; NULL: nothing so far */
};

void gn_sim_waits_fini(struct gn_sim_waits *w);
/* 0 or -ENOMEM. */
int gn_sim_waits_add(struct gn_sim_waits *w, uint64_t ns);
int gn_sim_waits_merge(struct gn_sim_waits *to, const struct gn_sim_waits *from);
/* 0 when there are none. */
uint64_t gn_sim_waits_mean(const struct gn_sim_waits *w);
/* The value that so many in a hundred do not exceed. */
uint64_t gn_sim_waits_percentile(const struct gn_sim_waits *w, unsigned percent);

#endif
