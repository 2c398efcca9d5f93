/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_CLOCK_H
#define GN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns CLOCK_MONOTONIC in nanoseconds. The vDSO answers without a system call. */
static inline uint64_t gn_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
