/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of leases.c with simulated workers: correct ones, silent ones, and many at random. */
#include "daemon/tenants/leases.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MIB UINT64_C(1048576)

/* A worker, with the messages that it received. */
struct worker {
    struct gn_lease_holder h;
    int n_answers, n_recalls;
    uint32_t seq;
    uint64_t granted;
    bool tight;
    /* used by the random test */
    uint64_t leased, used;
    bool owes, asks, dead;
};

static struct worker *worker_of(struct gn_lease_holder *h)
{
    return gn_container_of(h, struct worker, h);
}

static void answered(struct gn_lease_holder *h, uint32_t seq, uint64_t granted)
{
    struct worker *w = worker_of(h);
    w->n_answers++;
    w->seq = seq;
    w->granted = granted;
    w->leased += granted;
    w->asks = false;
}

static void recalled(struct gn_lease_holder *h, bool tight)
{
    struct worker *w = worker_of(h);
    w->n_recalls++;
    w->tight = tight;
    w->owes = true;
}

static const struct gn_lease_ops ops = {answered, recalled};

static void start(struct gn_lease_account *a, uint64_t limit, struct worker *w, int n)
{
    gn_account_init(a, &ops, limit);
    memset(w, 0, (size_t)n * sizeof *w);
    for (int i = 0; i < n; i++)
        gn_holder_join(&w[i].h, a, 0);
}

/* The same, all on one device. */
static void start_on(struct gn_lease_device *d, struct gn_lease_account *a, uint64_t limit,
                     struct worker *w, int n)
{
    start(a, limit, w, n);
    for (int i = 0; i < n; i++)
        gn_holder_add_device(&w[i].h, d);
}

static void ask(struct worker *w, uint64_t need, uint64_t want, uint64_t now)
{
    static uint32_t seq = 100;
    assert_int_equal(gn_holder_ask(&w->h, ++seq, need, want, now), 0);
    if (w->n_answers)
        assert_true(w->seq <= seq);
}

static void an_ask_within_the_limit_is_granted_with_some_slack(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 80 * MIB, w, 2);
    ask(&w[0], 8 * MIB, 40 * MIB, 1);
    assert_int_equal(w[0].n_answers, 1);
    assert_int_equal(w[0].granted, 17 * MIB); /* an eighth of the 72 that are left */
    assert_int_equal(a.leased_bytes, 17 * MIB);
    ask(&w[1], 62 * MIB, 62 * MIB, 1);
    assert_int_equal(w[1].granted, 62 * MIB);
    assert_int_equal(w[0].n_recalls, 0);
    assert_int_equal(gn_account_settle(&a, 1), 0);
}

static void unlimited_ask_is_granted_in_full(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 0, w, 2);
    ask(&w[0], 1, 1 << 20, 1);
    assert_int_equal(w[0].granted, 1 << 20);
    /* More than GN_LEASE_MOST is never granted, so that other holders always find some. */
    ask(&w[0], UINT64_MAX - (1 << 20), UINT64_MAX, 1);
    assert_int_equal(w[0].granted, 0);
    ask(&w[0], 1, UINT64_MAX, 1);
    assert_true(w[0].h.leased_bytes == GN_LEASE_MOST);
    ask(&w[0], 1, 1, 1);
    assert_int_equal(w[0].granted, 0);
    ask(&w[1], 1, UINT64_MAX, 1);
    assert_true(w[1].h.leased_bytes == GN_LEASE_MOST);
    assert_true(a.leased_bytes == 2 * GN_LEASE_MOST);
    assert_int_equal(w[0].n_recalls + w[1].n_recalls, 0);
}

static void impossible_ask_is_refused_at_once(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 100, w, 2);
    w[1].h.limit_bytes = 30;
    ask(&w[1], 30, 100, 1);
    assert_int_equal(w[1].granted, 30);
    ask(&w[0], 101, 101, 1);
    assert_int_equal(w[0].n_answers, 1);
    assert_int_equal(w[0].granted, 0);
    ask(&w[1], 1, 1, 1);
    assert_int_equal(w[1].n_answers, 2);
    assert_int_equal(w[1].granted, 0);
    assert_int_equal(w[0].n_recalls + w[1].n_recalls, 0);
    assert_int_equal(a.leased_bytes, 30);
}

