/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tenants, and the checks of a peer and of devices against a tenant's rules
 * (tenants.h). Called by admission.c, tenant_change.c, connections.c, create.c and the migrations,
 * on gantryd's thread. No I/O. */
#include "daemon/tenants/tenants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/part.h"
#include "daemon/devices.h"

struct gn_tenant *gn_tenants_find(const struct gn_tenants *t, const char *name)
{
    gn_list_for_each(it, (struct gn_list *)(uintptr_t)&t->all, struct gn_tenant, link)
    {
        if (strcmp(it->rules.name, *name ? name : GN_TENANT_DEFAULT) == 0)
            return it;
    }
    return NULL;
}

int gn_tenants_add(struct gn_tenants *t, const struct gn_tenant_rules *rules,
                   struct gn_tenant **ret, struct gn_error *err)
{
    if (gn_tenants_find(t, rules->name))
        return gn_fail(err, EEXIST, "change it with: gantry tenant set",
                       "there is a tenant \"%s\" already", rules->name);
    if (t->n == GN_MAX_TENANTS)
        return gn_fail(err, ENOSPC, "remove some", "there are %u tenants already, the maximum",
                       GN_MAX_TENANTS);
    struct gn_tenant *it = calloc(1, sizeof *it);
    if (!it)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    it->rules = *rules;
    gn_account_init(&it->memory, t->ops, rules->memory_limit_bytes);
    gn_list_append(&t->all, &it->link);
    t->n++;
    if (ret)
        *ret = it;
    return 0;
}

int gn_tenants_init(struct gn_tenants *t, const struct gn_lease_ops *ops,
                    const struct gn_tenant_rules *rules, int n, struct gn_error *err)
{
    struct gn_tenant_rules plain;
    gn_list_init(&t->all);
    t->n = 0;
    t->ops = ops;
    gn_tenant_rules_init(&plain, GN_TENANT_DEFAULT);
    for (int i = 0; i < n; i++)
        if (strcmp(rules[i].name, GN_TENANT_DEFAULT) == 0)
            plain = rules[i];
    int rc = gn_tenants_add(t, &plain, NULL, err);
    for (int i = 0; i < n && rc == 0; i++)
        if (strcmp(rules[i].name, GN_TENANT_DEFAULT) != 0)
            rc = gn_tenants_add(t, &rules[i], NULL, err);
    explicit_bzero(&plain, sizeof plain);
    return rc;
}

static void drop_reserves(struct gn_tenant *it)
{
    for (uint32_t i = 0; i < it->n_reserves; i++)
        gn_lease_unreserve(&it->reserves[i]);
    free(it->reserves);
    it->reserves = NULL;
    it->n_reserves = 0;
}

static void free_tenant(struct gn_tenants *t, struct gn_tenant *it)
{
    drop_reserves(it);
    gn_list_remove(&it->link);
    t->n--;
    explicit_bzero(it->rules.token, sizeof it->rules.token);
    explicit_bzero(it->psk_token, sizeof it->psk_token);
    explicit_bzero(&it->psk, sizeof it->psk);
    free(it);
}

void gn_tenants_fini(struct gn_tenants *t)
{
    if (!t->all.next)
        return;
    gn_list_for_each(it, &t->all, struct gn_tenant, link) free_tenant(t, it);
}

int gn_tenants_may_remove(const struct gn_tenant *tenant, struct gn_error *err)
{
    const char *name = tenant->rules.name;
    if (strcmp(name, GN_TENANT_DEFAULT) == 0)
        return gn_fail(err, EPERM, "set its limits instead", "the tenant \"%s\" cannot be removed",
                       name);
    if (tenant->n_vgpus)
        return gn_fail(err, EBUSY, "end its programs first; gantry ls lists them",
                       "the tenant \"%s\" has %u vGPU%s", name, tenant->n_vgpus,
                       tenant->n_vgpus == 1 ? "" : "s");
    return 0;
}

void gn_tenants_remove(struct gn_tenants *t, struct gn_tenant *tenant)
{
    free_tenant(t, tenant);
}

bool gn_tenants_admit_others(const struct gn_tenants *t)
{
    gn_list_for_each(it, (struct gn_list *)(uintptr_t)&t->all, struct gn_tenant, link)
    {
        if (gn_tenant_admits_others(&it->rules))
            return true;
    }
    return false;
}

