/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of one device and the vGPUs that share them: accounts, plans and their execution.
 *
 * gantryd's scheduler thread and `gantry sim` call it; one thread at a time. It never allocates,
 * locks, reads a clock, or copies memory: the caller does what a plan says.
 */
#include "place/place.h"

#include <errno.h>
#include <string.h>

#include "place/place_internal.h"

#define SECOND_NS UINT64_C(1000000000)

/* Keys are compared by their distance; no vGPU is so far behind. */
#define FIRST_KEY (UINT64_C(1) << 60)
/* So that sums of distances stay below half of all tags. */
#define MOST_AHEAD (INT64_MAX / 16)

__extension__ typedef __int128 wide;

static int compare_wanting(const struct gn_place_vgpu *a, const struct gn_place_vgpu *b)
{
    int64_t d = (int64_t)(a->wanting_key - b->wanting_key);
    if (!d)
        d = (int64_t)(a->sequence - b->sequence);
    return d < 0 ? -1 : d > 0;
}

RB_GENERATE(gn_place_wanting, gn_place_vgpu, wanting, compare_wanting)

int gn_place_init(struct gn_place *p, const struct gn_place_policy *policy, uint64_t memory_bytes,
                  uint64_t slot_bytes, uint64_t now_ns)
{
    uint64_t bytes = slot_bytes ? slot_bytes : GN_PLACE_SLOT_BYTES;
    while (memory_bytes / bytes > GN_PLACE_MAX_SLOTS)
        bytes *= 2;
    if (memory_bytes / bytes == 0)
        return -EINVAL;
    memset(p, 0, sizeof *p);
    p->policy = policy;
    p->n_slots = p->n_free = (uint32_t)(memory_bytes / bytes);
    p->slot_bytes = bytes;
    p->swap_share = GN_PLACE_SHARE;
    p->residency_max_ns = GN_PLACE_LONGEST_NS;
    p->idle_ns = GN_PLACE_IDLE_NS;
    gn_list_init(&p->vgpus);
    gn_list_init(&p->tenants);
    gn_list_init(&p->occupying);
    RB_INIT(&p->wanting);
    p->now_ns = p->arranged_ns = p->checked_ns = now_ns;
    p->shared_slot = GN_PLACE_NOWHERE;
    return 0;
}

void gn_place_set_policy(struct gn_place *p, const struct gn_place_policy *policy, uint64_t now_ns)
{
    p->policy = policy;
    p->now_ns = p->arranged_ns = now_ns;
    p->shared_slot = GN_PLACE_NOWHERE;
    p->n_shared = 0;
    memset(p->owner, 0, sizeof p->owner);
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        v->first_slot = GN_PLACE_NOWHERE;
        policy->added(p, v);
    }
    /* Chunks lie where they lay, but the slots get numbers only now: in order of age. */
    uint32_t s = 0;
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        gn_chunk_for_each(k, &v->occupied)
        {
            p->owner[s] = policy->addressed ? v : NULL;
            p->chunk[s++] = (uint16_t)k;
        }
    }
}

/* ---- what must hold of all vGPUs (I5, I6) */

uint32_t gn_place_kept(const struct gn_place_tenant *t)
{
    /* Runs leave as a whole: the last one that could leave may be larger than what is beyond. */
    const uint32_t whole = t->reserve + (t->longest_run ? t->longest_run - 1 : 0);
    uint32_t kept = t->reserve;
    if (t->reserve && t->n_chunks > kept)
        kept = t->n_chunks < whole ? t->n_chunks : whole;
    return kept > t->n_pinned ? kept : t->n_pinned;
}

static void update_kept(struct gn_place *p, struct gn_place_tenant *t)
{
    const uint32_t kept = gn_place_kept(t);
    p->n_kept = p->n_kept - t->n_kept + kept;
    t->n_kept = kept;
}

static bool fits(const struct gn_place *p, const struct gn_place_vgpu *v)
{
    const struct gn_place_tenant *t = v->tenant;
    const uint64_t others = p->n_kept - t->n_kept + (t->n_pinned - v->n_pinned);
    return v->n_chunks + others <= p->n_slots;
}