static void slack_of_others_is_recalled_before_a_refusal(void **state)
{
    struct gn_lease_account a;
    struct worker w[3];
    start(&a, 100, w, 3);
    ask(&w[0], 60, 60, 1);
    ask(&w[1], 40, 40, 1);
    ask(&w[2], 50, 50, 1);
    assert_int_equal(w[2].n_answers, 0);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(w[1].n_recalls, 1);
    assert_int_equal(w[2].n_recalls, 0);
    assert_false(w[0].tight);
    assert_int_equal(gn_holder_returned(&w[1].h, 10, true, 2), 0);
    assert_int_equal(w[2].n_answers, 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 40, true, 2), 0);
    assert_int_equal(w[2].granted, 50);
    assert_int_equal(a.leased_bytes, 100);
    /* No holder has slack. */
    ask(&w[2], 1, 1, 3);
    assert_int_equal(gn_holder_returned(&w[1].h, 0, true, 3), 0);
    assert_int_equal(w[2].n_answers, 1);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 3), 0);
    assert_int_equal(w[2].n_answers, 2);
    assert_int_equal(w[2].granted, 0);
}

static void an_answer_older_than_the_ask_does_not_count(void **state)
{
    struct gn_lease_account a;
    struct worker w[3];
    start(&a, 100, w, 3);
    ask(&w[0], 100, 100, 1);
    ask(&w[1], 10, 10, 1);
    ask(&w[2], 10, 10, 1); /* w[0]'s next answer was sent before this ask */
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 1), 0);
    assert_int_equal(w[0].n_recalls, 2);
    assert_int_equal(w[1].n_answers + w[2].n_answers, 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 20, true, 1), 0);
    assert_int_equal(w[1].granted, 10);
    assert_int_equal(w[2].granted, 10);
}

static void a_silent_worker_costs_its_tenant_a_bounded_time_once(void **state)
{
    struct gn_lease_account a, other;
    struct worker w[2], stranger;
    start(&a, 100, w, 2);
    start(&other, 100, &stranger, 1);
    ask(&w[0], 90, 90, 1);
    ask(&w[1], 50, 50, 1);
    uint64_t at = gn_account_settle(&a, 1);
    assert_int_equal(at, 1 + GN_LEASE_RECALL_NS);
    ask(&stranger, 100, 100, 2);
    assert_int_equal(stranger.granted, 100);
    assert_int_equal(gn_account_settle(&a, at - 1), at);
    assert_int_equal(w[1].n_answers, 0);
    assert_int_equal(gn_account_settle(&a, at), 0);
    assert_int_equal(w[1].n_answers, 1);
    assert_int_equal(w[1].granted, 0);
    ask(&w[1], 50, 50, at);
    assert_int_equal(w[1].n_answers, 2); /* no ask waits for the silent worker again */
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(gn_holder_returned(&w[0].h, 90, true, at), 0); /* until it answers */
    ask(&w[1], 50, 50, at);
    assert_int_equal(w[1].granted, 50);
}

static void ask_waits_for_ending_holder(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 100, w, 2);
    ask(&w[0], 100, 100, 1);
    gn_holder_ending(&w[0].h);
    ask(&w[1], 100, 100, 1);
    assert_int_equal(w[0].n_recalls, 0);
    assert_int_equal(w[1].n_answers, 0);
    gn_holder_gone(&w[0].h, 2);
    assert_int_equal(w[1].granted, 100);
    assert_int_equal(a.leased_bytes, 100);
    /* But the wait has an end. */
    memset(&w[0], 0, sizeof w[0]);
    gn_holder_join(&w[0].h, &a, 0);
    gn_holder_ending(&w[1].h);
    ask(&w[0], 1, 1, 3);
    uint64_t at = gn_account_settle(&a, 3);
    assert_int_equal(at, 3 + GN_LEASE_ASK_NS);
    assert_int_equal(gn_account_settle(&a, at), 0);
    assert_int_equal(w[0].n_answers, 1);
    assert_int_equal(w[0].granted, 0);
}

