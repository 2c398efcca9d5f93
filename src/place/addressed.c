/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of policies with addresses (DymGPU II.A): chunk k of a vGPU lies in slot P_i + k, and
 * whatever another vGPU has there leaves. A rearrangement changes P_i at once; a chunk moves at its
 * vGPU's next use, so that a rearrangement causes no burst of copies.
 *
 * place.c calls it through struct gn_place_policy, on the thread that owns the struct gn_place. It
 * never changes an address.
 */
#include "place/place_internal.h"

/* True if chunk k has the slot that its address gives it. */
static bool is_at_home(const struct gn_place *p, const struct gn_place_vgpu *v, uint32_t k)
{
    const uint32_t s = v->first_slot + k;
    return s < p->n_slots && p->owner[s] == v && p->chunk[s] == k;
}

bool gn_place_plan_addressed(struct gn_place *p, struct gn_place_vgpu *v, struct gn_place_plan *ret)
{
    if (v->first_slot == GN_PLACE_NOWHERE) {
        ret->in = gn_chunk_minus(&v->needs, &v->occupied);
        return gn_place_take_any(p, ret, gn_chunk_count(&ret->in));
    }
    gn_chunk_for_each(k, &v->needs)
    {
        if (is_at_home(p, v, k))
            continue;
        const uint32_t s = v->first_slot + k;
        const bool occupied = gn_chunk_has(&v->occupied, k);
        struct gn_place_vgpu *there = p->owner[s];
        /* A chunk of its own that is needed, too, moves away itself, if its slot can be had. */
        const bool moves = there == v && gn_chunk_has(&v->needs, p->chunk[s]);
        const bool own = !there || moves || gn_place_take(p, ret, there, p->chunk[s]);
        /*
         * Where a reserve or a pinned chunk holds the slot, a chunk on the device stays there, and
         * another one takes any slot: OpenCL needs no addresses.
         */
        if (!own && occupied)
            continue;
        gn_chunk_add(&ret->in, k);
        if (occupied)
            gn_chunk_add(&ret->moved, k);
    }
    const uint32_t n_moved = gn_chunk_count(&ret->moved), n_in = gn_chunk_count(&ret->in);
    return gn_place_take_any(p, ret, n_in - n_moved);
}
