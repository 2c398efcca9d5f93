/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the rows from two samples: rates, sums of tenants, the order. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/top.h"

static const char *const orders[GN_TOP_N_ORDERS] = {"share", "name", "memory", "calls",
                                                    "sync",  "wait", "time"};

const char *gn_top_order_name(int order)
{
    return order >= 0 && order < GN_TOP_N_ORDERS ? orders[order] : NULL;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct gn_top_vgpu *)a)->id, ((const struct gn_top_vgpu *)b)->id);
}

static const struct gn_top_vgpu *earlier(const struct gn_top_sample *before,
                                         const struct gn_top_vgpu *v)
{
    return before && before->n_vgpus ? bsearch(v, before->vgpus, before->n_vgpus, sizeof *v, by_id)
                                     : NULL;
}

/*
 * The growth of a counter. For a new vGPU `was` is 0; a counter that went back belongs to another
 * vGPU and counts as 0.
 */
static double grown(uint64_t was, uint64_t is)
{
    return is > was ? (double)(is - was) : 0;
}

static bool shows(const struct gn_top_use *u, int device)
{
    return device < 0 || u->device == (uint32_t)device;
}

/* Fills the row of a vGPU from two samples. seconds 0: rates are unknown. */
static void fill_vgpu(const struct gn_top_vgpu *v, const struct gn_top_vgpu *was, double seconds,
                      int device, struct gn_top_row *r)
{
    static const struct gn_top_vgpu nothing;
    bool interactive = false, bulk = false;
    double waited_ns = 0;
    if (!was)
        was = &nothing;
    r->vgpu = v;
    r->tenant = v->tenant;
    r->memory_bytes = v->memory_bytes;
    r->limit_bytes = v->limit_bytes;
    r->device = -1;
    r->share = r->entitled = -1;
    for (uint32_t i = 0; i < v->n_uses; i++) {
        const struct gn_top_use *u = &v->uses[i];
        if (!shows(u, device))
            continue;
        r->device_ns += u->device_ns;
        waited_ns += grown(i < was->n_uses ? was->uses[i].waited_ns : 0, u->waited_ns);
        if (!u->turns)
            continue;
        if (u->grants) {
            interactive = interactive || u->interactive;
            bulk = bulk || !u->interactive;
        }
        if (u->share > r->share || (u->share == r->share && u->entitled > r->entitled)) {
            r->share = u->share;
            r->entitled = u->entitled;
            r->device = (int)u->device;
        }
    }
    r->class = interactive && bulk ? GN_TOP_MIXED
               : interactive       ? GN_TOP_INTERACTIVE
               : bulk              ? GN_TOP_BULK
                                   : GN_TOP_NO_CLASS;
    r->calls = r->syncs = r->waits = -1;
    if (seconds > 0) {
        r->calls = grown(was->calls, v->calls) / seconds;
        r->syncs = grown(was->sync_calls, v->sync_calls) / seconds;
        r->waits = waited_ns / (seconds * 1e9);
    }
}

static void add(double *sum, double more)
{
    if (more >= 0)
        *sum = *sum < 0 ? more : *sum + more;
}

/* Fills the row of a tenant from its vGPUs' rows and from gantryd's data about the tenant. */
static void fill_tenant(const struct gn_top_sample *now, const struct gn_top_row *rows, uint32_t n,
                        int device, struct gn_top_row *r)
{
    bool classes[GN_TOP_MIXED + 1] = {false};
    uint32_t n_waits = 0;
    r->device = -1;
    r->n_vgpus = n;
    r->share = r->entitled = r->calls = r->syncs = r->waits = -1;
    for (uint32_t i = 0; i < n; i++) {
        add(&r->calls, rows[i].calls);
        add(&r->syncs, rows[i].syncs);
        add(&r->waits, rows[i].waits);
        n_waits += rows[i].waits >= 0;
        r->device_ns += rows[i].device_ns;
        r->memory_bytes += rows[i].memory_bytes;
        classes[rows[i].class] = true;
    }
    if (n_waits)
        r->waits /= n_waits;
    if (classes[GN_TOP_MIXED] || (classes[GN_TOP_BULK] && classes[GN_TOP_INTERACTIVE]))
        r->class = GN_TOP_MIXED;
    else
        r->class = classes[GN_TOP_BULK]          ? GN_TOP_BULK
                   : classes[GN_TOP_INTERACTIVE] ? GN_TOP_INTERACTIVE
                                                 : GN_TOP_NO_CLASS;
    for (uint32_t d = 0; d < now->n_devices; d++) {
        double share = -1, entitled = -1;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < rows[i].vgpu->n_uses; j++) {
                const struct gn_top_use *u = &rows[i].vgpu->uses[j];
                if (u->device == d && u->turns && shows(u, device)) {
                    add(&share, u->share);
                    add(&entitled, u->entitled);
                }
            }
        }
        if (share > r->share || (share == r->share && entitled > r->entitled)) {
            r->share = share < 1 ? share : 1;
            r->entitled = entitled < 1 ? entitled : 1;
            r->device = (int)d;
        }
    }
    for (uint32_t i = 0; i < now->n_tenants; i++)
        if (strcmp(now->tenants[i].name, r->tenant) == 0)
            r->limit_bytes = now->tenants[i].limit_bytes;
}

