/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_COUNTERS_H
#define GN_SHM_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * The counters of a vGPU, in a segment of their own that the worker writes and gantryd reads; the
 * program has no access. All accesses are relaxed. A field that several threads write is updated
 * with an atomic addition. A reader may see values of slightly different moments. A new segment is
 * all zeros, which is a valid initial state. New fields are added at the end only.
 */
#define GN_COUNTERS_BYTES 4096u

struct gn_counters {
    _Atomic uint64_t calls;         /* messages received */
    _Atomic uint64_t sync_calls;    /* of these, the ones with a program waiting for the answer */
    _Atomic uint64_t copies_two;    /* transfers through a shared buffer, copied by both sides */
    _Atomic uint64_t copies_mapped; /* transfers with one copy, of memory that both sides map */
    _Atomic uint64_t copies_bypass; /* transfers without a copy */
    _Atomic uint64_t memory_bytes;  /* device memory allocated now, as requested */
    _Atomic uint64_t pending;       /* commands that are not complete, now */
    /* Bit mask in the vGPU's own device order: devices for which it has created a queue. */
    _Atomic uint64_t devices;
    /* The fields below describe the last save, which may be in progress; written by its thread. */

    /* 1: the save waits for a build, at the source or the destination. */
    _Atomic uint64_t save_waits;
    /* 0: no contents yet; the last round is the one of the stop. */
    _Atomic uint64_t save_round;
    _Atomic uint64_t save_round_bytes; /* contents that this round has processed, sent or not */
    _Atomic uint64_t save_bytes;       /* all contents */
    _Atomic uint64_t save_sent_bytes;  /* the stream so far */
};
_Static_assert(sizeof(struct gn_counters) <= GN_COUNTERS_BYTES, "counters");

/* For a field with a single writer. */
static inline void gn_counter_add(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void gn_counter_set(_Atomic uint64_t *c, uint64_t value)
{
    atomic_store_explicit(c, value, memory_order_relaxed);
}

#endif
