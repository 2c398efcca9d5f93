/* SPDX-License-Identifier: Apache-2.0 */
/* Where the answers to control requests come from. */
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "daemon/daemon.h"
#include "shm/counters.h"
#include "shm/session_layout.h"

static void list_vgpus(void *ctx, void (*each)(void *arg, const struct gn_control_vgpu *), void *arg)
{
    struct gn_daemon *d = ctx;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        const struct gn_platform_record *p = &d->machine.platforms[v->platform];
        const char *devices[GN_WORKER_MAX_DEVICES];
        struct gn_counters n;
        if (!v->booted)
            continue; /* its program does not have it yet */
        memset(&n, 0, sizeof n);
        (void)!pread(v->counters_fd, &n, sizeof n, 0);
        struct gn_session_counts own = {0};
        (void)!pread(v->ring_fd, &own, sizeof own, GN_SESSION_COUNTS_AT);
        for (uint32_t i = 0; i < p->n_devices; i++)
            devices[i] = p->devices[i].facts.name;
        struct gn_control_vgpu out = {
            .id = v->id,
            .tenant = v->tenant,
            .program = v->program,
            .pid = (uint32_t)v->program_pid,
            .worker_pid = v->process.fd >= 0 ? (uint32_t)v->worker_pid : 0,
            .platform = p->name,
            .link = v->remote ? "tcp" : "shm",
            .mode = "remote",
            .state = gn_vgpus_state(v),
            .weight = v->weight,
            .memory_bytes = n.memory_bytes,
            .memory_limit_bytes = v->memory_limit_bytes,
            .calls = n.calls,
            .sync_calls = n.sync_calls,
            .copies_two = n.copies_two,
            .copies_mapped = n.copies_mapped + own.copies_mapped,
            .copies_bypass = n.copies_bypass + own.copies_bypass,
            .n_devices = p->n_devices,
            .devices = devices,
        };
        each(arg, &out);
    }
}

static uint32_t count_vgpus(const struct gn_daemon *d, uint32_t platform)
{
    uint32_t n = 0;
    gn_list_for_each(v, (struct gn_list *)(uintptr_t)&d->vgpus, struct gn_vgpu_record,
                     link) if (v->booted && v->platform == platform && v->process.fd >= 0) n++;
    return n;
}

static void list_devices(void *ctx, void (*each)(void *arg, const struct gn_control_device *), void *arg)
{
    const struct gn_daemon *d = ctx;
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        const struct gn_platform_record *p = &d->machine.platforms[i];
        for (uint32_t j = 0; j < p->n_devices; j++) {
            const struct gn_probe_device *f = &p->devices[j].facts;
            struct gn_control_device out = {
                .name = f->name,
                .vendor = f->vendor,
                .api = p->api,
                .platform = p->name,
                .platform_index = i,
                .type = gn_kind_name(f->kind),
                .present_as = gn_kind_name(p->devices[j].shown_as ? p->devices[j].shown_as : f->kind),
                .compute_units = f->compute_units,
                .clock_mhz = f->clock_mhz,
                .memory_bytes = f->memory_bytes,
                .max_allocation_bytes = f->max_allocation_bytes,
                .local_memory_bytes = f->local_memory_bytes,
                .version = f->version,
                .driver_version = f->driver_version,
                .n_vgpus = count_vgpus(d, i),
            };
            each(arg, &out);
        }
    }
}

static void tell_status(void *ctx, struct gn_control_status *ret)
{
    const struct gn_daemon *d = ctx;
    ret->version = GN_VERSION;
    ret->pid = (uint32_t)getpid();
    ret->uid = (uint32_t)geteuid();
    ret->n_platforms = d->machine.n_platforms;
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        ret->n_devices += d->machine.platforms[i].n_devices;
        ret->n_vgpus += count_vgpus(d, i);
    }
}

static void list_drivers(void *ctx, void (*each)(void *arg, const struct gn_control_driver *), void *arg)
{
    const struct gn_daemon *d = ctx;
    for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
        struct gn_control_driver out = {.api = d->machine.drivers[i].api,
                                        .library = d->machine.drivers[i].library};
        for (uint32_t j = 0; j < d->machine.n_platforms; j++)
            if (d->machine.platforms[j].driver == i)
                out.n_devices += d->machine.platforms[j].n_devices;
        each(arg, &out);
    }
}

char *gn_daemon_answer(struct gn_daemon *d, const char *request, size_t n)
{
    struct gn_control_source source = {.ctx = d,
                                       .vgpus = list_vgpus,
                                       .devices = list_devices,
                                       .status = tell_status,
                                       .drivers = list_drivers};
    return gn_control_handle(&source, request, n);
}
