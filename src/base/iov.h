/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_IOV_H
#define GN_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* Drops n bytes, and then empty entries, from the front of the vector. */
static inline void gn_iov_advance(struct iovec **iov, int *n_iov, size_t n)
{
    while (*n_iov && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        ++*iov;
        --*n_iov;
    }
    if (*n_iov) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

#endif
