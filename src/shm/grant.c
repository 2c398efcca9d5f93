/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transitions of a grant page. The worker's submitting thread and gantryd's scheduler thread
 * call them; none blocks. Each is one compare-and-exchange. Park and preempt are each a store
 * followed by a load of the other side's word; in the total order of sequentially consistent
 * accesses either the worker sees the preemption or gantryd sees the parked grant.
 */
#include "shm/grant.h"

#include "shm/futex.h"

static bool change_state(struct gn_grant_slot *s, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(&s->state, &from, to, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

bool gn_grant_acquire(struct gn_grant_slot *s, bool *ret_tell)
{
    *ret_tell = false;
    if (atomic_load_explicit(&s->state, memory_order_acquire) == GN_GRANT_HELD ||
        change_state(s, GN_GRANT_PARKED, GN_GRANT_HELD))
        return true;
    *ret_tell = change_state(s, GN_GRANT_NONE, GN_GRANT_WANTED);
    return false;
}

bool gn_grant_park(struct gn_grant_slot *s)
{
    /* G0, G1, G2 (labels of tests/model) */
    return change_state(s, GN_GRANT_HELD, GN_GRANT_PARKED) &&
           (atomic_load_explicit(&s->preempted, memory_order_seq_cst) & 1) &&
           change_state(s, GN_GRANT_PARKED, GN_GRANT_NONE);
}

void gn_grant_yield(struct gn_grant_slot *s, bool again)
{
    (void)change_state(s, GN_GRANT_HELD, again ? GN_GRANT_WANTED : GN_GRANT_NONE);
}

bool gn_grant_decline(struct gn_grant_slot *s)
{
    if (change_state(s, GN_GRANT_WANTED, GN_GRANT_NONE))
        return true;
    return gn_grant_park(s);
}

/* Only gantryd's scheduler thread calls it. */
static void set_preempted(struct gn_grant_slot *s, bool on)
{
    const uint32_t before = atomic_load_explicit(&s->preempted, memory_order_relaxed);
    atomic_store_explicit(&s->preempted, on ? (before | 1) + 2 : before & ~1u,
                          memory_order_seq_cst);
}

bool gn_grant_assign(struct gn_grant_slot *s, uint64_t slice_ns, bool preempted)
{
    atomic_store_explicit(&s->slice_ns, slice_ns, memory_order_relaxed);
    set_preempted(s, preempted);
    if (!change_state(s, GN_GRANT_WANTED, GN_GRANT_HELD))
        return false;
    gn_futex_wake(&s->state, 1, false);
    return true;
}

bool gn_grant_preempt(struct gn_grant_slot *s)
{
    set_preempted(s, true);                              /* G3 */
    if (change_state(s, GN_GRANT_PARKED, GN_GRANT_NONE)) /* G4 */
        return true;
    gn_futex_wake(&s->preempted, 1, false);
    return false;
}

void gn_grant_clear(struct gn_grant_slot *s)
{
    set_preempted(s, false);
    gn_futex_wake(&s->preempted, 1, false);
}

enum gn_grant_state gn_grant_look(const struct gn_grant_slot *s)
{
    uint32_t state = atomic_load_explicit(&s->state, memory_order_seq_cst);
    return state <= GN_GRANT_PARKED ? (enum gn_grant_state)state : GN_GRANT_NONE;
}
