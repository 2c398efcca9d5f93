/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_PARK_H
#define GN_SHM_PARK_H

#include "shm/spin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * "The other side is gone" (or: this side stops). Private to the process; one for all waits of a
 * link. Whoever parks sleeps on two words at once, the shared one and this one, so declaring the
 * loss wakes every sleeper wherever it sleeps, and nobody can fall asleep afterwards. Nothing that
 * a peer writes can delay it.
 */
struct gn_wait_hook;

struct gn_lost {
    _Atomic uint32_t word;
    const struct gn_wait_hook *_Atomic hook; /* NULL: another process writes the words that are
                                                waited for. Set before any wait; may end */
    /*
     * NULL, or called by a thread that nothing has woken from an untimed wait for GN_PARK_LOOK_NS,
     * or for a piece of that without futex_waitv. Set before any wait.
     */
    void (*slept)(struct gn_lost *lost);
};

#define GN_PARK_LOOK_NS UINT64_C(1000000000)

/*
 * Where no other process writes the words: threads of this one do, with what they receive over a
 * socket, and who waits has to see to it that somebody receives.
 */
struct gn_wait_hook {
    /* In spinning's place: returns when *word may have changed, or false: park, somebody else
     * receives. */
    bool (*look)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t seen);
    /* As gn_park. */
    void (*park)(const struct gn_wait_hook *hook, const _Atomic uint32_t *word, uint32_t expected,
                 bool private_word);
};

void gn_lost_init(struct gn_lost *lost);

/* Final until the next gn_lost_init. Any thread; wakes every thread parked with this `lost`. */
void gn_lost_declare(struct gn_lost *lost);

/* Sequentially consistent: see gn_event_fail_all in event_table.h for who depends on it. */
static inline bool gn_lost_is(const struct gn_lost *lost)
{
    return atomic_load_explicit(&lost->word, memory_order_seq_cst) != 0;
}

/* How a thread waits: spin this long, then park, and give up with -EPIPE when the peer is lost. */
struct gn_waiter {
    struct gn_spin_policy policy;
    struct gn_lost *lost; /* never NULL; outlives every wait */
};

/*
 * Sleeps while *word == expected and *lost is not declared. Returns for any reason or none; the
 * caller looks again. `private_word` says that the word is not in shared memory. futex_waitv(2)
 * where the kernel has it (5.16); elsewhere FUTEX_WAIT in pieces of GN_PARK_PIECE_NS, so a loss is
 * noticed that late there.
 */
void gn_park(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
             struct gn_lost *lost);

#define GN_PARK_PIECE_NS 50000000u

/* The same, but not for longer than for_ns. Where another process writes the word. */
void gn_park_for(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                 struct gn_lost *lost, uint64_t for_ns);

/* For hooks: the same, and while *other, a word of this process, == other_expected. Without
 * futex_waitv a change of it is noticed GN_PARK_BOTH_PIECE_NS late. */
void gn_park_either(const _Atomic uint32_t *word, uint32_t expected, bool private_word,
                    struct gn_lost *lost, const _Atomic uint32_t *other, uint32_t other_expected);

#define GN_PARK_BOTH_PIECE_NS 1000000u

/* While *word, of this process, == expected, and *other, in shared memory, == other_expected.
 * Without futex_waitv a change of *other is noticed GN_PARK_PIECE_NS late. */
void gn_park_or_shared(const _Atomic uint32_t *word, uint32_t expected, struct gn_lost *lost,
                       const _Atomic uint32_t *other, uint32_t other_expected);

/* For tests: behave as on a kernel without futex_waitv. */
void gn_park_without_waitv(bool on);

#endif
