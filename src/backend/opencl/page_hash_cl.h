/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BACKEND_PAGE_HASH_CL_H
#define GN_BACKEND_PAGE_HASH_CL_H

#include <CL/cl_icd.h>

#include "base/error.h"

/*
 * Digests of a buffer's pages, computed by the device that holds the buffer (gMig 5.1), so that a
 * migration reads only changed pages over the bus. The hash is NH with four Toeplitz keys
 * (migrate/page_hash.h has the C form and the reasons): sums of products, in any order. Two kernels
 * give the same result: on CPU devices a work-item hashes a page with vectors; on others a
 * work-group does, its items side by side in memory.
 */
#define GN_CL_PAGE_DIGEST_BYTES 32u

struct gn_cl_page_hash;

/*
 * For one device of a context. key: page_bytes / 4 + 6 words, copied. group_shape: 0 a work-item
 * for each page, 1 a work-group, -1 the better one for the device. Builds a program: milliseconds,
 * or seconds with a cold compiler cache. -ENODEV: the device is big-endian or has no compiler;
 * -EINVAL, -ENOMEM; -EIO with the driver's error. Keeps the caller's context and device, without a
 * reference.
 */
int gn_cl_page_hash_create(const cl_icd_dispatch *cl, cl_context context, cl_device_id device,
                           const uint32_t *key, uint32_t page_bytes, int group_shape,
                           struct gn_cl_page_hash **ret, struct gn_error *err);
/* The chosen kernel, in words. */
const char *gn_cl_page_hash_shape(const struct gn_cl_page_hash *h);
/* NULL does nothing. */
void gn_cl_page_hash_destroy(struct gn_cl_page_hash *h);
/* Gives back the device's memory, and all references to buffers that were hashed, until the next
 * run. NULL does nothing. Any thread. */
void gn_cl_page_hash_trim(struct gn_cl_page_hash *h);

/*
 * Writes the digests of n_pages pages of a buffer of buffer_bytes, from page `first` on, 32 bytes
 * each; the last page may be short. Blocks. Any thread; concurrent calls run one after the other.
 * The buffer must not be mapped for writing. 0, -EINVAL (beyond the buffer), -ENOMEM, -EIO. A
 * device that compiles late does so in the first run, for runs of any length.
 */
int gn_cl_page_hash_run(struct gn_cl_page_hash *h, cl_mem buffer, uint64_t buffer_bytes,
                        uint64_t first, uint64_t n_pages, void *ret, struct gn_error *err);

#endif
