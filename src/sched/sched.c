/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of one device: two levels of queues under one policy, with caps and floors. A
 * tenant is ready when at least one of its entities is ready, none of them holds the device, and
 * its cap allows it.
 *
 * gantryd calls it on its scheduler thread, `gantry sim` on its main thread. It never allocates,
 * locks or reads a clock.
 */
#include "sched/sched.h"

#include <errno.h>
#include <string.h>

#define WINDOW_NS 100000000u /* the time over which caps and floors hold */
#define LATELY_NS UINT64_C(10000000000)
#define KEEP_PART 20u

static void count_ready(struct gn_sched *s, struct gn_sched_tenant *t, int n)
{
    t->n_ready += (uint32_t)n;
    s->n_ready += (uint32_t)n;
}

static bool weight_ok(uint32_t weight)
{
    return weight >= 1 && weight <= GN_SCHED_WEIGHT_MAX;
}

static void set_ready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    if (!n->ready) {
        q->policy->ready(q, n, now_ns);
        n->ready = true;
    }
}

static void set_unready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    if (n->ready) {
        q->policy->unready(q, n, now_ns);
        n->ready = false;
    }
}

static void queue_init(struct gn_sched_queue *q, const struct gn_sched_policy *policy,
                       uint64_t now_ns)
{
    q->policy = policy;
    policy->init(q, now_ns);
}

void gn_sched_init(struct gn_sched *s, const struct gn_sched_policy *policy, uint64_t slice_ns,
                   uint64_t now_ns)
{
    memset(s, 0, sizeof *s);
    s->policy = policy;
    s->slice_ns = slice_ns;
    queue_init(&s->queue, policy, now_ns);
    gn_list_init(&s->tenants);
    gn_list_init(&s->capped);
    gn_list_init(&s->floored);
}

/* ---- caps and floors: buckets that time fills and use empties */

static int64_t part_of(uint64_t ns, uint32_t part)
{
    return (int64_t)(ns / GN_SCHED_WHOLE * part + ns % GN_SCHED_WHOLE * part / GN_SCHED_WHOLE);
}

/*
 * Fills a bucket up to now_ns. *at_ns is the time up to which the bucket is filled. Time that is
 * not yet worth a whole nanosecond stays for the next call.
 */
static void fill(int64_t *bucket, uint64_t *at_ns, uint32_t part, uint64_t now_ns)
{
    const int64_t most = part_of(WINDOW_NS, part);
    if (now_ns > *at_ns) {
        const uint64_t ns = now_ns - *at_ns;
        *bucket += part_of(ns, part);
        *at_ns = now_ns - ns % GN_SCHED_WHOLE * part % GN_SCHED_WHOLE / part;
    }
    if (*bucket > most)
        *bucket = most;
}

/* A floor's debt grows only while the tenant has work. */
static void fill_floor(struct gn_sched_tenant *t, uint64_t now_ns)
{
    if (t->n_ready || t->node.ready)
        fill(&t->floor_ns, &t->floor_at_ns, t->floor, now_ns);
    else
        t->floor_at_ns = now_ns;
}

/*
 * Returns how much a capped tenant needs in its bucket before it may run: a slice, or the whole
 * bucket if that is less. With smaller pieces, the changes of holder would consume most of them.
 */
static int64_t cap_least(const struct gn_sched *s, const struct gn_sched_tenant *t)
{
    const int64_t most = part_of(WINDOW_NS, t->cap);
    return most < (int64_t)s->slice_ns ? most : (int64_t)s->slice_ns;
}

/* Returns when a tenant that has used up its cap may run again. */
static uint64_t cap_ends_ns(const struct gn_sched *s, const struct gn_sched_tenant *t)
{
    const uint64_t owed = (uint64_t)(cap_least(s, t) - t->cap_ns);
    return t->cap_at_ns + owed / t->cap * GN_SCHED_WHOLE +
           (owed % t->cap * GN_SCHED_WHOLE + t->cap - 1) / t->cap;
}

static bool is_over_cap(const struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns)
{
    if (!t->cap)
        return false;
    fill(&t->cap_ns, &t->cap_at_ns, t->cap, now_ns);
    return t->cap_ns <= 0 || t->cap_ns < cap_least(s, t);
}

/* Moves the tenant to the queue or to the capped list, as its state requires. */
static void requeue(struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns)
{
    const bool wants = t->n_ready && (!s->running || s->running->tenant != t);
    const bool capped = wants && is_over_cap(s, t, now_ns);
    /* A tenant that stays capped keeps its position, so that a walk over the list ends. */
    if (!capped)
        gn_list_remove(&t->waiting);
    else if (gn_list_empty(&t->waiting))
        gn_list_append(&s->capped, &t->waiting);
    if (wants && !capped)
        set_ready(&s->queue, &t->node, now_ns);
    else
        set_unready(&s->queue, &t->node, now_ns);
}

