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
 * one consumer (a thread of another process). docs/ring.md is the normative description; it labels
 * the ordering edges P0, C0 ... that the comments in slot_ring.c name.
 *
 * A message has 1 to GN_RING_MAX_BYTES bytes and takes one slot for each started GN_SLOT_PAYLOAD
 * bytes, in a row. Messages of one thread arrive in the order of sending. Zeroed memory is an empty
 * ring at position 0.
 *
 * The peer is hostile. Capacity and positions are never read from shared memory; a value that a
 * peer writes there causes at worst a fault (-EPROTO, sticky) or a wait that ends when the peer is
 * lost. No shared field is read twice.
 */
#define GN_SLOT_BYTES     64u
#define GN_SLOT_PAYLOAD   56u
#define GN_RING_MAX_SLOTS 16u
#define GN_RING_MAX_BYTES (GN_RING_MAX_SLOTS * GN_SLOT_PAYLOAD)
#define GN_RING_MIN_SLOTS (2 * GN_RING_MAX_SLOTS) /* the smallest capacity */

struct gn_slot {
    /*
     * lap: free; lap + 1: published (lap of position p: p with the bits of the slot's index
     * cleared)
     */
    _Atomic uint32_t seq;
    uint16_t n_bytes; /* first slot: bytes of the whole message; others: 0 */
    uint16_t cpu;     /* first slot: the processor that the sender ran on */
    unsigned char payload[GN_SLOT_PAYLOAD];
};

struct gn_ring {
    _Alignas(64) _Atomic uint32_t parked; /* 1: the consumer sleeps here, or is about to */
    unsigned char zero_parked[60];
    _Alignas(64) _Atomic uint32_t
        starved; /* 1: a producer sleeps here until a slot is free, or is about to */
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
 * Empties the ring; the next position is `start` on both sides. Call it only while no thread uses
 * the ring. Zeroed memory that starts at 0 does not need it.
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
    _Atomic uint64_t
        known_free; /* positions below this one may be claimed without a look at the slot */
    _Alignas(64) _Atomic uint32_t n_waits; /* counter: sends that had to park */
};

/*
 * Returns -EINVAL if the capacity is no power of two or too small, or if the ring is not aligned to
 * 64.
 */
int gn_ring_producer_init(struct gn_ring_producer *p, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter);

/*
 * Sends head followed by tail as one message (tail may be empty). Any thread. Returns 0, -EAGAIN
 * when the ring has no room, -EMSGSIZE when the message is empty or larger than GN_RING_MAX_BYTES.
 * Never sleeps; wakes the consumer if it is parked. *ret_end (when not NULL) is the position behind
 * the message, for gn_ring_passed.
 */
int gn_ring_try_send(struct gn_ring_producer *p, const void *head, size_t head_bytes,
                     const void *tail, size_t tail_bytes, uint64_t *ret_end);

/*
 * Same as gn_ring_try_send, but waits for room. Returns -EPIPE when the peer is lost; it checks
 * that before it sends.
 */
int gn_ring_send(struct gn_ring_producer *p, const void *head, size_t head_bytes, const void *tail,
                 size_t tail_bytes, uint64_t *ret_end);

/*
 * True when the consumer has released everything before `end`. Then it has processed the message
 * that ended there, and the message's blocks in the data area may be reused. Any thread, at any
 * later time.
 */
bool gn_ring_passed(struct gn_ring_producer *p, uint64_t end);

/*
 * The oldest position that the consumer has not released: there the next consumer starts. Call it
 * when the last consumer has ended, or has stopped for good and released everything that it
 * received. Any thread.
 */
uint64_t gn_ring_stopped_at(struct gn_ring_producer *p);

/* The receiving end: private memory, one thread. */
struct gn_ring_consumer {
    struct gn_ring *ring;
    uint32_t capacity;
    struct gn_waiter waiter;
    uint64_t head;     /* the next position to look at */
    uint32_t n_held;   /* slots before head that are not released yet */
    uint16_t peer_cpu; /* sender's processor in the last message; GN_CPU_UNKNOWN before */
    uint16_t n_bytes;  /* length of the last message */
    bool was_empty;    /* the last wait did not find its message at the first poll */
    int fault;         /* 0 or the sticky -EPROTO */
    uint64_t n_parks;  /* counter */
    struct gn_spin_parting parting;
    _Atomic bool nudged;
};

/*
 * `start` is the first position of the producers, or the head of an earlier consumer of this ring.
 * Returns -EINVAL as gn_ring_producer_init does.
 */
int gn_ring_consumer_init(struct gn_ring_consumer *c, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter);

/*
 * Copies the next message into buf, of at least GN_RING_MAX_BYTES bytes (bytes behind the message's
 * end are unspecified), and returns its length; -EAGAIN when there is none; -EPROTO from the first
 * fault on. The message's slots stay taken until the next receive, wait or release, which tells the
 * sender that the consumer still processes it.
 */
int gn_ring_try_receive(struct gn_ring_consumer *c, unsigned char buf[static GN_RING_MAX_BYTES]);

/*
 * Frees the slots of the last message and wakes producers that wait for room. A second call has no
 * effect.
 */
void gn_ring_release(struct gn_ring_consumer *c);

/*
 * Spins until a receive would return something else than -EAGAIN, and then returns 0; -EPIPE when
 * the peer is lost and the ring is empty; -EAGAIN when nothing came while spinning was worth it.
 */
int gn_ring_spin(struct gn_ring_consumer *c);
/*
 * Parks until a receive would return something else than -EAGAIN, or until a nudge: 0, or -EPIPE
 * when the peer is lost. With for_ns > 0 it returns -ETIMEDOUT after that time.
 */
int gn_ring_park(struct gn_ring_consumer *c, uint64_t for_ns);
/* Spins, then parks. */
int gn_ring_wait(struct gn_ring_consumer *c);

/* True when a message, or a fault, can be received. Not while another thread receives. */
bool gn_ring_has(struct gn_ring_consumer *c);

/*
 * Ends the consumer's present park, or its next one, so that it spins again: a message is expected
 * soon, or other work waits. Any thread of the consumer's process.
 */
void gn_ring_nudge(struct gn_ring_consumer *c);

#endif
