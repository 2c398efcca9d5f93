/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SWAP_STATE_H
#define GN_VGPU_SWAP_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Where the contents of one memory object are: on the device, in host memory (the backing), or on
 * the way. Views of the object (sub-buffers, images over a buffer) share its state. Where gantryd
 * places memory, the objects of one chunk share a state, and so do the chunks of one object.
 *
 *     from      event       to        side     when
 *     --------  ----------  --------  -------  -------------------------------------------------
 *     RESIDENT  VACATE      SWAP_OUT  gantryd  another vGPU gets the slot
 *     RESIDENT  PIN         PINNED    worker   the object can never be evicted
 *     SWAP_OUT  SAVED       EVICTED   worker   the backing has the contents, no driver's object is
 *     SWAP_OUT  UNREADABLE  PINNED    worker   the contents could not be read
 *     EVICTED   ASSIGN      SWAP_IN   gantryd  the object gets a slot
 *     SWAP_IN   FILLED      RESIDENT  worker   a driver's object has the contents
 *     SWAP_IN   REFUSED     EVICTED   worker   the driver makes no object, or does not fill it
 *     SWAP_IN   BROKEN      LOST      worker   the backing cannot be read
 *
 * PINNED and LOST are for good.
 *
 * One word, changed by compare-and-exchange alone. Only the side that the table names sends an
 * event. gantryd sends VACATE only while the vGPU has no grant, so no command is being submitted;
 * the worker waits for those that the driver still has.
 */
enum gn_swap_state {
    GN_SWAP_RESIDENT,
    GN_SWAP_OUT,
    GN_SWAP_EVICTED,
    GN_SWAP_IN,
    GN_SWAP_PINNED,
    GN_SWAP_LOST,
};
#define GN_SWAP_N_STATES (GN_SWAP_LOST + 1)

enum gn_swap_event {
    GN_SWAP_VACATE,
    GN_SWAP_SAVED,
    GN_SWAP_UNREADABLE,
    GN_SWAP_ASSIGN,
    GN_SWAP_FILLED,
    GN_SWAP_REFUSED,
    GN_SWAP_BROKEN,
    GN_SWAP_PIN,
};
#define GN_SWAP_N_EVENTS (GN_SWAP_PIN + 1)

struct gn_swap {
    _Atomic int state; /* enum gn_swap_state */
};

/* Any thread. */
static inline enum gn_swap_state gn_swap_state(const struct gn_swap *s)
{
    return (enum gn_swap_state)atomic_load_explicit(&s->state, memory_order_seq_cst);
}

/* May a command that names the object go to the driver? */
static inline bool gn_swap_is_usable(enum gn_swap_state state)
{
    return state == GN_SWAP_RESIDENT || state == GN_SWAP_PINNED;
}

/* Does the object take device memory, or may it at any moment? */
static inline bool gn_swap_occupies(enum gn_swap_state state)
{
    return state != GN_SWAP_EVICTED && state != GN_SWAP_LOST;
}

/* May gantryd send it? The worker sends the other events. */
static inline bool gn_swap_is_gantryds(enum gn_swap_event event)
{
    return event == GN_SWAP_VACATE || event == GN_SWAP_ASSIGN;
}

/* The table: false when the state has no such event; *ret_next is untouched then. */
bool gn_swap_next(enum gn_swap_state state, enum gn_swap_event event, enum gn_swap_state *ret_next);
/*
 * Makes the change of the table. Any thread. False: the state has no such event, and stays. For
 * VACATE, ASSIGN and PIN that is an answer; the worker alone ends a swap, so there it is an error
 * of the caller.
 */
bool gn_swap_step(struct gn_swap *s, enum gn_swap_event event);
/* For people: "resident", "swapping out" ... A constant. */
const char *gn_swap_state_name(enum gn_swap_state state);

#endif
