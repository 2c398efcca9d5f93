/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping on a shared word and on the loss of the peer at the same time. The waits of this folder,
 * and other waits of the worker and the guest, call it on any thread when spinning has not helped.
 * It never spins and never decides whether the wait is over.
 */
#include "shm/park.h"

#include "base/clock.h"
#include "shm/futex.h"

#include <stddef.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

_Atomic uint64_t gn_futex_n_waits;
_Atomic uint64_t gn_futex_n_wakes;

/* Own copy of the kernel's structure: older kernel headers lack it. */
struct waitv {
    uint64_t expected;
    uint64_t address;
    uint32_t flags;
    uint32_t zero_reserved;
};

#define WAITV_U32     2u
#define WAITV_PRIVATE 128u

static _Atomic bool no_waitv;

void gn_lost_init(struct gn_lost *lost)
{
    atomic_store_explicit(&lost->word, 0, memory_order_relaxed);
    atomic_store_explicit(&lost->hook, NULL, memory_order_relaxed);
    lost->slept = NULL;
}

void gn_lost_declare(struct gn_lost *lost)
{
    atomic_store_explicit(&lost->word, 1, memory_order_seq_cst);
    gn_futex_wake(&lost->word, INT_MAX, true);
}

void gn_park_without_waitv(bool on)
{
    atomic_store_explicit(&no_waitv, on, memory_order_relaxed);
}

/* False: for_ns, or a part of it, has elapsed. */
static bool sleep_on(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                     const struct gn_lost *lost, const _Atomic uint32_t *other,
                     uint32_t other_expected, bool private_other, uint64_t for_ns)
{
    if (!atomic_load_explicit(&no_waitv, memory_order_relaxed)) {
        struct waitv all[3] = {
            {expected, (uint64_t)(uintptr_t)word, WAITV_U32 | (private_word ? WAITV_PRIVATE : 0),
             0},
            {0, (uint64_t)(uintptr_t)&lost->word, WAITV_U32 | WAITV_PRIVATE, 0},
            {other_expected, (uint64_t)(uintptr_t)other,
             WAITV_U32 | (private_other ? WAITV_PRIVATE : 0), 0},
        };
        const uint64_t until_ns = for_ns ? gn_now_ns() + for_ns : 0;
        const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                       (long)(until_ns % 1000000000u)};
        atomic_fetch_add_explicit(&gn_futex_n_waits, 1, memory_order_relaxed);
        if (syscall(SYS_futex_waitv, all, other ? 3 : 2, 0, for_ns ? &until : NULL,
                    CLOCK_MONOTONIC) >= 0)
            return true;
        if (errno != ENOSYS && errno != EPERM)
            return errno != ETIMEDOUT;
        /* An old kernel, or a seccomp filter that does not know the call. */
        gn_park_without_waitv(true);
    }
    const uint64_t piece_ns = other && private_other ? GN_PARK_BOTH_PIECE_NS : GN_PARK_PIECE_NS;
    return gn_lost_is(lost) ||
           gn_futex_wait(word, expected, private_word,
                         for_ns && for_ns < piece_ns ? for_ns : piece_ns) != -ETIMEDOUT;
}

static void park(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                 struct gn_lost *lost, const _Atomic uint32_t *other, uint32_t other_expected,
                 bool private_other, uint64_t for_ns)
{
    const bool looks = !for_ns && lost->slept;
    if (!sleep_on(word, expected, private_word, lost, other, other_expected, private_other,
                  looks ? GN_PARK_LOOK_NS : for_ns) &&
        looks)
        lost->slept(lost);
}

void gn_park(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
             struct gn_lost *lost)
{
    const struct gn_wait_hook *hook = atomic_load_explicit(&lost->hook, memory_order_acquire);
    if (hook)
        hook->park(hook, word, expected, private_word);
    else
        park(word, expected, private_word, lost, NULL, 0, false, 0);
}

void gn_park_for(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                 struct gn_lost *lost, uint64_t for_ns)
{
    park(word, expected, private_word, lost, NULL, 0, false, for_ns);
}

void gn_park_either(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                    struct gn_lost *lost, const _Atomic uint32_t *other, uint32_t other_expected)
{
    park(word, expected, private_word, lost, other, other_expected, true, 0);
}

void gn_park_or_shared(const _Atomic uint32_t *word, uint32_t expected, struct gn_lost *lost,
                       const _Atomic uint32_t *other, uint32_t other_expected)
{
    park(word, expected, true, lost, other, other_expected, false, 0);
}
