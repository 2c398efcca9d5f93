/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot ring with somebody who writes anywhere into it at any time: no end of it may touch what
 * is beside the ring, give out a message of an impossible length, or go on after a fault. Honest
 * messages that nobody disturbed arrive as they were sent.
 */
#include "shm/slot_ring.h"

#include <errno.h>

#include "fuzz.h"
#include "guarded.h"

#define SLOTS 32u

static struct gn_ring *ring;
static struct gn_lost lost;
static struct gn_ring_consumer consumer;
static struct gn_ring_producer producer;
static bool disturbed;
static uint64_t n_sent, n_received;
static uint16_t sent_bytes[1024];

static void try_receive(void)
{
    unsigned char buf[GN_RING_MAX_BYTES];
    int was = consumer.fault;
    uint64_t head = consumer.head;
    int rc = gn_ring_try_receive(&consumer, buf);
    if (was)
        FUZZ_CHECK(rc == -EPROTO);
    FUZZ_CHECK(rc == -EAGAIN || rc == -EPROTO || (rc > 0 && rc <= (int)GN_RING_MAX_BYTES));
    FUZZ_CHECK(rc > 0
                   ? consumer.head - head == ((uint32_t)rc + GN_SLOT_PAYLOAD - 1) / GN_SLOT_PAYLOAD
                   : consumer.head == head);
    if (disturbed)
        return;
    FUZZ_CHECK(rc != -EPROTO && (rc > 0) == (n_received < n_sent));
    if (rc < 0)
        return;
    FUZZ_CHECK(rc == sent_bytes[n_received % 1024]);
    for (int i = 0; i < rc; i++)
        FUZZ_CHECK(buf[i] == (uint8_t)n_received);
    n_received++;
}

static void try_send(uint16_t n)
{
    unsigned char message[GN_RING_MAX_BYTES + 64];
    uint64_t end = 0;
    memset(message, (int)(uint8_t)n_sent, sizeof message);
    n %= sizeof message;
    size_t head = n / 3;
    int rc = gn_ring_try_send(&producer, message, head, message + head, n - head, &end);
    FUZZ_CHECK(rc == 0 || rc == -EAGAIN || (rc == -EMSGSIZE && (n == 0 || n > GN_RING_MAX_BYTES)));
    if (rc == 0) {
        (void)gn_ring_passed(&producer, end);
        sent_bytes[n_sent++ % 1024] = n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    struct gn_waiter waiter = {.policy = {.spin_ns = 0}, .lost = &lost};
    if (!ring)
        ring = guarded_map(GN_RING_BYTES(SLOTS));
    uint32_t first = fuzz_u32(&f);
    uint64_t start = first & 1 ? first : 0; /* near the wrap of 32 bits, too */
    disturbed = false;
    n_sent = n_received = 0;
    gn_lost_init(&lost);
    memset(ring, 0, GN_RING_BYTES(SLOTS));
    gn_ring_reset(ring, SLOTS, start);
    FUZZ_CHECK(gn_ring_consumer_init(&consumer, ring, SLOTS, start, waiter) == 0);
    FUZZ_CHECK(gn_ring_producer_init(&producer, ring, SLOTS, start, waiter) == 0);
    while (f.left) {
        uint8_t step = fuzz_u8(&f);
        uint32_t at;
        switch (step % 8) {
        case 0:
        case 1:
            try_send(fuzz_u16(&f));
            break;
        case 2:
        case 3:
            try_receive();
            break;
        case 4:
            gn_ring_release(&consumer);
            break;
        case 5: { /* somebody writes: bytes anywhere */
            at = fuzz_u16(&f) % (uint32_t)GN_RING_BYTES(SLOTS);
            uint8_t n = fuzz_u8(&f);
            for (uint32_t i = at; n-- && i < GN_RING_BYTES(SLOTS); i++)
                ((uint8_t *)ring)[i] = fuzz_u8(&f);
            disturbed = true;
            break;
        }
        case 6: { /* somebody publishes a slot, with any length */
            uint64_t position = consumer.head + (step >> 3) % SLOTS;
            struct gn_slot *slot = &ring->slots[position % SLOTS];
            slot->n_bytes = fuzz_u16(&f);
            atomic_store(&slot->seq, ((uint32_t)position & ~(SLOTS - 1)) + (fuzz_u8(&f) % 4));
            disturbed = true;
            break;
        }
        default: /* nobody is to be waited for: all waits end at once */
            gn_lost_declare(&lost);
            (void)gn_ring_wait(&consumer);
            FUZZ_CHECK(gn_ring_send(&producer, "x", 1, NULL, 0, NULL) == -EPIPE);
            gn_lost_init(&lost);
        }
    }
    for (int i = 0; i < 40; i++)
        try_receive();
    return 0;
}
