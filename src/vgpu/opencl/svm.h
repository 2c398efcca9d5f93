/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_SVM_H
#define GN_VGPU_OPENCL_SVM_H

#include "opencl_host_rt.h"

/*
 * How shared virtual memory is implemented. The driver has not allocated this memory, so its SVM
 * functions may be used for it only where the device has fine-grain system sharing.
 */

/*
 * Determines the capabilities that each of the platform's devices can offer, and this vGPU's ways.
 * For the answer to SvmWindow; helper thread.
 */
void gn_svm_find_ways(struct gn_vgpu *v, cl_device_svm_capabilities *ret_capabilities);

/*
 * Sets a kernel argument to an address in the window. *held is released when another replaces it,
 * or with the kernel. The caller holds the kernel's lock.
 */
cl_int gn_svm_set_arg(struct gn_vgpu *v, cl_kernel kernel, cl_uint index, uint64_t address,
                      cl_mem *held);

/* Whether a kernel's list of SVM pointers is passed to the driver. */
bool gn_svm_tells_lists(struct gn_vgpu *v);

#endif