/* A token that a peer shows must be right, even if its user or certificate alone would be admitted:
 * reporting the mistake is better than ignoring it. */
static bool decides_by_token(const struct gn_tenant_rules *r, const struct gn_peer *peer)
{
    return peer->n_token && r->n_token;
}

static int judge_token(const struct gn_tenant_rules *r, const struct gn_peer *peer)
{
    return gn_tenant_token_is(r, peer->token, peer->n_token) ? 0 : -EPERM;
}

int gn_tenant_admits_tcp(const struct gn_tenant_rules *r, const struct gn_peer *peer)
{
    if (decides_by_token(r, peer))
        return judge_token(r, peer);
    const bool named = peer->subject && strcmp(peer->subject, r->name) == 0;
    return named || (peer->anybody && strcmp(r->name, GN_TENANT_DEFAULT) == 0) ? 0 : -EACCES;
}

int gn_tenant_admits_user(const struct gn_tenant_rules *r, const struct gn_peer *peer)
{
    if (decides_by_token(r, peer))
        return judge_token(r, peer);
    if (peer->is_operator || r->any_uid)
        return 0;
    if (peer->is_default && strcmp(r->name, GN_TENANT_DEFAULT) == 0 && !gn_tenant_has_rule(r))
        return 0;
    for (uint32_t i = 0; i < r->n_uids; i++)
        if (r->uids[i] == peer->uid)
            return 0;
    for (uint32_t i = 0; i < r->n_gids; i++) {
        if (r->gids[i] == peer->gid)
            return 0;
        for (uint32_t j = 0; j < peer->n_groups; j++)
            if (r->gids[i] == peer->groups[j])
                return 0;
    }
    return -EACCES;
}

/* Adds the devices of `platform` that the selector matches to *bits. Returns whether it matches any
 * device of any platform. */
static bool select_devices(const struct gn_selector *s, const struct gn_machine *m,
                           uint32_t platform, uint64_t *bits)
{
    bool any = false;
    int nth = 0;
    for (uint32_t p = 0; p < m->n_platforms; p++) {
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++) {
            if (!gn_selector_matches_name(s, m->platforms[p].devices[d].facts.name) ||
                !gn_selector_takes(s, nth++))
                continue;
            any = true;
            if (p == platform)
                *bits |= UINT64_C(1) << d;
        }
    }
    return any;
}

uint64_t gn_tenant_devices(const struct gn_tenant_rules *r, const struct gn_machine *m,
                           uint32_t platform)
{
    const uint32_t n = m->platforms[platform].n_devices;
    uint64_t bits = 0;
    if (!r->n_devices)
        return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
    for (uint32_t i = 0; i < r->n_devices; i++)
        select_devices(&r->devices[i], m, platform, &bits);
    return bits;
}

int gn_tenant_devices_check(const struct gn_tenant_rules *r, const struct gn_machine *m,
                            struct gn_error *err)
{
    for (uint32_t i = 0; i < r->n_devices; i++) {
        uint64_t ignored = 0;
        if (!select_devices(&r->devices[i], m, 0, &ignored))
            return gn_fail(err, ENODEV, "gantry devices lists the devices",
                           "the tenant \"%s\" names a device that does not exist: \"%s\"%s",
                           r->name, r->devices[i].name,
                           r->devices[i].index >= 0 ? " with that index" : "");
    }
    return 0;
}

/* Adds a figure of the rules of other tenants, of those before `it` alone with only_before, on each
 * device of a platform that they may use. */
static void sum_of_others(const struct gn_tenants *t, const struct gn_tenant *it, bool only_before,
                          const struct gn_machine *m, uint32_t platform,
                          uint64_t (*figure)(const struct gn_tenant_rules *),
                          uint64_t ret[static GN_WORKER_MAX_DEVICES])
{
    memset(ret, 0, GN_WORKER_MAX_DEVICES * sizeof *ret);
    gn_list_for_each(other, (struct gn_list *)(uintptr_t)&t->all, struct gn_tenant, link)
    {
        if (other == it && only_before)
            break;
        if (other == it || !figure(&other->rules))
            continue;
        const uint64_t theirs = gn_tenant_devices(&other->rules, m, platform);
        for (uint32_t d = 0; d < m->platforms[platform].n_devices; d++)
            if ((theirs >> d & 1) && !gn_add_u64(ret[d], figure(&other->rules), &ret[d]))
                ret[d] = UINT64_MAX;
    }
}