/*
 * Fills the row of the vGPUs that gantryd does not list, for the device of which they have the
 * largest share. False: there are none.
 */
static bool fill_others(const struct gn_top_sample *before, const struct gn_top_sample *now,
                        double seconds, int device, struct gn_top_row *r)
{
    *r = (struct gn_top_row){.tenant = "others",
                             .others = true,
                             .device = -1,
                             .share = -1,
                             .entitled = -1,
                             .calls = -1,
                             .syncs = -1,
                             .waits = -1};
    for (uint32_t d = 0; d < now->n_devices; d++) {
        const struct gn_top_device *it = &now->devices[d];
        if (!it->n_others || !shows(&it->others, device))
            continue;
        r->n_vgpus = it->n_others > r->n_vgpus ? it->n_others : r->n_vgpus;
        r->device_ns += it->others.device_ns;
        if (seconds > 0 && before && d < before->n_devices)
            add(&r->waits, grown(before->devices[d].others.waited_ns, it->others.waited_ns) /
                               (seconds * 1e9) / it->n_others);
        if (it->others.share > r->share ||
            (it->others.share == r->share && it->others.entitled > r->entitled)) {
            r->share = it->others.share;
            r->entitled = it->others.entitled;
            r->device = (int)d;
        }
    }
    return r->n_vgpus > 0;
}

/* ---- order */

struct order {
    enum gn_top_order by;
    bool reverse;
};

static const char *name_of(const struct gn_top_row *r)
{
    return r->vgpu ? r->vgpu->id : r->tenant;
}

static double value_of(const struct gn_top_row *r, enum gn_top_order by)
{
    switch (by) {
    case GN_TOP_BY_MEMORY:
        return (double)r->memory_bytes;
    case GN_TOP_BY_CALLS:
        return r->calls;
    case GN_TOP_BY_SYNC:
        return r->syncs;
    case GN_TOP_BY_WAIT:
        return r->waits;
    case GN_TOP_BY_TIME:
        return (double)r->device_ns;
    default:
        return r->share;
    }
}

/* Largest first; equal rows by name, so that they keep their places. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct order *o = arg;
    const struct gn_top_row *x = a, *y = b;
    int order = 0;
    if (o->by != GN_TOP_BY_NAME) {
        const double p = value_of(x, o->by), q = value_of(y, o->by);
        order = p < q ? 1 : p > q ? -1 : 0;
    }
    if (order == 0 && (order = strcmp(name_of(x), name_of(y))) && o->by != GN_TOP_BY_NAME)
        return order;
    return o->reverse ? -order : order;
}

static int by_tenant(const void *a, const void *b)
{
    return strcmp(((const struct gn_top_row *)a)->tenant, ((const struct gn_top_row *)b)->tenant);
}

/* ---- devices */

/*
 * Uses the totals of all vGPUs, including ended and unlisted ones. Charged time grows during a
 * turn, device time only when commands complete, so `busy` is the larger of the two.
 */
static void fill_load(const struct gn_top_device *was, const struct gn_top_device *is,
                      double seconds, struct gn_top_load *l)
{
    const double ran = grown(was->device_ns, is->device_ns),
                 charged = grown(was->used_ns, is->used_ns);
    l->busy = (ran > charged ? ran : charged) / (seconds * 1e9);
    l->grants = grown(was->grants, is->grants) / seconds;
    l->waiting = grown(was->waited_ns, is->waited_ns) / (seconds * 1e9);
}

