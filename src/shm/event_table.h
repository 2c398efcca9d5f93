/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_EVENT_TABLE_H
#define GN_SHM_EVENT_TABLE_H

#include "shm/park.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The state of a session's events, in shared memory: the worker writes, the program reads, so
 * asking and waiting cost no message. The table is sparse; a page of it exists from its first use.
 * Who hands out indices, and when one may be used again, is the guest's business: not before the
 * event is terminal and no thread waits for it.
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
     * One bit for each phase that is still to come, so that every step only clears bits: a step
     * needs no look at the old value and keeps GN_EVENT_PARKED. Zero: terminal.
     */
    _Atomic uint32_t word;
    int32_t error;        /* 0 or negative; valid when terminal */
    _Atomic uint32_t cpu; /* where the worker last worked on it */
    uint32_t zero;
    uint64_t submit_ns, start_ns, end_ns; /* the program's CLOCK_MONOTONIC; valid when terminal */
    uint64_t zero_more[3];
};

#define GN_EVENT_PARKED 8u /* somebody sleeps on `word`, or is about to */
#define GN_EVENT_WANTED                                                                            \
    16u /* of a link's: a worker elsewhere has been told that somebody waits                       \
         */

_Static_assert(sizeof(struct gn_event_entry) == 64, "an entry is one cache line");
_Static_assert(offsetof(struct gn_event_entry, submit_ns) == 16, "event entry layout");

struct gn_event_times {
    uint64_t submit_ns, start_ns, end_ns;
};

/* NULL for an index outside the table: an index that came from a peer goes through here. */
static inline struct gn_event_entry *gn_event_at(struct gn_event_entry *table, uint64_t index)
{
    return index < GN_EVENT_ENTRIES ? &table[index] : NULL;
}

/* ---- the worker; one thread at a time for one entry ---- */

/* Reports GN_EVENT_SUBMITTED or GN_EVENT_RUNNING. Phases only go down: a later report of a higher
 * one is ignored. */
void gn_event_post(struct gn_event_entry *e, enum gn_event_phase phase);

/* Reports the end: error is 0 or negative; times may be NULL (all zero). Wakes the waiters. Once an
 * event. True: somebody waits for it. */
bool gn_event_finish(struct gn_event_entry *e, int32_t error, const struct gn_event_times *times);

/* Its end is near, for the device is the vGPU's from now on: who sleeps on it is woken to look for
 * it, so that it runs when the end comes (FairGV 3.2.3, GPU-centric coscheduling). Any thread. */
void gn_event_rouse(struct gn_event_entry *e);

/* A guest elsewhere waits for the event, whose entry here it does not see. False: it is over. */
bool gn_event_want(struct gn_event_entry *e);

/* ---- the guest; any thread ---- */

/* Makes the entry QUEUED. Before the request that names it is sent. */
void gn_event_arm(struct gn_event_entry *e);

/* The phase now; when it is GN_EVENT_DONE also the error (ret_error may be NULL). A positive one is
 * GN_EVENT_BAD. */
enum gn_event_phase gn_event_phase(const struct gn_event_entry *e, int32_t *ret_error);

/* Copies the times; only after gn_event_phase or gn_event_wait has told that the event is terminal.
 */
void gn_event_read_times(const struct gn_event_entry *e, struct gn_event_times *ret);

/* Spins, then parks, until the event is terminal. 0 and its error, or -EPIPE when the peer was lost
 * before.
 */
int gn_event_wait(struct gn_event_entry *e, const struct gn_waiter *waiter, int32_t *ret_error);

/*
 * After the worker's death (and after gn_lost_declare): the guest itself ends every event below
 * n_entries that is not terminal with `error`, and wakes their waiters. Returns how many. A thread
 * that arms an event at the same time either has it ended here or is told -EPIPE by gn_ring_send,
 * and ends it then with gn_event_finish.
 */
uint32_t gn_event_fail_all(struct gn_event_entry *table, uint32_t n_entries, int32_t error);

#endif
