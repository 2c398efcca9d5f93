/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_COUNTERS_H
#define GN_SHM_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A vGPU's counters, in a segment of their own that the worker writes and gantryd reads; the
 * program has no access. Relaxed everywhere; a field that several threads write is added to
 * atomically: a reader may see numbers of slightly different moments. A new segment's zeros are
 * right. Fields are only ever added at the end.
 */
#define GN_COUNTERS_BYTES 4096u

struct gn_counters {
    _Atomic uint64_t calls;      /* messages received */
    _Atomic uint64_t sync_calls; /* of them, those whose program waited for the answer */
    _Atomic uint64_t
        copies_two; /* transfers by the way of a shared buffer that both sides copied */
    _Atomic uint64_t copies_mapped; /* by one copy, of memory both sides map */
    _Atomic uint64_t copies_bypass; /* by none */
    _Atomic uint64_t memory_bytes;  /* device memory held now, as requested */
    _Atomic uint64_t pending;       /* commands not yet complete, now */
    _Atomic uint64_t
        devices; /* as bits, in the vGPU's own order: those that it has made a queue for */
    /* of the last save, maybe under way; by the thread that saves */
    _Atomic uint64_t save_waits;       /* 1: for a build, here or at the other end */
    _Atomic uint64_t save_round;       /* 0: no contents yet; the stop's is the last */
    _Atomic uint64_t save_round_bytes; /* of contents that this round has done with, sent or not */
    _Atomic uint64_t save_bytes;       /* of contents, all */
    _Atomic uint64_t save_sent_bytes;  /* of the stream */
};
_Static_assert(sizeof(struct gn_counters) <= GN_COUNTERS_BYTES, "counters");

/* By the field's one writer. */
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