static void death_frees_and_ends_an_ask(void **state)
{
    struct gn_lease_account a;
    struct worker w[3];
    start(&a, 100, w, 3);
    ask(&w[0], 100, 100, 1);
    ask(&w[1], 100, 100, 1);
    ask(&w[2], 60, 60, 1);
    gn_holder_gone(&w[1].h, 1); /* while its ask is pending */
    assert_int_equal(w[1].n_answers, 0);
    gn_holder_gone(&w[0].h, 1); /* while it owes an answer */
    assert_int_equal(w[2].granted, 60);
    gn_holder_gone(&w[0].h, 1);
    gn_holder_gone(&w[2].h, 1);
    assert_int_equal(a.leased_bytes, 0);
    assert_true(gn_list_empty(&a.holders) && gn_list_empty(&a.asks));
    assert_int_equal(gn_holder_returned(&w[0].h, 0, false, 1), -EPROTO);
    assert_int_equal(gn_holder_ask(&w[0].h, 1, 1, 1, 1), -EPROTO);
}

static void a_lowered_limit_takes_slack_back_and_stops_grants(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 0, w, 2);
    ask(&w[0], 60, 100, 1);
    ask(&w[1], 40, 40, 1);
    gn_account_set_limit(&a, 150, 2);
    assert_int_equal(w[0].n_recalls, 0);
    gn_account_set_limit(&a, 50, 2);
    assert_true(w[0].tight && w[1].tight);
    assert_int_equal(gn_holder_returned(&w[0].h, 40, true, 2), 0);
    assert_int_equal(gn_holder_returned(&w[1].h, 0, true, 2), 0);
    assert_int_equal(a.leased_bytes, 100);
    ask(&w[1], 1, 1, 2); /* a recall comes first: the other holder may have slack again */
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 2), 0);
    assert_int_equal(w[1].granted, 0);
    assert_int_equal(w[1].n_answers, 2);
    /* Freed memory is returned without a recall; under the limit, holders may keep it again. */
    w[0].n_recalls = w[1].n_recalls = 0;
    assert_int_equal(gn_holder_returned(&w[0].h, 49, false, 3), 0);
    assert_int_equal(w[0].n_recalls, 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 11, false, 3), 0);
    assert_int_equal(a.leased_bytes, 40);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(w[1].n_recalls, 1);
    assert_false(w[0].tight || w[1].tight);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 3), 0);
    assert_int_equal(gn_holder_returned(&w[1].h, 0, true, 3), 0);
    ask(&w[1], 10, 10, 3);
    assert_int_equal(w[1].granted, 10);
    gn_account_set_limit(&a, 0, 4);
    ask(&w[1], 1000, 1000, 4);
    assert_int_equal(w[1].granted, 1000);
}

static void holder_limit_is_the_lower(void **state)
{
    struct gn_lease_account a;
    struct worker w;
    start(&a, 0, &w, 1);
    assert_int_equal(gn_holder_limit(&w.h), 0);
    gn_account_set_limit(&a, 70, 1);
    assert_int_equal(gn_holder_limit(&w.h), 70);
    w.h.limit_bytes = 90;
    assert_int_equal(gn_holder_limit(&w.h), 70);
    gn_account_set_limit(&a, 0, 1);
    assert_int_equal(gn_holder_limit(&w.h), 90);
    struct gn_lease_device d[2];
    gn_lease_device_init(&d[0], 50);
    gn_lease_device_init(&d[1], 50);
    gn_holder_add_device(&w.h, &d[0]);
    assert_int_equal(gn_holder_limit(&w.h), 90); /* programs see the driver's own figure */
    d[0].is_budget = true;
    assert_int_equal(gn_holder_limit(&w.h), 50);
    d[0].limit_bytes = 80; /* with host memory for evicted contents, which programs do not see */
    d[0].resident_limit_bytes = 50;
    assert_int_equal(gn_holder_limit(&w.h), 50);
    gn_holder_add_device(&w.h, &d[1]);
    assert_int_equal(gn_holder_limit(&w.h), 90);
}

