/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SLOT_RING_H
#define GN_SHM_SLOT_RING_H

#include "shm/park.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A bounded ring of 64-byte slots in shared memory: many producers (the threads of one process),
 * one consumer (a thread of another process). docs/ring.md is the normative description, with the
 * labelled edges P0, C0 ... that the comments in slot_ring.c name.
 *
 * A message has 1 to GN_RING_MAX_BYTES bytes and takes one slot for each started GN_SLOT_PAYLOAD
 * bytes, in consecutive slots. Messages of one thread arrive in the order in which it sent them.
 * Zeroed memory is an empty ring at position 0.
 *
 * The peer is hostile. Capacity and positions are never read from shared memory, and no shared
 * field is read twice. Any value that a peer writes causes at worst a fault (-EPROTO, sticky) or a
 * wait that ends when the peer is lost.
 */
#define GN_SLOT_BYTES     64u
#define GN_SLOT_PAYLOAD   56u
#define GN_RING_MAX_SLOTS 16u
#define GN_RING_MAX_BYTES (GN_RING_MAX_SLOTS * GN_SLOT_PAYLOAD)
#define GN_RING_MIN_SLOTS (2 * GN_RING_MAX_SLOTS) /* the smallest capacity */

struct gn_slot {
    /* Lap: free; lap + 1: published. The lap of position p is p with the slot's index cleared. */
    _Atomic uint32_t seq;
    uint16_t n_bytes; /* first slot: bytes of the whole message; others: 0 */
    uint16_t cpu;     /* first slot: the processor that the sender ran on */
    unsigned char payload[GN_SLOT_PAYLOAD];
};

struct gn_ring {
    _Alignas(64) _Atomic uint32_t parked; /* 1: the consumer sleeps here, or is about to */
    unsigned char zero_parked[60];
    /* 1: a producer sleeps here because the ring is full, or is about to. */
    _Alignas(64) _Atomic uint32_t starved;
    unsigned char zero_starved[60];
    struct gn_slot slots[];
};

_Static_assert(sizeof(struct gn_slot) == GN_SLOT_BYTES, "a slot is one cache line");
_Static_assert(offsetof(struct gn_slot, n_bytes) == 4 && offsetof(struct gn_slot, cpu) == 6 &&
                   offsetof(struct gn_slot, payload) == 8,
               "slot layout");
_Static_assert(offsetof(struct gn_ring, starved) == 64 && offsetof(struct gn_ring, slots) == 128 &&
                   sizeof(struct gn_ring) == 128,
               "ring layout");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2,
               "atomics in shared memory must not be locks of one process");

/* Size of a ring in shared memory; capacity is a power of two, at least GN_RING_MIN_SLOTS. */
#define GN_RING_BYTES(capacity) (sizeof(struct gn_ring) + (uint64_t)(capacity)*GN_SLOT_BYTES)

/*
 * Empties the ring; the next position is `start` on both sides. Only while no thread uses the ring.
 * Not needed for zeroed memory that starts at 0.
 */
void gn_ring_reset(struct gn_ring *ring, uint32_t capacity, uint64_t start);

/* The sending end: private memory of one process, shared by its threads. */
struct gn_ring_producer {
    /* set once */
    struct gn_ring *ring;
    uint32_t capacity;
    struct gn_waiter waiter;
    /* accessed by any thread */
    _Alignas(64) _Atomic uint64_t tail; /* the next position to claim */
    /* Positions before this one may be claimed without reading the slot. */
    _Atomic uint64_t known_free;
    _Alignas(64) _Atomic uint32_t n_waits; /* counter: sends that had to park */
};

/*
 * Returns -EINVAL for a capacity that is too small or not a power of two, or a ring that is not
 * aligned to 64 bytes.
 */
int gn_ring_producer_init(struct gn_ring_producer *p, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter);

