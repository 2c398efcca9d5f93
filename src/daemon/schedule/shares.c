/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates, for listings, the part of each device that a vGPU uses and the part that its weight
 * entitles it to. Called by the control requests and when a vGPU leaves, on gantryd's thread. Reads
 * the scheduler's figures and changes no share. */
#include "daemon/daemon.h"
#include "daemon/schedule/shares.h"

static struct gn_share *share_on(struct gn_vgpu_record *v, uint32_t device)
{
    for (uint32_t i = 0; v->shares.joined && i < v->shares.n; i++)
        if (v->shares.all[i].device == device)
            return &v->shares.all[i];
    return NULL;
}

const struct gn_share *gn_shares_on(const struct gn_vgpu_record *v, uint32_t device)
{
    return share_on((struct gn_vgpu_record *)(uintptr_t)v, device);
}

/* Finds a device by its number over all platforms. */
static struct gn_device_record *find_device(struct gn_machine *m, uint32_t device)
{
    for (uint32_t p = 0; p < m->n_platforms; device -= m->platforms[p++].n_devices)
        if (device < m->platforms[p].n_devices)
            return &m->platforms[p].devices[device];
    return NULL;
}

void gn_shares_leave(struct gn_vgpu_record *v)
{
    for (uint32_t i = 0; v->shares.joined && i < v->shares.n; i++) {
        struct gn_device_record *d = find_device(&v->daemon->machine, v->shares.all[i].device);
        struct gn_share_figures f;
        if (!d)
            continue;
        gn_scheduler_figures(v->daemon->scheduler, &v->shares, i, &f);
        d->past.device_ns += f.device_ns;
        d->past.used_ns += f.used_ns;
        d->past.waited_ns += f.waited_ns;
        d->past.n_grants += f.n_grants;
    }
}

/* Divides by weight, first among tenants with work, then among the vGPUs with work of each. */
static void compute_device(struct gn_daemon *d, uint32_t device)
{
    uint64_t all_used = 0, all_weights = 0;
    double all_device = 0;
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link) t->busy_weights = 0;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        const struct gn_share *sh = share_on(v, device);
        if (!sh || !sh->figures.busy)
            continue;
        if (!v->tenant->busy_weights)
            all_weights += sh->figures.tenant_weight;
        v->tenant->busy_weights += sh->figures.weight;
        all_used += sh->figures.lately_ns;
        all_device += (double)sh->figures.lately_device_ns;
    }
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        struct gn_share *sh = share_on(v, device);
        if (!sh)
            continue;
        const struct gn_share_figures *f = &sh->figures;
        sh->part = sh->entitled = 0;
        if (f->busy)
            sh->entitled = (double)f->tenant_weight / (double)all_weights * f->weight /
                           (double)v->tenant->busy_weights;
        /* If no vGPU waited, nothing was charged and device time counts; before any is reported,
         * the holder counts as using all. */
        sh->part = all_used         ? (double)f->lately_ns / (double)all_used
                   : all_device > 0 ? (double)f->lately_device_ns / all_device
                                    : f->holds;
    }
}

void gn_shares_reckon(struct gn_daemon *d)
{
    uint32_t n = 0;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        for (uint32_t i = 0; i < v->shares.n; i++)
            gn_scheduler_figures(d->scheduler, &v->shares, i, &v->shares.all[i].figures);
    }
    for (uint32_t p = 0; p < d->machine.n_platforms; p++)
        for (uint32_t i = 0; i < d->machine.platforms[p].n_devices; i++)
            compute_device(d, n++);
}