/* More is leased than the device has, but to no holder, as all that one has must fit at once. */
static void host_memory_is_leased_to_several_holders_only(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct gn_lease_reserve reserve;
    struct worker w[3];
    gn_lease_device_init(&d, 150);
    d.resident_limit_bytes = 100;
    assert_int_equal(gn_lease_device_memory(&d), 100);
    gn_account_init(&other, &ops, 0);
    start_on(&d, &a, 0, w, 3);
    ask(&w[0], 101, 101, 1);
    assert_int_equal(w[0].n_answers, 1);
    assert_int_equal(w[0].granted, 0);
    assert_int_equal(w[0].h.refusal, GN_LEASE_DEVICE_FULL);
    ask(&w[0], 90, 90, 1);
    assert_int_equal(w[0].granted, 90);
    ask(&w[0], 11, 11, 1);
    assert_int_equal(w[0].granted, 0);
    ask(&w[1], 50, 150, 1);
    assert_int_equal(w[1].granted, 51);
    assert_int_equal(d.leased_bytes, 141);
    ask(&w[2], 10, 10, 1); /* after what the others do not use */
    assert_int_equal(w[2].n_answers, 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 2), 0);
    assert_int_equal(gn_holder_returned(&w[1].h, 1, true, 2), 0);
    assert_int_equal(w[2].granted, 10);
    assert_int_equal(gn_holder_returned(&w[0].h, 90, false, 3), 0);
    gn_lease_reserve(&reserve, &other, &d, 40); /* leaves no vGPU of others more than 60 */
    ask(&w[0], 61, 61, 3);
    assert_int_equal(w[0].granted, 0);
    gn_lease_unreserve(&reserve);
    ask(&w[0], 61, 61, 3);
    assert_int_equal(w[0].granted, 61);
}

static void invalid_worker_messages_are_refused(void **state)
{
    struct gn_lease_account a;
    struct worker w[2];
    start(&a, 100, w, 2);
    ask(&w[0], 50, 50, 1);
    ask(&w[1], 50, 50, 1);
    assert_int_equal(gn_holder_returned(&w[0].h, 51, false, 1), -EPROTO);
    assert_int_equal(gn_holder_returned(&w[0].h, UINT64_MAX, false, 1), -EPROTO);
    assert_int_equal(gn_holder_returned(&w[0].h, 1, true, 1), -EPROTO);  /* without a recall */
    assert_int_equal(gn_holder_returned(&w[0].h, 0, false, 1), -EPROTO); /* returns nothing */
    assert_int_equal(gn_holder_ask(&w[0].h, 1, 0, 5, 1), -EPROTO);
    assert_int_equal(gn_holder_ask(&w[0].h, 1, 5, 4, 1), -EPROTO);
    ask(&w[0], 50, 50, 1);
    /* a second ask while one is pending */
    assert_int_equal(gn_holder_ask(&w[0].h, 2, 50, 50, 1), -EPROTO);
    assert_int_equal(a.leased_bytes, 100);
}

/* ---- devices */

static void devices_bound_leases_of_all_tenants(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct worker w[2], stranger;
    gn_lease_device_init(&d, 80 * MIB);
    start(&a, 0, w, 2);
    start(&other, 500 * MIB, &stranger, 1);
    gn_holder_add_device(&w[0].h, &d);
    gn_holder_add_device(&stranger.h, &d); /* w[1] is on another device */
    ask(&w[0], 8 * MIB, 40 * MIB, 1);
    assert_int_equal(w[0].granted, 17 * MIB); /* slack: an eighth of the 72 that are left */
    assert_int_equal(d.leased_bytes, 17 * MIB);
    ask(&w[1], 200 * MIB, 200 * MIB, 1);
    assert_int_equal(w[1].granted, 200 * MIB);
    assert_int_equal(d.leased_bytes, 17 * MIB);
    ask(&stranger, 81 * MIB, 81 * MIB, 1); /* more than the device: refused without a recall */
    assert_int_equal(stranger.n_answers, 1);
    assert_int_equal(stranger.granted, 0);
    assert_int_equal(stranger.h.refusal, GN_LEASE_DEVICE_FULL);
    assert_int_equal(w[0].n_recalls, 0);
    ask(&stranger, 63 * MIB, 63 * MIB, 1);
    assert_int_equal(stranger.granted, 63 * MIB);
    assert_int_equal(d.leased_bytes, 80 * MIB);
    assert_int_equal(other.leased_bytes, 63 * MIB);
    gn_holder_gone(&stranger.h, 1);
    gn_holder_gone(&w[0].h, 1);
    assert_int_equal(d.leased_bytes, 0);
    assert_true(gn_list_empty(&d.parts));
}

