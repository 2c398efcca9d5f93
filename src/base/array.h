/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ARRAY_H
#define GN_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Makes room for element n of an array from malloc(3), or of none (NULL), that has room for
 * *capacity elements of each_bytes. Returns the array, which may have moved; or NULL, and array and
 * capacity are as before: no memory, or 2^31 elements.
 */
static inline void *gn_array_reserve(void *array, uint32_t n, uint32_t *capacity, size_t each_bytes)
{
    const uint32_t more = *capacity ? 2 * *capacity : 64;
    if (n < *capacity)
        return array;
    void *moved = more > *capacity ? realloc(array, more * each_bytes) : NULL;
    if (moved)
        *capacity = more;
    return moved;
}

#endif
