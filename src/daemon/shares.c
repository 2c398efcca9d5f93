/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which part of each device, and what his weight entitles him to: for listings. gantryd's thread. */
#include "daemon/daemon.h"

static struct gn_share *share_on(struct gn_vgpu_record *v, uint32_t device)
{
    for (uint32_t i = 0; v->shares.joined && i < v->shares.n; i++)
        if (v->shares.all[i].device == device)
            return &v->shares.all[i];
    return NULL;
}

/* By weight, first among the tenants that have work, then among a tenant's vGPUs that do. */
static void reckon_device(struct gn_daemon *d, uint32_t device)
{
    uint64_t all_used = 0, all_weights = 0;
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
    }
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        struct gn_share *sh = share_on(v, device);
        if (!sh)
            continue;
        const struct gn_share_figures *f = &sh->figures;
        sh->part = sh->entitled = 0;
        if (f->busy)
            sh->entitled = (double)f->tenant_weight / (double)all_weights * f->weight / (double)v->tenant->busy_weights;
        /* Where nobody waited nothing is charged: who is there alone has all of it. */
        sh->part = all_used ? (double)f->lately_ns / (double)all_used : f->holds;
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
            reckon_device(d, n++);
}
