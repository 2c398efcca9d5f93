/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_GRANT_H
#define GN_SHM_GRANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The grant page: one for each vGPU, shared by gantryd's scheduler and the vGPU's worker, with a
 * slot for each device of the vGPU. The worker that holds the grant of a device may submit commands
 * to its driver.
 *
 *              acquire         assign              park              (gantryd) preempt
 *     NONE ----------> WANTED ------> HELD <---------------> RESTING ---------------> NONE
 *       ^                |              |       acquire
 *       |    decline     |     yield    |
 *       +----------------+--------------+
 *
 * A grant that no other vGPU wants stays with its worker: a vGPU without work parks it (RESTING)
 * and acquires it again, both without a message to gantryd. When another vGPU wants the device,
 * gantryd preempts: the holder then yields the grant at the end of its slice or as soon as it has
 * no work, and a parked grant returns to gantryd at once.
 *
 * gantryd has its own record of all grants and their times. A worker can only misreport itself on
 * its page: a worker that does not return a grant is ended (see --kernel-limit), and one that
 * returns it early shortens only its own turn.
 */
#define GN_GRANT_BYTES   4096u
#define GN_GRANT_DEVICES 16u

enum gn_grant_state { GN_GRANT_NONE, GN_GRANT_WANTED, GN_GRANT_HELD, GN_GRANT_RESTING };

/* All zeros at the start. */
struct gn_grant_slot {
    _Alignas(64) _Atomic uint32_t state; /* futex word */
    /*
     * Written by gantryd. Odd: another vGPU waits, or a cap applies. Each preempt stores a new
     * number, so that a holder notices a clear between two reads. Futex word on which the holder
     * sleeps.
     */
    _Atomic uint32_t pressed;
    _Atomic uint64_t slice_ns; /* written by gantryd before it assigns: the length of the slice */
    /*
     * Written by gantryd before it assigns: for how long to keep an idle device for an interactive
     * program; longer when the turns of other vGPUs are long.
     */
    _Atomic uint64_t keep_ns;
    /*
     * Written by the worker: device time of its commands, as far as measured; informational, not
     * trusted.
     */
    _Alignas(64) _Atomic uint64_t device_ns;
    /* Written by the worker: number of times it used the grant. */
    _Atomic uint64_t n_grants;
    /* Written by the worker: its program waits for its commands one by one; informational. */
    _Atomic uint32_t interactive;
};

struct gn_grant_page {
    struct gn_grant_slot slots[GN_GRANT_DEVICES];
};
_Static_assert(sizeof(struct gn_grant_slot) == 128 &&
                   sizeof(struct gn_grant_page) <= GN_GRANT_BYTES,
               "grant page");

/* ---- the worker: one thread at a time (the thread that submits for the device) */

/* True: the grant is held. False: it is wanted; *ret_tell: the worker must tell gantryd so. */
bool gn_grant_acquire(struct gn_grant_slot *s, bool *ret_tell);
/*
 * The grant is held and there is no work left. True: it is returned, and the worker must tell
 * gantryd.
 */
bool gn_grant_park(struct gn_grant_slot *s);
/*
 * Returns a held grant; the worker must tell gantryd. `again`: in the same step the slot becomes
 * WANTED, so that gantryd does not see the vGPU as idle.
 */
void gn_grant_yield(struct gn_grant_slot *s, bool again);
/*
 * Withdraws the request. A grant that was assigned meanwhile is parked: true as for gn_grant_park.
 */
bool gn_grant_decline(struct gn_grant_slot *s);

static inline bool gn_grant_is_preempted(const struct gn_grant_slot *s)
{
    return atomic_load_explicit(&s->pressed, memory_order_relaxed) & 1;
}

/* ---- gantryd's scheduler */

/* To the end of the slice, even if the program is idle: the policy polls. */
#define GN_GRANT_KEEP_ALL UINT64_MAX
/* Call it before gn_grant_assign. */
static inline void gn_grant_set_keep(struct gn_grant_slot *s, uint64_t keep_ns)
{
    atomic_store_explicit(&s->keep_ns, keep_ns, memory_order_relaxed);
}
/*
 * Assigns the grant to a worker that wants it, and wakes the worker. False: the worker does not
 * want it any more.
 */
bool gn_grant_assign(struct gn_grant_slot *s, uint64_t slice_ns, bool pressed);
/*
 * Sets the preempt flag, and wakes a holder that sleeps on it. True: the grant was parked and is
 * back.
 */
bool gn_grant_preempt(struct gn_grant_slot *s);
/* No other vGPU waits any more: clears the preempt flag and wakes the holder. */
void gn_grant_clear(struct gn_grant_slot *s);
/* The state that the worker's page shows; any value outside the enum is NONE. */
enum gn_grant_state gn_grant_look(const struct gn_grant_slot *s);

#endif
