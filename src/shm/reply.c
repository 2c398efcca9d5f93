/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply slots. The guest's threads take, wait and put; the worker's threads send. The guest's own
 * flags allot the slots. The worker reads only one bit here, through the exchange that publishes
 * its answer.
 */
#include "shm/reply.h"

#include "base/fault.h"

#include "shm/futex.h"
#include "shm/tsan_peer.h"

#include <assert.h>
#include <string.h>

#define INDEX_MASK (GN_REPLY_SLOTS - 1)
_Static_assert(GN_REPLY_SLOTS == 256, "an index takes the low 8 bits of a token");

void gn_replies_init(struct gn_replies *r, struct gn_reply_slot *slots, struct gn_waiter waiter)
{
    *r = (struct gn_replies){.slots = slots, .waiter = waiter};
    atomic_init(&r->peer_cpu, GN_CPU_UNKNOWN);
}

/*
 * Each thread starts at a slot of its own and returns to the one it used last, so that its cache
 * lines stay warm and unshared.
 */
static _Thread_local uint32_t my_slot = UINT32_MAX;
static _Atomic uint32_t next_thread;

static bool try_take(struct gn_replies *r, uint32_t *ret_token)
{
    if (my_slot == UINT32_MAX)
        my_slot = atomic_fetch_add_explicit(&next_thread, 1, memory_order_relaxed) & INDEX_MASK;
    for (uint32_t k = 0; k < GN_REPLY_SLOTS; k++) {
        uint32_t index = (my_slot + k) & INDEX_MASK;
        struct gn_reply_owner *owner = &r->owners[index];
        if (k > 0 && atomic_load_explicit(&owner->taken, memory_order_seq_cst))
            continue;
        /*
         * T0 pairs T1: this thread sees the generation that the slot's last user set. Sequentially
         * consistent because of n_starved.
         */
        if (atomic_exchange_explicit(&owner->taken, 1, memory_order_seq_cst))
            continue;
        uint32_t generation = (owner->generation + 1) & 0xffffff;
        if (generation == 0) /* GN_REPLY_NONE */
            generation = 1;
        owner->generation = generation;
        my_slot = index;
        *ret_token = generation << 8 | index;
        return true;
    }
    return false;
}

int gn_reply_claim(struct gn_replies *r, uint32_t *ret_token)
{
    if (try_take(r, ret_token))
        return 0;
    atomic_fetch_add_explicit(&r->n_starved, 1, memory_order_seq_cst);
    int result = 0;
    for (;;) {
        /*
         * Read before the slots are searched: a put that the search misses changes n_freed, and
         * then the park does not sleep.
         */
        uint32_t freed = atomic_load_explicit(&r->n_freed, memory_order_seq_cst);
        if (try_take(r, ret_token))
            break;
        if (gn_lost_is(r->waiter.lost)) {
            result = -EPIPE;
            break;
        }
        gn_park(&r->n_freed, freed, true, r->waiter.lost);
    }
    atomic_fetch_sub_explicit(&r->n_starved, 1, memory_order_relaxed);
    return result;
}

void gn_reply_put(struct gn_replies *r, uint32_t token)
{
    /*
     * T1 pairs T0. Sequentially consistent with n_starved: either the starved thread sees the free
     * slot, or this thread sees n_starved.
     */
    atomic_store_explicit(&r->owners[token & INDEX_MASK].taken, 0, memory_order_seq_cst);
    if (atomic_load_explicit(&r->n_starved, memory_order_seq_cst)) {
        atomic_fetch_add_explicit(&r->n_freed, 1, memory_order_seq_cst);
        gn_futex_wake(&r->n_freed, 1, true);
    }
}

static inline bool is_answer(uint32_t state, uint32_t token)
{
    return (state | INDEX_MASK) == (token | INDEX_MASK);
}

int gn_reply_wait(struct gn_replies *r, uint32_t token, struct gn_reply *ret)
{
    struct gn_reply_slot *slot = &r->slots[token & INDEX_MASK];
    struct gn_spin spin;
    if (!atomic_load_explicit(&r->at_once, memory_order_relaxed))
        gn_spin_linger(&r->waiter.policy);
    /* R0 pairs W0: the answer is read after the state that announces it. */
    uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
    if (!is_answer(state, token)) {
        uint16_t peer = (uint16_t)atomic_load_explicit(&r->peer_cpu, memory_order_relaxed);
        gn_spin_start(&spin, &r->waiter.policy, peer);
        for (;;) {
            state = atomic_load_explicit(&slot->state, memory_order_acquire);
            if (is_answer(state, token))
                break;
            if (gn_lost_is(r->waiter.lost)) {
                /* The peer may have answered just before it died. */
                state = atomic_load_explicit(&slot->state, memory_order_acquire);
                if (is_answer(state, token))
                    break;
                return -EPIPE;
            }
            const struct gn_wait_hook *hook =
                atomic_load_explicit(&r->waiter.lost->hook, memory_order_acquire);
            if (hook ? hook->look(hook, &slot->state, state) : gn_spin_again(&spin))
                continue;
            /*
             * R1 pairs W0: both are read-modify-writes of the state, so either the answer comes
             * later and sees the flag, or this one fails and sees the answer. After a failure the
             * loop polls again.
             */
            if (!(state & GN_REPLY_PARKED) && !atomic_compare_exchange_strong_explicit(
                                                  &slot->state, &state, state | GN_REPLY_PARKED,
                                                  memory_order_acq_rel, memory_order_acquire))
                continue;
            atomic_fetch_add_explicit(&r->n_parks, 1, memory_order_relaxed);
            gn_park(&slot->state, state | GN_REPLY_PARKED, false, r->waiter.lost);
        }
    }
    /* Each field is read once, as in the ring. */
    ret->n_bytes = __atomic_load_n(&slot->n_bytes, __ATOMIC_RELAXED);
    ret->result = __atomic_load_n(&slot->result, __ATOMIC_RELAXED);
    uint32_t cpu = __atomic_load_n(&slot->cpu, __ATOMIC_RELAXED);
    memcpy(ret->payload, slot->payload, GN_REPLY_PAYLOAD);
    __asm__ volatile("" ::: "memory");
    if (cpu != atomic_load_explicit(&r->peer_cpu, memory_order_relaxed))
        atomic_store_explicit(&r->peer_cpu, cpu, memory_order_relaxed);
    return ret->n_bytes <= GN_REPLY_PAYLOAD ? 0 : -EPROTO;
}

void gn_reply_send(struct gn_reply_slot *slots, uint32_t token, int32_t result, const void *payload,
                   size_t n_bytes)
{
    struct gn_reply_slot *slot = &slots[token & INDEX_MASK];
    assert(n_bytes <= GN_REPLY_PAYLOAD);
    gn_tsan_from_peer(slot->payload);
    slot->cpu = gn_spin_cpu();
    slot->result = result;
    slot->n_bytes = (uint32_t)n_bytes;
    if (n_bytes)
        memcpy(slot->payload, payload, n_bytes);
    gn_tsan_to_peer(slot->payload);
    GN_FAULT("worker-before-reply");
    /*
     * W0 pairs R0 and R1: publishes the answer and learns, in the same access, whether the caller
     * sleeps.
     */
    uint32_t old =
        atomic_exchange_explicit(&slot->state, token & ~INDEX_MASK, memory_order_seq_cst);
    if (old & GN_REPLY_PARKED)
        gn_futex_wake(&slot->state, 1, false);
}
