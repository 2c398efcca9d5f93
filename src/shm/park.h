/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_PARK_H
#define GN_SHM_PARK_H

#include "shm/spin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The flag "the peer is lost" (or: this side stops). Private to the process; one for all waits of a
 * link. A parked thread sleeps on two words at once, the shared one and this one. Declaring the
 * loss therefore wakes every sleeper, and no thread falls asleep afterwards. Nothing that a peer
 * writes can delay it.
 */
struct gn_wait_hook;

struct gn_lost {
    _Atomic uint32_t word;
    /* NULL: another process writes the awaited words. Set before any wait; may become NULL later */
    const struct gn_wait_hook *_Atomic hook;
    /*
     * NULL, or a function that a thread calls when it has slept in an untimed wait for
     * GN_PARK_LOOK_NS without a wake (without futex_waitv: for GN_PARK_PIECE_NS). Set before any
     * wait.
     */
    void (*slept)(struct gn_lost *lost);
};

#define GN_PARK_LOOK_NS UINT64_C(1000000000)

/*
 * For sessions without a peer process that writes the awaited words: threads of this process write
 * them, with data that they receive over a socket. A waiting thread has to make sure that some
 * thread receives.
 */
struct gn_wait_hook {
    /*
     * Called instead of spinning. True: *word may have changed. False: park, another thread
     * receives.
     */
    bool (*look)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t seen);
    /* Same contract as gn_park. */
    void (*park)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t expected,
                 bool private_word);
};

void gn_lost_init(struct gn_lost *lost);

/* Stays set until the next gn_lost_init. Any thread; wakes every thread parked with this `lost`. */
void gn_lost_declare(struct gn_lost *lost);

/* Sequentially consistent: gn_event_fail_all in event_table.h depends on it. */
static inline bool gn_lost_is(const struct gn_lost *lost)
{
    return atomic_load_explicit(&lost->word, memory_order_seq_cst) != 0;
}

/*
 * How a thread waits: it spins as the policy says, then parks, and gives up with -EPIPE when the
 * peer is lost.
 */
struct gn_waiter {
    struct gn_spin_policy policy;
    struct gn_lost *lost; /* never NULL; outlives every wait */
};

/*
 * Sleeps while *word == expected and *lost is not declared. May return spuriously; the caller
 * checks its condition again. `private_word`: the word is not in shared memory. Uses futex_waitv(2)
 * where the kernel has it (5.16), else FUTEX_WAIT in pieces of GN_PARK_PIECE_NS, which delays the
 * notice of a loss by at most one piece.
 */
void gn_park(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
             struct gn_lost *lost);

#define GN_PARK_PIECE_NS 50000000u

/* Same as gn_park, for at most for_ns. Only where another process writes the word. */
void gn_park_for(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                 struct gn_lost *lost, uint64_t for_ns);

/*
 * For hooks: sleeps as gn_park and also only while *other, a word of this process, ==
 * other_expected. Without futex_waitv a change of *other is noticed up to GN_PARK_BOTH_PIECE_NS
 * late.
 */
void gn_park_either(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                    struct gn_lost *lost, const _Atomic uint32_t *other, uint32_t other_expected);

#define GN_PARK_BOTH_PIECE_NS 1000000u

/*
 * Sleeps while *word, of this process, == expected and *other, in shared memory, == other_expected.
 * Without futex_waitv a change of *other is noticed up to GN_PARK_PIECE_NS late.
 */
void gn_park_or_shared(const _Atomic uint32_t *word, uint32_t expected, struct gn_lost *lost,
                       const _Atomic uint32_t *other, uint32_t other_expected);

/* For tests: behave as on a kernel without futex_waitv. */
void gn_park_without_waitv(bool on);

#endif
