/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the loads of devices (choose.h). Called by device_load.c and by the simulator. Pure. */
#include "sched/choose.h"

bool gn_sched_less_loaded(const struct gn_sched_load *a, const struct gn_sched_load *b)
{
    if (a->busy_weights != b->busy_weights)
        return a->busy_weights < b->busy_weights;
    if (a->weights != b->weights)
        return a->weights < b->weights;
    return a->n < b->n;
}
