/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a memory object that may be evicted (swap_state.h): the table, and the change by
 * one compare-and-exchange. Pure: knows no driver, no copy and no lock. Called by any thread of the
 * worker. Never waits.
 */
#include "vgpu/residency/swap_state.h"

#include "base/list.h"

/* A state in the table plus 1; 0: the state has no such event. */
#define TO(state) ((state) + 1)

static const unsigned char table[GN_SWAP_N_STATES][GN_SWAP_N_EVENTS] = {
    [GN_SWAP_RESIDENT] = {[GN_SWAP_VACATE] = TO(GN_SWAP_OUT), [GN_SWAP_PIN] = TO(GN_SWAP_PINNED)},
    [GN_SWAP_OUT] =
        {[GN_SWAP_SAVED] = TO(GN_SWAP_EVICTED), [GN_SWAP_UNREADABLE] = TO(GN_SWAP_PINNED)},
    [GN_SWAP_EVICTED] = {[GN_SWAP_ASSIGN] = TO(GN_SWAP_IN)},
    [GN_SWAP_IN] = {[GN_SWAP_FILLED] = TO(GN_SWAP_RESIDENT),
                    [GN_SWAP_REFUSED] = TO(GN_SWAP_EVICTED),
                    [GN_SWAP_BROKEN] = TO(GN_SWAP_LOST)},
};

bool gn_swap_next(enum gn_swap_state state, enum gn_swap_event event, enum gn_swap_state *ret_next)
{
    const unsigned char to = table[state][event];
    if (to)
        *ret_next = (enum gn_swap_state)(to - 1);
    return to != 0;
}

bool gn_swap_step(struct gn_swap *s, enum gn_swap_event event)
{
    int now = gn_swap_state(s);
    enum gn_swap_state next;
    do {
        if (!gn_swap_next((enum gn_swap_state)now, event, &next))
            return false;
        /* seq_cst: gantryd looks at the state after it has taken the grant, and the worker at the
         * grant after the state. */
    } while (!atomic_compare_exchange_weak_explicit(&s->state, &now, (int)next,
                                                    memory_order_seq_cst, memory_order_seq_cst));
    return true;
}

const char *gn_swap_state_name(enum gn_swap_state state)
{
    static const char *const names[] = {"resident",    "swapping out", "evicted",
                                        "swapping in", "pinned",       "lost"};
    _Static_assert(GN_ARRAY_SIZE(names) == GN_SWAP_N_STATES, "a name for each state");
    return names[state];
}
