/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TEST_H
#define GN_SHM_TEST_H

/* Helpers of this folder's tests. */
#include "base/checked.h"
#include "shm/park.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define GN_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define GN_TEST_SANITIZED 1
#endif
#ifndef GN_TEST_SANITIZED
#define GN_TEST_SANITIZED 0
#endif

static inline void *gn_test_shared(size_t bytes)
{
    void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

/* Returns when the thread sleeps in the kernel: state S in /proc, not after a guessed time. */
void gn_test_wait_until_asleep(pid_t tid);

#endif
