/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_H
#define GN_SIM_H

#include "sim/waits.h"
#include "sim/workload.h"

/*
 * Runs the unchanged scheduler of src/sched on a workload in virtual time. docs/sim.md describes
 * the model. One thread at a time; runs share nothing. The same workload and seed give the same
 * result, except for times measured on the real clock.
 */
struct gn_sim_usage {
    uint32_t n_vgpus;
    uint64_t used_ns; /* of devices: the kernels' time */
    uint64_t kernels; /* kernels that ended */
    uint64_t turns;   /* grants of a device */
    uint64_t left;    /* kernels that were launched on a schedule and did not begin */
    /* Of memory: swaps in, and the slots that were copied each way. */
    uint64_t swaps, copied_in, copied_out;
    /*
     * While one vGPU with work was evicted, the most swaps in of others; the same over its wait
     * bound.
     */
    uint64_t others_between;
    double of_wait_bound;
    /*
     * Time until the device was granted, one value for each wait. The longest value includes vGPUs
     * that still wait at the end.
     */
    struct gn_sim_waits waits;
};

struct gn_sim_tenant_result { /* all copies of a tenant */
    struct gn_sim_usage usage;
    double share, entitled; /* parts of all devices' time */
    /* Over its copies: received time divided by entitled time. -1: entitled to nothing. */
    double least_ratio, most_ratio;
};

struct gn_sim_device_result {
    uint64_t busy_ns;
    uint64_t wasted_ns; /* held without work while another vGPU waited */
    uint64_t turns;
    uint32_t n_vgpus;                      /* vGPUs that arrived at it */
    uint64_t swaps, copied_in, copied_out; /* swaps in; slots each way */
    uint64_t copying_ns;                   /* the time of all copies */
    uint64_t rearranged;                   /* how often addresses changed */
};

/* Calls of the scheduler, and their time on the real clock if it was measured. */
struct gn_sim_decisions {
    uint64_t n_picks, n_yields, n_wakes;
    uint64_t clock_ns; /* sum of all of them, without the time to read the clock; 0: not measured */
};

struct gn_sim_result {
    const struct gn_sched_policy *policy;
    const struct gn_place_policy *place; /* NULL: memory is not simulated */
    uint32_t n_slots;                    /* of a device */
    uint64_t slot_bytes;
    uint64_t time_ns;
    struct gn_sim_usage all;
    struct gn_sim_tenant_result *tenants; /* in the workload's order */
    struct gn_sim_usage *programs;        /* in the workload's order */
    struct gn_sim_device_result *devices; /* one for each device of the workload */
    uint32_t n_tenants, n_programs, n_devices;
    double fairness; /* the least ratio of a tenant divided by the greatest; -1: none */
    struct gn_sim_decisions decisions;
};

/*
 * The workload must be finished (gn_sim_workload_finish). place: ignored if devices have no memory.
 * measure: also measure on the real clock.
 * Returns 0, -ENOMEM, or -E2BIG if there are too many events.
 */
int gn_sim_run(const struct gn_sim_workload *w, const struct gn_sched_policy *policy,
               const struct gn_place_policy *place, bool measure, struct gn_sim_result *ret,
               struct gn_error *err);
void gn_sim_result_fini(struct gn_sim_result *r);

/*
 * Measures the cost of a decision with n_vgpus vGPUs of as many tenants on one device; half of them
 * always have work.
 */
int gn_sim_cost(const struct gn_sched_policy *policy, uint32_t n_vgpus,
                struct gn_sim_decisions *ret, struct gn_error *err);

#endif