static void other_tenants_slack_on_a_device_is_recalled_before_a_refusal(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct worker w[2], stranger;
    gn_lease_device_init(&d, 100);
    start_on(&d, &a, 0, w, 2);
    start_on(&d, &other, 0, &stranger, 1);
    ask(&w[0], 60, 60, 1);
    ask(&stranger, 50, 50, 1);
    assert_int_equal(stranger.n_answers, 0);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(w[1].n_recalls, 0); /* has nothing */
    assert_int_equal(gn_account_settle(&other, 1), 1 + GN_LEASE_RECALL_NS);
    assert_int_equal(gn_holder_returned(&w[0].h, 20, true, 2), 0); /* answers the other tenant's */
    assert_int_equal(stranger.granted, 50);
    assert_int_equal(d.leased_bytes, 90);
    ask(&stranger, 30, 30, 3);
    assert_int_equal(w[0].n_recalls, 2);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 3), 0);
    assert_int_equal(stranger.n_answers, 2);
    assert_int_equal(stranger.granted, 0);
    assert_int_equal(stranger.h.refusal, GN_LEASE_DEVICE_FULL);
    /* A holder that does not answer delays the refusal for a bounded time. */
    ask(&stranger, 30, 30, 4);
    assert_int_equal(gn_account_settle(&other, 4), 4 + GN_LEASE_RECALL_NS);
    assert_int_equal(gn_account_settle(&other, 4 + GN_LEASE_RECALL_NS), 0);
    assert_int_equal(stranger.n_answers, 3);
    assert_int_equal(stranger.granted, 0);
    /* Its death frees what it had, and answers another tenant's ask. */
    gn_holder_ending(&w[0].h);
    ask(&stranger, 50, 50, 5 + GN_LEASE_RECALL_NS);
    assert_int_equal(stranger.n_answers, 3);
    gn_holder_gone(&w[0].h, 6 + GN_LEASE_RECALL_NS);
    assert_int_equal(stranger.granted, 50);
    assert_int_equal(d.leased_bytes, 100);
}

static void full_tenant_and_full_device_are_told_apart(void **state)
{
    struct gn_lease_account a, other;
    struct gn_lease_device d;
    struct worker w[2], stranger;
    gn_lease_device_init(&d, 100);
    start_on(&d, &a, 60, w, 2);
    start_on(&d, &other, 0, &stranger, 1);
    ask(&w[0], 40, 40, 1);
    ask(&stranger, 50, 50, 1);
    /* Tenant and device have too little: each holder is recalled once. */
    ask(&w[1], 30, 30, 2);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(stranger.n_recalls, 1);
    assert_int_equal(gn_holder_returned(&stranger.h, 0, true, 2), 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 2), 0);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(w[1].granted, 0);
    assert_int_equal(w[1].h.refusal, GN_LEASE_TENANT_FULL);
    w[1].h.limit_bytes = 5;
    ask(&w[1], 6, 6, 3);
    assert_int_equal(w[1].h.refusal, GN_LEASE_HOLDER_FULL);
}

static void lease_over_several_devices_is_booked_where_there_is_room(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d[2];
    struct worker w[2];
    start(&a, 0, w, 2);
    for (int i = 0; i < 2; i++) {
        gn_lease_device_init(&d[i], 100);
        gn_holder_add_device(&w[0].h, &d[i]);
    }
    gn_holder_add_device(&w[1].h, &d[0]);
    ask(&w[0], 130, 130, 1);
    assert_int_equal(w[0].granted, 130);
    assert_int_equal(d[0].leased_bytes, 100);
    assert_int_equal(d[1].leased_bytes, 30);
    ask(&w[1], 10, 10, 1);
    assert_int_equal(w[0].n_recalls, 1);
    assert_int_equal(gn_holder_returned(&w[0].h, 50, true, 1), 0);
    assert_int_equal(d[1].leased_bytes, 0);
    assert_int_equal(w[1].granted, 10);
    assert_int_equal(d[0].leased_bytes, 90);
    ask(&w[0], 111, 111, 2); /* 10 and 100 are left */
    assert_int_equal(gn_holder_returned(&w[1].h, 0, true, 2), 0);
    assert_int_equal(w[0].granted, 0);
    ask(&w[0], 110, 110, 3);
    assert_int_equal(w[0].granted, 110);
}

