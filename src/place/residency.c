/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses which evicted vGPU is swapped in, and when. Each vGPU has a period tag, its device time
 * by weight. An evicted vGPU comes in when the vGPUs that it displaces are ahead of it by theta,
 * which grows with the time of the copies: so copies take at most the part f of the time in the
 * long run, whatever programs do.
 *
 * gantryd's scheduler thread and `gantry sim` call it; one thread at a time. It never allocates,
 * locks or reads a clock.
 */
#include "place/residency.h"

#include "place/place_internal.h"

__extension__ typedef unsigned __int128 wide;

/* Tags count nanoseconds of a vGPU of this weight, the weight of one alone in a tenant of 256. */
#define UNIT_WEIGHT  256u
#define WEIGHT_SCALE 65536u
/*
 * A vGPU that is swapped in is at most so many thetas behind those that it displaces. More arrears
 * would keep them out for as long as it once had no work.
 */
#define MOST_BEHIND 4u
/* So that sums of tags stay below half of all. */
#define MOST_OWED ((uint64_t)INT64_MAX / 16)

/* Converts device time of the vGPU to a distance of tags. */
static uint64_t to_tag(const struct gn_place_vgpu *v, uint64_t ns)
{
    const struct gn_place_tenant *t = v->tenant;
    /* Its tenant's weight is divided among the tenant's vGPUs. */
    uint64_t weight = (uint64_t)((wide)t->weight * v->weight * WEIGHT_SCALE / t->weights);
    weight = weight ? weight : 1;
    const wide tag = (wide)ns * UNIT_WEIGHT * WEIGHT_SCALE / weight;
    return tag > INT64_MAX / 16 ? INT64_MAX / 16 : (uint64_t)tag;
}

uint64_t gn_place_theta(const struct gn_place *p, const struct gn_place_vgpu *v, uint64_t copy_ns)
{
    if (!p->swap_share)
        return 0;
    wide ns = (wide)copy_ns * (GN_PLACE_WHOLE - p->swap_share) / p->swap_share;
    if (ns > p->residency_max_ns)
        ns = p->residency_max_ns;
    return to_tag(v, (uint64_t)ns);
}

static void charge_tag(struct gn_place_vgpu *v, uint64_t tag)
{
    v->period_tag += tag;
    v->owed_tag -= tag < v->owed_tag ? tag : v->owed_tag;
}

