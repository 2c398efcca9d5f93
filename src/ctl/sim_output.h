/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_SIM_OUTPUT_H
#define GN_CTL_SIM_OUTPUT_H

#include "ctl/ctl.h"
#include "sim/sim.h"

/* The results of `gantry sim`: a workload, and one run of it per policy. */
#define GN_CTL_COSTS 4

struct gn_ctl_simulated {
    const struct gn_sim_workload *w;
    struct gn_sim_result runs[GN_SIM_MAX_POLICIES];
    uint32_t n_runs;
    /* with --cost: costs[i][j] is the cost of policy i with cost_vgpus[j] vGPUs */
    bool cost;
    uint32_t cost_vgpus[GN_CTL_COSTS];
    struct gn_sim_decisions costs[GN_SIM_MAX_POLICIES][GN_CTL_COSTS];
};

/* Tables and a picture on stdout. 0 or -ENOMEM. */
int gn_ctl_sim_print(const struct gn_ctl_simulated *s);
/* A new reference, or NULL: no memory. */
json_t *gn_ctl_sim_json(const struct gn_ctl_simulated *s);

/* The time of one decision, in nanoseconds of the real clock. */
double gn_ctl_sim_cost(const struct gn_sim_decisions *d);

#endif
