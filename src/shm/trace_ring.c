/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace ring. Threads of a worker or of gantryd put events; one thread of the reader gets them.
 * Neither side blocks or makes a system call.
 */
#include "shm/trace_ring.h"

#include <stddef.h>
#include <string.h>

void gn_trace_put(struct gn_trace_ring *r, const struct gn_trace_event *e)
{
    if (atomic_load_explicit(&r->off, memory_order_relaxed))
        return;
    uint64_t at = atomic_load_explicit(&r->n_claimed, memory_order_relaxed);
    for (;;) {
        struct gn_trace_slot *s = &r->slots[at % GN_TRACE_SLOTS];
        const uint64_t wanted = at / GN_TRACE_SLOTS * 2;
        /*
         * T0: pairs with T3; without it this thread could overwrite an event that is still being
         * read.
         */
        const uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
        if (turn < wanted) {
            atomic_fetch_add_explicit(&r->n_dropped, 1, memory_order_relaxed);
            return;
        }
        if (turn > wanted) { /* another thread claimed it first */
            const uint64_t now = atomic_load_explicit(&r->n_claimed, memory_order_relaxed);
            /* no thread has: the ring is corrupt */
            if (now == at)
                return; /* no thread did: the ring is corrupt */
            at = now;
            continue;
        }
        if (!atomic_compare_exchange_weak_explicit(&r->n_claimed, &at, at + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        memcpy(&s->event, e, offsetof(struct gn_trace_event, text) + e->n_text);
        /* T1: publishes the event to T2 */
        atomic_store_explicit(&s->turn, wanted + 1, memory_order_release);
        return;
    }
}

bool gn_trace_get(struct gn_trace_ring *r, struct gn_trace_reader *at, struct gn_trace_event *ret)
{
    struct gn_trace_slot *s = &r->slots[at->n_read % GN_TRACE_SLOTS];
    const uint64_t wanted = at->n_read / GN_TRACE_SLOTS * 2 + 1;
    if (atomic_load_explicit(&s->turn, memory_order_acquire) != wanted) /* T2: pairs with T1 */
        return false;
    memcpy(ret, &s->event, sizeof *ret);
    if (ret->n_text > sizeof ret->text)
        ret->n_text = 0;
    /* T3: the slot is free to T0 */
    atomic_store_explicit(&s->turn, wanted + 1, memory_order_release);
    at->n_read++;
    return true;
}

uint64_t gn_trace_dropped(const struct gn_trace_ring *r, struct gn_trace_reader *at)
{
    const uint64_t all = atomic_load_explicit(&r->n_dropped, memory_order_relaxed),
                   n = all > at->n_dropped ? all - at->n_dropped : 0;
    at->n_dropped = all;
    return n;
}
