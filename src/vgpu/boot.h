/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_BOOT_H
#define GN_VGPU_BOOT_H

#include "backend/backend.h"
#include "link/worker_wire.h"
#include "vgpu/vgpu.h"

/*
 * The first message on the control socket: gantryd tells a process which vGPU to run. The process
 * is a new worker, or a program in passthrough.
 */
struct gn_boot {
    struct gn_worker_boot wire;
    struct gn_device_choice devices[GN_WORKER_MAX_DEVICES];
    uint32_t ranks[GN_WORKER_MAX_DEVICES];
    struct gn_worker_boot_wall wall;
    int fds[GN_WORKER_BOOT_FDS]; /* owned by the caller; -1: taken or closed */
};

/* Waits for the message and checks it. 0 or -errno. */
int gn_boot_receive(int control_fd, struct gn_boot *ret);

/*
 * Maps the segments and fills in *v. The mappings and the descriptors that v names are v's from
 * then on; b must stay. The caller sets control_fd and platform. 0, or -errno with a
 * sentence; v still owns all that it has got by then.
 */
int gn_boot_map(struct gn_boot *b, struct gn_vgpu_boot *v, struct gn_error *err);

/* Closes one descriptor that has not been taken, or all of them. */
void gn_boot_close(struct gn_boot *b, int which);
void gn_boot_fini(struct gn_boot *b);

/*
 * For a vGPU that has not started, when no thread uses its boot: closes all descriptors, control_fd
 * included, and unmaps the segments.
 */
void gn_vgpu_boot_fini(struct gn_vgpu_boot *v);

#endif