static void release_capped(struct gn_sched *s, uint64_t now_ns)
{
    gn_list_for_each(t, &s->capped, struct gn_sched_tenant, waiting) requeue(s, t, now_ns);
}

/* Returns the tenant that is owed most of its floor, or NULL if no tenant is owed anything. */
static struct gn_sched_tenant *most_owed(struct gn_sched *s, uint64_t now_ns)
{
    struct gn_sched_tenant *found = NULL;
    gn_list_for_each(t, &s->floored, struct gn_sched_tenant, promised)
    {
        fill_floor(t, now_ns);
        if (t->node.ready && t->floor_ns > 0 && (!found || t->floor_ns > found->floor_ns))
            found = t;
    }
    return found;
}

/* ---- tenants */

int gn_sched_tenant_add(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight,
                        uint64_t now_ns)
{
    if (!weight_ok(weight))
        return -EINVAL;
    memset(t, 0, sizeof *t);
    t->node.weight = weight;
    t->cap_at_ns = t->floor_at_ns = now_ns;
    queue_init(&t->queue, s->policy, now_ns);
    gn_list_init(&t->waiting);
    gn_list_init(&t->promised);
    gn_list_append(&s->tenants, &t->link);
    return 0;
}

void gn_sched_tenant_remove(struct gn_sched *s, struct gn_sched_tenant *t, uint64_t now_ns)
{
    set_unready(&s->queue, &t->node, now_ns);
    if (s->policy->forget)
        s->policy->forget(&s->queue, &t->node);
    s->floors -= t->floor;
    gn_list_remove(&t->waiting);
    gn_list_remove(&t->promised);
    gn_list_remove(&t->link);
}

int gn_sched_tenant_set_cap(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t cap,
                            uint64_t now_ns)
{
    if (cap > GN_SCHED_WHOLE || (cap && t->floor > cap))
        return -EINVAL;
    t->cap = cap;
    t->cap_ns = part_of(WINDOW_NS, cap);
    t->cap_at_ns = now_ns;
    requeue(s, t, now_ns);
    return 0;
}

int gn_sched_tenant_set_floor(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t floor,
                              uint64_t now_ns)
{
    if (floor > GN_SCHED_WHOLE || (t->cap && floor > t->cap))
        return -EINVAL;
    if (s->floors - t->floor + floor > GN_SCHED_WHOLE)
        return -ENOSPC;
    s->floors = s->floors - t->floor + floor;
    t->floor = floor;
    gn_list_remove(&t->promised);
    if (floor)
        gn_list_append(&s->floored, &t->promised);
    t->floor_ns = 0;
    t->floor_at_ns = now_ns;
    return 0;
}

int gn_sched_tenant_set_weight(struct gn_sched *s, struct gn_sched_tenant *t, uint32_t weight)
{
    (void)s;
    if (!weight_ok(weight))
        return -EINVAL;
    /* The new weight applies to future use only: no policy orders queued nodes by weight. */
    t->node.weight = weight;
    return 0;
}

/* ---- entities */

int gn_sched_add(struct gn_sched *s, struct gn_sched_tenant *t, struct gn_sched_entity *e,
                 uint32_t weight, uint64_t now_ns)
{
    (void)s;
    (void)now_ns;
    if (!weight_ok(weight))
        return -EINVAL;
    memset(e, 0, sizeof *e);
    e->node.weight = weight;
    e->tenant = t;
    return 0;
}

void gn_sched_remove(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns)
{
    struct gn_sched_tenant *t = e->tenant;
    gn_sched_sleep(s, e, now_ns);
    if (s->running == e) {
        s->running = NULL;
        requeue(s, t, now_ns);
    }
    if (s->policy->forget)
        s->policy->forget(&t->queue, &e->node);
}

/* Puts an entity with work into its tenant's queue, or takes it out. ready_at_ns stays. */
static void set_queued(struct gn_sched *s, struct gn_sched_entity *e, bool queued, uint64_t now_ns)
{
    struct gn_sched_tenant *t = e->tenant;
    if (t->floor)
        fill_floor(t, now_ns);
    if (queued)
        set_ready(&t->queue, &e->node, now_ns);
    else
        set_unready(&t->queue, &e->node, now_ns);
    count_ready(s, t, queued ? 1 : -1);
    requeue(s, t, now_ns);
}

void gn_sched_wake(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns)
{
    if (e->node.ready || e->awaits_memory || s->running == e)
        return;
    e->ready_at_ns = now_ns;
    if (e->evicted)
        e->awaits_memory = true;
    else
        set_queued(s, e, true, now_ns);
}

void gn_sched_sleep(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns)
{
    e->awaits_memory = false;
    if (e->node.ready)
        set_queued(s, e, false, now_ns);
}