static void exchange_takes_the_bytes_to_the_other_device(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d[2];
    struct worker w[2];
    start(&a, 0, w, 2);
    for (int i = 0; i < 2; i++) {
        gn_lease_device_init(&d[i], 100);
        gn_holder_add_device(&w[i].h, &d[i]);
    }
    ask(&w[0], 70, 70, 1);
    ask(&w[1], 60, 60, 1);
    gn_holder_exchange(&w[0].h, &w[1].h);
    assert_int_equal(w[0].h.leased_bytes, 60);
    assert_ptr_equal(w[0].h.parts[0].device, &d[1]);
    assert_ptr_equal(gn_list_first(&d[1].parts, struct gn_lease_part, link)->holder, &w[0].h);
    gn_holder_gone(&w[1].h, 2); /* the source's lease ends with it */
    assert_int_equal(d[0].leased_bytes, 0);
    assert_int_equal(d[1].leased_bytes, 60);
    assert_int_equal(a.leased_bytes, 60);
    assert_int_equal(gn_holder_returned(&w[0].h, 60, false, 2), 0);
    assert_int_equal(d[1].leased_bytes, 0);
}

/* ---- loans */

/* Source w[0] with 60 of a device's 100, destination w[1], and another holder w[2]. */
static void start_loan(struct gn_lease_account *a, struct gn_lease_device *d, struct worker *w)
{
    start(a, 0, w, 3);
    gn_lease_device_init(d, 100);
    for (int i = 0; i < 3; i++)
        gn_holder_add_device(&w[i].h, d);
    ask(&w[0], 60, 60, 1);
    gn_holder_lend(&w[0].h, &w[1].h);
}

static void shared_bytes_are_counted_once(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d;
    struct worker w[3];
    start_loan(&a, &d, w);
    ask(&w[1], 41, 41, 1); /* nothing is shared yet */
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 1), 0);
    assert_int_equal(w[1].granted, 0);
    gn_holder_set_lendable(&w[1].h, 50);
    ask(&w[1], 55, 90, 1);
    assert_int_equal(w[1].granted, 59); /* slack: an eighth of the 35 that are left */
    assert_int_equal(w[1].h.lent_bytes, 50);
    assert_int_equal(d.leased_bytes, 69);
    assert_int_equal(a.leased_bytes, 69);
    gn_holder_set_lendable(&w[1].h, 500); /* never more than the source has */
    ask(&w[1], 42, 42, 1);
    assert_int_equal(w[1].n_answers, 2);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 1), 0);
    assert_int_equal(w[1].granted, 0);
    ask(&w[1], 41, 41, 1);
    assert_int_equal(w[1].granted, 41);
    assert_int_equal(d.leased_bytes, 100);
    assert_int_equal(w[1].h.lent_bytes, 60);
}

static void exchange_hands_shared_bytes_over(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d;
    struct worker w[3];
    start_loan(&a, &d, w);
    gn_holder_set_lendable(&w[1].h, 50);
    ask(&w[1], 58, 58, 1);
    gn_holder_exchange(&w[0].h, &w[1].h); /* w[1] has the source's worker now */
    assert_int_equal(w[0].h.leased_bytes, 58);
    assert_int_equal(w[0].h.parts[0].leased_bytes, 58);
    assert_int_equal(w[1].h.leased_bytes, 10);
    assert_int_equal(d.leased_bytes, 68);
    /* The source's worker still counts the passed bytes, and may return them. */
    assert_int_equal(gn_holder_returned(&w[1].h, 61, false, 2), -EPROTO);
    assert_int_equal(gn_holder_returned(&w[1].h, 60, false, 2), 0);
    assert_int_equal(d.leased_bytes, 58);
    assert_int_equal(gn_holder_returned(&w[1].h, 1, false, 2), -EPROTO);
    gn_holder_gone(&w[1].h, 2);
    assert_int_equal(d.leased_bytes, 58);
    assert_int_equal(gn_holder_returned(&w[0].h, 58, false, 2), 0);
    assert_int_equal(a.leased_bytes, 0);
    assert_int_equal(d.leased_bytes, 0);
}

static void failed_destination_leaves_shared_bytes_with_the_source(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d;
    struct worker w[3];
    for (int ends_first = 0; ends_first < 2; ends_first++) {
        start_loan(&a, &d, w);
        gn_holder_set_lendable(&w[1].h, 60);
        ask(&w[1], 65, 65, 1);
        assert_int_equal(d.leased_bytes, 65);
        if (ends_first) {
            gn_holder_ending(&w[1].h);
            assert_int_equal(d.leased_bytes, 65);
            /* The next migration need not wait until it has ended. */
            gn_holder_lend(&w[0].h, &w[2].h);
            gn_holder_set_lendable(&w[2].h, 60);
            ask(&w[2], 60, 60, 1);
            assert_int_equal(w[2].granted, 60);
            assert_int_equal(d.leased_bytes, 65);
            assert_int_equal(gn_holder_returned(&w[1].h, 65, false, 1), 0);
        }
        gn_holder_gone(&w[1].h, 2);
        assert_int_equal(w[0].h.leased_bytes, 60);
        assert_int_equal(d.leased_bytes, 60);
        assert_int_equal(a.leased_bytes, 60);
    }
}

