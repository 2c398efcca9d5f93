/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_H
#define GN_SIM_H

#include "sim/waits.h"
#include "sim/workload.h"

/*
 * The scheduler of src/sched, unchanged, on a workload in virtual time. docs/sim.md has the model.
 * One thread at a time; nothing is shared between runs. The same workload and seed give the same
 * result, but for what is measured on the real clock.
 */
struct gn_sim_usage {
    uint32_t n_vgpus;
    uint64_t used_ns; /* of devices: kernels' time */
    uint64_t kernels; /* that ended */
    uint64_t turns;   /* grants of a device */
    uint64_t left;    /* kernels that were launched on a schedule and did not begin */
    /* Until the device was granted, one for each time that it was waited for; the longest also of
     * those who wait at the end. */
    struct gn_sim_waits waits;
};

struct gn_sim_tenant_result { /* all copies of a tenant */
    struct gn_sim_usage usage;
    double share, entitled; /* of all devices' time */
    double least_ratio,
        most_ratio; /* of a copy: what it got of what it was entitled to; -1: to nothing */
};

struct gn_sim_device_result {
    uint64_t busy_ns;
    uint64_t wasted_ns; /* held without work while somebody waited */
    uint64_t turns;
    uint32_t n_vgpus; /* that came to it */
};

/* Calls of the scheduler, and what they took on the real clock where that was measured. */
struct gn_sim_decisions {
    uint64_t n_picks, n_yields, n_wakes;
    uint64_t clock_ns; /* of all of them, without what reading the clock takes; 0: not measured */
};

struct gn_sim_result {
    const struct gn_sched_policy *policy;
    uint64_t time_ns;
    struct gn_sim_usage all;
    struct gn_sim_tenant_result *tenants; /* as the workload's */
    struct gn_sim_usage *programs;        /* as the workload's */
    struct gn_sim_device_result *devices; /* as many as the workload's */
    uint32_t n_tenants, n_programs, n_devices;
    double fairness; /* the least ratio of a tenant over the greatest; -1: there is none */
    struct gn_sim_decisions decisions;
};

/* The workload is finished (gn_sim_workload_finish). measure: on the real clock, too. 0 or -ENOMEM.
 */
int gn_sim_run(const struct gn_sim_workload *w, const struct gn_sched_policy *policy, bool measure,
               struct gn_sim_result *ret, struct gn_error *err);
void gn_sim_result_fini(struct gn_sim_result *r);

/* What a decision costs beside so many vGPUs of as many tenants on one device, half of which always
 * have work. */
int gn_sim_cost(const struct gn_sched_policy *policy, uint32_t n_vgpus,
                struct gn_sim_decisions *ret, struct gn_error *err);

#endif