/*
 * Sends head followed by tail as one message (tail may be empty). Any thread. Returns 0, -EAGAIN if
 * the ring has no room, -EMSGSIZE if the message is empty or larger than GN_RING_MAX_BYTES. Never
 * sleeps; wakes the consumer if it is parked. *ret_end (if not NULL) is the position behind the
 * message, for gn_ring_passed.
 */
int gn_ring_try_send(struct gn_ring_producer *p, const void *head, size_t head_bytes,
                     const void *tail, size_t tail_bytes, uint64_t *ret_end);

/*
 * Like gn_ring_try_send, but waits for room; -EPIPE instead of -EAGAIN if the peer is lost. A peer
 * that is lost before the call is reported without sending.
 */
int gn_ring_send(struct gn_ring_producer *p, const void *head, size_t head_bytes, const void *tail,
                 size_t tail_bytes, uint64_t *ret_end);

/*
 * Has the consumer released every slot before `end`? If so, it is done with the message that ended
 * there, and the data area that the message referred to may be reused. Any thread, at any later
 * time.
 */
bool gn_ring_passed(struct gn_ring_producer *p, uint64_t end);

/*
 * The position at which the next consumer must start: the oldest position that has not been
 * released. Valid if the previous consumer has ended, or has stopped for good, and has released
 * everything that it received. Any thread.
 */
uint64_t gn_ring_stopped_at(struct gn_ring_producer *p);

/* The receiving end: private memory, one thread. */
struct gn_ring_consumer {
    struct gn_ring *ring;
    uint32_t capacity;
    struct gn_waiter waiter;
    uint64_t head;   /* the next position to read */
    uint32_t n_held; /* slots before head that are not released yet */
    /* The sender's processor in the last message; GN_CPU_UNKNOWN before the first. */
    uint16_t peer_cpu;
    uint16_t n_bytes; /* of the last message */
    bool was_empty;   /* the last wait did not find its message at the first check */
    int fault;        /* 0 or the sticky -EPROTO */
    uint64_t n_parks; /* counter */
    struct gn_spin_parting parting;
    _Atomic bool nudged;
};

/*
 * `start` is the position at which the producers start, or at which an earlier consumer of this
 * ring stopped (its head). -EINVAL as for gn_ring_producer_init.
 */
int gn_ring_consumer_init(struct gn_ring_consumer *c, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter);

/*
 * Copies the next message into buf, which has at least GN_RING_MAX_BYTES bytes (bytes behind the
 * message's end are unspecified), and returns its length; -EAGAIN if there is none; after a fault
 * always -EPROTO. The slots of the message stay occupied until the next receive, spin, wait or
 * release; until then gn_ring_passed tells the sender that the message is in use.
 */
int gn_ring_try_receive(struct gn_ring_consumer *c, unsigned char buf[static GN_RING_MAX_BYTES]);

/*
 * Frees the slots of the last message and wakes producers that wait for room. A second call does
 * nothing.
 */
void gn_ring_release(struct gn_ring_consumer *c);

/*
 * Spins until a receive would not return -EAGAIN. Returns 0; -EPIPE if the peer is lost and the
 * ring is empty; or -EAGAIN if nothing came while spinning was worth it.
 */
int gn_ring_spin(struct gn_ring_consumer *c);
/*
 * Parks until a receive would not return -EAGAIN, or until a nudge: 0, or -EPIPE if the peer is
 * lost; or -ETIMEDOUT after for_ns (0: no limit).
 */
int gn_ring_park(struct gn_ring_consumer *c, uint64_t for_ns);
/* Spins, then parks. */
int gn_ring_wait(struct gn_ring_consumer *c);

/* Is there a message, or a fault, to receive? Not while another thread receives. */
bool gn_ring_has(struct gn_ring_consumer *c);

/*
 * Ends the consumer's current park, or its next one, so that it spins again: a message is expected
 * soon, or there is other work for the thread. Any thread of its process.
 */
void gn_ring_nudge(struct gn_ring_consumer *c);

#endif
