/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_VGPU_H
#define GN_OPENCL_VGPU_H

struct gn_vgpu_api;

/* The OpenCL half of a vGPU. */
extern const struct gn_vgpu_api gn_opencl_vgpu_api;

#endif
