/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `first-fit`: gVirt's placement with gScale's slots, as DymGPU II.A describes it. A new vGPU gets
 * the contiguous slots of the lowest score; a slot adds a weight for each vGPU that has it, and the
 * leftmost minimum wins. An address never changes afterwards.
 *
 * DymGPU says only that the weight is added if a slot is occupied. It must count once for each
 * vGPU: with one weight a slot, the paper's figure 9 does not come out.
 *
 * place.c calls it through struct gn_place_policy, on the thread that owns the struct gn_place. It
 * never moves a vGPU.
 */
#include "place/place_internal.h"

static void added(struct gn_place *p, struct gn_place_vgpu *v)
{
    uint32_t users[GN_PLACE_MAX_SLOTS] = {0};
    uint32_t best = 0;
    uint64_t score = 0, least;
    gn_list_for_each(other, &p->vgpus, struct gn_place_vgpu, link)
    {
        for (uint32_t k = 0; other->first_slot != GN_PLACE_NOWHERE && k < other->n_chunks; k++)
            users[other->first_slot + k]++;
    }
    for (uint32_t s = 0; s < v->n_chunks; s++)
        score += users[s];
    least = score;
    for (uint32_t s = 1; s + v->n_chunks <= p->n_slots; s++) {
        score = score - users[s - 1] + users[s + v->n_chunks - 1];
        if (score < least) {
            least = score;
            best = s;
        }
    }
    v->first_slot = best;
}

/* gVirt has no idle vGPUs: one that has not ended keeps its place. */
static void removed(struct gn_place *p, struct gn_place_vgpu *v)
{
    (void)p;
    (void)v;
}

const struct gn_place_policy gn_place_first_fit = {
    .name = "first-fit",
    .about = "the least shared slots at creation, for good (gVirt)",
    .addressed = true,
    .added = added,
    .removed = removed,
    .plan = gn_place_plan_addressed,
};
