/* SPDX-License-Identifier: Apache-2.0 */
/* Changes tenants while gantryd runs. A change is checked as a whole and then applied as a whole.
 * Called by the control requests on gantryd's thread. Never blocks, and writes no configuration
 * file. */
#include "daemon/tenants/tenant_change.h"
#include "daemon/tenants/memory.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static int change_rules(struct gn_tenant_rules *r, const struct gn_control_change *c,
                        struct gn_error *err)
{
    int rc = 0;
    if (c->has_weight && (c->weight == 0 || c->weight > GN_TENANT_MAX_WEIGHT))
        return gn_fail(err, EINVAL, NULL, "a weight is a number from 1 to %u",
                       GN_TENANT_MAX_WEIGHT);
    if (c->has_weight)
        r->weight = c->weight;
    if (c->has_cap)
        r->cap = c->cap;
    if (c->has_floor)
        r->floor = c->floor;
    if (c->has_memory)
        r->memory_limit_bytes = c->memory_limit_bytes;
    if (c->has_reserve)
        r->reserve_bytes = c->reserve_bytes;
    if (c->has_vgpus)
        r->vgpus = c->vgpus;
    if (c->has_uids) {
        r->any_uid = c->any_uid;
        r->no_uid = !c->any_uid && c->n_uids == 0;
        r->n_uids = c->n_uids;
        memcpy(r->uids, c->uids, c->n_uids * sizeof r->uids[0]);
    }
    if (c->has_gids) {
        r->n_gids = c->n_gids;
        memcpy(r->gids, c->gids, c->n_gids * sizeof r->gids[0]);
    }
    if (c->has_token)
        rc = gn_tenant_set_token(r, c->token, c->n_token, err);
    if (c->has_socket)
        r->socket = c->socket;
    if (c->has_owner) {
        r->owner = 0;
        r->owner_said = true;
    }
    for (uint32_t i = 0; i < c->n_owner && rc == 0; i++)
        rc = gn_tenant_add_owner(r, c->owner[i], err);
    if (c->has_modes)
        r->modes = 0;
    for (uint32_t i = 0; i < c->n_modes && rc == 0; i++)
        rc = gn_tenant_add_mode(r, c->modes[i], err);
    if (c->has_devices)
        r->n_devices = 0;
    for (uint32_t i = 0; i < c->n_devices && rc == 0; i++)
        rc = gn_tenant_add_device(r, c->devices[i], err);
    return rc ? rc : gn_tenant_rules_check(r, err);
}

void gn_tenant_reckon(struct gn_daemon *d, struct gn_tenant *t)
{
    bool floors[GN_LINK_MAX_PLATFORMS * GN_WORKER_MAX_DEVICES] = {false};
    uint32_t n = 0;
    for (uint32_t p = 0; p < d->machine.n_platforms; p++) {
        const uint64_t allowed = gn_tenant_devices(&t->rules, &d->machine, p);
        for (uint32_t i = 0; i < d->machine.platforms[p].n_devices &&
                             n < GN_LINK_MAX_PLATFORMS * GN_WORKER_MAX_DEVICES;
             i++)
            floors[n++] = allowed >> i & 1;
    }
    for (uint32_t i = 0; i < n; i++)
        if (gn_placement_reserve(d->scheduler, t->shares, i,
                                 floors[i] ? t->rules.reserve_bytes : 0))
            gn_log(GN_LOG_WARN,
                   "the reserve of the tenant \"%s\" is not kept on device %u: other vGPUs need "
                   "or pin too much there, in whole slots; set it again when they have ended",
                   t->rules.name, i);
    gn_scheduler_weigh(d->scheduler, t->shares, t->rules.weight);
    gn_scheduler_bound(d->scheduler, t->shares, t->rules.cap, t->rules.floor, floors);
}

/* Removes all references to the tenant before it is freed. */
static int remove_tenant(struct gn_daemon *d, struct gn_tenant *t, struct gn_error *err)
{
    if (t->n_vgpus == 0)
        gn_memory_settle(d); /* sends replies that wait for this tenant */
    struct gn_tenant_shares *shares = t->shares;
    int rc = gn_tenants_may_remove(t, err);
    if (rc)
        return rc;
    gn_tenant_socket_close(t);
    gn_tenants_remove(&d->tenants, t);
    gn_scheduler_forget(d->scheduler, shares);
    gn_list_for_each(c, &d->conns, struct gn_conn, link)
    {
        if (c->tenant == t)
            c->tenant = NULL;
    }
    return 0;
}

