/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe: a short-lived process that asks a vendor's driver for the facts that gantryd needs
 * about its devices. A driver that crashes or hangs takes only the probe with it. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "link/frame.h"
#include "link/worker_wire.h"
#include "worker/worker.h"

#define SEND_TIMEOUT_MS 30000

_Static_assert(GN_BACKEND_CPU == GN_DEVICE_CPU && GN_BACKEND_GPU == GN_DEVICE_GPU &&
                   GN_BACKEND_ACCELERATOR == GN_DEVICE_ACCELERATOR &&
                   GN_BACKEND_CUSTOM == GN_DEVICE_CUSTOM,
               "kinds go over the wire as they are");
_Static_assert(GN_BACKEND_MAX_DEVICES == GN_WORKER_MAX_DEVICES, "devices of a platform");

struct sink {
    int socket;
    int rc; /* the first failed send's; 0: none */
    const char *api;
};

static void tell(struct sink *s, uint16_t op, const void *payload, size_t n)
{
    if (s->rc == 0)
        s->rc = gn_frame_send(s->socket, SEND_TIMEOUT_MS, op, 0, 0, payload, n, NULL, 0);
}

void gn_worker_refuse(int socket, unsigned seq, int code, const struct gn_error *err)
{
    struct gn_link_error e = {.code = (uint32_t)(code < 0 ? -code : code)};
    gn_frame_string_set(e.what, sizeof e.what, err->what);
    gn_frame_string_set(e.fix, sizeof e.fix, err->fix);
    /* A failure means that gantryd is gone. */
    (void)gn_frame_send(socket, SEND_TIMEOUT_MS, GN_LINK_ERROR, 0, seq, &e, sizeof e, NULL, 0);
}

static void driver_found(void *ctx, const char *library)
{
    struct sink *s = ctx;
    struct gn_probe_driver d = {{0}, {0}};
    gn_frame_string_set(d.api, sizeof d.api, s->api);
    if (strlen(library) >= sizeof d.library)
        return;
    gn_frame_string_set(d.library, sizeof d.library, library);
    tell(s, GN_PROBE_DRIVER, &d, sizeof d);
}

int gn_worker_list_drivers(int socket)
{
    struct sink s = {.socket = socket};
    for (int i = 0; gn_backends[i]; i++) {
        struct gn_error err = {{0}, {0}};
        s.api = gn_backends[i]->info->name;
        int rc = gn_backends[i]->list_drivers(driver_found, &s, &err);
        if (rc) {
            gn_worker_refuse(socket, 0, rc, &err);
            return 1;
        }
    }
    tell(&s, GN_PROBE_DONE, NULL, 0);
    return s.rc ? 1 : 0;
}

static void platform_found(void *ctx, const struct gn_platform_facts *facts)
{
    struct sink *s = ctx;
    struct gn_probe_platform p = {.index = facts->index};
    gn_frame_string_set(p.name, sizeof p.name, facts->name);
    gn_frame_string_set(p.version, sizeof p.version, facts->version);
    tell(s, GN_PROBE_PLATFORM, &p, sizeof p);
    for (uint32_t i = 0; i < facts->n_devices; i++) {
        const struct gn_device_facts *f = &facts->devices[i];
        struct gn_probe_device d = {.index = i,
                                    .kind = f->kind,
                                    .compute_units = f->compute_units,
                                    .clock_mhz = f->clock_mhz,
                                    .memory_bytes = f->memory_bytes,
                                    .max_allocation_bytes = f->max_allocation_bytes,
                                    .local_memory_bytes = f->local_memory_bytes};
        gn_frame_string_set(d.name, sizeof d.name, f->name);
        gn_frame_string_set(d.vendor, sizeof d.vendor, f->vendor);
        gn_frame_string_set(d.version, sizeof d.version, f->version);
        gn_frame_string_set(d.driver_version, sizeof d.driver_version, f->driver_version);
        tell(s, GN_PROBE_DEVICE, &d, sizeof d);
    }
}

int gn_worker_probe(int socket, const char *api, const char *library)
{
    struct sink s = {.socket = socket, .api = api};
    struct gn_error err = {{0}, {0}};
    const struct gn_backend_ops *ops = gn_backend_named(api);
    void *handle = NULL;
    int rc = ops ? ops->open_library(library, &handle, &err)
                 : gn_fail(&err, ENOSYS, NULL, "no such API: %s", api);
    if (rc == 0)
        rc = ops->probe(handle, platform_found, &s, &err);
    if (rc) {
        gn_worker_refuse(socket, 0, rc, &err);
        return 1;
    }
    tell(&s, GN_PROBE_DONE, NULL, 0);
    return s.rc ? 1 : 0;
}
