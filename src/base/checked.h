/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_CHECKED_H
#define GN_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Arithmetic on numbers that a peer chose. Returns true and sets *ret, or false and leaves *ret as
 * it is.
 */
static inline bool gn_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

static inline bool gn_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

/* True if [offset, offset+n) lies inside [0, size). */
static inline bool gn_range_ok(uint64_t offset, uint64_t n, uint64_t size)
{
    return offset <= size && n <= size - offset;
}

static inline uint64_t gn_align_up(uint64_t n, uint64_t power_of_two)
{
    return (n + power_of_two - 1) & ~(power_of_two - 1);
}

#define gn_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define GN_ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
/* Exchanges two variables of one type, each evaluated twice. */
#define GN_EXCHANGE(a, b)                                                                          \
    do {                                                                                           \
        __typeof__(a) was_ = (a);                                                                  \
        (a) = (b);                                                                                 \
        (b) = was_;                                                                                \
    } while (0)

#endif
