/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TRACE_RING_H
#define GN_SHM_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"

/*
 * A ring of trace events: any number of threads write, one reads, without a lock or a system call.
 * The segment is made when a trace starts; without one a trace point costs one test of a pointer.
 * When the ring is full, new events are dropped and counted. A worker's ring is written by the
 * worker and may contain anything: the reader trusts no number in it, copies an event once, and
 * validates the copy.
 *
 * A slot's `turn` counts rounds: even: free in round turn / 2; odd: holds that round's event. Zeros
 * are a valid start.
 */
#define GN_TRACE_SLOTS 8192u

struct gn_trace_slot {
    _Atomic uint64_t turn;
    struct gn_trace_event event;
};
_Static_assert(sizeof(struct gn_trace_slot) == 128, "two lines a slot");

struct gn_trace_ring {
    _Alignas(64) _Atomic uint32_t off; /* the reader has stopped: write nothing */
    _Alignas(64) _Atomic uint64_t n_claimed;
    _Atomic uint64_t n_dropped;
    _Alignas(128) struct gn_trace_slot slots[GN_TRACE_SLOTS];
};

#define GN_TRACE_RING_BYTES ((sizeof(struct gn_trace_ring) + 4095) / 4096 * 4096)

/* Any thread. */
void gn_trace_put(struct gn_trace_ring *r, const struct gn_trace_event *e);

/* The reader's own count, never in the ring. All zeros at first. */
struct gn_trace_reader {
    uint64_t n_read;
    uint64_t n_dropped; /* already reported */
};

/* Copies the next event. False: none. One thread. */
bool gn_trace_get(struct gn_trace_ring *r, struct gn_trace_reader *at, struct gn_trace_event *ret);
/* The number of events dropped since the last call; from the writer, not verified. */
uint64_t gn_trace_dropped(const struct gn_trace_ring *r, struct gn_trace_reader *at);

#endif