/* I6: each vGPU can have all of its chunks at once, whatever the others keep. */
static bool all_fit(const struct gn_place *p)
{
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        if (!fits(p, v))
            return false;
    }
    return true;
}

uint32_t gn_place_pin_limit(const struct gn_place *p, const struct gn_place_tenant *t)
{
    const uint64_t rest = p->n_slots - p->n_reserved;
    return t->reserve + (p->weights ? (uint32_t)(rest * t->weight / p->weights) : (uint32_t)rest);
}

/* ---- tenants */

static bool weight_ok(uint32_t weight)
{
    return weight >= 1 && weight <= GN_PLACE_WEIGHT_MAX;
}

int gn_place_tenant_add(struct gn_place *p, struct gn_place_tenant *t, uint32_t weight,
                        uint32_t reserve)
{
    if (!weight_ok(weight))
        return -EINVAL;
    memset(t, 0, sizeof *t);
    t->weight = weight;
    gn_list_append(&p->tenants, &t->link);
    const int rc = gn_place_tenant_set_reserve(p, t, reserve);
    if (rc)
        gn_list_remove(&t->link);
    return rc;
}

int gn_place_tenant_set_reserve(struct gn_place *p, struct gn_place_tenant *t, uint32_t reserve)
{
    const uint32_t before = t->reserve;
    if (reserve > p->n_slots - (p->n_reserved - before))
        return -ENOSPC;
    t->reserve = reserve;
    p->n_reserved = p->n_reserved - before + reserve;
    update_kept(p, t);
    if (p->n_kept <= p->n_slots && all_fit(p))
        return 0;
    t->reserve = before;
    p->n_reserved = p->n_reserved - reserve + before;
    update_kept(p, t);
    return -ENOSPC;
}

/* The distance of two tags is device time by weight: under another weight, the same time is another
 * distance. Otherwise a vGPU would wait for as long as its time lasts by the lower of the two. */
static void rescale_tags(struct gn_place *p, const struct gn_place_tenant *t, uint32_t before)
{
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        const wide ahead = (int64_t)(v->period_tag - p->period_time);
        wide scaled = ahead * before / t->weight;
        if (v->tenant != t)
            continue;
        scaled = scaled > MOST_AHEAD ? MOST_AHEAD : scaled < -MOST_AHEAD ? -MOST_AHEAD : scaled;
        v->period_tag = p->period_time + (uint64_t)scaled;
        scaled = (wide)v->owed_tag * before / t->weight;
        v->owed_tag = scaled > MOST_AHEAD ? MOST_AHEAD : (uint64_t)scaled;
        gn_place_update(p, v);
    }
}

int gn_place_tenant_set_weight(struct gn_place *p, struct gn_place_tenant *t, uint32_t weight)
{
    if (!weight_ok(weight))
        return -EINVAL;
    if (t->n_vgpus)
        p->weights = p->weights - t->weight + weight;
    const uint32_t before = t->weight;
    t->weight = weight;
    if (weight != before)
        rescale_tags(p, t, before);
    return 0;
}

void gn_place_tenant_remove(struct gn_place *p, struct gn_place_tenant *t)
{
    p->n_reserved -= t->reserve;
    p->n_kept -= t->n_kept;
    gn_list_remove(&t->link);
}

/* ---- vGPUs */

bool gn_place_is_resident(const struct gn_place_vgpu *v)
{
    return gn_chunk_within(&v->needs, &v->occupied);
}

void gn_place_update(struct gn_place *p, struct gn_place_vgpu *v)
{
    const bool wants = p->swap_share && v->ready && !v->granted && !gn_place_is_resident(v);
    if (v->wants)
        RB_REMOVE(gn_place_wanting, &p->wanting, v);
    v->wants = wants;
    if (!wants)
        return;
    const struct gn_chunk_set missing = gn_chunk_minus(&v->needs, &v->occupied);
    const uint64_t copy_ns = gn_chunk_count(&missing) * (p->in_ns + p->out_ns);
    v->wanting_key = v->moves ? p->period_time - FIRST_KEY
                              : v->period_tag + v->owed_tag + gn_place_theta(p, v, copy_ns);
    RB_INSERT(gn_place_wanting, &p->wanting, v);
}

