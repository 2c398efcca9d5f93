/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_EVENT_TABLE_H
#define GN_SHM_EVENT_TABLE_H

#include "shm/park.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The state of a session's events, in shared memory. The worker writes it and the program reads it,
 * so that queries and waits send no message. The table is sparse: a page of it is allocated at its
 * first use. The guest allocates the indices. It reuses an index only after the event has become
 * terminal and no thread waits for it.
 */
#define GN_EVENT_ENTRIES     (1u << 20)
#define GN_EVENT_TABLE_BYTES ((uint64_t)GN_EVENT_ENTRIES * 64)

enum gn_event_phase {
    GN_EVENT_DONE = 0,
    GN_EVENT_RUNNING = 1,
    GN_EVENT_SUBMITTED = 2,
    GN_EVENT_QUEUED = 3
};

/* The error of a lost event: "out of resources". */
#define GN_EVENT_LOST (-5)

struct gn_event_entry {
    /*
     * One bit for each phase that is still to come. Each step only clears bits, so a step does not
     * read the old value and preserves GN_EVENT_PARKED. No phase bit set: terminal.
     */
    _Atomic uint32_t word;
    int32_t error;        /* 0 or negative; valid when terminal */
    _Atomic uint32_t cpu; /* the processor on which the worker last updated the entry */
    uint32_t zero;
    uint64_t submit_ns, start_ns, end_ns; /* the program's CLOCK_MONOTONIC; valid when terminal */
    uint64_t zero_more[3];
};

#define GN_EVENT_PARKED 8u  /* a thread sleeps on `word`, or is about to */
#define GN_EVENT_WANTED 16u /* tcp: the remote worker has been told that a thread waits */

_Static_assert(sizeof(struct gn_event_entry) == 64, "an entry is one cache line");
_Static_assert(offsetof(struct gn_event_entry, submit_ns) == 16, "event entry layout");

struct gn_event_times {
    uint64_t submit_ns, start_ns, end_ns;
};

/* NULL for an index outside the table. Every index that a peer has sent must be checked here. */
static inline struct gn_event_entry *gn_event_at(struct gn_event_entry *table, uint64_t index)
{
    return index < GN_EVENT_ENTRIES ? &table[index] : NULL;
}

/* ---- the worker; one thread at a time for one entry ---- */

/*
 * Reports GN_EVENT_SUBMITTED or GN_EVENT_RUNNING. Phases only go down: a later report of a higher
 * phase is ignored.
 */
void gn_event_post(struct gn_event_entry *e, enum gn_event_phase phase);

/*
 * Reports the end: error is 0 or negative; times may be NULL (all zero). Wakes the waiters. Called
 * once for an event. Returns true if a thread waits for the event.
 */
bool gn_event_finish(struct gn_event_entry *e, int32_t error, const struct gn_event_times *times);

/*
 * The vGPU has just acquired the device, so the event ends soon. Wakes the threads that sleep on
 * the event, so that they spin and are running when it ends (FairGV 3.2.3, GPU-centric
 * coscheduling). Any thread.
 */
void gn_event_rouse(struct gn_event_entry *e);

/*
 * Records that a remote guest, which does not see this table, waits for the event. False: the event
 * is terminal already.
 */
bool gn_event_want(struct gn_event_entry *e);

/* ---- the guest; any thread ---- */

/* Makes the entry QUEUED. Call it before sending the request that names the event. */
void gn_event_arm(struct gn_event_entry *e);

/*
 * The current phase; if it is GN_EVENT_DONE, also the error (ret_error may be NULL). A positive
 * error is reported as GN_EVENT_LOST.
 */
enum gn_event_phase gn_event_phase(const struct gn_event_entry *e, int32_t *ret_error);

/*
 * Copies the times. Call it only after gn_event_phase or gn_event_wait has reported that the event
 * is terminal.
 */
void gn_event_read_times(const struct gn_event_entry *e, struct gn_event_times *ret);

/*
 * Spins, then parks, until the event is terminal. Returns 0 and the event's error, or -EPIPE if the
 * peer was lost first.
 */
int gn_event_wait(struct gn_event_entry *e, const struct gn_waiter *waiter, int32_t *ret_error);

/*
 * Called by the guest after the worker's death and after gn_lost_declare. Ends every event below
 * n_entries that is not terminal with `error`, and wakes its waiters. Returns the number of events
 * ended. If a thread arms an event concurrently, either this function ends the event, or
 * gn_ring_send returns -EPIPE to that thread, which then calls gn_event_finish.
 */
uint32_t gn_event_fail_all(struct gn_event_entry *table, uint32_t n_entries, int32_t error);

#endif
