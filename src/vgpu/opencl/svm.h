/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_SVM_H
#define GN_VGPU_OPENCL_SVM_H

#include "opencl_host_rt.h"

/*
 * How shared virtual memory is carried, whose memory the driver has not handed out. Its functions
 * for such memory may be given that only where the device has fine-grain system sharing.
 */

/* What each of the platform's devices can offer so, and the ways of this vGPU. The window's answer;
 * helper thread. */
void gn_svm_find_ways(struct gn_vgpu *v, cl_device_svm_capabilities *ret_capabilities);

/* An argument: the driver's kernel is given an address in the window. *held is released when
 * another takes its place, or with the kernel. The kernel's lock. */
cl_int gn_svm_set_arg(struct gn_vgpu *v, cl_kernel kernel, cl_uint index, uint64_t address,
                      cl_mem *held);

/* Whether the driver hears of a kernel's list of pointers. */
bool gn_svm_tells_lists(struct gn_vgpu *v);

#endif