void gn_place_charge(struct gn_place *p, struct gn_place_vgpu *v, uint64_t used_ns)
{
    charge_tag(v, to_tag(v, used_ns));
    p->period_time = v->period_tag;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * A vGPU that pauses again and again, each time for less than its eviction would cost, would
 * otherwise keep others out for as long as it takes to use theta in such moments. Its pause counts
 * as much as the use of one of the vGPUs that are on the device.
 */
void gn_place_charge_pause(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns)
{
    const struct gn_place_vgpu *least = RB_MIN(gn_place_wanting, &p->wanting);
    uint64_t n = 0;
    if (!least || v->idle || !v->n_occupied || !gn_place_is_resident(v))
        return;
    /* ready_ns: the end of its last turn, or when it last woke; all before that is charged. */
    const uint64_t from_ns = later(later(v->ready_ns, v->swapped_in_ns), least->ready_ns);
    gn_list_for_each(other, &p->occupying, struct gn_place_vgpu, occupying)
    {
        n += gn_place_is_resident(other);
    }
    /* No more than lets the first one in line come in: absence costs nothing beyond that. */
    const int64_t most = (int64_t)(least->wanting_key - v->period_tag);
    if (from_ns >= now_ns || least->moves || most <= 0)
        return;
    const uint64_t tag = to_tag(v, (now_ns - from_ns) / n);
    charge_tag(v, tag < (uint64_t)most ? tag : (uint64_t)most);
}

/*
 * A vGPU owes theta for each of its swaps, and pays by its use; the debt counts as use when it
 * wants to displace others again. Otherwise a vGPU that touches its memory, or allocates and frees
 * it, and uses no device time would come in again at once, and copies would take all the time. One
 * that is evicted although it has work owes nothing for that period. And none owes more than it may
 * be behind, or one that allocated in pieces before its first command would wait for minutes.
 */
void gn_place_charge_swap(struct gn_place *p, const struct gn_place_plan *plan)
{
    struct gn_place_vgpu *v = plan->vgpu;
    gn_list_for_each(from, &plan->victims, struct gn_place_vgpu, victim)
    {
        if (from->ready && gn_place_is_resident(from))
            from->owed_tag = 0;
    }
    if (!plan->n_out || v->moves)
        return;
    const uint64_t theta = gn_place_theta(p, v, plan->copy_ns);
    const uint64_t most = theta < MOST_OWED / MOST_BEHIND ? MOST_BEHIND * theta : MOST_OWED;
    const uint64_t owed = v->owed_tag + theta < most ? v->owed_tag + theta : most;
    /* A small swap, whose bound is low, cancels no debt. */
    if (v->owed_tag < owed)
        v->owed_tag = owed;
}

/* Its tag with its debt becomes `tag` at least. */
static void raise_to(struct gn_place_vgpu *v, uint64_t tag)
{
    const int64_t more = (int64_t)(tag - v->period_tag);
    if (more <= 0)
        return;
    v->period_tag = tag;
    v->owed_tag -= (uint64_t)more < v->owed_tag ? (uint64_t)more : v->owed_tag;
}

/* Returns the time that copying all that the vGPU needs takes, if as much leaves for it. */
static uint64_t whole_copy_ns(const struct gn_place *p, const struct gn_place_vgpu *v)
{
    return gn_chunk_count(&v->needs) * (p->in_ns + p->out_ns);
}

void gn_place_raise_tag(struct gn_place *p, struct gn_place_vgpu *v)
{
    const struct gn_place_vgpu *least = RB_MIN(gn_place_wanting, &p->wanting);
    const uint64_t tag = least ? least->period_tag : p->period_time;
    if (!p->swap_share)
        return;
    if (v->idle || !v->n_turns)
        raise_to(v, tag);
    else if (least)
        raise_to(v, tag - gn_place_theta(p, v, whole_copy_ns(p, v)));
}

/* True if the vGPU can work, and could not without the chunks that the plan takes. */
static bool is_stopped_by(const struct gn_place_vgpu *from)
{
    const struct gn_chunk_set lost = gn_chunk_both(&from->leaving, &from->needs);
    return !from->idle && gn_place_is_resident(from) && !gn_chunk_empty(&lost);
}

void gn_place_bound_tag(struct gn_place *p, const struct gn_place_plan *plan)
{
    struct gn_place_vgpu *v = plan->vgpu;
    const uint64_t most = MOST_BEHIND * gn_place_theta(p, v, plan->copy_ns);
    const struct gn_place_vgpu *least = NULL;
    gn_list_for_each(from, &plan->victims, struct gn_place_vgpu, victim)
    {
        if (is_stopped_by(from) && (!least || (int64_t)(from->period_tag - least->period_tag) < 0))
            least = from;
    }
    if (least && p->swap_share)
        raise_to(v, least->period_tag - most);
}

/*
 * Until when some resident vGPU counts as working; UINT64_MAX: while it has work. One that pauses
 * does for as long as the copies take that its eviction costs: to evict it sooner could cost more
 * than to wait, to wait longer never saves more.
 */
static uint64_t worked_until_ns(const struct gn_place *p, uint64_t copy_ns)
{
    const uint64_t pause_ns = copy_ns > GN_PLACE_PAUSE_NS ? copy_ns : GN_PLACE_PAUSE_NS;
    uint64_t until_ns = 0;
    gn_list_for_each(v, &p->occupying, struct gn_place_vgpu, occupying)
    {
        if (v->granted || (v->ready && !v->wants))
            return UINT64_MAX;
        const uint64_t last_ns = v->used_ns > v->swapped_in_ns ? v->used_ns : v->swapped_in_ns;
        if (gn_place_is_resident(v) && last_ns + pause_ns > until_ns)
            until_ns = last_ns + pause_ns;
    }
    return until_ns;
}

/* Returns when the first of the plan's victims becomes idle. 0: all of them have work. */
static uint64_t first_idle_ns(const struct gn_place *p, const struct gn_place_plan *plan)
{
    uint64_t first = 0;
    gn_list_for_each(from, &plan->victims, struct gn_place_vgpu, victim)
    {
        const uint64_t at = from->used_ns + p->idle_ns;
        if (!from->ready && !from->idle && (!first || at < first))
            first = at;
    }
    return first;
}

struct gn_place_vgpu *gn_residency_next(struct gn_place *p, uint64_t now_ns,
                                        struct gn_place_plan *ret_plan, uint64_t *ret_again_ns)
{
    struct gn_place_vgpu *v = RB_MIN(gn_place_wanting, &p->wanting);
    *ret_again_ns = 0;
    /* A vGPU that is saved or loaded keeps its slots. Another one that moves, and finds no room
     * before that is over, stands first in line and must not delay those behind it. */
    while (v && !gn_place_plan(p, v, now_ns, ret_plan))
        v = v->moves ? RB_NEXT(gn_place_wanting, &p->wanting, v) : NULL;
    if (!v)
        return NULL;
    if (!ret_plan->n_out || v->moves)
        return v;
    const uint64_t until_ns = worked_until_ns(p, ret_plan->copy_ns);
    if (until_ns <= now_ns)
        return v;
    const uint64_t least = v->period_tag + v->owed_tag + gn_place_theta(p, v, ret_plan->copy_ns);
    gn_list_for_each(from, &ret_plan->victims, struct gn_place_vgpu, victim)
    {
        if (is_stopped_by(from) && (int64_t)(from->period_tag - least) < 0) {
            const uint64_t idle_ns = first_idle_ns(p, ret_plan);
            *ret_again_ns =
                until_ns == UINT64_MAX || (idle_ns && idle_ns < until_ns) ? idle_ns : until_ns;
            return NULL;
        }
    }
    return v;
}

uint64_t gn_residency_wait_bound(const struct gn_place *p, const struct gn_place_vgpu *v)
{
    const struct gn_place_tenant *t = v->tenant;
    uint64_t n = 0;
    gn_list_for_each(other, &p->tenants, struct gn_place_tenant, link) n += other->n_vgpus;
    /* W / w, rounded up, with the tenant's weight divided among its vGPUs. */
    const wide own = (wide)t->weight * v->weight;
    const uint64_t by_weight = (uint64_t)(((wide)p->weights * t->weights + own - 1) / own);
    return 3 * (n > by_weight ? n : by_weight);
}

void gn_residency_set_share(struct gn_place *p, uint32_t swap_share)
{
    p->swap_share = swap_share;
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link) gn_place_update(p, v);
}