static void fill_loads(const struct gn_top_sample *before, const struct gn_top_sample *now,
                       double seconds, struct gn_top_load *loads)
{
    for (uint32_t d = 0; d < now->n_devices; d++)
        loads[d] = (struct gn_top_load){.busy = seconds > 0 ? 0 : -1,
                                        .grants = seconds > 0 ? 0 : -1,
                                        .waiting = seconds > 0 ? 0 : -1,
                                        .copying = -1};
    for (uint32_t i = 0; i < now->n_vgpus; i++) {
        const struct gn_top_vgpu *v = &now->vgpus[i], *was = earlier(before, v);
        for (uint32_t j = 0; j < v->n_uses; j++) {
            const struct gn_top_use *u = &v->uses[j], none = {0},
                                    *w = was && j < was->n_uses ? &was->uses[j] : &none;
            struct gn_top_load *l = &loads[u->device];
            l->n_users += u->grants || u->device_ns;
            if (seconds > 0) {
                l->busy += grown(w->device_ns, u->device_ns) / (seconds * 1e9);
                l->grants += grown(w->grants, u->grants) / seconds;
                l->waiting += grown(w->waited_ns, u->waited_ns) / (seconds * 1e9);
            }
        }
    }
    for (uint32_t d = 0; d < now->n_devices; d++) {
        loads[d].n_users += now->devices[d].n_others;
        if (seconds > 0 && now->devices[d].has_use && d < before->n_devices)
            fill_load(&before->devices[d], &now->devices[d], seconds, &loads[d]);
        if (loads[d].busy > 1)
            loads[d].busy = 1;
        if (seconds > 0 && d < before->n_devices)
            loads[d].copying =
                grown(before->devices[d].copying_ns, now->devices[d].copying_ns) / (seconds * 1e9);
        if (loads[d].copying > 1)
            loads[d].copying = 1;
    }
}

int gn_top_rows_make(const struct gn_top_sample *before, const struct gn_top_sample *now,
                     int device, enum gn_top_order order, bool reverse, struct gn_top_rows *ret)
{
    struct order by = {order, reverse};
    const double seconds =
        before && now->at_ns > before->at_ns ? (double)(now->at_ns - before->at_ns) / 1e9 : 0;
    struct gn_top_row *vgpus = calloc(now->n_vgpus + 1, sizeof *vgpus),
                      *tenants = calloc(now->n_vgpus + 1, sizeof *tenants);
    uint32_t n_tenants = 0;
    memset(ret, 0, sizeof *ret);
    ret->rows = calloc(2 * now->n_vgpus + 2, sizeof *ret->rows);
    ret->loads = calloc(now->n_devices + 1, sizeof *ret->loads);
    if (!vgpus || !tenants || !ret->rows || !ret->loads) {
        free(vgpus);
        free(tenants);
        gn_top_rows_fini(ret);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < now->n_vgpus; i++)
        fill_vgpu(&now->vgpus[i], earlier(before, &now->vgpus[i]), seconds, device, &vgpus[i]);
    qsort(vgpus, now->n_vgpus, sizeof *vgpus, by_tenant);
    for (uint32_t i = 0, n; i < now->n_vgpus; i += n) {
        for (n = 1; i + n < now->n_vgpus && strcmp(vgpus[i + n].tenant, vgpus[i].tenant) == 0; n++)
            ;
        struct gn_top_row *t = &tenants[n_tenants++];
        t->tenant = vgpus[i].tenant;
        t->first = i;
        fill_tenant(now, &vgpus[i], n, device, t);
        qsort_r(&vgpus[i], n, sizeof *vgpus, compare, &by);
    }
    qsort_r(tenants, n_tenants, sizeof *tenants, compare, &by);
    for (uint32_t t = 0; t < n_tenants; t++) {
        ret->rows[ret->n++] = tenants[t];
        memcpy(&ret->rows[ret->n], &vgpus[tenants[t].first], tenants[t].n_vgpus * sizeof *vgpus);
        ret->n += tenants[t].n_vgpus;
    }
    ret->n_tenants = n_tenants;
    ret->n += fill_others(before, now, seconds, device, &ret->rows[ret->n]);
    fill_loads(before, now, seconds, ret->loads);
    free(vgpus);
    free(tenants);
    return 0;
}

void gn_top_rows_fini(struct gn_top_rows *r)
{
    free(r->rows);
    free(r->loads);
    memset(r, 0, sizeof *r);
}
