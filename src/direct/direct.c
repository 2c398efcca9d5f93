/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry-vgpu.so: a vGPU inside its program, for passthrough (Crane 3). Boots it as a worker would, without what confines a
 * worker: the driver is opened in the program, which is trusted with it. Called by the front end's library, on the thread whose call
 * was the first to want a device; nothing is printed, and no descriptor or signal of the program's is touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "link/direct.h"
#include "link/frame.h"
#include "vgpu/boot.h"

#define SEND_TIMEOUT_MS 10000

struct gn_direct {
    struct gn_boot said;
    struct gn_vgpu_boot boot;
    struct gn_vgpu *vgpu;
};

static int bring_up(struct gn_direct *d, const char *library, struct gn_error *err)
{
    const struct gn_backend_ops *backend = gn_backend_named("opencl");
    void *handle;
    if (!backend)
        return gn_fail(err, ENOSYS, NULL, "this build serves no OpenCL");
    int rc = backend->open_library(library, &handle, err);
    if (rc == 0)
        rc = backend->bring_up(handle, d->said.wire.platform, d->said.devices, d->said.wire.n_devices, &d->boot.platform, err);
    return rc;
}

/* What is the worker's alone: a program's stdout is its own, and so is what it logs. */
static void close_what_is_not_wanted(struct gn_direct *d)
{
    static const int unwanted[] = {GN_WORKER_BOOT_STDOUT, GN_WORKER_BOOT_STDERR, GN_WORKER_BOOT_LOG};
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
        gn_boot_close(&d->said, unwanted[i]);
}

static int say_booted(struct gn_direct *d, struct gn_error *err)
{
    return gn_frame_send(d->boot.control_fd, SEND_TIMEOUT_MS, GN_WORKER_BOOTED, 0, 0, NULL, 0, NULL, 0) < 0
               ? gn_fail(err, EPIPE, NULL, "gantryd is gone")
               : 0;
}

static int boot(struct gn_direct *d, const char *library, bool loads, struct gn_error *err)
{
    int rc = gn_boot_receive(d->boot.control_fd, &d->said);
    if (rc)
        return gn_fail(err, -rc, NULL, "gantryd did not say what the vGPU is to be: %s", strerror(-rc));
    close_what_is_not_wanted(d);
    rc = d->said.wire.remote || (d->said.wire.loads != 0) != loads
             ? gn_fail(err, EPROTO, NULL, "gantryd described another vGPU than was asked for")
             : 0;
    if (rc == 0)
        rc = gn_boot_map(&d->said, &d->boot, err);
    if (rc == 0)
        rc = bring_up(d, library, err);
    /* One that is taken over comes after the word that its driver is up; one that begins is to serve by then. */
    if (rc == 0 && loads)
        rc = say_booted(d, err);
    if (rc == 0)
        rc = gn_vgpu_host(&d->boot, &d->vgpu, err);
    if (rc == 0 && !loads)
        rc = say_booted(d, err);
    return rc;
}

/* It has no threads. */
static void drop(struct gn_direct *d)
{
    gn_boot_fini(&d->said);
    gn_vgpu_boot_fini(&d->boot);
    if (d->boot.platform)
        d->boot.platform->ops->leave(d->boot.platform);
    free(d);
}

static int host(const char *library, int control_fd, bool loads, struct gn_direct **ret, struct gn_error *err)
{
    struct gn_direct *d = malloc(sizeof *d);
    if (!d) {
        close(control_fd);
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    }
    *d = (struct gn_direct){.boot = {.control_fd = control_fd,
                                     .hosted = true,
                                     .session_fd = -1,
                                     .tell_fd = -1,
                                     .load_fd = -1,
                                     .file_fd = -1,
                                     .far_fd = -1,
                                     .ring = GN_SEGMENT_NONE,
                                     .events = GN_SEGMENT_NONE,
                                     .data = GN_SEGMENT_NONE,
                                     .counters = GN_SEGMENT_NONE,
                                     .grants = GN_SEGMENT_NONE}};
    int rc = boot(d, library, loads, err);
    if (!rc)
        *ret = d;
    else if (!d->vgpu)
        drop(d);
    return rc;
}

static int open_here(const char *library, int control_fd, struct gn_direct **ret, struct gn_error *err)
{
    return host(library, control_fd, false, ret, err);
}

static int take_over(const char *library, int control_fd, struct gn_direct **ret, struct gn_error *err)
{
    return host(library, control_fd, true, ret, err);
}

static int send_here(struct gn_direct *d, const void *message, uint32_t n_bytes)
{
    return gn_vgpu_take(d->vgpu, message, n_bytes);
}

static void forked(struct gn_direct *d)
{
    gn_vgpu_forked(d->vgpu);
}

__attribute__((visibility("default"))) extern const struct gn_direct_table gn_direct_table;
const struct gn_direct_table gn_direct_table = {
    .version = GN_DIRECT_VERSION,
    .open = open_here,
    .take_over = take_over,
    .send = send_here,
    .forked = forked,
};