int gn_place_add(struct gn_place *p, struct gn_place_tenant *t, struct gn_place_vgpu *v,
                 uint32_t weight, uint32_t n_chunks, uint64_t now_ns)
{
    if (!weight_ok(weight))
        return -EINVAL;
    if (n_chunks > p->n_slots)
        return -ENOSPC;
    memset(v, 0, sizeof *v);
    v->tenant = t;
    v->weight = weight;
    v->n_chunks = n_chunks;
    v->first_slot = GN_PLACE_NOWHERE;
    v->needs = gn_chunk_range(n_chunks);
    v->used_ns = now_ns;
    v->busy_second = now_ns / SECOND_NS;
    v->sequence = ++p->n_created;
    gn_list_init(&v->occupying);
    t->n_chunks += n_chunks;
    update_kept(p, t);
    if (!fits(p, v) || (p->n_kept && !all_fit(p))) {
        t->n_chunks -= n_chunks;
        update_kept(p, t);
        return -ENOSPC;
    }
    p->weights += t->n_vgpus++ ? 0 : t->weight;
    t->weights += weight;
    p->now_ns = now_ns;
    gn_list_append(&p->vgpus, &v->link);
    v->period_tag = p->period_time;
    p->policy->added(p, v);
    return 0;
}

void gn_place_remove(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns)
{
    struct gn_place_tenant *t = v->tenant;
    const struct gn_chunk_set all = v->occupied;
    gn_place_unpin(p, v, &v->pinned);
    gn_place_vacate(p, v, &all);
    v->ready = v->granted = false;
    gn_place_update(p, v);
    gn_list_remove(&v->link);
    t->n_chunks -= v->n_chunks;
    t->weights -= v->weight;
    if (--t->n_vgpus == 0) {
        p->weights -= t->weight;
        t->longest_run = 0;
    }
    update_kept(p, t);
    p->now_ns = now_ns;
    p->policy->removed(p, v);
}

int gn_place_resize(struct gn_place *p, struct gn_place_vgpu *v, uint32_t n_chunks, uint64_t now_ns)
{
    const uint32_t before = v->n_chunks;
    if (n_chunks > p->n_slots)
        return -ENOSPC;
    v->n_chunks = n_chunks;
    v->tenant->n_chunks = v->tenant->n_chunks - before + n_chunks;
    update_kept(p, v->tenant);
    if (n_chunks > before && !all_fit(p)) {
        v->n_chunks = before;
        v->tenant->n_chunks = v->tenant->n_chunks - n_chunks + before;
        update_kept(p, v->tenant);
        return -ENOSPC;
    }
    const struct gn_chunk_set old = gn_chunk_range(before), all = gn_chunk_range(n_chunks);
    const struct gn_chunk_set fresh = gn_chunk_minus(&all, &old);
    v->needs = gn_chunk_both(&v->needs, &all);
    v->needs = gn_chunk_either(&v->needs, &fresh);
    v->joined = gn_chunk_both(&v->joined, &all);
    v->changed = gn_chunk_both(&v->changed, &all);
    p->now_ns = now_ns;
    if (n_chunks != before) {
        v->first_slot = GN_PLACE_NOWHERE;
        if (!v->idle)
            p->policy->added(p, v);
    }
    gn_place_update(p, v);
    return 0;
}

void gn_place_run(const struct gn_place_vgpu *v, uint32_t k, uint32_t *first, uint32_t *end)
{
    uint32_t a = k, b = k + 1;
    while (a && gn_chunk_has(&v->joined, a))
        a--;
    while (b < v->n_chunks && gn_chunk_has(&v->joined, b))
        b++;
    *first = a;
    *end = b;
}

