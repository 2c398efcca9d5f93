/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_COUNTERS_H
#define GN_SHM_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A vGPU's counters, in a segment of their own that the worker writes and gantryd reads; the
 * program has no access. All accesses are relaxed; a field with several writers is incremented
 * atomically. A reader may see values of slightly different moments. Zeros are a valid start. New
 * fields are added only at the end.
 */
#define GN_COUNTERS_BYTES 4096u

struct gn_counters {
    _Atomic uint64_t calls;         /* messages received */
    _Atomic uint64_t sync_calls;    /* of them, those with a program that waited for the answer */
    _Atomic uint64_t copies_two;    /* transfers through a shared buffer that both sides copied */
    _Atomic uint64_t copies_mapped; /* transfers with one copy, of memory that both sides map */
    _Atomic uint64_t copies_bypass; /* transfers without a copy */
    _Atomic uint64_t memory_bytes;  /* device memory held now, as requested */
    _Atomic uint64_t pending;       /* commands not yet complete, now */
    _Atomic uint64_t
        devices; /* bit mask, in the vGPU's own order: devices that it has made a queue for */
    /* Of the latest save, which may be in progress; written by the saving thread. */
    _Atomic uint64_t save_waits; /* 1: waits for a build, here or at the destination */
    _Atomic uint64_t save_round; /* 0: no contents yet; the last round is the one of the stop */
    _Atomic uint64_t save_round_bytes; /* contents that this round has finished, sent or not */
    _Atomic uint64_t save_bytes;       /* contents in total */
    _Atomic uint64_t save_sent_bytes;  /* bytes of the stream sent */
    _Atomic uint64_t home_bytes;       /* the part of memory_bytes that is in the data area */
};
_Static_assert(sizeof(struct gn_counters) <= GN_COUNTERS_BYTES, "counters");

/* For a field with one writer. */
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