static uint64_t floor_of(const struct gn_tenant_rules *rules)
{
    return rules->floor;
}

static uint64_t reserve_of(const struct gn_tenant_rules *rules)
{
    return rules->reserve_bytes;
}

int gn_tenants_floors_check(const struct gn_tenants *t, const struct gn_tenant *it,
                            bool only_before, const struct gn_tenant_rules *rules,
                            const struct gn_machine *m, struct gn_error *err)
{
    for (uint32_t p = 0; p < m->n_platforms && rules->floor; p++) {
        const uint64_t mine = gn_tenant_devices(rules, m, p);
        uint64_t sums[GN_WORKER_MAX_DEVICES];
        sum_of_others(t, it, only_before, m, p, floor_of, sums);
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++) {
            char floor[16], others[16], left[16], fix[128];
            if (!(mine >> d & 1) || sums[d] + rules->floor <= GN_PART_WHOLE)
                continue;
            snprintf(fix, sizeof fix, "at most %s is left; lower the floor, or others'",
                     gn_part_format(GN_PART_WHOLE - (uint32_t)sums[d], left));
            return gn_fail(
                err, ENOSPC, fix,
                "the floor %s of the tenant \"%s\" and the floors of others, %s, together exceed "
                "the device \"%.100s\"",
                gn_part_format(rules->floor, floor), rules->name,
                gn_part_format((uint32_t)sums[d], others), m->platforms[p].devices[d].facts.name);
        }
    }
    return 0;
}

int gn_tenants_reserves_check(const struct gn_tenants *t, const struct gn_tenant *it,
                              bool only_before, const struct gn_tenant_rules *rules,
                              const struct gn_machine *m, struct gn_error *err)
{
    for (uint32_t p = 0; p < m->n_platforms && rules->reserve_bytes; p++) {
        const uint64_t mine = gn_tenant_devices(rules, m, p);
        uint64_t sums[GN_WORKER_MAX_DEVICES];
        sum_of_others(t, it, only_before, m, p, reserve_of, sums);
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++) {
            const struct gn_device_record *device = &m->platforms[p].devices[d];
            const uint64_t limit = gn_lease_device_memory(&device->memory),
                           left = limit - (sums[d] < limit ? sums[d] : limit);
            char fix[128];
            if (!(mine >> d & 1) || rules->reserve_bytes <= left)
                continue;
            snprintf(fix, sizeof fix, "at most %llu bytes are left; lower the reserve, or others'",
                     (unsigned long long)left);
            return gn_fail(err, ENOSPC, fix,
                           "the reserve of the tenant \"%s\", %llu bytes, and the reserves of "
                           "others together exceed the memory of the device \"%.100s\", %llu",
                           rules->name, (unsigned long long)rules->reserve_bytes,
                           device->facts.name, (unsigned long long)limit);
        }
    }
    return 0;
}

int gn_tenant_reserve(struct gn_tenant *it, const struct gn_tenant_rules *rules,
                      struct gn_machine *m, struct gn_error *err)
{
    struct gn_lease_reserve *reserves = NULL;
    uint32_t n = 0;
    if (rules->reserve_bytes) {
        for (uint32_t p = 0; p < m->n_platforms; p++)
            n += (uint32_t)__builtin_popcountll(gn_tenant_devices(rules, m, p));
        reserves = calloc(n ? n : 1, sizeof *reserves);
        if (!reserves)
            return gn_fail(err, ENOMEM, NULL, "out of memory");
    }
    drop_reserves(it);
    it->reserves = reserves;
    for (uint32_t p = 0; p < m->n_platforms && reserves; p++) {
        const uint64_t mine = gn_tenant_devices(rules, m, p);
        for (uint32_t d = 0; d < m->platforms[p].n_devices; d++)
            if (mine >> d & 1)
                gn_lease_reserve(&it->reserves[it->n_reserves++], &it->memory,
                                 &m->platforms[p].devices[d].memory, rules->reserve_bytes);
    }
    return 0;
}
