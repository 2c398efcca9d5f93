/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_FUTEX_H
#define GN_SHM_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Thin wrappers around futex(2): the only system calls of the rings. A word in shared memory needs
 * a shared futex (its key is the page of the file, not the address); a word private to this process
 * needs a private one.
 *
 * Every call is counted, so that a test can assert that a steady state makes none.
 */
extern _Atomic uint64_t gn_futex_n_waits;
extern _Atomic uint64_t gn_futex_n_wakes;

/*
 * Sleeps while *word == expected, at most timeout_ns (UINT64_MAX: no limit). Returns 0 when woken,
 * else -EAGAIN (the word differs), -ETIMEDOUT or -EINTR. May return 0 spuriously: the caller checks
 * its condition again.
 */
static inline int gn_futex_wait(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                                uint64_t timeout_ns)
{
    struct timespec ts = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    int op = private_word ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
    atomic_fetch_add_explicit(&gn_futex_n_waits, 1, memory_order_relaxed);
    if (syscall(SYS_futex, word, op, expected, timeout_ns == UINT64_MAX ? NULL : &ts, NULL, 0) == 0)
        return 0;
    return -errno;
}

/* Wakes at most n sleepers (INT_MAX: all) and returns the number of threads woken. */
static inline int gn_futex_wake(const _Atomic uint32_t *word, int n, bool private_word)
{
    int op = private_word ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE;
    atomic_fetch_add_explicit(&gn_futex_n_wakes, 1, memory_order_relaxed);
    long woken = syscall(SYS_futex, word, op, n, NULL, NULL, 0);
    return woken < 0 ? -errno : (int)woken;
}

#endif
