/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_KEPT_ARGS_H
#define GN_OPENCL_KEPT_ARGS_H

struct gn_kernel_detail;
struct gn_vgpu;

/*
 * Some drivers free a memory object only when no kernel has it as an argument. So an eviction gives
 * each of the driver's kernels that has an evicted object another argument in its place. A launch
 * sets the arguments again.
 */

/* At the start, after gn_residency_start. Nonzero: no memory. */
int gn_kept_args_start(struct gn_vgpu *v);
/* A driver's kernel has been made. Any thread. */
void gn_kept_args_add(struct gn_vgpu *v, struct gn_kernel_detail *k);
/* Before the release of a driver's kernel. Any thread; waits for gn_kept_args_drop. */
void gn_kept_args_remove(struct gn_vgpu *v, struct gn_kernel_detail *k);
/*
 * From now on no driver's kernel has a memory object that is evicted, or that the program has
 * released. The serving thread, with the roles of all devices, and nothing in the driver.
 */
void gn_kept_args_drop(struct gn_vgpu *v);

#endif
