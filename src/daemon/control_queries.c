/* SPDX-License-Identifier: Apache-2.0 */
/* The queries among the control requests (control/control.h): lists of vGPUs, devices, tenants and
 * so on, for the peer that asks. Called by control_commands.c on gantryd's thread. Changes nothing
 * and never blocks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/migrate/outbound.h"
#include "daemon/config.h"
#include "daemon/net/connection_limits.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/log_writer.h"
#include "daemon/control_viewer.h"
#include "daemon/migrate/migration.h"
#include "daemon/schedule/placement.h"
#include "daemon/schedule/shares.h"
#include "daemon/vgpu/device_load.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/record_session.h"
#include "place/place.h"
#include "shm/counters.h"
#include "shm/session_layout.h"

/* Memory in use as the worker reports it, but at most its lease. */
static uint64_t memory_of(const struct gn_vgpu_record *v, const struct gn_counters *n)
{
    return n->memory_bytes < v->lease.leased_bytes ? n->memory_bytes : v->lease.leased_bytes;
}

static void read_counters(const struct gn_vgpu_record *v, struct gn_counters *ret)
{
    memset(ret, 0, sizeof *ret);
    (void)!pread(v->counters_fd, ret, sizeof *ret, 0);
}

/* The number of a platform's first device, over all platforms. */
static uint32_t first_device(const struct gn_machine *m, uint32_t platform)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < platform; i++)
        n += m->platforms[i].n_devices;
    return n;
}

/* The memory of the vGPU on the i-th of its devices; NULL: it is not placed. */
static const struct gn_control_placed *memory_on(const struct gn_vgpu_record *v, uint32_t i,
                                                 struct gn_control_placed *ret)
{
    static const char *const states[] = {[GN_PLACEMENT_RESIDENT] = "resident",
                                         [GN_PLACEMENT_PREEMPTED] = "leaving",
                                         [GN_PLACEMENT_LEAVING] = "leaving",
                                         [GN_PLACEMENT_EVICTED] = "evicted",
                                         [GN_PLACEMENT_COMING] = "coming"};
    struct gn_placement_figures f;
    if (!gn_placement_figures(v->daemon->scheduler, &v->shares, i, &f))
        return NULL;
    *ret = (struct gn_control_placed){.state = states[f.state],
                                      .memory_bytes = f.memory_bytes,
                                      .resident_bytes = f.resident_bytes,
                                      .pinned_bytes = f.pinned_bytes,
                                      .n_residencies = f.n_residencies,
                                      .in_bytes = f.in_bytes,
                                      .out_bytes = f.out_bytes,
                                      .evicted_ns = f.evicted_ns};
    return ret;
}

/* The share of the vGPU in the i-th of its devices, with its memory there in *placed. */
static struct gn_control_share share_of(const struct gn_vgpu_record *v, uint32_t i, uint32_t index,
                                        const char *name, bool used,
                                        struct gn_control_placed *placed)
{
    const struct gn_shares *shares = &v->shares;
    struct gn_control_share out = {.name = name, .index = index, .used = used};
    if (!v->takes_turns)
        out.share = out.entitled = -1;
    if (!v->takes_turns || !shares->joined || i >= shares->n)
        return out;
    const struct gn_share *sh = &shares->all[i];
    out.share = sh->part;
    out.entitled = sh->entitled;
    out.device_ns = sh->figures.device_ns;
    out.used_ns = sh->figures.used_ns;
    out.waited_ns = sh->figures.waited_ns;
    out.grants = sh->figures.n_grants;
    out.interactive = sh->figures.interactive;
    out.placed = memory_on(v, i, placed);
    return out;
}

