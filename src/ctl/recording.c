/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes trace events as a recording for `gantry sim --trace`; see recording.h. Called by `gantry
 * trace` on its main thread. Never contacts gantryd.
 */
#include "ctl/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ctl/trace_event.h"

/* A vGPU on a device. */
struct want {
    uint32_t vgpu;
    uint16_t device;
    uint64_t since_ns; /* when it began to want a turn; 0: it neither wants nor has one */
};

struct tenant {
    uint32_t vgpu;
    char name[GN_TRACE_TEXT_BYTES + 1];
};

struct gn_recording {
    FILE *to;
    uint64_t began_ns, n_turns;
    struct want *wants;
    struct tenant *tenants;
    uint32_t n_wants, n_tenants;
};

struct gn_recording *gn_recording_begin(FILE *to, uint64_t began_ns)
{
    struct gn_recording *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->to = to;
    r->began_ns = began_ns;
    fputs("start_ns,vgpu,tenant,kernel_ns\n", to);
    return r;
}

static struct want *want_of(struct gn_recording *r, const struct gn_trace_event *e)
{
    for (uint32_t i = r->n_wants; i-- > 0;)
        if (r->wants[i].vgpu == e->vgpu && r->wants[i].device == e->device)
            return &r->wants[i];
    struct want *grown = realloc(r->wants, (r->n_wants + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    r->wants = grown;
    grown[r->n_wants] = (struct want){.vgpu = e->vgpu, .device = e->device};
    return &grown[r->n_wants++];
}

static int add_tenant(struct gn_recording *r, const struct gn_trace_event *e)
{
    struct tenant *grown = realloc(r->tenants, (r->n_tenants + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->tenants = grown;
    grown[r->n_tenants].vgpu = e->vgpu;
    gn_trace_event_tenant(e, grown[r->n_tenants++].name);
    return 0;
}

static const char *tenant_of(const struct gn_recording *r, uint32_t vgpu)
{
    for (uint32_t i = r->n_tenants; i-- > 0;)
        if (r->tenants[i].vgpu == vgpu)
            return r->tenants[i].name;
    return "-";
}

/* A simulated vGPU uses a single device, so each device of a vGPU becomes one simulated vGPU. */
static void write_turn(struct gn_recording *r, const struct want *w, uint64_t charged_ns)
{
    const uint64_t start_ns = w->since_ns > r->began_ns ? w->since_ns - r->began_ns : 0;
    fprintf(r->to, "%" PRIu64 ",%08x.%u,%s,%" PRIu64 "\n", start_ns, w->vgpu, w->device,
            tenant_of(r, w->vgpu), charged_ns);
    r->n_turns++;
}

int gn_recording_add(struct gn_recording *r, const struct gn_trace_event *e)
{
    if (e->kind == GN_TRACE_ATTACH)
        return add_tenant(r, e);
    if (!gn_trace_kinds[e->kind].on_device)
        return 0;
    struct want *w = want_of(r, e);
    if (!w)
        return -ENOMEM;
    if (e->kind == GN_TRACE_WANT || (e->kind == GN_TRACE_GRANT && !w->since_ns))
        w->since_ns = e->at_ns;
    if (e->kind == GN_TRACE_BACK && w->since_ns && e->a)
        write_turn(r, w, e->a);
    if (e->kind == GN_TRACE_BACK || e->kind == GN_TRACE_LEAVE)
        w->since_ns = e->kind == GN_TRACE_BACK && e->b ? e->at_ns : 0;
    return 0;
}

uint64_t gn_recording_end(struct gn_recording *r)
{
    const uint64_t n = r->n_turns;
    free(r->wants);
    free(r->tenants);
    free(r);
    return n;
}
