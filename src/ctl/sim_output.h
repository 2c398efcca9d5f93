/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_SIM_OUTPUT_H
#define GN_CTL_SIM_OUTPUT_H

#include "ctl/ctl.h"
#include "sim/sim.h"

/* What `gantry sim` shows: a workload, and a run of it under each of its policies. */
#define GN_CTL_COSTS 4

struct gn_ctl_simulated {
    const struct gn_sim_workload *w;
    struct gn_sim_result runs[GN_SIM_MAX_POLICIES];
    uint32_t n_runs;
    /* --cost: of the i-th policy beside so many vGPUs. */
    bool cost;
    uint32_t cost_vgpus[GN_CTL_COSTS];
    struct gn_sim_decisions costs[GN_SIM_MAX_POLICIES][GN_CTL_COSTS];
};

/* Tables and a picture on stdout. 0 or -ENOMEM. */
int gn_ctl_sim_print(const struct gn_ctl_simulated *s);
/* A new reference, or NULL: memory is out. */
json_t *gn_ctl_sim_json(const struct gn_ctl_simulated *s);

/* Nanoseconds of the real clock. */
double gn_ctl_sim_cost(const struct gn_sim_decisions *d);

#endif