/* Returns the chunks with the whole runs of which they are a part. */
static struct gn_chunk_set whole_runs(const struct gn_place_vgpu *v,
                                      const struct gn_chunk_set *chunks)
{
    const struct gn_chunk_set all = gn_chunk_range(v->n_chunks);
    const struct gn_chunk_set named = gn_chunk_both(chunks, &all);
    struct gn_chunk_set whole = named;
    gn_chunk_for_each(k, &named)
    {
        uint32_t first, end;
        gn_place_run(v, k, &first, &end);
        for (uint32_t i = first; i < end; i++)
            gn_chunk_add(&whole, i);
    }
    return whole;
}

void gn_place_set_needs(struct gn_place *p, struct gn_place_vgpu *v,
                        const struct gn_chunk_set *needs)
{
    v->needs = whole_runs(v, needs);
    gn_place_update(p, v);
}

int gn_place_join(struct gn_place *p, struct gn_place_vgpu *v, uint32_t first, uint32_t n)
{
    struct gn_place_tenant *t = v->tenant;
    const uint32_t before = t->longest_run;
    if (!n || first >= v->n_chunks || n > v->n_chunks - first)
        return -EINVAL;
    for (uint32_t k = first; k < first + n; k++)
        if (gn_chunk_has(&v->occupied, k) || gn_chunk_has(&v->pinned, k) ||
            gn_chunk_has(&v->joined, k) || (k + 1 < v->n_chunks && gn_chunk_has(&v->joined, k + 1)))
            return -EBUSY;
    t->longest_run = n > before ? n : before;
    update_kept(p, t);
    if (p->n_kept > p->n_slots || !all_fit(p)) {
        t->longest_run = before;
        update_kept(p, t);
        return -ENOSPC;
    }
    for (uint32_t k = first + 1; k < first + n; k++)
        gn_chunk_add(&v->joined, k);
    const struct gn_chunk_set needs = v->needs;
    gn_place_set_needs(p, v, &needs);
    return 0;
}

int gn_place_pin(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    struct gn_place_tenant *t = v->tenant;
    const struct gn_chunk_set whole = whole_runs(v, chunks);
    const struct gn_chunk_set fresh = gn_chunk_minus(&whole, &v->pinned);
    const uint32_t n = gn_chunk_count(&fresh);
    if (t->n_pinned + n > gn_place_pin_limit(p, t))
        return -ENOSPC;
    t->n_pinned += n;
    v->n_pinned += n;
    update_kept(p, t);
    if (p->n_kept > p->n_slots || !all_fit(p)) {
        t->n_pinned -= n;
        v->n_pinned -= n;
        update_kept(p, t);
        return -ENOSPC;
    }
    v->pinned = gn_chunk_either(&v->pinned, &fresh);
    return 0;
}

void gn_place_unpin(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    const struct gn_chunk_set whole = whole_runs(v, chunks);
    const struct gn_chunk_set gone = gn_chunk_both(&whole, &v->pinned);
    v->pinned = gn_chunk_minus(&v->pinned, &gone);
    v->n_pinned -= gn_chunk_count(&gone);
    v->tenant->n_pinned -= gn_chunk_count(&gone);
    update_kept(p, v->tenant);
}

void gn_place_set_moves(struct gn_place *p, struct gn_place_vgpu *v, bool moves)
{
    v->moves = moves;
    gn_place_update(p, v);
}

void gn_place_set_changed(struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    const struct gn_chunk_set here = gn_chunk_both(chunks, &v->occupied);
    v->changed = gn_chunk_either(&v->changed, &here);
}

void gn_place_set_clean(struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    v->changed = gn_chunk_minus(&v->changed, chunks);
}

/* ---- turns */

/* Clears the samples of the seconds that have passed without use. */
static void pass_seconds(struct gn_place_vgpu *v, uint64_t second)
{
    for (uint32_t i = 0; i < GN_PLACE_SAMPLES && v->busy_second < second; i++)
        v->busy_ns[++v->busy_second % GN_PLACE_SAMPLES] = 0;
    if (v->busy_second < second)
        v->busy_second = second;
}

