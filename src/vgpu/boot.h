/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_BOOT_H
#define GN_VGPU_BOOT_H

#include "backend/backend.h"
#include "link/worker_wire.h"
#include "vgpu/vgpu.h"

/*
 * What gantryd tells whoever is to host a vGPU, first thing on the control socket: a fresh worker, or a program in passthrough.
 */
struct gn_boot {
    struct gn_worker_boot wire;
    struct gn_device_choice devices[GN_WORKER_MAX_DEVICES];
    uint32_t ranks[GN_WORKER_MAX_DEVICES];
    struct gn_worker_boot_wall wall;
    int fds[GN_WORKER_BOOT_FDS]; /* the caller's */
};

/* Waits for it, and checks it. 0 or -errno. */
int gn_boot_receive(int control_fd, struct gn_boot *ret);

/* Maps the segments, whose descriptors are `v`'s from then on, and fills in what b says of the vGPU; b must stay. control_fd,
 * hosted and platform are the caller's to set. 0, or -errno with a sentence. */
int gn_boot_map(const struct gn_boot *b, struct gn_vgpu_boot *v, struct gn_error *err);

#endif
