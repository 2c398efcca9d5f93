/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of placement.h that gantryd's thread calls: members come and go, have another size, and
 * answer. swap.c decides. All under the scheduler's lock.
 */
#include "daemon/schedule/placement_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "link/worker_wire.h"
#include "place/residency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void lock(struct gn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
}

/* Lets the scheduler's thread decide anew. */
static void unlock_and_wake(struct gn_scheduler *s)
{
    pthread_mutex_unlock(&s->lock);
    gn_scheduler_wake(s);
}

/* ---- start and end */

static int start_device(struct gn_placing **ret, const struct gn_placement_options *options,
                        const struct gn_placement_memory *memory, uint64_t now)
{
    const struct gn_place_policy *policy =
        options->policy ? options->policy : gn_place_policy_at(0);
    struct gn_placing *on = calloc(1, sizeof *on);
    if (!on)
        return -ENOMEM;
    const int rc = gn_place_init(&on->place, policy, memory->bytes, memory->slot_bytes, now);
    if (rc) {
        free(on);
        return rc;
    }
    gn_list_init(&on->leaving);
    on->swap_bytes = memory->swap_bytes;
    if (options->residency_max_ns)
        on->place.residency_max_ns = options->residency_max_ns;
    if (options->idle_ns)
        on->place.idle_ns = options->idle_ns;
    /* Without a part for copies src/place plans no periods: 0 is the shortest ones. */
    if (options->share_set)
        gn_residency_set_share(&on->place, options->share && options->share < GN_PLACE_WHOLE
                                               ? options->share
                                               : GN_PLACE_WHOLE - 1);
    *ret = on;
    return 0;
}

int gn_placement_start(struct gn_scheduler *s, const struct gn_placement_options *options,
                       const struct gn_placement_memory *memory, int news_fd)
{
    int rc = 0;
    s->news_fd = news_fd;
    for (uint32_t i = 0; options->on && rc == 0 && i < s->n_devices; i++)
        if (memory[i].bytes)
            rc = start_device(&s->devices[i].placing, options, &memory[i], gn_now_ns());
    return rc;
}

void gn_placement_stop(struct gn_scheduler *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        free(s->devices[i].placing);
}

bool gn_placement_is_on(const struct gn_scheduler *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].placing)
            return true;
    return false;
}

bool gn_placement_has_one(const struct gn_placement *p)
{
    return p->n == 1 && p->of[0].on;
}

/* ---- tenants */

int gn_placement_add_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t)
{
    if (!gn_placement_is_on(s))
        return 0;
    t->places = calloc(s->n_devices, sizeof *t->places);
    if (!t->places)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].placing)
            (void)gn_place_tenant_add(&s->devices[i].placing->place, &t->places[i], t->weight, 0);
    return 0;
}

void gn_placement_weigh_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t)
{
    for (uint32_t i = 0; t->places && i < s->n_devices; i++)
        if (s->devices[i].placing)
            (void)gn_place_tenant_set_weight(&s->devices[i].placing->place, &t->places[i],
                                             t->weight);
}

void gn_placement_remove_tenant(struct gn_scheduler *s, struct gn_tenant_shares *t)
{
    for (uint32_t i = 0; t->places && i < s->n_devices; i++)
        if (s->devices[i].placing)
            gn_place_tenant_remove(&s->devices[i].placing->place, &t->places[i]);
    free(t->places);
    t->places = NULL;
}

int gn_placement_reserve(struct gn_scheduler *s, struct gn_tenant_shares *t, uint32_t device,
                         uint64_t bytes)
{
    int rc = 0;
    lock(s);
    struct gn_placing *on = s->devices[device].placing;
    if (on && t && t->places)
        rc = gn_place_tenant_set_reserve(
            &on->place, &t->places[device],
            (uint32_t)((bytes + on->place.slot_bytes - 1) / on->place.slot_bytes));
    unlock_and_wake(s);
    return rc;
}

/* ---- members */

int gn_placement_join(struct gn_scheduler *s, struct gn_placement *p,
                      struct gn_tenant_shares **tenant, uint32_t tenant_weight, uint32_t weight,
                      const uint32_t *devices, uint32_t n, uint64_t now_ns)
{
    int rc = 0;
    if (!gn_placement_is_on(s) || p->of || !n)
        return 0;
    struct gn_placed *of = calloc(n, sizeof *of);
    if (!of)
        return -ENOMEM;
    lock(s);
    if (!*tenant && !(*tenant = gn_scheduler_new_tenant(s, tenant_weight)))
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct gn_placed *m = &of[i];
        struct gn_placing *on = s->devices[devices[i]].placing;
        m->of = p;
        m->device = devices[i];
        gn_list_init(&m->leaving);
        gn_list_init(&m->order);
        m->changed_share = GN_PLACE_WHOLE;
        /* Without chunks it fits. */
        if (on &&
            !gn_place_add(&on->place, &(*tenant)->places[devices[i]], &m->place, weight, 0, now_ns))
            m->on = on;
    }
    if (rc) {
        free(of);
    } else {
        p->of = of;
        p->n = n;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void gn_placement_leave(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns)
{
    if (!p->of)
        return;
    lock(s);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->of[i].on)
            gn_placed_gone(s, &p->of[i], now_ns);
    unlock_and_wake(s);
    free(p->of);
    *p = (struct gn_placement){0};
}

