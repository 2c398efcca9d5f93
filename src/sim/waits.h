/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_WAITS_H
#define GN_SIM_WAITS_H

#include <stdint.h>

#include "sim/draw.h"

/*
 * Waiting times, counted in classes that are at most a 64th of their value wide: mean and longest
 * are exact, percentiles are within 1.6 %. Memory is bounded. A zeroed struct is empty.
 */
#define GN_SIM_WAIT_ROWS 59

struct gn_sim_waits {
    uint64_t n, longest_ns;
    gn_sim_wide sum_ns;
    uint64_t *rows[GN_SIM_WAIT_ROWS]; /* 64 counts each; NULL: all zero */
};

void gn_sim_waits_fini(struct gn_sim_waits *w);
/* Return 0 or -ENOMEM. */
int gn_sim_waits_add(struct gn_sim_waits *w, uint64_t ns);
int gn_sim_waits_merge(struct gn_sim_waits *to, const struct gn_sim_waits *from);
/* Returns 0 if there are none. */
uint64_t gn_sim_waits_mean(const struct gn_sim_waits *w);
/* Returns the value that `percent` of 100 waits do not exceed. */
uint64_t gn_sim_waits_percentile(const struct gn_sim_waits *w, unsigned percent);

#endif
