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
 * A vGPU's turns (time slices) on one device: the worker's end of the grant. The submitter asks
 * before each command. While no other vGPU wants the device, the vGPU keeps its grant and the
 * driver gets about one slice of work at a time, so that a newcomer waits no longer than that.
 * While others want it (the slot is preempted), the driver gets no more than fits into the rest of
 * the slice; then the submit thread lets it drain and yields the grant.
 */
struct gn_turn {
    struct gn_grant_slot *slot; /* NULL: the device is not scheduled. Set once, as tell_fd is */
    int tell_fd;                /* eventfd that makes gantryd read the grant page */
    /* under the device role */
    bool held;
    bool over; /* the slice has ended: drain, then yield */
    bool used; /* a command was submitted in this turn */
    uint64_t began_ns, slice_ns;
    uint64_t preempted_ns; /* when another vGPU was last seen to wait; 0: never, or long ago */
    uint32_t n_visits;
    uint32_t n_unreported; /* commands submitted in a row without a reported completion */
    /* Whether the program has lately come back while the device was kept for it. */
    struct gn_spin_habit hold;
    /* Start of the window in which synchronous calls are counted, and their count then. */
    uint64_t window_ns, window_waits;
    uint32_t seen_preempted; /* the submit thread's: preempt count that it has last seen */
    /* any thread */
    _Atomic bool wanted; /* the submit thread waits for the grant */
    /* A ready command waits for n_ahead to fall below this; 0: none does. */
    _Atomic uint32_t held_up;
    _Atomic bool rests;             /* a thread found the device idle: park the grant */
    _Atomic bool watched;           /* a callback is set on the last command of some queue */
    _Atomic uint32_t n_given;       /* commands in the driver that report their completion */
    _Atomic uint32_t n_ahead;       /* those and the unreported ones before them */
    _Atomic uint64_t over_at_ns;    /* time of the last completion */
    _Atomic uint64_t service_ns;    /* recent average time of a command */
    _Atomic uint64_t device_end_ns; /* last end by the device's own clock; 0: none */
    /* Completions that left the driver idle: the program waited, or is about to. */
    _Atomic uint64_t n_dry;
};

/*
 * Whether the next command may be submitted. If not, the submit thread will be woken. Under the
 * device role and vgpu->lock.
 */
bool gn_turn_allows(struct gn_vdevice *d);
/*
 * The wanted grant has arrived. It is yielded again while the gate holds commands back. The submit
 * thread, under the device role.
 */
void gn_turn_began(struct gn_vdevice *d);
/*
 * A command with a reported completion was submitted. Returns how many commands this completion
 * stands for: itself and the unreported ones before it. Under the device role.
 */
uint32_t gn_turn_given(struct gn_vdevice *d);
/*
 * Device time, by the host's clock, of a command that was submitted at submit_ns and is over now.
 * Call it before gn_turn_over. Any thread.
 */
uint64_t gn_turn_service_ns(const struct gn_turn *t, uint64_t submit_ns);
/* A command that no turn counts is over. Any thread. */
void gn_turn_ended(struct gn_turn *t);
/*
 * A command submitted at submit_ns is over, and with it the commands that it stands for. It ran
 * from start_ns to end_ns by the device's clock, if that was measured (else 0, 0). This may set the
 * device's `dirty`; the caller wakes the submit thread after it has reported the completion, not
 * before, since a woken thread may preempt the caller and give the device away. Any thread.
 */
void gn_turn_over(struct gn_vdevice *d, uint32_t covers, uint64_t submit_ns, uint64_t start_ns,
                  uint64_t end_ns);
/* Whether to measure device time, because another vGPU waits. Any thread. */
static inline bool gn_turn_measures(const struct gn_turn *t)
{
    return t->slot && gn_grant_is_preempted(t->slot);
}
/*
 * Whether the driver should report the next command's completion, although the program does not ask
 * for it. Under the device role.
 */
bool gn_turn_tracks(struct gn_vdevice *d);
/*
 * At the end of a slice: waits until the driver is idle, then yields the grant. The submit thread,
 * under the device role.
 */
void gn_turn_end(struct gn_vdevice *d);
/* Parks the grant if there is nothing to do. Any thread, without locks. */
void gn_turn_park(struct gn_vdevice *d);
/*
 * Gives up the grant, or the wish for it, because nothing will be submitted for a while. The driver
 * must be idle. Any thread, without locks.
 */
void gn_turn_leave(struct gn_vdevice *d);
/*
 * The grant is held, other vGPUs wait, and the driver is idle: how long to wait for the program
 * before the grant is given up (FairGV 3.2.2, hybrid spinning, except that the waiting thread
 * sleeps). The time is charged as any other. 0: not at all. Any thread.
 */
uint64_t gn_turn_hold_ns(struct gn_vdevice *d);
/* After such a wait. `came`: the program sent a message. Any thread. */
void gn_turn_held(struct gn_vdevice *d, bool came);
/* Whether the driver has no command that reports its completion. */
static inline bool gn_turn_is_idle(const struct gn_turn *t)
{
    return t->slot && !atomic_load_explicit(&t->n_given, memory_order_seq_cst);
}

#endif