uint64_t gn_place_utilization(const struct gn_place_vgpu *v, uint64_t now_ns)
{
    const uint64_t second = now_ns / SECOND_NS;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < GN_PLACE_SAMPLES && i <= v->busy_second; i++)
        if (v->busy_second - i + GN_PLACE_SAMPLES > second)
            sum += v->busy_ns[(v->busy_second - i) % GN_PLACE_SAMPLES];
    return sum;
}

void gn_place_wake(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns)
{
    p->now_ns = now_ns;
    if (v->ready)
        return;
    gn_place_charge_pause(p, v, now_ns);
    gn_place_raise_tag(p, v);
    v->ready = true;
    v->ready_ns = now_ns;
    if (v->idle) {
        v->idle = false;
        if (v->first_slot == GN_PLACE_NOWHERE)
            p->policy->added(p, v);
    }
    gn_place_update(p, v);
}

void gn_place_sleep(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns)
{
    p->now_ns = now_ns;
    v->ready = false;
    gn_place_update(p, v);
}

void gn_place_turn(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns)
{
    const int64_t gap_ns = (int64_t)(now_ns - v->used_ns);
    p->now_ns = now_ns;
    if (v->n_turns == 1)
        v->gap_ns = (uint64_t)gap_ns;
    else if (v->n_turns > 1)
        v->gap_ns = (uint64_t)((int64_t)v->gap_ns + (gap_ns - (int64_t)v->gap_ns) / 10);
    v->n_turns++;
    v->granted = v->ready = v->ran = true;
    gn_place_update(p, v);
}

void gn_place_yield(struct gn_place *p, struct gn_place_vgpu *v, uint64_t used_ns, bool more_work,
                    uint64_t now_ns)
{
    p->now_ns = now_ns;
    pass_seconds(v, now_ns / SECOND_NS);
    v->busy_ns[v->busy_second % GN_PLACE_SAMPLES] += used_ns;
    v->used_ns = v->ready_ns = now_ns;
    v->granted = false;
    v->ready = more_work;
    gn_place_charge(p, v, used_ns);
    gn_place_update(p, v);
}

uint64_t gn_place_tick(struct gn_place *p, uint64_t now_ns)
{
    const uint64_t period_ns = p->policy->period_ns;
    p->now_ns = now_ns;
    if (now_ns - p->checked_ns >= SECOND_NS) {
        p->checked_ns = now_ns;
        gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
        {
            if (v->idle || v->ready || now_ns - v->used_ns < p->idle_ns)
                continue;
            v->idle = true;
            p->policy->removed(p, v);
        }
    }
    if (period_ns && now_ns - p->arranged_ns >= period_ns) {
        p->arranged_ns = now_ns;
        p->policy->rearrange(p);
    }
    return p->checked_ns + SECOND_NS;
}

/* ---- plans */

bool gn_place_take(struct gn_place *p, struct gn_place_plan *plan, struct gn_place_vgpu *from,
                   uint32_t k)
{
    struct gn_place_tenant *t = from->tenant;
    uint32_t first, end, n = 0, n_changed = 0;
    if (from->plan_number == p->plan_number && gn_chunk_has(&from->leaving, k))
        return true;
    if (from->moves || p->now_ns < from->kept_until_ns ||
        (p->swap_share && from->ready && !from->ran && gn_place_is_resident(from)))
        return false;
    gn_place_run(from, k, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        if (gn_chunk_has(&from->pinned, i) || (from == plan->vgpu && gn_chunk_has(&from->needs, i)))
            return false;
        n += gn_chunk_has(&from->occupied, i);
        n_changed += gn_chunk_has(&from->occupied, i) && gn_chunk_has(&from->changed, i);
    }
    if (t->plan_number != p->plan_number) {
        t->plan_number = p->plan_number;
        t->n_leaving = 0;
    }
    /* I4: no other tenant's need takes a tenant's vGPUs together below its reserve. */
    if (t != plan->vgpu->tenant && t->n_occupied - t->n_leaving < t->reserve + n)
        return false;
    if (from->plan_number != p->plan_number) {
        from->plan_number = p->plan_number;
        from->leaving = (struct gn_chunk_set){{0}};
        gn_list_append(&plan->victims, &from->victim);
    }
    for (uint32_t i = first; i < end; i++)
        if (gn_chunk_has(&from->occupied, i))
            gn_chunk_add(&from->leaving, i);
    t->n_leaving += n;
    plan->n_out += n;
    plan->n_changed += n_changed;
    return true;
}

