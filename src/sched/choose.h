/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_CHOOSE_H
#define GN_SCHED_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/* Chooses the device for a new vGPU: the least loaded one. Weights are those of tenants, each
 * counted once on a device however many vGPUs the tenant has there, because the newcomer shares the
 * device with tenants. Pure. */
struct gn_sched_load {
    uint64_t busy_weights; /* of tenants that use the device, or are about to */
    uint64_t weights;      /* of all tenants with a vGPU there */
    uint32_t n;            /* vGPUs */
};

/* Compares first the busy weights, then all weights, then the number of vGPUs. False for equal
 * loads: the earlier device is taken. */
bool gn_sched_less_loaded(const struct gn_sched_load *a, const struct gn_sched_load *b);

#endif
