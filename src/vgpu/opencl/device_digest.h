/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_DIGEST_H
#define GN_VGPU_OPENCL_DEVICE_DIGEST_H

#include "migrate/page_hash.h"
#include "opencl_host_rt.h"

/*
 * Digests of buffers' pages computed by the device that holds them (gMig 5.1), for migrations of a
 * vGPU with a device that has its own memory: then only changed pages are read. The kernels come
 * from backend/opencl/page_hash_cl.h. gn_device_digests_ready builds them once for each context and
 * tests them; if the device computes wrong digests, the host reads and hashes the pages.
 *
 * Only for contexts with one device: OpenCL does not tell which of several devices holds a buffer
 * at the moment.
 */
struct gn_device_digests;

/* True if GANTRY_PAGE_HASH demands one of the kernels; then memory is not read in place. */
bool gn_device_digests_forced(void);

/*
 * NULL: the host hashes this context's buffers. The caller owns the context, which outlives the
 * digests.
 */
struct gn_device_digests *gn_device_digests_new(struct gn_vgpu *v, cl_context context);
/* NULL does nothing. */
void gn_device_digests_free(struct gn_device_digests *d);
/* Gives back the device's memory, and all references to buffers, until the next digest. */
void gn_device_digests_trim(struct gn_device_digests *d);

/*
 * Builds and tests the kernels at the first call, which takes up to seconds when the compiler's
 * cache is cold. The hasher is the one of all digests, an NH.
 */
void gn_device_digests_ready(struct gn_device_digests *d, const struct gn_page_hasher *hasher);

/*
 * Computes the digests of n pages of a buffer; the buffer's last page may be short. One thread at a
 * time. Returns 0, or -errno: then the host hashes them. After an error the device is not used
 * again.
 */
int gn_device_digests_of(struct gn_device_digests *d, cl_mem mem, uint64_t mem_bytes,
                         uint64_t first, uint64_t n, void *ret);

#endif
