/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's side of reply slots and of the event table, against a worker who writes anything
 * there: no answer longer than a slot, no event in a phase that there is not, no wait that a
 * declared loss does not end.
 */
#include "shm/event_table.h"
#include "shm/reply.h"

#include <errno.h>

#include "fuzz.h"
#include "guarded.h"

#define EVENTS   64u
#define MAX_HELD 16u

static struct gn_reply_slot *slots;
static struct gn_event_entry *events;
static struct gn_replies replies;
static struct gn_lost lost;
static uint32_t held[MAX_HELD], n_held;

static void write_anywhere(struct fuzz *f, void *base, size_t bytes)
{
    size_t at = fuzz_u16(f) % bytes;
    for (uint8_t n = fuzz_u8(f); n-- && at < bytes; at++)
        ((uint8_t *)base)[at] = fuzz_u8(f);
}

static void wait_for_answer(uint32_t which)
{
    struct gn_reply reply;
    if (!n_held)
        return;
    uint32_t i = which % n_held;
    gn_lost_declare(&lost);
    int rc = gn_reply_wait(&replies, held[i], &reply);
    gn_lost_init(&lost);
    FUZZ_CHECK(rc == 0 || rc == -EPIPE || rc == -EPROTO);
    if (rc == 0)
        FUZZ_CHECK(reply.n_bytes <= GN_REPLY_PAYLOAD);
    gn_reply_put(&replies, held[i]);
    held[i] = held[--n_held];
}

static void look_at_event(struct gn_event_entry *e)
{
    int32_t error = -77;
    struct gn_event_times times;
    enum gn_event_phase phase = gn_event_phase(e, &error);
    FUZZ_CHECK(phase <= GN_EVENT_QUEUED);
    FUZZ_CHECK(phase == GN_EVENT_DONE ? error <= 0 : error == -77);
    gn_event_read_times(e, &times);
    struct gn_waiter waiter = {.policy = {.spin_ns = 0}, .lost = &lost};
    gn_lost_declare(&lost);
    int rc = gn_event_wait(e, &waiter, &error);
    gn_lost_init(&lost);
    FUZZ_CHECK(rc == 0 || rc == -EPIPE);
    if (rc == 0)
        FUZZ_CHECK(error <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = fuzz_of(data, size);
    struct gn_waiter waiter = {.policy = {.spin_ns = 0}, .lost = &lost};
    if (!slots) {
        slots = guarded_map(GN_REPLY_SLOTS * sizeof *slots);
        events = guarded_map(EVENTS * sizeof *events);
    }
    memset(slots, 0, GN_REPLY_SLOTS * sizeof *slots);
    memset(events, 0, EVENTS * sizeof *events);
    gn_lost_init(&lost);
    gn_replies_init(&replies, slots, waiter);
    n_held = 0;
    while (f.left) {
        uint8_t step = fuzz_u8(&f);
        struct gn_event_entry *e = &events[(step >> 3) * 2];
        switch (step % 8) {
        case 0:
            if (n_held < MAX_HELD)
                FUZZ_CHECK(gn_reply_claim(&replies, &held[n_held++]) == 0);
            break;
        case 1:
            write_anywhere(&f, slots, GN_REPLY_SLOTS * sizeof *slots);
            break;
        case 2: { /* an answer: honest, or to any token */
            uint32_t token = step & 8 || !n_held ? fuzz_u32(&f) : held[fuzz_u8(&f) % n_held];
            gn_reply_send(slots, token, (int32_t)fuzz_u32(&f), "an answer", fuzz_u8(&f) % 10);
            break;
        }
        case 3:
            wait_for_answer(step >> 3);
            break;
        case 4:
            gn_event_arm(e);
            FUZZ_CHECK(gn_event_phase(e, NULL) == GN_EVENT_QUEUED);
            break;
        case 5:
            write_anywhere(&f, events, EVENTS * sizeof *events);
            break;
        case 6:
            look_at_event(e);
            break;
        default:
            if (step >= 0xf8) {
                gn_event_fail_all(events, EVENTS, -5);
                for (uint32_t i = 0; i < EVENTS; i++)
                    FUZZ_CHECK(gn_event_phase(&events[i], NULL) == GN_EVENT_DONE);
            } else if (step & 8) {
                gn_event_finish(e, (int32_t)fuzz_u32(&f), NULL);
            } else {
                gn_event_post(e, step & 16 ? GN_EVENT_SUBMITTED : GN_EVENT_RUNNING);
            }
        }
    }
    while (n_held)
        wait_for_answer(0);
    return 0;
}
