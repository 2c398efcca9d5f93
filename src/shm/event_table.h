/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_EVENT_TABLE_H
#define GN_SHM_EVENT_TABLE_H

#include "shm/park.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The state of a session's events, in shared memory: the worker writes it and the program reads it,
 * so that a query or a wait costs no message. The table is sparse; a page of it is allocated at its
 * first use. The guest allots the indices. It reuses one only after the event is terminal and no
 * thread waits for it.
 */
#define GN_EVENT_ENTRIES     (1u << 20)
#define GN_EVENT_TABLE_BYTES ((uint64_t)GN_EVENT_ENTRIES * 64)

enum gn_event_phase {
    GN_EVENT_DONE = 0,
    GN_EVENT_RUNNING = 1,
    GN_EVENT_SUBMITTED = 2,
    GN_EVENT_QUEUED = 3
};

/* The error of an event for which the worker reports an impossible one: a positive number. */
#define GN_EVENT_BAD INT32_MIN

struct gn_event_entry {
    /*
     * One bit for each phase that is still to come. Every step only clears bits, so it needs no
     * look at the old value and keeps GN_EVENT_PARKED. Zero: terminal.
     */
    _Atomic uint32_t word;
    int32_t error;        /* 0 or negative; valid when terminal */
    _Atomic uint32_t cpu; /* the processor that last worked on it in the worker */
    uint32_t zero;
    uint64_t submit_ns, start_ns, end_ns; /* the program's CLOCK_MONOTONIC; valid when terminal */
    uint64_t zero_more[3];
};

#define GN_EVENT_PARKED 8u /* a thread sleeps on `word`, or is about to */
/* for tcp sessions: the remote worker has been told that a thread waits */
#define GN_EVENT_WANTED 16u

_Static_assert(sizeof(struct gn_event_entry) == 64, "an entry is one cache line");
_Static_assert(offsetof(struct gn_event_entry, submit_ns) == 16, "event entry layout");

struct gn_event_times {
    uint64_t submit_ns, start_ns, end_ns;
};

/* NULL for an index outside the table. Every index from a peer goes through here. */
static inline struct gn_event_entry *gn_event_at(struct gn_event_entry *table, uint64_t index)
{
    return index < GN_EVENT_ENTRIES ? &table[index] : NULL;
}

/* ---- the worker; one thread at a time for one entry ---- */

/*
 * Reports GN_EVENT_SUBMITTED or GN_EVENT_RUNNING. Phases only go down: a later report of a higher
 * one has no effect.
 */
void gn_event_post(struct gn_event_entry *e, enum gn_event_phase phase);

/*
 * Reports the end: error is 0 or negative; times may be NULL (all zero). Wakes the waiters. Once
 * for each event. Returns true if a thread waits for it.
 */
bool gn_event_finish(struct gn_event_entry *e, int32_t error, const struct gn_event_times *times);

/*
 * Wakes the sleepers of an event that will end soon, because this vGPU has the device from now on:
 * they spin, and run when the end comes (FairGV 3.2.3, GPU-centric coscheduling). Any thread.
 */
void gn_event_rouse(struct gn_event_entry *e);

/*
 * A guest on another machine, which does not see this entry, waits for the event. False: the event
 * is over.
 */
bool gn_event_want(struct gn_event_entry *e);

/* ---- the guest; any thread ---- */

/* Makes the entry QUEUED. Call it before sending the request that names it. */
void gn_event_arm(struct gn_event_entry *e);

/*
 * The current phase; with GN_EVENT_DONE also the error (ret_error may be NULL). A positive error
 * reads as GN_EVENT_LOST.
 */
enum gn_event_phase gn_event_phase(const struct gn_event_entry *e, int32_t *ret_error);

/*
 * Copies the times. Valid only after gn_event_phase or gn_event_wait has found the event terminal.
 */
void gn_event_read_times(const struct gn_event_entry *e, struct gn_event_times *ret);

/*
 * Spins, then parks, until the event is terminal. Returns 0 and the event's error, or -EPIPE when
 * the peer was lost before.
 */
int gn_event_wait(struct gn_event_entry *e, const struct gn_waiter *waiter, int32_t *ret_error);

/*
 * For the guest after the worker's death (and after gn_lost_declare): ends every event below
 * n_entries that is not terminal with `error`, wakes its waiters, and returns the number of events
 * ended. If another thread arms an event at the same time, either this function ends it, or
 * gn_ring_send returns -EPIPE to that thread, which then ends it with gn_event_finish.
 */
uint32_t gn_event_fail_all(struct gn_event_entry *table, uint32_t n_entries, int32_t error);

#endif
