/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_DIGEST_H
#define GN_VGPU_OPENCL_DEVICE_DIGEST_H

#include "migrate/page_hash.h"
#include "opencl_host_rt.h"

/*
 * Digests of buffers' pages by the device that holds them (gMig 5.1), for the moves of a vGPU whose
 * device has a memory of its own: so only pages that have changed are read. The kernels are
 * backend/opencl/page_hash_cl.h's, built once a context by gn_device_digests_ready, and tried
 * there: whatever a device gets wrong, the pages are read and hashed here.
 *
 * One a context, and that of one device: which of several holds a buffer at the moment nobody
 * tells.
 */
struct gn_device_digests;

/* GANTRY_PAGE_HASH asks for one of the kernels: no memory is looked at in its place. */
bool gn_device_digests_forced(void);

/* NULL: this context's buffers are hashed here. The context is the caller's, and outlives it. */
struct gn_device_digests *gn_device_digests_new(struct gn_vgpu *v, cl_context context);
/* NULL does nothing. */
void gn_device_digests_free(struct gn_device_digests *d);

/* Takes up to seconds the first time, where the compiler's cache is cold. The hasher is that of all
 * digests, an NH. */
void gn_device_digests_ready(struct gn_device_digests *d, const struct gn_page_hasher *hasher);

/* Of n pages of a buffer; the buffer's last one may be short. By one thread at a time. 0, or
 * -errno: they are hashed here; after a device has failed it is not asked again. */
int gn_device_digests_of(struct gn_device_digests *d, cl_mem mem, uint64_t mem_bytes,
                         uint64_t first, uint64_t n, void *ret);

#endif
