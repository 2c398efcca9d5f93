/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_PARK_H
#define GN_SHM_PARK_H

#include "shm/spin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The flag "the peer is gone" (or: this side stops). Private to the process; one for all waits of a
 * link. A thread that parks sleeps on two words at once, the awaited one and this one, so that
 * declaring the loss wakes every sleeper and no thread can fall asleep afterwards. Nothing that a
 * peer writes can delay this.
 */
struct gn_wait_hook;

struct gn_lost {
    _Atomic uint32_t word;
    /* NULL: another process writes the awaited words. Set before any wait; may be cleared later. */
    const struct gn_wait_hook *_Atomic hook;
    /*
     * NULL, or a callback for untimed waits. The waiting thread calls it when nothing has woken it
     * for GN_PARK_LOOK_NS, or for one piece of that time without futex_waitv. Set before any wait.
     */
    void (*slept)(struct gn_lost *lost);
};

#define GN_PARK_LOOK_NS UINT64_C(1000000000)

/*
 * For links on which no other process writes the awaited words: threads of this process write them,
 * from data that they receive over a socket, and a waiting thread must make sure that some thread
 * receives.
 */
struct gn_wait_hook {
    /*
     * Called instead of spinning. True: *word may have changed. False: park, because another thread
     * receives.
     */
    bool (*look)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t seen);
    /* Called instead of gn_park's own sleep. */
    void (*park)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t expected,
                 bool private_word);
};

void gn_lost_init(struct gn_lost *lost);

/* Stays set until the next gn_lost_init. Any thread; wakes every thread parked with this `lost`. */
void gn_lost_declare(struct gn_lost *lost);

/* Sequentially consistent because gn_event_fail_all (event_table.h) depends on it. */
static inline bool gn_lost_is(const struct gn_lost *lost)
{
    return atomic_load_explicit(&lost->word, memory_order_seq_cst) != 0;
}

/*
 * How a thread waits: spin according to the policy, then park; return -EPIPE when the peer is lost.
 */
struct gn_waiter {
    struct gn_spin_policy policy;
    struct gn_lost *lost; /* never NULL; outlives every wait */
};

/*
 * Sleeps while *word == expected and *lost is not declared. Spurious returns are possible: the
 * caller checks its condition again. `private_word`: the word is not in shared memory. Uses
 * futex_waitv(2) if the kernel has it (5.16); otherwise FUTEX_WAIT in pieces of GN_PARK_PIECE_NS,
 * and notices a loss that much later.
 */
void gn_park(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
             struct gn_lost *lost);

#define GN_PARK_PIECE_NS 50000000u

/*
 * Like gn_park, but for at most for_ns and without the hook. For words that another process writes.
 */
void gn_park_for(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                 struct gn_lost *lost, uint64_t for_ns);

/*
 * For hooks: like gn_park, and also returns when *other, a word of this process, differs from
 * other_expected. Without futex_waitv a change of *other is noticed up to GN_PARK_BOTH_PIECE_NS
 * late.
 */
void gn_park_either(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                    struct gn_lost *lost, const _Atomic uint32_t *other, uint32_t other_expected);

#define GN_PARK_BOTH_PIECE_NS 1000000u

/*
 * Sleeps while *word, of this process, == expected, and *other, in shared memory, ==
 * other_expected. Without futex_waitv a change of *other is noticed up to GN_PARK_PIECE_NS late.
 */
void gn_park_or_shared(const _Atomic uint32_t *word, uint32_t expected, struct gn_lost *lost,
                       const _Atomic uint32_t *other, uint32_t other_expected);

/* For tests: behave as on a kernel without futex_waitv. */
void gn_park_without_waitv(bool on);

#endif