void gn_sched_set_evicted(struct gn_sched *s, struct gn_sched_entity *e, bool evicted,
                          uint64_t now_ns)
{
    e->evicted = evicted;
    if (evicted && e->node.ready) {
        e->awaits_memory = true;
        set_queued(s, e, false, now_ns);
    } else if (!evicted && e->awaits_memory) {
        e->awaits_memory = false;
        set_queued(s, e, true, now_ns);
    }
}

/* ---- the device */

struct gn_sched_entity *gn_sched_pick(struct gn_sched *s, uint64_t now_ns, uint64_t *ret_slice_ns,
                                      uint64_t *ret_retry_ns)
{
    *ret_slice_ns = *ret_retry_ns = 0;
    if (s->running)
        return NULL;
    release_capped(s, now_ns);
    struct gn_sched_node *first = s->policy->first(&s->queue, now_ns);
    if (!first) {
        gn_list_for_each(t, &s->capped, struct gn_sched_tenant, waiting)
        {
            uint64_t ends_ns = cap_ends_ns(s, t);
            if (!*ret_retry_ns || ends_ns < *ret_retry_ns)
                *ret_retry_ns = ends_ns;
        }
        return NULL;
    }
    struct gn_sched_tenant *t = most_owed(s, now_ns);
    if (!t)
        t = gn_container_of(first, struct gn_sched_tenant, node);
    struct gn_sched_node *n = s->policy->first(&t->queue, now_ns);
    struct gn_sched_entity *e = gn_container_of(n, struct gn_sched_entity, node);

    /* The tenant's slice sets its part of the device; its entities take turns within it. */
    *ret_slice_ns = s->policy->slice(&s->queue, &t->node, s->slice_ns);
    if (t->cap && t->cap_ns < (int64_t)*ret_slice_ns)
        *ret_slice_ns = (uint64_t)t->cap_ns;
    s->running = e;
    e->n_grants++;
    e->waited_ns += now_ns - e->ready_at_ns;
    set_unready(&t->queue, n, now_ns);
    count_ready(s, t, -1);
    requeue(s, t, now_ns);
    return e;
}

void gn_sched_yield(struct gn_sched *s, uint64_t used_ns, bool more_work, uint64_t now_ns)
{
    struct gn_sched_entity *e = s->running;
    if (!e)
        return;
    struct gn_sched_tenant *t = e->tenant;
    s->running = NULL;
    if (used_ns >= s->longest_ns || now_ns - s->longest_at_ns > LATELY_NS) {
        s->longest_ns = used_ns;
        s->longest_at_ns = now_ns;
    }
    e->used_ns += used_ns;
    t->used_ns += used_ns;
    s->policy->charge(&t->queue, &e->node, used_ns, now_ns);
    s->policy->charge(&s->queue, &t->node, used_ns, now_ns);
    if (t->cap) {
        fill(&t->cap_ns, &t->cap_at_ns, t->cap, now_ns);
        t->cap_ns -= (int64_t)used_ns;
    }
    if (t->floor) {
        fill(&t->floor_ns, &t->floor_at_ns, t->floor, now_ns);
        t->floor_ns -= (int64_t)used_ns;
    }
    if (more_work)
        e->ready_at_ns = now_ns;
    e->awaits_memory = more_work && e->evicted;
    if (more_work && !e->evicted) {
        set_ready(&t->queue, &e->node, now_ns);
        count_ready(s, t, 1);
    }
    requeue(s, t, now_ns);
}

void gn_sched_miss(struct gn_sched *s, uint64_t now_ns)
{
    struct gn_sched_entity *e = s->running;
    if (!e)
        return;
    struct gn_sched_tenant *t = e->tenant;
    s->running = NULL;
    if (s->policy->forfeit) {
        s->policy->forfeit(&t->queue, &e->node);
        s->policy->forfeit(&s->queue, &t->node);
    }
    requeue(s, t, now_ns);
}

uint64_t gn_sched_keep_ns(const struct gn_sched *s, uint64_t now_ns)
{
    if (!s->policy->conserving)
        return UINT64_MAX;
    return now_ns - s->longest_at_ns > LATELY_NS ? 0 : s->longest_ns / KEEP_PART;
}

bool gn_sched_contended(const struct gn_sched *s)
{
    return s->running && s->n_ready;
}

bool gn_sched_ask(struct gn_sched *s, struct gn_sched_entity *e, uint64_t now_ns)
{
    if (!s->policy->by_cpu || !s->running || s->running == e || !e->node.ready)
        return false;
    if (e->tenant != s->running->tenant)
        return e->tenant->node.ready &&
               s->policy->prefers(&s->queue, &e->tenant->node, &s->running->tenant->node, now_ns);
    return s->policy->prefers(&e->tenant->queue, &e->node, &s->running->node, now_ns);
}
