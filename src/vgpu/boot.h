/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_BOOT_H
#define GN_VGPU_BOOT_H

#include "backend/backend.h"
#include "link/worker_wire.h"
#include "vgpu/vgpu.h"

/*
 * What gantryd tells whoever is to host a vGPU, first thing on the control socket: a fresh worker,
 * or a program in passthrough.
 */
struct gn_boot {
    struct gn_worker_boot wire;
    struct gn_device_choice devices[GN_WORKER_MAX_DEVICES];
    uint32_t ranks[GN_WORKER_MAX_DEVICES];
    struct gn_worker_boot_wall wall;
    int fds[GN_WORKER_BOOT_FDS]; /* the caller's; -1: taken or closed */
};

/* Waits for it, and checks it. 0 or -errno. */
int gn_boot_receive(int control_fd, struct gn_boot *ret);

/* Maps the segments, which are `v`'s from then on with the other descriptors that it names, and
 * fills in what b says of the vGPU; b must stay. control_fd, hosted and platform are the caller's
 * to set. 0, or -errno with a sentence: what has been taken is v's. */
int gn_boot_map(struct gn_boot *b, struct gn_vgpu_boot *v, struct gn_error *err);

/* Closes one that is not taken; all of them. */
void gn_boot_close(struct gn_boot *b, int which);
void gn_boot_fini(struct gn_boot *b);

/* Of a vGPU that has not come about, and whose boot nobody looks at: closes and unmaps what is
 * there; control_fd, too. */
void gn_vgpu_boot_fini(struct gn_vgpu_boot *v);

#endif