static void list_vgpus(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *),
                       void *arg)
{
    const struct gn_viewer *w = ctx;
    struct gn_daemon *d = w->d;
    const uint64_t now_ns = gn_now_ns();
    gn_shares_reckon(d);
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        const struct gn_platform_record *p = &d->machine.platforms[v->platform];
        struct gn_control_share devices[GN_WORKER_MAX_DEVICES];
        struct gn_control_placed placed[GN_WORKER_MAX_DEVICES];
        struct gn_counters n;
        uint32_t n_devices = 0;
        if (!gn_record_is_listed(v) || !gn_viewer_sees(w, v->tenant))
            continue; /* its program does not have it yet, or the peer may not see it */
        read_counters(v, &n);
        struct gn_session_counts own = {0};
        (void)!pread(v->ring_fd, &own, sizeof own, GN_SESSION_COUNTS_AT);
        const uint64_t maps = own.maps < n.copies_two ? own.maps : n.copies_two;
        const uint64_t used = gn_loads_of(v);
        struct gn_control_moving moving;
        const struct gn_migration *m = gn_migration_of(v);
        if (m)
            gn_migration_progress(m, &n, now_ns, &moving);
        while (n_devices < gn_vgpus_n_devices(v)) {
            const uint32_t i = v->order[n_devices];
            devices[n_devices] =
                share_of(v, n_devices, first_device(&d->machine, v->platform) + i,
                         p->devices[i].facts.name, used >> i & 1, &placed[n_devices]);
            n_devices++;
        }
        struct gn_control_vgpu out = {
            .id = v->id,
            .tenant = v->tenant->rules.name,
            .program = v->program,
            .pid = (uint32_t)v->program_pid,
            .worker_pid = v->process.fd >= 0 ? (uint32_t)v->worker_pid : 0,
            .platform = p->name,
            .link = v->serving->link ? v->serving->link : v->session_ops->name,
            .mode = gn_mode_name(v->serving->mode),
            .driver_stays = v->driver_stays && !v->serving->uses_program_driver,
            .state = gn_vgpus_shown_state(v),
            .moving = m ? &moving : NULL,
            .weight = v->weight,
            .memory_bytes = memory_of(v, &n),
            .leased_bytes = v->lease.leased_bytes,
            .memory_limit_bytes = gn_holder_limit(&v->lease),
            .calls = n.calls,
            .sync_calls = n.sync_calls,
            .copies_two = n.copies_two - maps,
            .copies_mapped = n.copies_mapped + own.copies_mapped + maps,
            .copies_bypass = n.copies_bypass + own.copies_bypass,
            .n_devices = n_devices,
            .devices = devices,
        };
        each(arg, &out);
    }
}

/* Counts vGPUs, of all tenants, that may use any of these devices. */
static uint32_t count_vgpus(const struct gn_viewer *w, uint32_t platform, uint64_t devices)
{
    uint32_t n = 0;
    gn_list_for_each(v, &w->d->vgpus, struct gn_vgpu_record, link)
    {
        if (gn_record_is_listed(v) && v->platform == platform && v->process.fd >= 0 &&
            (v->devices & devices))
            n++;
    }
    return n;
}

/* Adds up the use of a device: by all vGPUs, and by those that the peer may not see. */
static void add_use(const struct gn_viewer *w, const struct gn_device_record *of,
                    struct gn_control_device *ret)
{
    ret->use = (struct gn_control_use){of->past.device_ns, of->past.used_ns, of->past.waited_ns,
                                       of->past.n_grants};
    ret->has_others = w->c->role < GN_ROLE_VIEW;
    gn_list_for_each(v, &w->d->vgpus, struct gn_vgpu_record, link)
    {
        const struct gn_share *sh = gn_shares_on(v, ret->index);
        if (!sh || !gn_record_is_listed(v))
            continue;
        const struct gn_share_figures *f = &sh->figures;
        ret->use.device_ns += f->device_ns;
        ret->use.used_ns += f->used_ns;
        ret->use.waited_ns += f->waited_ns;
        ret->use.grants += f->n_grants;
        if (gn_viewer_sees(w, v->tenant))
            continue;
        ret->others.n_vgpus++;
        ret->others.share += sh->part;
        ret->others.entitled += sh->entitled;
        ret->others.device_ns += f->device_ns;
        ret->others.waited_ns += f->waited_ns;
    }
}

/* The slots of a device; NULL: its memory is not placed. */
static const struct gn_control_slots *slots_of(const struct gn_daemon *d, uint32_t device,
                                               struct gn_control_slots *ret)
{
    struct gn_placement_device p;
    if (!gn_placement_device(d->scheduler, device, &p))
        return NULL;
    const uint64_t ns = gn_now_ns() - d->scheduler_started_ns;
    *ret = (struct gn_control_slots){.place = p.policy,
                                     .slot_bytes = p.slot_bytes,
                                     .n_slots = p.n_slots,
                                     .n_free = p.n_free,
                                     .n_reserved = p.n_reserved,
                                     .swap_bytes = p.swap_bytes,
                                     .n_swaps = p.n_swaps,
                                     .copying_ns = p.copying_ns,
                                     .copier_busy = ns ? (double)p.copying_ns / (double)ns : 0,
                                     .n_rearranged = p.n_rearranged};
    return ret;
}

static uint64_t largest_allocation(const struct gn_device_record *r)
{
    const uint64_t limit = gn_lease_device_memory(&r->memory),
                   largest = r->facts.max_allocation_bytes;
    return limit && limit < largest ? limit : largest;
}