/* Another member may have its share already. */
static void unbind(struct gn_placed *m)
{
    if (m->share && m->share->placed == m)
        m->share->placed = NULL;
    m->share = NULL;
}

static void bind_share(struct gn_scheduler *s, struct gn_placed *m, struct gn_share *sh,
                       uint64_t now)
{
    struct gn_sched *sched = &s->devices[m->device].sched;
    m->share = sh;
    m->has_work =
        sh && (sh->entity.node.ready || sh->entity.awaits_memory || sched->running == &sh->entity);
    if (sh && sh->placed)
        sh->placed->share = NULL;
    if (sh)
        sh->placed = m;
    gn_placed_set_evicted(s, m, now);
    gn_placed_update(m, now);
}

void gn_placement_bind(struct gn_scheduler *s, struct gn_placement *p, struct gn_shares *sh,
                       uint64_t now_ns)
{
    lock(s);
    for (uint32_t i = 0; i < p->n; i++) {
        struct gn_placed *m = &p->of[i];
        if (!m->on)
            continue;
        m->of = p;
        unbind(m);
        bind_share(s, m, NULL, now_ns);
        for (uint32_t k = 0; sh && sh->joined && k < sh->n; k++)
            if (sh->all[k].device == m->device)
                bind_share(s, m, &sh->all[k], now_ns);
    }
    unlock_and_wake(s);
}

void gn_placement_set_moves(struct gn_scheduler *s, struct gn_placement *p, bool moves)
{
    lock(s);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->of[i].on && p->of[i].place.moves != moves)
            gn_place_set_moves(&p->of[i].on->place, &p->of[i].place, moves);
    unlock_and_wake(s);
}

int gn_placement_resize(struct gn_scheduler *s, struct gn_placement *p, uint32_t i, uint64_t bytes,
                        uint64_t pinned_bytes, uint64_t now_ns)
{
    int rc = 1;
    if (i >= p->n || !p->of[i].on)
        return 1;
    lock(s);
    struct gn_placed *m = &p->of[i];
    const uint64_t before = m->bytes, pinned_before = m->pinned_bytes;
    m->bytes = bytes;
    m->pinned_bytes = pinned_bytes;
    rc = gn_placed_fit(s, m, now_ns);
    if (rc < 0) {
        m->bytes = before;
        m->pinned_bytes = pinned_before;
    }
    unlock_and_wake(s);
    return rc;
}

bool gn_placement_pins_all(struct gn_scheduler *s, const struct gn_placement *p)
{
    bool all = true;
    lock(s);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct gn_placed *m = &p->of[i];
        all = all && (!m->on || m->place.n_pinned * m->on->place.slot_bytes >= m->pinned_bytes);
    }
    pthread_mutex_unlock(&s->lock);
    return all;
}

int gn_placement_answered(struct gn_scheduler *s, struct gn_placement *p, uint32_t number,
                          const struct gn_worker_resides *r, uint64_t now_ns)
{
    int rc = -EPROTO;
    lock(s);
    for (uint32_t i = 0; rc && i < p->n; i++) {
        struct gn_placed *m = &p->of[i];
        const bool leaves = m->state == GN_PLACEMENT_LEAVING;
        if (!m->on || m->number != number || m->tells ||
            (!leaves && m->state != GN_PLACEMENT_COMING))
            continue;
        rc = 0;
        /* For display; the worker's own word. */
        const uint64_t most = m->place.n_chunks * m->on->place.slot_bytes;
        *(leaves ? &m->out_bytes : &m->in_bytes) += r->copied_bytes < most ? r->copied_bytes : most;
        const bool refused = leaves && r->resident_bytes > m->told_bytes;
        if (refused && r->pinned_bytes > m->pinned_bytes) {
            m->pinned_bytes = r->pinned_bytes;
            (void)gn_placed_fit(s, m, now_ns);
        }
        gn_placed_answered(s, m, refused, r, now_ns);
    }
    unlock_and_wake(s);
    return rc;
}

