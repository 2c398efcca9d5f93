/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_TURN_H
#define GN_VGPU_TURN_H

#include "shm/grant.h"
#include "shm/spin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gn_vdevice;
struct gn_command;

/*
 * A vGPU's turns on one device: the worker's end of the grant. Whoever submits asks before each
 * command. Alone, a vGPU holds its grant, and the driver is given what takes it about a slice, so
 * that who comes waits no longer; when others want the device, too (the slot is pressed), it gives
 * the driver no more than what is left of its slice takes, lets that drain, and gives the grant
 * back.
 */
struct gn_turn {
    struct gn_grant_slot *slot; /* NULL: nobody schedules this device. Set once, as tell_fd */
    int tell_fd;                /* an eventfd: gantryd is to look at the page */
    /* the device's role */
    bool held;
    bool over; /* the slice is: drain, and give back */
    bool used; /* the driver was given something in this turn */
    uint64_t began_ns, slice_ns;
    uint64_t preempted_ns; /* when somebody else was last seen to wait; 0: never, or long ago */
    uint32_t n_visits;
    uint32_t n_untold; /* given in a row of whose ends the driver is not to tell */
    struct gn_spin_habit
        hold; /* whether its program has come back lately while the device was kept for it */
    uint64_t window_ns,
        window_waits;        /* since when synchronous calls are counted, and the count then */
    uint32_t seen_preempted; /* the submit thread's: what it has looked for last */
    /* any thread */
    _Atomic bool wanted; /* the submit thread waits for it */
    _Atomic uint32_t
        held_up;        /* something ready waits for n_ahead to fall below this; 0: nothing does */
    _Atomic bool rests; /* somebody has found nothing left to do, and is to see to it */
    _Atomic bool watched;           /* the last command of some queue will tell of its end */
    _Atomic uint32_t n_given;       /* commands that the driver has and whose ends it will tell */
    _Atomic uint32_t n_ahead;       /* those and the untold before them */
    _Atomic uint64_t over_at_ns;    /* the last end */
    _Atomic uint64_t service_ns;    /* what one takes, lately */
    _Atomic uint64_t device_end_ns; /* the last end by the device's own clock; 0: none */
    _Atomic uint64_t
        n_dry; /* ends that left the driver with nothing: the program waited, or is about to */
};

/* May the next command go to the driver? The device's role, and vgpu->lock. When not, the submit
 * thread will be woken. */
bool gn_turn_allows(struct gn_vdevice *d);
/* The grant that was wanted is here; while nothing goes to the driver it is given back. The submit
 * thread, the role. */
void gn_turn_began(struct gn_vdevice *d);
/* The driver has another one that tells of its end. How many commands that end stands for: itself
 * and the untold before. The role. */
uint32_t gn_turn_given(struct gn_vdevice *d);
/* What one that is over now, and was given then, took the device by our clock. Before gn_turn_over;
 * any thread. */
uint64_t gn_turn_service_ns(const struct gn_turn *t, uint64_t submit_ns);
/* One is over now of which no turn knows. Any thread. */
void gn_turn_ended(struct gn_turn *t);
/* One that was given at submit_ns is over, and with it those that it stands for. It ran from
 * start_ns to end_ns by the device's clock, if that was measured (else 0, 0). The device may be
 * `dirty` then: whoever has said that the command is over wakes it, not sooner, since who is woken
 * may take the caller's processor, and give the device to others. Any thread. */
void gn_turn_over(struct gn_vdevice *d, uint32_t covers, uint64_t submit_ns, uint64_t start_ns,
                  uint64_t end_ns);
/* Is the device's time to be measured, since somebody else waits for it? Any thread. */
static inline bool gn_turn_measures(const struct gn_turn *t)
{
    return t->slot && gn_grant_is_preempted(t->slot);
}
/* Should the driver tell of the next one's end, although the program does not ask for it? The role.
 */
bool gn_turn_tracks(struct gn_vdevice *d);
/* The slice is over: waits until the driver has nothing left, and gives the grant back. The submit
 * thread, the role. */
void gn_turn_end(struct gn_vdevice *d);
/* Rests on the grant if there is nothing to do. Any thread that holds no lock. */
void gn_turn_park(struct gn_vdevice *d);
/* Gives up the grant, or the wish for it: for a while nothing goes to the driver, which has nothing
 * left. Any thread that holds no lock. */
void gn_turn_leave(struct gn_vdevice *d);
/*
 * Held, pressed, and the driver has nothing: how long to wait for the program before the grant is
 * given back (FairGV 3.2.2, hybrid spinning; here who waits sleeps). The time is charged like any
 * other. 0: not at all. Any thread.
 */
uint64_t gn_turn_hold_ns(struct gn_vdevice *d);
/* After such a wait: it came, or not. Any thread. */
void gn_turn_held(struct gn_vdevice *d, bool came);
/* Has the driver nothing of which it would tell? */
static inline bool gn_turn_is_idle(const struct gn_turn *t)
{
    return t->slot && !atomic_load_explicit(&t->n_given, memory_order_seq_cst);
}

#endif
