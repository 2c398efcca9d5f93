/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_CHOOSE_H
#define GN_SCHED_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Chooses the device for a new vGPU: the least loaded one. The weights are those of tenants. A
 * tenant counts once on a device however many vGPUs it has there, because a new vGPU shares the
 * device with tenants, not with vGPUs. Pure.
 */
struct gn_sched_load {
    uint64_t busy_weights; /* of tenants that work there, or are about to */
    uint64_t weights;      /* of all tenants that are there */
    uint32_t n;            /* number of vGPUs */
};

/*
 * True if `a` is less loaded than `b`. Compares the weights of working tenants first, then the
 * weights of present tenants, then the number of vGPUs. False if they are equal: the earlier device
 * wins.
 */
bool gn_sched_less_loaded(const struct gn_sched_load *a, const struct gn_sched_load *b);

#endif
