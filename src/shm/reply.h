/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_REPLY_H
#define GN_SHM_REPLY_H

#include "shm/park.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reply slots: the answer to a synchronous call arrives in a 64-byte slot, one for each call in
 * flight. The guest takes a slot and names it in the request by a token; any thread of the worker
 * answers into it. The calling thread polls its own slot, so answers need not be sorted by thread.
 *
 * A token is the slot's index and a generation, which goes up each time the slot is taken. The
 * answer to generation g sets the state to g. So arming a slot writes nothing in shared memory, a
 * zeroed slot is valid, and a late answer is not mistaken for another call's. See docs/ring.md.
 */
#define GN_REPLY_SLOTS   256u
#define GN_REPLY_PAYLOAD 48u

struct gn_reply_slot {
    _Atomic uint32_t state; /* generation << 8 of the last answer, | GN_REPLY_PARKED */
    uint32_t cpu;           /* the processor that answered */
    int32_t result;
    uint32_t n_bytes;
    unsigned char payload[GN_REPLY_PAYLOAD];
};

#define GN_REPLY_PARKED 1u /* the calling thread sleeps on `state`, or is about to */

_Static_assert(sizeof(struct gn_reply_slot) == 64, "a reply is one cache line");
_Static_assert(offsetof(struct gn_reply_slot, result) == 8 &&
                   offsetof(struct gn_reply_slot, payload) == 16,
               "reply layout");

/*
 * The token of a request that wants no answer. No real token has this value: generation 0 is never
 * used.
 */
#define GN_REPLY_NONE 0u

/* The guest's side: private memory, shared by its threads. */
struct gn_replies {
    /* set once */
    struct gn_reply_slot *slots;
    struct gn_waiter waiter;
    /*
     * the answer is usually there when the request has been sent: poll without gn_spin_linger first
     */
    _Atomic bool at_once;
    /* any thread */
    _Alignas(64) _Atomic uint32_t n_starved; /* threads that wait for a free slot */
    _Atomic uint32_t n_freed;                /* the word that they sleep on */
    _Atomic uint32_t peer_cpu;               /* the processor that the last answer came from */
    _Atomic uint64_t n_parks;                /* counter */
    struct gn_reply_owner {
        /* on a cache line of its own, so that calling threads do not disturb each other */
        _Alignas(64) _Atomic uint32_t taken;
        uint32_t generation; /* belongs to the thread that has taken the slot */
    } owners[GN_REPLY_SLOTS];
};

/* A private copy of an answer. */
struct gn_reply {
    int32_t result;
    uint32_t n_bytes; /* of payload */
    unsigned char payload[GN_REPLY_PAYLOAD];
};

void gn_replies_init(struct gn_replies *r, struct gn_reply_slot *slots, struct gn_waiter waiter);

/*
 * Takes a slot; waits while all are taken. Returns 0 and a token, or -EPIPE when the peer is lost.
 * Any thread.
 */
int gn_reply_claim(struct gn_replies *r, uint32_t *ret_token);

/* Releases the slot: after the wait, or when the request could not be sent. */
void gn_reply_put(struct gn_replies *r, uint32_t token);

/*
 * Spins, then parks, until the answer is there, and copies it. Returns 0; -EPIPE when the peer was
 * lost before it answered; -EPROTO when the answer's length is impossible. Called by the thread
 * that took the token, at most once for each token.
 */
int gn_reply_wait(struct gn_replies *r, uint32_t token, struct gn_reply *ret);

/*
 * The worker's side, any thread: answers a request once. The caller must not pass more than
 * GN_REPLY_PAYLOAD bytes. A token forged by a hostile guest can only write into that guest's own
 * slots.
 */
void gn_reply_send(struct gn_reply_slot *slots, uint32_t token, int32_t result, const void *payload,
                   size_t n_bytes);

#endif
