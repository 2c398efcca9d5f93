/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices a vGPU's program has: from its start, and after a migration to another device.
 * gantryd's thread.
 */
#include "daemon/tenants/memory.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/device_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/tenants/selector.h"
#include "daemon/vgpu/device_load.h"

void gn_vgpus_set_devices(struct gn_vgpu_record *v, uint64_t devices, const uint8_t *order)
{
    uint32_t n = 0;
    v->devices = devices;
    memset(v->order, 0, sizeof v->order);
    for (uint32_t i = 0; !order && i < GN_WORKER_MAX_DEVICES; i++)
        if (devices >> i & 1)
            v->order[n++] = (uint8_t)i;
    if (order)
        memcpy(v->order, order, sizeof v->order);
}

_Static_assert(GN_WORKER_MAX_DEVICES <= GN_LEASE_MAX_DEVICES, "a lease has a part on each device");

void gn_vgpus_join_memory(struct gn_vgpu_record *v, uint64_t limit_bytes)
{
    struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    gn_holder_join(&v->lease, &v->tenant->memory, limit_bytes);
    for (uint32_t k = 0; k < gn_vgpus_n_devices(v); k++)
        gn_holder_add_device(&v->lease, &p->devices[v->order[k]].memory);
    gn_placed_memory_join(v);
}

uint32_t gn_vgpus_n_devices(const struct gn_vgpu_record *v)
{
    return (uint32_t)__builtin_popcountll(v->devices);
}

/* The device of the platform that the text names, of those in `among`. */
static int find(const struct gn_platform_record *p, uint64_t among, const char *text, uint32_t *ret,
                struct gn_error *err)
{
    struct gn_selector s;
    uint32_t n = 0;
    int nth = 0, rc = gn_selector_parse(text, &s, err);
    if (rc)
        return rc;
    if (s.present_as)
        return gn_fail(err, EINVAL, "write NAME-PART[:INDEX]",
                       "a device cannot be shown as another kind in a move");
    for (uint32_t i = 0; i < p->n_devices; i++) {
        if (!gn_selector_matches_name(&s, p->devices[i].facts.name) ||
            !gn_selector_takes(&s, nth++) || !(among >> i & 1))
            continue;
        *ret = i;
        n++;
    }
    return n == 1  ? 0
           : n > 1 ? gn_fail(err, ENOTUNIQ, "give more of its name, or NAME-PART:INDEX",
                             "%u devices are called \"%.60s\"", n, text)
                   : gn_fail(err, ENODEV, "gantry devices lists them",
                             "there is no device \"%.60s\" for it", text);
}

/* The device that it works on. */
static int find_used(const struct gn_vgpu_record *v, uint32_t *ret, struct gn_error *err)
{
    const uint64_t used = gn_loads_of(v) & v->devices;
    const uint64_t of = used ? used : v->devices;
    if (__builtin_popcountll(of) != 1 && used)
        return gn_fail(err, ENOTUNIQ, "write --device FROM=TO",
                       "it uses %d devices: which one is to be left?", __builtin_popcountll(of));
    *ret = used ? (uint32_t)__builtin_ctzll(of) : v->order[0];
    return 0;
}

int gn_vgpus_choose_device(const struct gn_vgpu_record *v, const char *text,
                           struct gn_vgpu_record *n, struct gn_error *err)
{
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    const uint64_t allowed = gn_tenant_devices(&v->tenant->rules, &v->daemon->machine, v->platform);
    const char *to_text = strchr(text, ',') ? NULL : strchr(text, '=');
    char from_text[160];
    uint32_t from = 0, to = 0;
    int rc = find(p, ~UINT64_C(0), to_text ? to_text + 1 : text, &to, err);
    if (!rc && !to_text)
        rc = find_used(v, &from, err);
    if (!rc && to_text) {
        snprintf(from_text, sizeof from_text, "%.*s", (int)(to_text - text), text);
        rc = find(p, v->devices, from_text, &from, err);
    }
    if (rc)
        return rc;
    if (!(allowed >> to & 1))
        return gn_fail(err, EACCES, "gantry tenant set --device allows it",
                       "the tenant \"%s\" may not use the device \"%.100s\"", v->tenant->rules.name,
                       p->devices[to].facts.name);
    if (from == to)
        return gn_fail(err, EALREADY, NULL, "it is on the device \"%.100s\" already",
                       p->devices[to].facts.name);
    /* When it has the other device, too, the two change places. */
    uint8_t order[GN_WORKER_MAX_DEVICES];
    memcpy(order, v->order, sizeof order);
    for (uint32_t k = 0; k < gn_vgpus_n_devices(v); k++)
        order[k] = order[k] == from ? (uint8_t)to : order[k] == to ? (uint8_t)from : order[k];
    const uint64_t devices = v->devices >> to & 1
                                 ? v->devices
                                 : (v->devices & ~(UINT64_C(1) << from)) | UINT64_C(1) << to;
    gn_vgpus_set_devices(n, devices, order);
    const uint64_t limit_bytes = n->lease.limit_bytes;
    gn_memory_leave(n); /* it has leased nothing yet */
    gn_vgpus_join_memory(n, limit_bytes);
    return 0;
}
