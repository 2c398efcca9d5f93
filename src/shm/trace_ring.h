/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TRACE_RING_H
#define GN_SHM_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"

/*
 * Where trace points are kept until somebody reads them: a segment of slots that any number of
 * threads put into and one reads, without a lock or a system call. It is made when somebody traces;
 * without one a trace point is a look at a pointer. Full, what comes is counted and let go. A
 * worker's is written by the worker, which may write anything: who reads believes no number in it,
 * copies an event once, and judges the copy.
 *
 * A slot's `turn` counts rounds: even, it is free in the round turn / 2; odd, it holds that round's
 * event. Zeros are right.
 */
#define GN_TRACE_SLOTS 8192u

struct gn_trace_slot {
    _Atomic uint64_t turn;
    struct gn_trace_event event;
};
_Static_assert(sizeof(struct gn_trace_slot) == 128, "two lines a slot");

struct gn_trace_ring {
    _Alignas(64) _Atomic uint32_t off; /* whoever reads has stopped: put nothing */
    _Alignas(64) _Atomic uint64_t n_claimed;
    _Atomic uint64_t n_dropped;
    _Alignas(128) struct gn_trace_slot slots[GN_TRACE_SLOTS];
};

#define GN_TRACE_RING_BYTES ((sizeof(struct gn_trace_ring) + 4095) / 4096 * 4096)

/* Any thread. */
void gn_trace_put(struct gn_trace_ring *r, const struct gn_trace_event *e);

/* The reader's own count: never in the ring. Zeros at the start. */
struct gn_trace_reader {
    uint64_t n_read;
    uint64_t n_dropped; /* that have been told */
};

/* The next event, copied. One thread. */
bool gn_trace_get(struct gn_trace_ring *r, struct gn_trace_reader *at, struct gn_trace_event *ret);
/* How many were let go since this was asked last; a claim. */
uint64_t gn_trace_dropped(const struct gn_trace_ring *r, struct gn_trace_reader *at);

#endif
