/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_GRANT_H
#define GN_SHM_GRANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The grant page: one a vGPU, shared by gantryd's scheduler and the vGPU's worker, with a slot for
 * each device of the vGPU. Who holds a device's grant may give commands to its driver.
 *
 *              take            hand                rest              (gantryd) press
 *     NONE ----------> WANTED ------> HELD <---------------> RESTING ---------------> NONE
 *       ^                |              |        take
 *       |    decline     |     give     |
 *       +----------------+--------------+
 *
 * A grant that nobody else wants stays where it is: a vGPU without work rests on it and takes it up
 * again, both without a word to gantryd. When another one wants the device gantryd presses: from
 * then on the holder gives the grant back at the end of its slice, or as soon as it has no work,
 * and a grant that is rested on is gantryd's at once.
 *
 * gantryd remembers itself whom it has given what and when. A worker can do nothing with its page
 * but lie about itself: to hold on to a grant ends it (see --kernel-limit), to give it up too early
 * costs only its own turn.
 */
#define GN_GRANT_BYTES   4096u
#define GN_GRANT_DEVICES 16u

enum gn_grant_state { GN_GRANT_NONE, GN_GRANT_WANTED, GN_GRANT_HELD, GN_GRANT_RESTING };

/* Zeros at the start. */
struct gn_grant_slot {
    _Alignas(64) _Atomic uint32_t state; /* a futex */
    _Atomic uint32_t pressed;  /* gantryd: odd: somebody waits, or a cap is to be kept; each time
                                  another number, so that it shows  when it was eased between two
                                  looks. A futex for who holds the grant */
    _Atomic uint64_t slice_ns; /* gantryd, before it hands out: how long, */
    _Atomic uint64_t keep_ns;  /* and how long it is worth waiting for a program that waits as it
                                  goes: others' turns are long */
    _Alignas(64) _Atomic uint64_t device_ns; /* worker: what its commands took, as far as it was
                                                measured; a claim, for people */
    _Atomic uint64_t n_grants;               /* worker: how often it went to work */
    _Atomic uint32_t
        interactive; /* worker: its program waits for the device again and again; for people, too */
};

struct gn_grant_page {
    struct gn_grant_slot slots[GN_GRANT_DEVICES];
};
_Static_assert(sizeof(struct gn_grant_slot) == 128 &&
                   sizeof(struct gn_grant_page) <= GN_GRANT_BYTES,
               "grant page");

/* ---- the worker: one thread at a time (whoever submits for the device) */

/* true: it is held. false: it is wanted; *ret_tell: gantryd has to be told so. */
bool gn_grant_acquire(struct gn_grant_slot *s, bool *ret_tell);
/* Held, and nothing left to do. true: gantryd has to be told that it is back. */
bool gn_grant_park(struct gn_grant_slot *s);
/* Held, and back now; `again`: wanted again in the same moment, so that nobody takes it for done.
 * gantryd has to be told. */
void gn_grant_yield(struct gn_grant_slot *s, bool again);
/* Wanted no more. A grant that came meanwhile is rested on: true as above. */
bool gn_grant_decline(struct gn_grant_slot *s);

static inline bool gn_grant_is_preempted(const struct gn_grant_slot *s)
{
    return atomic_load_explicit(&s->pressed, memory_order_relaxed) & 1;
}

/* ---- gantryd's scheduler */

#define GN_GRANT_KEEP_ALL                                                                          \
    UINT64_MAX /* to the end of the slice, whatever the program does: the policy polls */
/* Before the hand. */
static inline void gn_grant_set_keep(struct gn_grant_slot *s, uint64_t keep_ns)
{
    atomic_store_explicit(&s->keep_ns, keep_ns, memory_order_relaxed);
}
/* Hands it to who wants it, and wakes him. false: he does not want it any more. */
bool gn_grant_assign(struct gn_grant_slot *s, uint64_t slice_ns, bool pressed);
/* To the holder, who may sleep on it. true: he rested, and the grant is back. */
bool gn_grant_preempt(struct gn_grant_slot *s);
/* Nobody waits any more. */
void gn_grant_clear(struct gn_grant_slot *s);
/* What the worker says; anything else than the four is NONE. */
enum gn_grant_state gn_grant_look(const struct gn_grant_slot *s);

#endif
