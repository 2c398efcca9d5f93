/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_SIM_OUTPUT_H
#define GN_CTL_SIM_OUTPUT_H

#include "ctl/ctl.h"
#include "sim/sim.h"

/* The results of `gantry sim`: a workload, and one run of it per policy and placement. */
#define GN_CTL_COSTS    4
#define GN_CTL_MAX_RUNS (GN_SIM_MAX_POLICIES * GN_SIM_MAX_PLACES)

struct gn_ctl_simulated {
    const struct gn_sim_workload *w;
    struct gn_sim_result runs[GN_CTL_MAX_RUNS];
    uint32_t n_runs;
    /* with --cost: costs[i][j] is the cost of run i's policy with cost_vgpus[j] vGPUs */
    bool cost;
    uint32_t cost_vgpus[GN_CTL_COSTS];
    struct gn_sim_decisions costs[GN_CTL_MAX_RUNS][GN_CTL_COSTS];
};

/* Writes the name of a run: its policy, its placement, or both. text has room for 48 bytes. */
char *gn_ctl_sim_name(const struct gn_ctl_simulated *s, uint32_t run, char *text);

/* Tables and a picture on stdout. 0 or -ENOMEM. */
int gn_ctl_sim_print(const struct gn_ctl_simulated *s);
/* A new reference, or NULL: no memory. */
json_t *gn_ctl_sim_json(const struct gn_ctl_simulated *s);

/* The time of one decision, in nanoseconds of the real clock. */
double gn_ctl_sim_cost(const struct gn_sim_decisions *d);

#endif
