/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which devices are offered to a new vGPU. A program that names its device gets that
 * one. Any other program is offered the least loaded device first, as loads are when it attaches.
 * gantryd's thread.
 */
#include <stddef.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/schedule/shares.h"
#include "daemon/vgpu/device_load.h"
#include "daemon/vgpu/worker.h"
#include "sched/choose.h"
#include "shm/counters.h"

uint64_t gn_loads_of(const struct gn_vgpu_record *v)
{
    uint64_t used = 0;
    (void)!pread(v->counters_fd, &used, sizeof used, offsetof(struct gn_counters, devices));
    /* By the worker's word, and in its order: the tenant's devices alone. */
    uint64_t ret = 0;
    for (uint32_t k = 0; k < gn_vgpus_n_devices(v); k++)
        ret |= (used >> k & 1) << v->order[k];
    return ret;
}

/* On the device that was offered to it first, before it has taken one. */
static uint64_t stands_on(const struct gn_vgpu_record *v)
{
    const uint64_t used = gn_loads_of(v);
    for (uint32_t i = 0; !used && i < GN_WORKER_MAX_DEVICES; i++)
        if ((v->devices >> i & 1) && v->ranks[i] == 0)
            return UINT64_C(1) << i;
    return used;
}

static bool works_on(const struct gn_vgpu_record *v, uint32_t device)
{
    uint32_t slot = 0;
    /* A vGPU that is starting is not idle. */
    if (!(gn_loads_of(v) >> device & 1))
        return true;
    if (!v->takes_turns)
        return gn_vgpus_is_busy(v);
    while (slot < gn_vgpus_n_devices(v) && v->order[slot] != device)
        slot++;
    return v->shares.joined && slot < v->shares.n && v->shares.all[slot].figures.busy;
}

static void weigh(struct gn_daemon *d, uint32_t platform, uint32_t device,
                  struct gn_sched_load *ret)
{
    *ret = (struct gn_sched_load){0};
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link) t->is_there = t->is_busy = false;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->platform != platform || v->ending || gn_vgpus_session_of(v) != v ||
            !(stands_on(v) >> device & 1))
            continue;
        ret->n++;
        if (!v->tenant->is_there)
            ret->weights += v->tenant->rules.weight;
        v->tenant->is_there = true;
        if (v->tenant->is_busy || !works_on(v, device))
            continue;
        v->tenant->is_busy = true;
        ret->busy_weights += v->tenant->rules.weight;
    }
}

void gn_loads_rank(struct gn_daemon *d, uint32_t platform, uint64_t devices,
                   uint8_t ranks[static GN_WORKER_MAX_DEVICES])
{
    struct gn_sched_load loads[GN_WORKER_MAX_DEVICES];
    const uint32_t n = d->machine.platforms[platform].n_devices;
    gn_shares_reckon(d);
    for (uint32_t i = 0; i < n; i++)
        if (devices >> i & 1)
            weigh(d, platform, i, &loads[i]);
    for (uint8_t rank = 0; devices; rank++) {
        uint32_t best = (uint32_t)__builtin_ctzll(devices);
        for (uint32_t i = best + 1; i < n; i++)
            if ((devices >> i & 1) && gn_sched_less_loaded(&loads[i], &loads[best]))
                best = i;
        ranks[best] = rank;
        devices &= ~(UINT64_C(1) << best);
    }
}