void gn_place_withhold(struct gn_place *p, uint32_t n_slots, uint64_t until_ns)
{
    p->n_withheld = n_slots;
    p->withheld_until_ns = until_ns;
}

bool gn_place_plan(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns,
                   struct gn_place_plan *ret)
{
    if (now_ns >= p->withheld_until_ns)
        p->n_withheld = 0;
    memset(ret, 0, sizeof *ret);
    ret->vgpu = v;
    gn_list_init(&ret->victims);
    p->plan_number++;
    p->now_ns = now_ns;
    if (!p->policy->plan(p, v, ret))
        return false;
    ret->n_in = gn_chunk_count(&ret->in);
    ret->copy_ns = ret->n_in * p->in_ns + ret->n_changed * p->out_ns;
    return true;
}

void gn_place_vacate(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    const struct gn_chunk_set gone = gn_chunk_both(chunks, &v->occupied);
    const uint32_t n = gn_chunk_count(&gone);
    if (!n)
        return;
    for (uint32_t s = 0; p->policy->addressed && s < p->n_slots; s++)
        if (p->owner[s] == v && gn_chunk_has(&gone, p->chunk[s]))
            p->owner[s] = NULL;
    v->occupied = gn_chunk_minus(&v->occupied, &gone);
    v->changed = gn_chunk_minus(&v->changed, &gone);
    v->n_occupied -= n;
    v->tenant->n_occupied -= n;
    p->n_free += n;
    if (!v->n_occupied)
        gn_list_remove(&v->occupying);
    gn_place_update(p, v);
}

static void occupy_slot(struct gn_place *p, struct gn_place_vgpu *v, uint32_t k, uint32_t s)
{
    p->owner[s] = v;
    p->chunk[s] = (uint16_t)k;
}

/* The chunk's own slot; for those of which another chunk keeps the slot, any that is free. */
static void occupy_addresses(struct gn_place *p, struct gn_place_vgpu *v,
                             const struct gn_chunk_set *chunks)
{
    struct gn_chunk_set left = *chunks;
    uint32_t s = 0;
    gn_chunk_for_each(k, chunks)
    {
        const uint32_t own = v->first_slot + k;
        if (v->first_slot == GN_PLACE_NOWHERE || own >= p->n_slots || p->owner[own])
            continue;
        occupy_slot(p, v, k, own);
        gn_chunk_remove(&left, k);
    }
    gn_chunk_for_each(k, &left)
    {
        while (p->owner[s])
            s++;
        occupy_slot(p, v, k, s);
    }
}

void gn_place_occupy(struct gn_place *p, struct gn_place_vgpu *v, const struct gn_chunk_set *chunks)
{
    const struct gn_chunk_set fresh = gn_chunk_minus(chunks, &v->occupied);
    const uint32_t n = gn_chunk_count(&fresh);
    if (!n)
        return;
    if (p->policy->addressed)
        occupy_addresses(p, v, &fresh);
    if (!v->n_occupied)
        gn_list_append(&p->occupying, &v->occupying);
    v->occupied = gn_chunk_either(&v->occupied, &fresh);
    v->n_occupied += n;
    v->tenant->n_occupied += n;
    p->n_free -= n;
    gn_place_update(p, v);
}