static void list_devices(void *ctx, void (*each)(void *arg, const struct gn_control_device *),
                         void *arg)
{
    const struct gn_viewer *w = ctx;
    struct gn_daemon *d = w->d;
    gn_shares_reckon(d);
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        const struct gn_platform_record *p = &d->machine.platforms[i];
        const struct gn_tenant *t = w->c->tenant;
        const uint64_t visible = w->c->role >= GN_ROLE_VIEW ? UINT64_MAX
                                 : t ? gn_tenant_devices(&t->rules, &d->machine, i)
                                     : 0;
        for (uint32_t j = 0; j < p->n_devices; j++) {
            const struct gn_probe_device *f = &p->devices[j].facts;
            if (!(visible >> j & 1))
                continue;
            struct gn_control_device out = {
                .index = first_device(&d->machine, i) + j,
                .name = f->name,
                .vendor = f->vendor,
                .api = p->api,
                .platform = p->name,
                .platform_index = i,
                .type = gn_kind_name(f->kind),
                .present_as =
                    gn_kind_name(p->devices[j].shown_as ? p->devices[j].shown_as : f->kind),
                .compute_units = f->compute_units,
                .clock_mhz = f->clock_mhz,
                .memory_bytes = gn_lease_device_memory(&p->devices[j].memory),
                .leased_bytes = p->devices[j].memory.leased_bytes,
                .max_allocation_bytes = largest_allocation(&p->devices[j]),
                .local_memory_bytes = f->local_memory_bytes,
                .slice_ns = p->devices[j].slice_ns,
                .version = f->version,
                .driver_version = f->driver_version,
            };
            struct gn_control_slots slots;
            out.slots = slots_of(d, out.index, &slots);
            out.n_vgpus = count_vgpus(w, i, UINT64_C(1) << j);
            add_use(w, &p->devices[j], &out);
            each(arg, &out);
        }
    }
}

static void tell_status(void *ctx, struct gn_control_status *ret)
{
    const struct gn_viewer *w = ctx;
    const struct gn_daemon *d = w->d;
    ret->version = GN_VERSION;
    ret->pid = (uint32_t)getpid();
    ret->uid = (uint32_t)geteuid();
    ret->walls_mode = gn_walls_mode_name(d->walls.mode);
    ret->walls_have = d->walls.have_names;
    ret->walls_missing = d->walls.missing_names;
    ret->draining = d->draining;
    ret->tells_limits = w->c->role >= GN_ROLE_VIEW;
    gn_conn_limits_describe(d, ret);
    ret->n_dropped_lines = gn_log_writer_dropped();
    gn_list_for_each(t, (struct gn_list *)(uintptr_t)&d->tenants.all, struct gn_tenant, link)
        ret->n_refused_leases += t->n_refused_leases;
    ret->n_platforms = d->machine.n_platforms;
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        ret->n_devices += d->machine.platforms[i].n_devices;
        ret->n_vgpus += count_vgpus(w, i, UINT64_MAX);
    }
}

static void list_drivers(void *ctx, void (*each)(void *arg, const struct gn_control_driver *),
                         void *arg)
{
    const struct gn_daemon *d = ((const struct gn_viewer *)ctx)->d;
    for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
        struct gn_control_driver out = {.api = d->machine.drivers[i].api,
                                        .library = d->machine.drivers[i].library};
        for (uint32_t j = 0; j < d->machine.n_platforms; j++)
            if (d->machine.platforms[j].driver == i)
                out.n_devices += d->machine.platforms[j].n_devices;
        each(arg, &out);
    }
}

static void selector_text(const struct gn_selector *s, char *ret, size_t n)
{
    if (s->index >= 0)
        snprintf(ret, n, "%s:%d", s->name, s->index);
    else
        snprintf(ret, n, "%s", s->name);
}

static void tell_tenant(const struct gn_viewer *w, const struct gn_tenant *t,
                        void (*each)(void *arg, const struct gn_control_tenant *), void *arg)
{
    const struct gn_tenant_rules *r = &t->rules;
    char selectors[GN_TENANT_MAX_DEVICES][160];
    const char *devices[GN_TENANT_MAX_DEVICES], *modes[2], *owner[GN_RIGHT_N];
    const uint32_t allowed = r->modes ? r->modes : GN_MODE_REMOTE;
    struct gn_control_tenant out = {.name = r->name,
                                    .weight = r->weight,
                                    .cap = r->cap,
                                    .floor = r->floor,
                                    .leased_bytes = t->memory.leased_bytes,
                                    .memory_limit_bytes = r->memory_limit_bytes,
                                    .reserve_bytes = r->reserve_bytes,
                                    .vgpu_limit = r->vgpus,
                                    .n_refused_vgpus = t->n_refused_vgpus,
                                    .n_refused_leases = t->n_refused_leases,
                                    .any_uid = r->any_uid,
                                    .token = r->n_token != 0,
                                    .socket = t->socket ? t->socket->at.path : NULL,
                                    .n_uids = r->n_uids,
                                    .n_gids = r->n_gids,
                                    .uids = r->uids,
                                    .gids = r->gids,
                                    .modes = modes,
                                    .owner = owner,
                                    .n_devices = r->n_devices,
                                    .devices = devices};
    for (uint32_t i = 0; i < GN_RIGHT_N; i++)
        if (r->owner >> i & 1)
            owner[out.n_owner++] = gn_right_name(i);
    const uint32_t unruled[] = {geteuid(), 0};
    if (strcmp(r->name, GN_TENANT_DEFAULT) == 0 && !gn_tenant_has_rule(r)) {
        out.uids = unruled;
        out.n_uids = unruled[0] ? 2 : 1;
    }
    for (uint32_t mode = 1; mode <= GN_MODE_PASSTHROUGH; mode <<= 1)
        if (allowed & mode)
            modes[out.n_modes++] = gn_mode_name(mode);
    for (uint32_t i = 0; i < r->n_devices; i++) {
        selector_text(&r->devices[i], selectors[i], sizeof selectors[i]);
        devices[i] = selectors[i];
    }
    gn_list_for_each(v, &w->d->vgpus, struct gn_vgpu_record, link)
    {
        struct gn_counters n;
        if (v->tenant != t || !gn_record_is_listed(v))
            continue;
        read_counters(v, &n);
        out.n_vgpus++;
        out.memory_bytes += memory_of(v, &n);
    }
    each(arg, &out);
}

