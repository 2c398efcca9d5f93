/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_SECRET_H
#define GN_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Compares two secrets in constant time. */
static inline bool gn_secret_same(const void *a, const void *b, size_t n)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}

#endif
