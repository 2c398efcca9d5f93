/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_RUN_H
#define GN_VGPU_RUN_H

struct gn_vgpu;
struct gn_vgpu_api;
struct gn_vgpu_boot;

/*
 * A vGPU of a given API, for apis.c; v is zero, and boot stays. The two put it together of its
 * parts in core, session and migrate.
 */

/* In a worker: serves until the program or gantryd is gone. Returns the exit status. */
int gn_vgpu_run(struct gn_vgpu *v, const struct gn_vgpu_boot *boot, const struct gn_vgpu_api *api);
/*
 * In its program: gn_vgpu_start_in_program (vgpu/vgpu.h). When it fails and v->listens is set, some
 * of the vGPU's threads may run, and use v.
 */
int gn_vgpu_start_in_process(struct gn_vgpu *v, struct gn_vgpu_boot *boot,
                             const struct gn_vgpu_api *api);

#endif