int gn_placement_wanted(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns)
{
    bool news = false;
    if (!p->of)
        return -EPROTO;
    lock(s);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->of[i].on || p->of[i].wants || p->of[i].state == GN_PLACEMENT_RESIDENT)
            continue; /* it has come in meanwhile */
        p->of[i].wants = news = true;
        gn_placed_update(&p->of[i], now_ns);
    }
    pthread_mutex_unlock(&s->lock);
    if (news)
        gn_scheduler_wake(s);
    return 0;
}

int gn_placement_discarded(struct gn_scheduler *s, struct gn_placement *p, uint64_t now_ns)
{
    int rc = -EPROTO;
    lock(s);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->of[i].on || p->of[i].copies != GN_COPIES_DISCARDED || p->of[i].tells_discard)
            continue;
        rc = 0;
        gn_placed_discarded(&p->of[i], now_ns);
    }
    unlock_and_wake(s);
    return rc;
}

/* One order at a time; a new size's room after what is older. */
static bool next_of(struct gn_placed *m, struct gn_placement_order *ret)
{
    ret->of = m->of;
    ret->number = m->number;
    ret->bytes = m->told_bytes;
    ret->keeps_copies = m->copies == GN_COPIES_ALLOWED || m->copies == GN_COPIES_MADE;
    bool *pending = m->tells           ? &m->tells
                    : m->tells_discard ? &m->tells_discard
                    : m->has_room      ? &m->has_room
                                       : &m->overdue;
    ret->kind = m->tells           ? GN_PLACEMENT_RESIDE
                : m->tells_discard ? GN_PLACEMENT_DISCARD
                : m->has_room      ? GN_PLACEMENT_ROOM
                                   : GN_PLACEMENT_OVERDUE;
    const bool any = *pending;
    *pending = false;
    return any;
}

bool gn_placement_next(struct gn_scheduler *s, struct gn_placement_order *ret)
{
    bool found = false;
    lock(s);
    while (!found && !gn_list_empty(&s->orders)) {
        struct gn_placed *m = gn_list_first(&s->orders, struct gn_placed, order);
        found = next_of(m, ret);
        if (!found)
            gn_list_remove(&m->order);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* ---- figures */

bool gn_placement_figures(struct gn_scheduler *s, const struct gn_shares *sh, uint32_t i,
                          struct gn_placement_figures *ret)
{
    lock(s);
    const struct gn_placed *m = sh->joined && i < sh->n ? sh->all[i].placed : NULL;
    if (m) {
        const uint64_t slot = m->on->place.slot_bytes;
        const bool out = m->state != GN_PLACEMENT_RESIDENT;
        *ret = (struct gn_placement_figures){
            .state = m->state,
            .memory_bytes = m->place.n_chunks * slot,
            .resident_bytes = m->place.n_occupied * slot,
            .pinned_bytes = m->place.n_pinned * slot,
            .n_residencies = m->n_residencies,
            .in_bytes = m->in_bytes,
            .out_bytes = m->out_bytes,
            .evicted_ns = m->evicted_ns + (out ? gn_now_ns() - m->evicted_since_ns : 0)};
    }
    pthread_mutex_unlock(&s->lock);
    return m != NULL;
}

bool gn_placement_device(struct gn_scheduler *s, uint32_t device, struct gn_placement_device *ret)
{
    lock(s);
    const struct gn_placing *on = device < s->n_devices ? s->devices[device].placing : NULL;
    if (on)
        *ret = (struct gn_placement_device){
            .policy = on->place.policy->name,
            .slot_bytes = on->place.slot_bytes,
            .n_slots = on->place.n_slots,
            .n_free = on->place.n_free,
            .n_reserved = on->place.n_reserved,
            .swap_bytes = on->swap_bytes,
            .n_swaps = on->n_swaps,
            .copying_ns = on->copying_ns + (on->phase ? gn_now_ns() - on->began_ns : 0),
            .n_rearranged = on->place.n_rearranged};
    pthread_mutex_unlock(&s->lock);
    return on != NULL;
}

const struct gn_place_policy *gn_placement_policy(struct gn_scheduler *s)
{
    const struct gn_place_policy *policy = NULL;
    lock(s);
    for (uint32_t i = 0; !policy && i < s->n_devices; i++)
        if (s->devices[i].placing)
            policy = s->devices[i].placing->place.policy;
    pthread_mutex_unlock(&s->lock);
    return policy;
}

void gn_placement_set_policy(struct gn_scheduler *s, const struct gn_place_policy *policy)
{
    lock(s);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct gn_placing *on = s->devices[i].placing;
        if (!on)
            continue;
        on->broken |= on->phase == GN_SWAP_LEAVE; /* its plan is the other policy's */
        gn_place_set_policy(&on->place, policy, gn_now_ns());
    }
    unlock_and_wake(s);
}
