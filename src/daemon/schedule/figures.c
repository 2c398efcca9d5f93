/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of shares for listings: device time, waiting time and grants, in total and for the
 * last second or two. Called by scheduler.c on the scheduler's thread and by shares.c on gantryd's
 * thread, under the scheduler's lock. Counters are sampled at most once a second, and only while
 * something happens: no timer wakes the thread for them.
 */
#include <string.h>

#include "base/clock.h"
#include "daemon/schedule/scheduler_internal.h"

#define LATELY_NS UINT64_C(1000000000)

static struct gn_share_count count(const struct gn_share *sh, uint64_t now)
{
    return (struct gn_share_count){
        sh->entity.used_ns + gn_share_used(sh, now), sh->entity.n_grants,
        atomic_load_explicit(&sh->slot->device_ns, memory_order_relaxed)};
}

static const struct gn_share *holder(const struct device *d)
{
    return d->sched.running ? gn_container_of(d->sched.running, struct gn_share, entity) : NULL;
}

void gn_scheduler_count_locked(struct gn_scheduler *s, uint64_t now)
{
    bool any = false;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct device *d = &s->devices[i];
        const uint64_t since = now - d->counted_ns;
        d->count_now = since >= LATELY_NS;
        /* Nothing has happened for long, and the reason is not one long command. */
        d->count_anew = since >= 2 * LATELY_NS && !(holder(d) && holder(d)->preempted_ns);
        if (d->count_now)
            d->counted_ns = now;
        any |= d->count_now;
    }
    for (uint32_t i = 0; any && i < s->n_table; i++) {
        for (uint32_t j = 0; s->table[i] && j < s->table[i]->n; j++) {
            struct gn_share *sh = &s->table[i]->all[j];
            const struct device *d = &s->devices[sh->device];
            if (!d->count_now)
                continue;
            const struct gn_share_count c = count(sh, now);
            sh->before = d->count_anew ? c : sh->last;
            sh->last = c;
        }
    }
}

void gn_scheduler_figures(struct gn_scheduler *s, const struct gn_shares *sh, uint32_t i,
                          struct gn_share_figures *ret)
{
    memset(ret, 0, sizeof *ret);
    if (!sh->joined || i >= sh->n)
        return;
    const struct gn_share *share = &sh->all[i];
    const struct gn_sched_entity *e = &share->entity;
    pthread_mutex_lock(&s->lock);
    const uint64_t now = gn_now_ns();
    const enum gn_grant_state state = gn_grant_look(share->slot);
    gn_scheduler_count_locked(s, now);
    const struct gn_share_count c = count(share, now);
    ret->used_ns = c.used_ns;
    ret->waited_ns = e->waited_ns + (e->node.ready ? now - e->ready_at_ns : 0);
    ret->n_grants = c.n_grants;
    ret->lately_ns = c.used_ns - share->before.used_ns;
    ret->device_ns = c.device_ns;
    /* The worker reports it, and may report less than before. */
    ret->lately_device_ns =
        c.device_ns > share->before.device_ns ? c.device_ns - share->before.device_ns : 0;
    ret->holds = holder(&s->devices[share->device]) == share && state == GN_GRANT_HELD;
    ret->busy = ret->holds || e->node.ready || ret->lately_ns || ret->lately_device_ns ||
                c.n_grants != share->before.n_grants;
    ret->weight = e->node.weight;
    ret->tenant_weight = e->tenant->node.weight;
    pthread_mutex_unlock(&s->lock);
    ret->interactive = atomic_load_explicit(&share->slot->interactive, memory_order_relaxed) != 0;
}