static void dead_source_leaves_shared_bytes_with_the_destination(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d;
    struct worker w[3];
    start_loan(&a, &d, w);
    gn_holder_set_lendable(&w[1].h, 50);
    ask(&w[1], 58, 58, 1);
    gn_holder_gone(&w[0].h, 2);
    assert_int_equal(w[1].h.leased_bytes, 58);
    assert_int_equal(w[1].h.lent_bytes, 0);
    assert_int_equal(d.leased_bytes, 58);
    gn_holder_gone(&w[1].h, 2);
    assert_int_equal(a.leased_bytes, 0);
    assert_int_equal(d.leased_bytes, 0);
}

static void bytes_that_the_source_frees_stay_counted_while_they_are_lent(void **state)
{
    struct gn_lease_account a;
    struct gn_lease_device d;
    struct worker w[3];
    start_loan(&a, &d, w);
    gn_holder_set_lendable(&w[1].h, 50);
    ask(&w[1], 50, 50, 1);
    assert_int_equal(d.leased_bytes, 60);
    assert_int_equal(gn_holder_returned(&w[0].h, 40, false, 2), 0);
    assert_int_equal(w[1].h.lent_bytes, 20);
    assert_int_equal(d.leased_bytes, 50); /* 20 of both, 30 of the destination */
    ask(&w[2], 51, 51, 2);
    assert_int_equal(w[2].n_answers, 0);
    assert_int_equal(gn_holder_returned(&w[0].h, 0, true, 2), 0);
    assert_int_equal(gn_holder_returned(&w[1].h, 1, true, 2), 0);
    assert_int_equal(w[2].granted, 51);
    assert_int_equal(d.leased_bytes, 100);
}

/* The i-th worker has the first device, the second, or both. */
static void add_devices(struct gn_lease_holder *h, struct gn_lease_device *d, int i)
{
    if (i % 3 != 1)
        gn_holder_add_device(h, &d[0]);
    if (i % 3 != 0)
        gn_holder_add_device(h, &d[1]);
}

/* Eight workers allocate, free, answer late or never, die and come back, while the limit changes.
 * No worker ever holds more than its account says, and the sums of account and devices grow only
 * within their limits. */
