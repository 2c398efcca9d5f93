/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_GRANT_H
#define GN_SHM_GRANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The grant page: one for each vGPU, shared by gantryd's scheduler and the vGPU's worker, with a
 * slot for each device of the vGPU. The holder of a device's grant may submit commands to its
 * driver.
 *
 *        acquire          assign             park                (gantryd) preempt
 *   NONE ----------> WANTED ------> HELD <---------------> RESTING ---------------> NONE
 *        ^                |              |     acquire
 *        |    decline     |     yield    |
 *        +----------------+--------------+
 *
 * A grant stays with its vGPU while no other vGPU wants it: a vGPU without work parks the grant and
 * acquires it again, both without a message to gantryd. When another vGPU wants the device, gantryd
 * preempts: the holder then yields the grant at the end of its slice, or as soon as it has no work,
 * and gantryd takes a parked grant back at once.
 *
 * gantryd keeps its own record of assigned grants and their times. A worker can falsify only its
 * own page: if it keeps a grant too long, gantryd ends the worker (see --kernel-limit); if it
 * yields too early, it loses only its own turn.
 */
#define GN_GRANT_BYTES   4096u
#define GN_GRANT_DEVICES 16u

enum gn_grant_state { GN_GRANT_NONE, GN_GRANT_WANTED, GN_GRANT_HELD, GN_GRANT_PARKED };

/* All zeros at first. */
struct gn_grant_slot {
    _Alignas(64) _Atomic uint32_t state; /* a futex */
    /*
     * gantryd: odd: another vGPU waits, or a cap is due. Each preemption sets a new number, so that
     * a reader notices a clear between two reads. A futex for the holder
     */
    _Atomic uint32_t preempted;
    _Atomic uint64_t slice_ns; /* gantryd, before it assigns: the length of the slice */
    /*
     * gantryd: how long to keep the grant for a program that waits for its commands one by one;
     * longer when the turns of others are long
     */
    _Atomic uint64_t keep_ns;
    /* worker: time that its commands took, as far as measured; for display, not verified */
    _Alignas(64) _Atomic uint64_t device_ns;
    _Atomic uint64_t n_grants; /* worker: number of times it went to work */
    /* worker: its program waits for the device again and again; for display, not verified */
    _Atomic uint32_t interactive;
};

struct gn_grant_page {
    struct gn_grant_slot slots[GN_GRANT_DEVICES];
};
_Static_assert(sizeof(struct gn_grant_slot) == 128 &&
                   sizeof(struct gn_grant_page) <= GN_GRANT_BYTES,
               "grant page");

/* ---- the worker: one thread at a time (the one that submits for the device) */

/* True: the grant is held. False: it is wanted; *ret_tell: the caller has to tell gantryd so. */
bool gn_grant_acquire(struct gn_grant_slot *s, bool *ret_tell);
/*
 * Called by the holder when no work is left. True: the grant is back, and the caller has to tell
 * gantryd.
 */
bool gn_grant_park(struct gn_grant_slot *s);
/*
 * The holder returns the grant. `again`: it wants the grant again at once, so that gantryd does not
 * take the vGPU for idle. The caller has to tell gantryd.
 */
void gn_grant_yield(struct gn_grant_slot *s, bool again);
/*
 * Withdraws a request. A grant that was assigned meanwhile is parked. True: the caller has to tell
 * gantryd.
 */
bool gn_grant_decline(struct gn_grant_slot *s);

static inline bool gn_grant_is_preempted(const struct gn_grant_slot *s)
{
    return atomic_load_explicit(&s->preempted, memory_order_relaxed) & 1;
}

/* ---- gantryd's scheduler */

/* until the end of the slice, even if the program pauses: the policy polls */
#define GN_GRANT_KEEP_ALL UINT64_MAX
/* Call it before gn_grant_assign. */
static inline void gn_grant_set_keep(struct gn_grant_slot *s, uint64_t keep_ns)
{
    atomic_store_explicit(&s->keep_ns, keep_ns, memory_order_relaxed);
}
/*
 * Assigns the grant to the vGPU that wants it, and wakes its worker. False: the vGPU no longer
 * wants it.
 */
bool gn_grant_assign(struct gn_grant_slot *s, uint64_t slice_ns, bool preempted);
/* Preempts the holder, which may sleep on the flag. True: the grant was parked and is back. */
bool gn_grant_preempt(struct gn_grant_slot *s);
/* Clears the preemption: no other vGPU waits any more. */
void gn_grant_clear(struct gn_grant_slot *s);
/* The state as the worker reports it; a value outside the enum reads as NONE. */
enum gn_grant_state gn_grant_look(const struct gn_grant_slot *s);

#endif
