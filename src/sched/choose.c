/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two devices as places for a new vGPU. gantryd's loop calls it to order the devices that
 * it offers to a program, and `gantry sim` for the programs that it simulates. It never reads
 * scheduler state: the caller fills both loads.
 */
#include "sched/choose.h"

bool gn_sched_less_loaded(const struct gn_sched_load *a, const struct gn_sched_load *b)
{
    if (a->busy_weights != b->busy_weights)
        return a->busy_weights < b->busy_weights;
    if (a->weights != b->weights)
        return a->weights < b->weights;
    return a->n < b->n;
}
