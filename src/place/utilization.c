/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `utilization`: DymGPU's utilization-based allocation (III.A, III.B). Sorted by their use of the
 * device in the last 20 seconds, the busiest first, vGPUs are placed from the left while no slot is
 * shared. All others go flush right. Placed anew every 20 seconds, and when a vGPU comes, goes or
 * becomes idle.
 *
 * place.c calls it through struct gn_place_policy, on the thread that owns the struct gn_place. It
 * never looks at sizes.
 */
#include "place/place_internal.h"

#define PERIOD_NS UINT64_C(20000000000)

static bool is_busier(const struct gn_place *p, const struct gn_place_vgpu *a,
                      const struct gn_place_vgpu *b)
{
    return gn_place_utilization(a, p->now_ns) > gn_place_utilization(b, p->now_ns);
}

static void rearrange(struct gn_place *p)
{
    struct gn_list sorted;
    uint32_t left = 0;
    bool alone = true;
    gn_place_list_awake(p, &sorted);
    gn_place_sort(p, &sorted, is_busier);
    gn_list_for_each(v, &sorted, struct gn_place_vgpu, sorted)
    {
        alone = alone && v->n_chunks <= p->n_slots - left;
        v->candidate_slot = alone ? left : p->n_slots - v->n_chunks;
        left += alone ? v->n_chunks : 0;
    }
    gn_place_commit(p, &sorted);
}

static void added(struct gn_place *p, struct gn_place_vgpu *v)
{
    (void)v;
    rearrange(p);
}

static void removed(struct gn_place *p, struct gn_place_vgpu *v)
{
    v->first_slot = GN_PLACE_NOWHERE;
    rearrange(p);
}

const struct gn_place_policy gn_place_utilization_policy = {
    .name = "utilization",
    .about = "the busiest vGPUs alone, by their last 20 s (DymGPU, utilization-based)",
    .addressed = true,
    .period_ns = PERIOD_NS,
    .added = added,
    .removed = removed,
    .rearrange = rearrange,
    .plan = gn_place_plan_addressed,
};
