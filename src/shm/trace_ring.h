/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TRACE_RING_H
#define GN_SHM_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"

/*
 * A buffer of trace events until the reader gets them: a segment of slots that any number of
 * threads write and one thread reads, without locks or system calls. It exists only while a trace
 * is being recorded; otherwise a trace point costs one pointer check. When it is full, new events
 * are counted and dropped. The worker writes its own ring and may write anything into it: the
 * reader trusts no number in it, copies an event once, and checks the copy.
 *
 * The `turn` of a slot counts rounds: even, it is free in the round turn / 2; odd, it holds that
 * round's event. All zeros is a valid empty ring.
 */
#define GN_TRACE_SLOTS 8192u

struct gn_trace_slot {
    _Atomic uint64_t turn;
    struct gn_trace_event event;
};
_Static_assert(sizeof(struct gn_trace_slot) == 128, "two lines a slot");

struct gn_trace_ring {
    _Alignas(64) _Atomic uint32_t off; /* set when the reader has stopped: put nothing */
    _Alignas(64) _Atomic uint64_t n_claimed;
    _Atomic uint64_t n_dropped;
    _Alignas(128) struct gn_trace_slot slots[GN_TRACE_SLOTS];
};

#define GN_TRACE_RING_BYTES ((sizeof(struct gn_trace_ring) + 4095) / 4096 * 4096)

/* Any thread. */
void gn_trace_put(struct gn_trace_ring *r, const struct gn_trace_event *e);

/* The reader's own counts, which are never in the ring. All zeros at the start. */
struct gn_trace_reader {
    uint64_t n_read;
    uint64_t n_dropped; /* dropped events that have been reported */
};

/* Copies the next event. One thread. */
bool gn_trace_get(struct gn_trace_ring *r, struct gn_trace_reader *at, struct gn_trace_event *ret);
/* The number of events dropped since the last call; not trusted. */
uint64_t gn_trace_dropped(const struct gn_trace_ring *r, struct gn_trace_reader *at);

#endif
