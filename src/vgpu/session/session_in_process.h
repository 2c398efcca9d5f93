/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_IN_PROCESS_H
#define GN_VGPU_SESSION_SESSION_IN_PROCESS_H

struct gn_vgpu;
struct gn_vgpu_api;
struct gn_vgpu_boot;

/* gn_vgpu_start_in_program (vgpu/vgpu.h) for a given API; v is zero. When it fails and v->listens
 * is set, some of the vGPU's threads may run, and use v. */
int gn_vgpu_start_in_process(struct gn_vgpu *v, struct gn_vgpu_boot *boot,
                             const struct gn_vgpu_api *api);

#endif
