/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `turn`, the default: Gantry's own policy. OpenCL has no addresses, so a chunk may have any slot,
 * and slots are counted only. They come from the vGPU whose next turn is furthest away: with
 * perfect knowledge that is the best possible choice (Belady).
 *
 * place.c calls it through struct gn_place_policy, on the thread that owns the struct gn_place. It
 * never sets an address.
 */
#include "place/place_internal.h"

/*
 * Compares the times of two vGPUs' next turns. One that has work is in line, and comes before one
 * that is expected to want a turn later: that is when its last turn ended, and its mean pause.
 */
static bool is_later(const struct gn_place_vgpu *a, const struct gn_place_vgpu *b)
{
    if (a->ready != b->ready)
        return b->ready;
    const uint64_t next_a = a->ready ? a->ready_ns : a->used_ns + a->gap_ns;
    const uint64_t next_b = b->ready ? b->ready_ns : b->used_ns + b->gap_ns;
    if (next_a != next_b)
        return next_a > next_b;
    return a->sequence > b->sequence;
}

/* With periods, the vGPU that has used most by its weight is the first that loses its slots. */
static bool is_better_victim(const struct gn_place *p, const struct gn_place_vgpu *a,
                             const struct gn_place_vgpu *b)
{
    const int64_t ahead = (int64_t)(a->period_tag - b->period_tag);
    return p->swap_share && ahead ? ahead > 0 : is_later(a, b);
}

/*
 * The order of victims: vGPUs that cannot work because a part of their memory has left, idle ones,
 * chunks that are not needed, then all. Without periods the rest of an evicted vGPU is of use: its
 * next turn copies less.
 */
enum order { IN_PART, IDLE, UNNEEDED, BY_TURN, N_ORDERS };

static bool matches(const struct gn_place_vgpu *v, enum order order)
{
    return order == IN_PART ? !gn_place_is_resident(v) : order == IDLE ? v->idle : true;
}

/* Has the plan n free slots, beside those that are withheld? */
static bool has_free(const struct gn_place *p, const struct gn_place_plan *plan, uint32_t n)
{
    return !n || p->n_free + plan->n_out >= n + p->n_withheld;
}

/* Takes chunks of one vGPU, the last ones first, until the plan has n free slots. */
static void take_from(struct gn_place *p, struct gn_place_plan *plan, struct gn_place_vgpu *v,
                      enum order order, uint32_t n)
{
    const struct gn_chunk_set cold = gn_chunk_minus(&v->occupied, &v->needs);
    const struct gn_chunk_set *from = order == UNNEEDED ? &cold : &v->occupied;
    for (uint32_t k = v->n_chunks; k-- && !has_free(p, plan, n);)
        if (gn_chunk_has(from, k))
            (void)gn_place_take(p, plan, v, k);
}

bool gn_place_take_any(struct gn_place *p, struct gn_place_plan *plan, uint32_t n)
{
    struct gn_list sorted;
    if (has_free(p, plan, n))
        return true;
    gn_list_init(&sorted);
    gn_list_for_each(v, &p->occupying, struct gn_place_vgpu, occupying)
    {
        gn_list_append(&sorted, &v->sorted);
    }
    gn_place_sort(p, &sorted, is_better_victim);
    for (enum order order = p->swap_share ? IN_PART : IDLE; order < N_ORDERS; order++) {
        gn_list_for_each(v, &sorted, struct gn_place_vgpu, sorted)
        {
            if (has_free(p, plan, n))
                return true;
            if (matches(v, order) && (v != plan->vgpu || order == UNNEEDED))
                take_from(p, plan, v, order, n);
        }
    }
    return has_free(p, plan, n);
}

static bool plan(struct gn_place *p, struct gn_place_vgpu *v, struct gn_place_plan *ret)
{
    ret->in = gn_chunk_minus(&v->needs, &v->occupied);
    return gn_place_take_any(p, ret, gn_chunk_count(&ret->in));
}

static void nothing(struct gn_place *p, struct gn_place_vgpu *v)
{
    (void)p;
    (void)v;
}

const struct gn_place_policy gn_place_turn_policy = {
    .name = "turn",
    .about = "slots of the vGPU whose next turn is furthest away (Gantry's own)",
    .added = nothing,
    .removed = nothing,
    .plan = plan,
};
