/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BACKEND_PAGE_HASH_CL_H
#define GN_BACKEND_PAGE_HASH_CL_H

#include <CL/cl_icd.h>

#include "base/error.h"

/*
 * Digests of a buffer's pages worked out by the device that holds it (gMig 5.1), so that a move
 * reads only pages that have changed over the bus. The hash is NH with four Toeplitz keys
 * (migrate/page_hash.h has the C form and the reasons): sums of products, which can be taken in any
 * order. So there are two kernels with one result: for processors a work-item goes through a page
 * with vectors; for everything else a work-group does, its items side by side in memory.
 */
#define GN_CL_PAGE_DIGEST_BYTES 32u

struct gn_cl_page_hash;

/*
 * For one device of a context. key: page_bytes / 4 + 6 words, copied. group_shape: 0 a work-item a
 * page, 1 a work-group a page, -1 what suits the device. Builds a program: milliseconds, or seconds
 * with a cold compiler. -ENODEV where the device cannot (big-endian, no compiler), -EINVAL,
 * -ENOMEM, -EIO with what the driver said. Nothing of the caller's is kept but the context's and
 * the device's handles.
 */
int gn_cl_page_hash_create(const cl_icd_dispatch *cl, cl_context context, cl_device_id device,
                           const uint32_t *key, uint32_t page_bytes, int group_shape,
                           struct gn_cl_page_hash **ret, struct gn_error *err);
/* Which of the two it is, in words. */
const char *gn_cl_page_hash_shape(const struct gn_cl_page_hash *h);
/* NULL is fine. */
void gn_cl_page_hash_destroy(struct gn_cl_page_hash *h);

/*
 * The digests of n_pages pages from page `first` on of a buffer of buffer_bytes, whose last page
 * may be short: 32 bytes each. Blocks; any thread, one at a time. The buffer must not be mapped for
 * writing. 0, -EINVAL (beyond the buffer), -ENOMEM, -EIO. Code is built by a device at the latest
 * in the first run, for runs of any length.
 */
int gn_cl_page_hash_run(struct gn_cl_page_hash *h, cl_mem buffer, uint64_t buffer_bytes,
                        uint64_t first, uint64_t n_pages, void *ret, struct gn_error *err);

#endif
