/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_CHOOSE_H
#define GN_SCHED_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Which of several devices a new vGPU goes to: the least loaded one. Weights are tenants', each
 * counted once on a device however many vGPUs it has there, since that is what a newcomer has to
 * share with. Pure.
 */
struct gn_sched_load {
    uint64_t busy_weights; /* of tenants that work there, or are about to */
    uint64_t weights;      /* of all tenants that are there */
    uint32_t n;            /* vGPUs */
};

/* Those that work count first, then those that are there, then how many there are. False for
 * equals: the earlier device is taken. */
bool gn_sched_less_loaded(const struct gn_sched_load *a, const struct gn_sched_load *b);

#endif