void gn_place_apply(struct gn_place *p, struct gn_place_plan *plan, uint64_t now_ns)
{
    struct gn_place_vgpu *v = plan->vgpu;
    const struct gn_chunk_set changed = gn_chunk_both(&v->changed, &plan->moved);
    if (plan->n_out)
        gn_place_bound_tag(p, plan);
    gn_place_charge_swap(p, plan);
    gn_list_for_each(from, &plan->victims, struct gn_place_vgpu, victim)
    {
        gn_place_vacate(p, from, &from->leaving);
    }
    gn_place_vacate(p, v, &plan->moved);
    gn_place_occupy(p, v, &plan->in);
    gn_place_set_changed(v, &changed);
    if (!plan->n_in)
        return;
    v->swapped_in_ns = now_ns;
    v->ran = false;
}

/* In the place of the oldest one. The median: a driver's first copies may take a hundred times as
 * long as the next ones, and an answer may be late for other reasons than its copies. */
static uint64_t add_copy(struct gn_place_copies *c, uint64_t slot_ns)
{
    uint64_t sorted[GN_PLACE_COPIES];
    uint32_t n = 0;
    c->slot_ns[c->n++ % GN_PLACE_COPIES] = slot_ns;
    for (uint32_t i = 0; i < GN_PLACE_COPIES && i < c->n; i++) {
        uint32_t at = n++;
        for (; at && sorted[at - 1] > c->slot_ns[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = c->slot_ns[i];
    }
    return sorted[n / 2];
}

void gn_place_note_copy(struct gn_place *p, bool in, uint32_t n_slots, uint64_t ns)
{
    if (n_slots && in)
        p->in_ns = add_copy(&p->copies_in, ns / n_slots);
    else if (n_slots)
        p->out_ns = add_copy(&p->copies_out, ns / n_slots);
    /* The line of those that want memory is by these times, too. */
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        if (v->wants)
            gn_place_update(p, v);
    }
}

/* ---- for the policies */

void gn_place_list_awake(struct gn_place *p, struct gn_list *head)
{
    gn_list_init(head);
    gn_list_for_each(v, &p->vgpus, struct gn_place_vgpu, link)
    {
        if (!v->idle)
            gn_list_append(head, &v->sorted);
    }
}

typedef bool before_function(const struct gn_place *, const struct gn_place_vgpu *,
                             const struct gn_place_vgpu *);

/* Merges two chains that are linked by `next` and end with NULL. */
static struct gn_list *merge(const struct gn_place *p, struct gn_list *a, struct gn_list *b,
                             before_function *before)
{
    struct gn_list first, *last = &first;
    while (a && b) {
        struct gn_list **from = before(p, gn_container_of(b, struct gn_place_vgpu, sorted),
                                       gn_container_of(a, struct gn_place_vgpu, sorted))
                                    ? &b
                                    : &a;
        last = last->next = *from;
        *from = (*from)->next;
    }
    last->next = a ? a : b;
    return first.next;
}

void gn_place_sort(const struct gn_place *p, struct gn_list *head, before_function *before)
{
    struct gn_list *runs[32] = {NULL}, *all = NULL;
    if (gn_list_empty(head))
        return;
    head->prev->next = NULL;
    for (struct gn_list *one = head->next, *next; one; one = next) {
        unsigned i = 0;
        next = one->next;
        one->next = NULL;
        for (; i < 31 && runs[i]; i++) {
            one = merge(p, runs[i], one, before);
            runs[i] = NULL;
        }
        runs[i] = runs[i] ? merge(p, runs[i], one, before) : one;
    }
    for (unsigned i = 0; i < 32; i++)
        all = merge(p, runs[i], all, before);
    gn_list_init(head);
    for (struct gn_list *one = all, *next; one; one = next) {
        next = one->next;
        gn_list_append(head, one);
    }
}

void gn_place_commit(struct gn_place *p, const struct gn_list *sorted)
{
    bool changed = false;
    gn_list_for_each(v, sorted, struct gn_place_vgpu, sorted)
    {
        changed =
            changed || (v->first_slot != GN_PLACE_NOWHERE && v->first_slot != v->candidate_slot);
        v->first_slot = v->candidate_slot;
    }
    p->n_rearranged += changed;
}