static int add_tenant(struct gn_daemon *d, const struct gn_control_change *c, struct gn_error *err)
{
    struct gn_tenant_rules rules;
    int rc = gn_tenant_name_check(c->name, err);
    if (rc)
        return rc;
    gn_tenant_rules_init(&rules, c->name);
    rc = change_rules(&rules, c, err);
    if (rc == 0)
        rc = gn_tenant_devices_check(&rules, &d->machine, err);
    if (rc == 0)
        rc = gn_tenants_floors_check(&d->tenants, NULL, false, &rules, &d->machine, err);
    if (rc == 0)
        rc = gn_tenants_reserves_check(&d->tenants, NULL, false, &rules, &d->machine, err);
    struct gn_tenant *t = NULL;
    if (rc == 0)
        rc = gn_tenants_add(&d->tenants, &rules, &t, err);
    if (rc == 0 && ((rc = gn_tenant_reserve(t, &rules, &d->machine, err)) ||
                    (rules.socket && (rc = gn_tenant_socket_open(d, t, err)))))
        gn_tenants_remove(&d->tenants, t);
    explicit_bzero(&rules, sizeof rules);
    return rc;
}

static int set_tenant(struct gn_daemon *d, struct gn_tenant *t, const struct gn_control_change *c,
                      struct gn_error *err)
{
    struct gn_tenant_rules rules = t->rules;
    int rc = change_rules(&rules, c, err);
    if (rc == 0)
        rc = gn_tenant_devices_check(&rules, &d->machine, err);
    if (rc == 0)
        rc = gn_tenants_floors_check(&d->tenants, t, false, &rules, &d->machine, err);
    if (rc == 0)
        rc = gn_tenants_reserves_check(&d->tenants, t, false, &rules, &d->machine, err);
    const bool opens = rc == 0 && rules.socket && !t->socket;
    if (opens)
        rc = gn_tenant_socket_open(d, t, err);
    if (rc == 0 && (rc = gn_tenant_reserve(t, &rules, &d->machine, err)) && opens)
        gn_tenant_socket_close(t);
    if (rc == 0) {
        if (!rules.socket)
            gn_tenant_socket_close(t);
        t->n_tokens += rules.n_token != t->rules.n_token ||
                       memcmp(rules.token, t->rules.token, sizeof rules.token) != 0;
        t->rules = rules;
        gn_tenant_reckon(d, t);
        gn_account_set_limit(&t->memory, rules.memory_limit_bytes, gn_now_ns());
    }
    explicit_bzero(&rules, sizeof rules);
    return rc;
}

int gn_tenant_change(struct gn_daemon *d, const struct gn_control_change *c,
                     struct gn_tenant **ret_wait_for, struct gn_error *err)
{
    struct gn_tenant *t = gn_tenants_find(&d->tenants, c->name);
    struct gn_error ignored;
    int rc;
    if (c->what == GN_CONTROL_ADD)
        rc = add_tenant(d, c, err);
    else if (!t || !*c->name)
        return gn_fail(err, ENOENT, "gantry tenant ls lists them", "there is no tenant \"%.63s\"",
                       c->name);
    else if (c->what == GN_CONTROL_SET)
        rc = set_tenant(d, t, c, err);
    else
        rc = remove_tenant(d, t, err);
    if (rc)
        return rc;
    /* A reserve concerns the other tenants. */
    gn_list_for_each(other, &d->tenants.all, struct gn_tenant, link)
    {
        gn_account_settle(&other->memory, gn_now_ns());
    }
    gn_memory_settle(d);
    if (c->what == GN_CONTROL_SET)
        *ret_wait_for = t;
    gn_tracing_note(d, GN_TRACE_TENANT, 0, c->name);
    if (gn_sockets_set_access(&d->sockets, gn_tenants_admit_others(&d->tenants), &ignored))
        gn_log(GN_LOG_WARN, "%s, ignoring it", ignored.what);
    return 0;
}