static void list_tenants(void *ctx, void (*each)(void *arg, const struct gn_control_tenant *),
                         void *arg)
{
    const struct gn_viewer *w = ctx;
    gn_list_for_each(t, &w->d->tenants.all, struct gn_tenant, link)
    {
        if (gn_viewer_sees(w, t))
            tell_tenant(w, t, each, arg);
    }
}

static void list_policies(void *ctx, void (*each)(void *arg, const struct gn_control_policy *),
                          void *arg)
{
    const struct gn_daemon *d = ((const struct gn_viewer *)ctx)->d;
    const struct gn_sched_policy *now = gn_scheduler_policy(d->scheduler), *p;
    each(arg, &(struct gn_control_policy){.name = GN_POLICY_NONE,
                                          .about = "no turns: all at once, as the driver lets them",
                                          .in_force = !d->takes_turns});
    for (unsigned i = 0; (p = gn_sched_policy_at(i)); i++)
        each(arg, &(struct gn_control_policy){
                      .name = p->name, .about = p->about, .in_force = d->takes_turns && p == now});
}

static void list_places(void *ctx, void (*each)(void *arg, const struct gn_control_policy *),
                        void *arg)
{
    const struct gn_daemon *d = ((const struct gn_viewer *)ctx)->d;
    const struct gn_place_policy *now = gn_placement_policy(d->scheduler), *p;
    for (unsigned i = 0; (p = gn_place_policy_at(i)); i++)
        each(arg,
             &(struct gn_control_policy){.name = p->name, .about = p->about, .in_force = p == now});
}

/* Finds a vGPU by its id or by a unique prefix of it. 0 or -errno: -ENOENT: there is none. */
int gn_viewer_find_vgpu(const struct gn_viewer *w, const char *text, struct gn_vgpu_record **ret,
                        struct gn_error *err)
{
    struct gn_vgpu_record *found = NULL;
    if (!*text)
        return gn_fail(err, EINVAL, "gantry ls lists them", "no vGPU is named");
    gn_list_for_each(v, &w->d->vgpus, struct gn_vgpu_record, link)
    {
        char id[16];
        snprintf(id, sizeof id, "%08x", v->id);
        if (!gn_record_is_listed(v) || !gn_viewer_sees(w, v->tenant) ||
            strncasecmp(id, text, strlen(text)) != 0)
            continue;
        if (found)
            return gn_fail(err, EINVAL, "write more of its id",
                           "more than one vGPU's id begins with \"%.16s\"", text);
        found = v;
    }
    *ret = found;
    return found ? 0
                 : gn_fail(err, ENOENT, "gantry ls lists them", "there is no vGPU \"%.16s\"", text);
}

static bool draining(void *ctx)
{
    return ((const struct gn_viewer *)ctx)->d->draining;
}

static int about(void *ctx, const char *vgpu, struct gn_control_about *ret, struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    struct gn_vgpu_record *v;
    int rc = gn_viewer_find_vgpu(w, vgpu, &v, err);
    if (rc || (rc = gn_outbound_may_begin(v, err)))
        return rc;
    gn_outbound_describe(v, ret);
    return 0;
}

const struct gn_control_queries gn_daemon_queries = {.vgpus = list_vgpus,
                                                     .devices = list_devices,
                                                     .status = tell_status,
                                                     .drivers = list_drivers,
                                                     .tenants = list_tenants,
                                                     .policies = list_policies,
                                                     .places = list_places,
                                                     .draining = draining,
                                                     .about = about};
