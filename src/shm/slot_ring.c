/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot ring. Requests travel over one ring (guest threads to the worker's ring thread); the
 * session layout reserves another for notices from the worker. In a steady state neither side makes
 * a system call: both find their messages while they spin, and wake only a peer that has marked
 * itself as parked.
 *
 * The labels P0, C0 ... name the two ends of each ordering edge; tests/model/ explores them and
 * shows that each is needed.
 */
#include "shm/slot_ring.h"

#include "base/clock.h"
#include "base/fault.h"
#include "shm/futex.h"
#include "shm/tsan_peer.h"

#include <string.h>

/* A slot is free for position p if its seq is the lap of p, and published if it is one more. */
static inline uint32_t lap(uint64_t position, uint32_t capacity)
{
    return (uint32_t)position & ~(capacity - 1);
}

static inline struct gn_slot *slot_at(struct gn_ring *ring, uint64_t position, uint32_t capacity)
{
    return &ring->slots[position & (capacity - 1)];
}

static int check_layout(const struct gn_ring *ring, uint32_t capacity)
{
    if (capacity < GN_RING_MIN_SLOTS || capacity > (1u << 30) || (capacity & (capacity - 1)) != 0)
        return -EINVAL;
    return (uintptr_t)ring % 64 == 0 ? 0 : -EINVAL;
}

void gn_ring_reset(struct gn_ring *ring, uint32_t capacity, uint64_t start)
{
    atomic_store_explicit(&ring->parked, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->starved, 0, memory_order_relaxed);
    for (uint64_t p = start; p < start + capacity; p++)
        atomic_store_explicit(&slot_at(ring, p, capacity)->seq, lap(p, capacity),
                              memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- producers ---- */

int gn_ring_producer_init(struct gn_ring_producer *p, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter)
{
    int r = check_layout(ring, capacity);
    if (r < 0)
        return r;
    *p = (struct gn_ring_producer){.ring = ring, .capacity = capacity, .waiter = waiter};
    atomic_init(&p->tail, start);
    atomic_init(&p->known_free, start);
    return 0;
}

/*
 * True when there is room up to (not including) `end`. The consumer frees in order, so a free slot
 * implies that all before it are free. Probes far ahead first: one probe then serves half a lap of
 * messages, and no read disturbs the slot that the consumer polls.
 */
static bool has_room(struct gn_ring_producer *p, uint64_t end)
{
    /*
     * P1a pairs P1b: a thread that relies on another thread's probe also sees everything that the
     * probe saw (C1).
     */
    if (atomic_load_explicit(&p->known_free, memory_order_acquire) >= end)
        return true;
    uint64_t tries[2] = {end + p->capacity / 2, end};
    for (int i = 0; i < 2; i++) {
        struct gn_slot *last = slot_at(p->ring, tries[i] - 1, p->capacity);
        /*
         * P1 pairs C1: without it the message could overwrite one that is still being copied.
         * Sequentially consistent, because it is also the re-read after `starved` is set (S1).
         */
        if (atomic_load_explicit(&last->seq, memory_order_seq_cst) ==
            lap(tries[i] - 1, p->capacity)) {
            uint64_t known = atomic_load_explicit(&p->known_free, memory_order_relaxed);
            while (known < tries[i] &&
                   !atomic_compare_exchange_weak_explicit(&p->known_free, &known, tries[i],
                                                          memory_order_acq_rel, /* P1b */
                                                          memory_order_relaxed))
                ;
            return true;
        }
    }
    return false;
}

/* Claims n slots; false if there is no room. */
static bool claim(struct gn_ring_producer *p, uint32_t n, uint64_t *ret_start)
{
    uint64_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
    for (;;) {
        if (!has_room(p, tail + n)) {
            /*
             * Another thread may have gone round the ring since tail was read: then the result is
             * void.
             */
            uint64_t now = atomic_load_explicit(&p->tail, memory_order_relaxed);
            if (now == tail)
                return false;
            tail = now;
            continue;
        }
        /*
         * The tail has 64 bits and is private, so it never returns to an old value while a thread
         * is delayed here.
         */
        if (atomic_compare_exchange_weak_explicit(&p->tail, &tail, tail + n, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *ret_start = tail;
            return true;
        }
    }
}

/* Copies up to one payload from the two pieces of the message and advances both. */
static void fill_payload(struct gn_slot *slot, const unsigned char **head, size_t *head_bytes,
                         const unsigned char **tail, size_t *tail_bytes)
{
    size_t from_head = *head_bytes < GN_SLOT_PAYLOAD ? *head_bytes : GN_SLOT_PAYLOAD;
    if (from_head) {
        memcpy(slot->payload, *head, from_head);
        *head += from_head;
        *head_bytes -= from_head;
    }
    size_t room = GN_SLOT_PAYLOAD - from_head;
    size_t from_tail = *tail_bytes < room ? *tail_bytes : room;
    if (from_tail) {
        memcpy(slot->payload + from_head, *tail, from_tail);
        *tail += from_tail;
        *tail_bytes -= from_tail;
    }
}

int gn_ring_try_send(struct gn_ring_producer *p, const void *head, size_t head_bytes,
                     const void *tail, size_t tail_bytes, uint64_t *ret_end)
{
    if (head_bytes > GN_RING_MAX_BYTES || tail_bytes > GN_RING_MAX_BYTES - head_bytes ||
        head_bytes + tail_bytes == 0)
        return -EMSGSIZE;
    uint16_t n_bytes = (uint16_t)(head_bytes + tail_bytes);
    uint32_t n = (n_bytes + GN_SLOT_PAYLOAD - 1) / GN_SLOT_PAYLOAD;
    uint64_t start;
    if (!claim(p, n, &start))
        return -EAGAIN;

    GN_FAULT("program-slots-claimed");
    const unsigned char *h = head, *t = tail;
    for (uint32_t i = 0; i < n; i++) {
        struct gn_slot *slot = slot_at(p->ring, start + i, p->capacity);
        gn_tsan_from_peer(slot->payload);
        slot->n_bytes = i == 0 ? n_bytes : 0;
        slot->cpu = i == 0 ? gn_spin_cpu() : 0;
        fill_payload(slot, &h, &head_bytes, &t, &tail_bytes);
        gn_tsan_to_peer(slot->payload);
    }
    /*
     * P0 pairs C0: it publishes the payload. From the last slot to the first, because the consumer
     * takes a published first slot as proof that the whole message is there. The first slot's store
     * is sequentially consistent, so that no sleeping consumer is missed between it and P2 (see
     * C3).
     */
    for (uint32_t i = n; i-- > 1;)
        atomic_store_explicit(&slot_at(p->ring, start + i, p->capacity)->seq,
                              lap(start + i, p->capacity) + 1, memory_order_release);
    GN_FAULT("program-half-published");
    atomic_store_explicit(&slot_at(p->ring, start, p->capacity)->seq, lap(start, p->capacity) + 1,
                          memory_order_seq_cst);
    GN_FAULT("program-published");
    /*
     * P2: not before P0. One of several producers clears the flag and wakes; the others need not.
     */
    if (atomic_load_explicit(&p->ring->parked, memory_order_seq_cst) &&
        atomic_exchange_explicit(&p->ring->parked, 0, memory_order_seq_cst)) {
        gn_futex_wake(&p->ring->parked, 1, false);
        gn_spin_woke_peer();
    }
    /* the next message's slot */
    gn_spin_prefetch_for_write(slot_at(p->ring, start + n, p->capacity));
    if (ret_end)
        *ret_end = start + n;
    return 0;
}

/* Sleeps until the consumer frees a slot, unless there is room for n already. */
static void park_starved(struct gn_ring_producer *p, uint32_t n)
{
    /*
     * S0 pairs C4: both are read-modify-writes of one word, so one comes first. If S0 does, the
     * consumer sees it and wakes; if C4 does, S1 sees the slots freed before. The flag is not
     * cleared when room is found: other producers may sleep.
     */
    atomic_exchange_explicit(&p->ring->starved, 1, memory_order_seq_cst);
    /* S1: probes again, with a fresh tail: the room has to be behind it. */
    uint64_t tail = atomic_load_explicit(&p->tail, memory_order_seq_cst);
    if (has_room(p, tail + n))
        return;
    atomic_fetch_add_explicit(&p->n_waits, 1, memory_order_relaxed);
    gn_park(&p->ring->starved, 1, false, p->waiter.lost);
}

int gn_ring_send(struct gn_ring_producer *p, const void *head, size_t head_bytes, const void *tail,
                 size_t tail_bytes, uint64_t *ret_end)
{
    if (gn_lost_is(p->waiter.lost))
        return -EPIPE;
    int r = gn_ring_try_send(p, head, head_bytes, tail, tail_bytes, ret_end);
    if (r != -EAGAIN)
        return r;

    uint32_t n = (uint32_t)((head_bytes + tail_bytes + GN_SLOT_PAYLOAD - 1) / GN_SLOT_PAYLOAD);
    struct gn_spin spin;
    /* A full ring means that the consumer is busy; its processor is not known here. */
    gn_spin_start(&spin, &p->waiter.policy, GN_CPU_UNKNOWN);
    for (;;) {
        if (gn_lost_is(p->waiter.lost))
            return -EPIPE;
        r = gn_ring_try_send(p, head, head_bytes, tail, tail_bytes, ret_end);
        if (r != -EAGAIN)
            return r;
        if (!gn_spin_again(&spin))
            park_starved(p, n);
    }
}

bool gn_ring_passed(struct gn_ring_producer *p, uint64_t end)
{
    uint64_t next_use =
        end - 1 + p->capacity; /* the position that uses the message's last slot next */
    if (atomic_load_explicit(&p->known_free, memory_order_acquire) > next_use)
        return true;
    /*
     * P1 again. The seq is of that lap or of one that began during this call. The difference cannot
     * wrap: known_free excludes that.
     */
    uint32_t seq =
        atomic_load_explicit(&slot_at(p->ring, end - 1, p->capacity)->seq, memory_order_acquire);
    return (int32_t)(seq - lap(next_use, p->capacity)) >= 0;
}

uint64_t gn_ring_stopped_at(struct gn_ring_producer *p)
{
    const uint64_t tail = atomic_load_explicit(&p->tail, memory_order_acquire);
    uint64_t at = tail > p->capacity ? tail - p->capacity : 0;
    while (at < tail && gn_ring_passed(p, at + 1))
        at++;
    return at;
}

/* ---- consumer ---- */

int gn_ring_consumer_init(struct gn_ring_consumer *c, struct gn_ring *ring, uint32_t capacity,
                          uint64_t start, struct gn_waiter waiter)
{
    int r = check_layout(ring, capacity);
    if (r < 0)
        return r;
    *c = (struct gn_ring_consumer){.ring = ring,
                                   .capacity = capacity,
                                   .waiter = waiter,
                                   .head = start,
                                   .peer_cpu = GN_CPU_UNKNOWN};
    return 0;
}

void gn_ring_release(struct gn_ring_consumer *c)
{
    if (c->n_held == 0)
        return;
    /*
     * C1 pairs P1: the message and the data that it points at are read before the slot is free.
     * From the first slot to the last, because a producer takes a free slot as proof that all
     * before it are free.
     */
    for (uint64_t p = c->head - c->n_held; p < c->head; p++)
        atomic_store_explicit(&slot_at(c->ring, p, c->capacity)->seq,
                              lap(p, c->capacity) + c->capacity, memory_order_release);
    c->n_held = 0;
    /*
     * C4 pairs S0. A plain load is not enough: it could complete before the stores above are
     * visible.
     */
    if (atomic_exchange_explicit(&c->ring->starved, 0, memory_order_seq_cst))
        gn_futex_wake(&c->ring->starved, INT_MAX, false);
}

static int fault(struct gn_ring_consumer *c)
{
    c->fault = -EPROTO;
    return c->fault;
}

int gn_ring_try_receive(struct gn_ring_consumer *c, unsigned char buf[static GN_RING_MAX_BYTES])
{
    if (c->fault)
        return c->fault;
    gn_ring_release(c);

    struct gn_slot *slot = slot_at(c->ring, c->head, c->capacity);
    uint32_t expected = lap(c->head, c->capacity);
    /* C0 pairs P0: without it the copy below could hold the slot's earlier content. */
    uint32_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
    if (seq == expected)
        return -EAGAIN;
    if (seq != expected + 1)
        return fault(c);

    /* Each shared field is read once, by an access that the compiler may not repeat. */
    uint16_t n_bytes = __atomic_load_n(&slot->n_bytes, __ATOMIC_RELAXED);
    uint16_t cpu = __atomic_load_n(&slot->cpu, __ATOMIC_RELAXED);
    if (n_bytes == 0 || n_bytes > GN_RING_MAX_BYTES)
        return fault(c);
    uint32_t n = (n_bytes + GN_SLOT_PAYLOAD - 1) / GN_SLOT_PAYLOAD;
    memcpy(buf, slot->payload, GN_SLOT_PAYLOAD);
    for (uint32_t i = 1; i < n; i++) {
        slot = slot_at(c->ring, c->head + i, c->capacity);
        expected = lap(c->head + i, c->capacity);
        if (atomic_load_explicit(&slot->seq, memory_order_acquire) != expected + 1 ||
            __atomic_load_n(&slot->n_bytes, __ATOMIC_RELAXED) != 0)
            return fault(c);
        memcpy(buf + (size_t)i * GN_SLOT_PAYLOAD, slot->payload, GN_SLOT_PAYLOAD);
    }
    /* From here on the copy is the message: the compiler may not read the slots again. */
    __asm__ volatile("" ::: "memory");

    c->head += n;
    c->n_held = n;
    c->peer_cpu = cpu;
    c->n_bytes = n_bytes;
    return n_bytes;
}

static bool is_ready(struct gn_ring_consumer *c, memory_order order)
{
    return atomic_load_explicit(&slot_at(c->ring, c->head, c->capacity)->seq, order) !=
           lap(c->head, c->capacity);
}

bool gn_ring_has(struct gn_ring_consumer *c)
{
    return is_ready(c, memory_order_acquire);
}

/*
 * As P2 and C2: either a consumer that has marked itself as parked sees the flag, or this thread
 * sees the mark.
 */
void gn_ring_nudge(struct gn_ring_consumer *c)
{
    atomic_store_explicit(&c->nudged, true, memory_order_seq_cst);
    if (atomic_load_explicit(&c->ring->parked, memory_order_seq_cst) &&
        atomic_exchange_explicit(&c->ring->parked, 0, memory_order_seq_cst))
        gn_futex_wake(&c->ring->parked, 1, false);
}

int gn_ring_spin(struct gn_ring_consumer *c)
{
    struct gn_spin spin;
    if (c->fault)
        return 0;
    gn_ring_release(c);
    /*
     * After a message that the consumer had to wait for, the next one is likely to be a whole round
     * trip away.
     */
    if (c->was_empty)
        gn_spin_linger(&c->waiter.policy);
    c->was_empty = !is_ready(c, memory_order_relaxed);
    if (!c->was_empty)
        return 0;
    if (c->waiter.policy.spin_ns > GN_SPIN_SHORT_NS && c->waiter.policy.spin_ns != GN_SPIN_FOREVER)
        gn_spin_part(&c->parting, c->peer_cpu);
    for (gn_spin_start(&spin, &c->waiter.policy, c->peer_cpu); gn_spin_again(&spin);) {
        if (is_ready(c, memory_order_relaxed))
            return 0;
        if (gn_lost_is(c->waiter.lost))
            return -EPIPE;
    }
    return -EAGAIN;
}

int gn_ring_park(struct gn_ring_consumer *c, uint64_t for_ns)
{
    const uint64_t until_ns = for_ns ? gn_now_ns() + for_ns : 0;
    for (;;) {
        /*
         * C2 and C3 pair P0 and P2: in the total order of sequentially consistent accesses, either
         * C3 follows P0 and sees the message, or P2 follows C2 and sees the flag. Acquire and
         * release are NOT enough: both loads could be satisfied before either store is visible, and
         * the consumer would sleep on a full ring.
         */
        atomic_store_explicit(&c->ring->parked, 1, memory_order_seq_cst); /* C2 */
        bool ready = is_ready(c, memory_order_seq_cst);                   /* C3 */
        bool lost = gn_lost_is(c->waiter.lost);
        bool nudged = atomic_load_explicit(&c->nudged, memory_order_seq_cst);
        if (!ready && !lost && !nudged) {
            c->n_parks++;
            if (for_ns)
                gn_park_for(&c->ring->parked, 1, false, c->waiter.lost, for_ns);
            else
                gn_park(&c->ring->parked, 1, false, c->waiter.lost);
            ready = is_ready(c, memory_order_relaxed);
            lost = gn_lost_is(c->waiter.lost);
            nudged = atomic_load_explicit(&c->nudged, memory_order_relaxed);
        }
        const bool late = for_ns && gn_now_ns() >= until_ns;
        if (ready || lost || nudged || late) {
            atomic_store_explicit(&c->ring->parked, 0, memory_order_relaxed);
            /* Consumes a nudge that came after the load above: this return serves it. */
            nudged |= atomic_exchange_explicit(&c->nudged, false, memory_order_acq_rel);
            return ready || (nudged && !lost) ? 0 : lost ? -EPIPE : -ETIMEDOUT;
        }
    }
}

int gn_ring_wait(struct gn_ring_consumer *c)
{
    int rc = gn_ring_spin(c);
    return rc == -EAGAIN ? gn_ring_park(c, 0) : rc;
}
