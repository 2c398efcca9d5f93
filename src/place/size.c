/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `size`: DymGPU's size-based allocation (III.B). Sorted by size, the largest first, vGPUs are
 * placed from the left while no slot is shared. The next one, V_K, goes to the right end, and all
 * others to P_K, onto the L slots that V_K shares with the one before it. So few slots are shared.
 *
 * place.c calls it through struct gn_place_policy, on the thread that owns the struct gn_place. It
 * never looks at use, except that an idle vGPU counts as ended.
 */
#include <string.h>

#include "place/place_internal.h"

static bool is_larger(const struct gn_place *p, const struct gn_place_vgpu *a,
                      const struct gn_place_vgpu *b)
{
    (void)p;
    return a->n_chunks > b->n_chunks;
}

struct arrangement {
    struct gn_list sorted;
    uint32_t shared_slot, n_shared; /* P_K and L */
};

/* Places all vGPUs anew, as candidates. */
static void arrange(struct gn_place *p, struct arrangement *a)
{
    uint32_t left = 0;
    a->shared_slot = GN_PLACE_NOWHERE;
    a->n_shared = 0;
    gn_place_list_awake(p, &a->sorted);
    gn_place_sort(p, &a->sorted, is_larger);
    gn_list_for_each(v, &a->sorted, struct gn_place_vgpu, sorted)
    {
        if (a->shared_slot != GN_PLACE_NOWHERE) {
            v->candidate_slot = a->shared_slot;
        } else if (v->n_chunks <= p->n_slots - left) {
            v->candidate_slot = left;
            left += v->n_chunks;
        } else {
            v->candidate_slot = a->shared_slot = p->n_slots - v->n_chunks;
            a->n_shared = left - a->shared_slot;
        }
    }
}

static void commit(struct gn_place *p, const struct arrangement *a)
{
    gn_place_commit(p, &a->sorted);
    p->shared_slot = a->shared_slot;
    p->n_shared = a->n_shared;
}

/* Counts the vGPUs of each slot in the present arrangement, or in that of the candidates. */
static void count_users(const struct gn_place *p, bool candidates,
                        uint32_t users[GN_PLACE_MAX_SLOTS])
{
    memset(users, 0, GN_PLACE_MAX_SLOTS * sizeof *users);
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        const uint32_t first = candidates ? v->candidate_slot : v->first_slot;
        for (uint32_t k = 0; !v->idle && first != GN_PLACE_NOWHERE && k < v->n_chunks; k++)
            users[first + k]++;
    }
}

static uint32_t count_shared(const struct gn_place *p, bool candidates)
{
    uint32_t users[GN_PLACE_MAX_SLOTS], n = 0;
    count_users(p, candidates, users);
    for (uint32_t s = 0; s < p->n_slots; s++)
        n += users[s] > 1;
    return n;
}

/* Returns the first slot behind all vGPUs. */
static uint32_t find_end(const struct gn_place *p)
{
    uint32_t end = 0;
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        if (!v->idle && v->first_slot != GN_PLACE_NOWHERE && v->first_slot + v->n_chunks > end)
            end = v->first_slot + v->n_chunks;
    }
    return end;
}

/*
 * A new vGPU of at most L slots goes to P_K. For a larger one the paper compares the shared slots
 * with the vGPU at P_K and with all vGPUs placed anew; equal numbers move no vGPU. While no slot is
 * shared there is no P_K, and a vGPU for which there is room behind the others moves none either.
 */
static void added(struct gn_place *p, struct gn_place_vgpu *v)
{
    struct arrangement anew;
    const uint32_t end = find_end(p);
    if (p->shared_slot == GN_PLACE_NOWHERE && v->n_chunks <= p->n_slots - end) {
        v->first_slot = end;
        return;
    }
    if (p->shared_slot != GN_PLACE_NOWHERE && v->n_chunks <= p->n_slots - p->shared_slot)
        v->first_slot = p->shared_slot;
    if (v->first_slot != GN_PLACE_NOWHERE && v->n_chunks <= p->n_shared)
        return;
    arrange(p, &anew);
    if (v->first_slot == GN_PLACE_NOWHERE || count_shared(p, true) < count_shared(p, false))
        commit(p, &anew);
}

static void rearrange(struct gn_place *p)
{
    struct arrangement anew;
    arrange(p, &anew);
    commit(p, &anew);
}

/* All are placed anew if the vGPU had a slot of its own. */
static void removed(struct gn_place *p, struct gn_place_vgpu *v)
{
    uint32_t users[GN_PLACE_MAX_SLOTS];
    const uint32_t first = v->first_slot;
    bool had_own = false;
    v->first_slot = GN_PLACE_NOWHERE;
    count_users(p, false, users);
    for (uint32_t k = 0; first != GN_PLACE_NOWHERE && k < v->n_chunks; k++)
        had_own = had_own || users[first + k] == 0;
    if (had_own)
        rearrange(p);
}

const struct gn_place_policy gn_place_size = {
    .name = "size",
    .about = "the fewest shared slots, the largest vGPUs alone (DymGPU, size-based)",
    .addressed = true,
    .added = added,
    .removed = removed,
    .rearrange = rearrange,
    .plan = gn_place_plan_addressed,
};