static void random_accounts_stay_within_limit(void **state)
{
    enum { N = 8, STEPS = 200000 };
    struct gn_lease_account a;
    struct gn_lease_device d[2];
    struct worker w[N];
    uint64_t now = 1, limit = 1000, seed = 88172645463325252u, n_granted = 0, n_refused = 0,
             n_loans = 0, n_lent = 0;
    start(&a, limit, w, N);
    for (int i = 0; i < 2; i++)
        gn_lease_device_init(&d[i], i ? 600 : 450);
    for (int i = 0; i < N; i++)
        add_devices(&w[i].h, d, i);
    for (int step = 0; step < STEPS; step++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t r = seed >> 8, before = a.leased_bytes, n = r / 64 % 400;
        struct worker *it = &w[r % N];
        now += r % 3 ? 1000 : GN_LEASE_RECALL_NS / 7;
        switch (r / 8 % 8) {
        case 0:
        case 1:
        case 2: /* allocates */
            if (it->used + n <= it->leased) {
                it->used += n;
            } else if (!it->asks) {
                it->asks = true;
                int answers = it->n_answers;
                assert_int_equal(gn_holder_ask(&it->h, (uint32_t)step, it->used + n - it->leased,
                                               it->used + n - it->leased + 50, now),
                                 0);
                if (it->n_answers > answers && it->granted)
                    n_granted++;
                n_refused += it->n_answers > answers && !it->granted;
            }
            break;
        case 3:
        case 4: /* frees */
            n = n < it->used ? n : it->used;
            it->used -= n;
            if (it->tight) {
                it->leased -= n;
                assert_int_equal(gn_holder_returned(&it->h, n, false, now), n ? 0 : -EPROTO);
            }
            break;
        case 5: /* answers a recall */
            if (it->owes) {
                it->owes = false;
                n = it->leased - it->used;
                it->leased -= n;
                assert_int_equal(gn_holder_returned(&it->h, n, true, now), 0);
            }
            break;
        case 6: /* dies and is replaced, or the limit changes */
            if (r / 512 % 8 == 0) {
                struct worker *from = &w[(r % N + 3) % N];
                gn_holder_gone(&it->h, now);
                memset(it, 0, sizeof *it);
                gn_holder_join(&it->h, &a, r & 8192 ? 300 : 0);
                add_devices(&it->h, d, (int)(it - w));
                if (from > it && r & 4096) { /* they have the same devices */
                    gn_holder_lend(&from->h, &it->h);
                    gn_holder_set_lendable(&it->h, from->used);
                    n_loans++;
                }
            } else if (r / 512 % 8 == 1) {
                limit = 200 + r / 4096 % 1500;
                gn_account_set_limit(&a, limit, now);
            }
            break;
        default:
            gn_account_settle(&a, now);
        }
        uint64_t sum = 0, on_device[2] = {0};
        for (int i = 0; i < N; i++) {
            uint64_t in_parts = 0;
            for (uint32_t k = 0; k < w[i].h.n_parts; k++) {
                in_parts += w[i].h.parts[k].leased_bytes;
                on_device[w[i].h.parts[k].device - d] += w[i].h.parts[k].leased_bytes;
            }
            assert_int_equal(in_parts, w[i].h.leased_bytes - w[i].h.lent_bytes);
            assert_true(!w[i].h.lent_bytes || w[i].h.lent_bytes <= w[i].h.lender->leased_bytes);
            assert_int_equal(w[i].leased, w[i].h.leased_bytes + w[i].h.passed_bytes);
            n_lent += w[i].h.lent_bytes != 0;
            assert_true(w[i].used <= w[i].leased);
            assert_true(!w[i].h.limit_bytes || w[i].leased <= w[i].h.limit_bytes);
            sum += in_parts;
        }
        assert_int_equal(sum, a.leased_bytes);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(d[i].leased_bytes, on_device[i]);
            assert_true(on_device[i] <= d[i].limit_bytes);
        }
        assert_true(a.leased_bytes <= limit || a.leased_bytes <= before);
    }
    assert_true(n_granted > 1000 && n_refused > 100 && n_loans > 100 && n_lent > 1000);
    for (int i = 0; i < N; i++)
        gn_holder_gone(&w[i].h, now);
    assert_int_equal(a.leased_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ask_within_the_limit_is_granted_with_some_slack),
        cmocka_unit_test(unlimited_ask_is_granted_in_full),
        cmocka_unit_test(impossible_ask_is_refused_at_once),
        cmocka_unit_test(slack_of_others_is_recalled_before_a_refusal),
        cmocka_unit_test(an_answer_older_than_the_ask_does_not_count),
        cmocka_unit_test(a_silent_worker_costs_its_tenant_a_bounded_time_once),
        cmocka_unit_test(ask_waits_for_ending_holder),
        cmocka_unit_test(death_frees_and_ends_an_ask),
        cmocka_unit_test(a_lowered_limit_takes_slack_back_and_stops_grants),
        cmocka_unit_test(holder_limit_is_the_lower),
        cmocka_unit_test(host_memory_is_leased_to_several_holders_only),
        cmocka_unit_test(invalid_worker_messages_are_refused),
        cmocka_unit_test(devices_bound_leases_of_all_tenants),
        cmocka_unit_test(other_tenants_slack_on_a_device_is_recalled_before_a_refusal),
        cmocka_unit_test(full_tenant_and_full_device_are_told_apart),
        cmocka_unit_test(lease_over_several_devices_is_booked_where_there_is_room),
        cmocka_unit_test(exchange_takes_the_bytes_to_the_other_device),
        cmocka_unit_test(shared_bytes_are_counted_once),
        cmocka_unit_test(exchange_hands_shared_bytes_over),
        cmocka_unit_test(failed_destination_leaves_shared_bytes_with_the_source),
        cmocka_unit_test(dead_source_leaves_shared_bytes_with_the_destination),
        cmocka_unit_test(bytes_that_the_source_frees_stay_counted_while_they_are_lent),
        cmocka_unit_test(random_accounts_stay_within_limit),
    };
    return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
