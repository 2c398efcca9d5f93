/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event table. The worker's threads post and finish; the program's threads arm, read and wait.
 * The worker reads nothing back but the parked bit, through the exchange that ends the event.
 */
#include "shm/event_table.h"

#include "shm/futex.h"
#include "shm/tsan_peer.h"

#define PHASES            7u
#define PHASE_BITS(phase) ((1u << (phase)) - 1)

void gn_event_arm(struct gn_event_entry *e)
{
    e->error = 0;
    e->submit_ns = e->start_ns = e->end_ns = 0;
    atomic_store_explicit(&e->cpu, GN_CPU_UNKNOWN, memory_order_relaxed);
    /*
     * A0 pairs F0. Sequentially consistent: either F0 sees the armed word, or the send that follows
     * A0 sees `lost`.
     */
    atomic_store_explicit(&e->word, PHASE_BITS(GN_EVENT_QUEUED), memory_order_seq_cst);
}

void gn_event_post(struct gn_event_entry *e, enum gn_event_phase phase)
{
    uint32_t cpu = gn_spin_cpu();
    if (cpu != atomic_load_explicit(&e->cpu, memory_order_relaxed))
        atomic_store_explicit(&e->cpu, cpu, memory_order_relaxed);
    /* Sleepers wait only for the end and are not woken. */
    atomic_fetch_and_explicit(&e->word, PHASE_BITS(phase) | GN_EVENT_PARKED, memory_order_release);
}

static bool finish(struct gn_event_entry *e)
{
    /* E0 pairs E1 and E2: publishes error and times, and learns whether a thread sleeps. */
    uint32_t old = atomic_exchange_explicit(&e->word, 0, memory_order_seq_cst);
    if (old & GN_EVENT_PARKED)
        gn_futex_wake(&e->word, INT_MAX, false);
    return old & GN_EVENT_PARKED;
}

void gn_event_rouse(struct gn_event_entry *e)
{
    if (atomic_load_explicit(&e->word, memory_order_relaxed) & GN_EVENT_PARKED)
        gn_futex_wake(&e->word, INT_MAX, false);
}

bool gn_event_want(struct gn_event_entry *e)
{
    uint32_t word = atomic_load_explicit(&e->word, memory_order_acquire);
    while (word &&
           !atomic_compare_exchange_weak_explicit(&e->word, &word, word | GN_EVENT_PARKED,
                                                  memory_order_acq_rel, memory_order_acquire))
        ;
    return word != 0;
}

bool gn_event_finish(struct gn_event_entry *e, int32_t error, const struct gn_event_times *times)
{
    gn_tsan_from_peer(&e->error);
    e->error = error;
    if (times) {
        e->submit_ns = times->submit_ns;
        e->start_ns = times->start_ns;
        e->end_ns = times->end_ns;
    }
    gn_tsan_to_peer(&e->error);
    return finish(e);
}

static enum gn_event_phase phase_of(uint32_t word)
{
    return (enum gn_event_phase)__builtin_popcount(word & PHASES);
}

static int32_t read_error(const struct gn_event_entry *e)
{
    int32_t error = __atomic_load_n(&e->error, __ATOMIC_RELAXED);
    return error > 0 ? GN_EVENT_BAD : error;
}

enum gn_event_phase gn_event_phase(const struct gn_event_entry *e, int32_t *ret_error)
{
    /* E1 pairs E0 */
    enum gn_event_phase phase = phase_of(atomic_load_explicit(&e->word, memory_order_acquire));
    if (phase == GN_EVENT_DONE && ret_error)
        *ret_error = read_error(e);
    return phase;
}

void gn_event_read_times(const struct gn_event_entry *e, struct gn_event_times *ret)
{
    ret->submit_ns = __atomic_load_n(&e->submit_ns, __ATOMIC_RELAXED);
    ret->start_ns = __atomic_load_n(&e->start_ns, __ATOMIC_RELAXED);
    ret->end_ns = __atomic_load_n(&e->end_ns, __ATOMIC_RELAXED);
}

int gn_event_wait(struct gn_event_entry *e, const struct gn_waiter *waiter, int32_t *ret_error)
{
    struct gn_spin spin;
    uint32_t word = atomic_load_explicit(&e->word, memory_order_acquire); /* E1 pairs E0 */
    if (phase_of(word) != GN_EVENT_DONE) {
        gn_spin_start(&spin, &waiter->policy,
                      (uint16_t)atomic_load_explicit(&e->cpu, memory_order_relaxed));
        for (;;) {
            word = atomic_load_explicit(&e->word, memory_order_acquire);
            if (phase_of(word) == GN_EVENT_DONE)
                break;
            if (gn_lost_is(waiter->lost)) {
                word = atomic_load_explicit(&e->word, memory_order_acquire);
                if (phase_of(word) == GN_EVENT_DONE)
                    break;
                return -EPIPE;
            }
            const struct gn_wait_hook *hook =
                atomic_load_explicit(&waiter->lost->hook, memory_order_acquire);
            if (hook ? hook->look(hook, &e->word, word) : gn_spin_again(&spin))
                continue;
            /*
             * E2 pairs E0: both are read-modify-writes of one word; either E0 sees the bit, or this
             * one fails and sees the end.
             */
            if (!(word & GN_EVENT_PARKED) && !atomic_compare_exchange_strong_explicit(
                                                 &e->word, &word, word | GN_EVENT_PARKED,
                                                 memory_order_acq_rel, memory_order_acquire))
                continue;
            /*
             * A new phase changes the word. Before the sleep it makes this call return at once;
             * during the sleep it does not wake the thread.
             */
            gn_park(&e->word, word | GN_EVENT_PARKED, false, waiter->lost);
            /* Woken before the end: the end is near (gn_event_rouse), so spin again. */
            gn_spin_start(&spin, &waiter->policy,
                          (uint16_t)atomic_load_explicit(&e->cpu, memory_order_relaxed));
        }
    }
    *ret_error = read_error(e);
    return 0;
}

uint32_t gn_event_fail_all(struct gn_event_entry *table, uint32_t n_entries, int32_t error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_entries && i < GN_EVENT_ENTRIES; i++) {
        /* F0 pairs A0. */
        if (phase_of(atomic_load_explicit(&table[i].word, memory_order_seq_cst)) == GN_EVENT_DONE)
            continue;
        __atomic_store_n(&table[i].error, error, __ATOMIC_RELAXED);
        finish(&table[i]);
        n++;
    }
    return n;
}
