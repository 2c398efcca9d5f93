/* SPDX-License-Identifier: Apache-2.0 */
/* Tests residency periods: which vGPU is swapped in, when, and at the cost of which others. */
#include "place/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define S         UINT64_C(1000000000)
#define MS        UINT64_C(1000000)
#define MAX_VGPUS 16

struct world {
    struct gn_place p;
    struct gn_place_tenant t[MAX_VGPUS];
    struct gn_place_vgpu v[MAX_VGPUS];
    unsigned n;
    uint64_t now, again;
};

static struct world w;

/* A device of n_slots; a slot takes 1 ms each way, copies may take a tenth. */
static void device(const char *policy, uint32_t n_slots)
{
    memset(&w, 0, sizeof w);
    assert_int_equal(
        gn_place_init(&w.p, gn_place_policy_find(policy), n_slots * GN_PLACE_SLOT_BYTES, 0, 0), 0);
    gn_place_note_copy(&w.p, true, 1, MS);
    gn_place_note_copy(&w.p, false, 1, MS);
}

/* A vGPU of a tenant of its own, with work. */
static struct gn_place_vgpu *add(uint32_t n_chunks, uint32_t weight)
{
    struct gn_place_vgpu *v = &w.v[w.n];
    struct gn_place_tenant *t = &w.t[w.n++];
    assert_int_equal(gn_place_tenant_add(&w.p, t, weight, 0), 0);
    assert_int_equal(gn_place_add(&w.p, t, v, 100, n_chunks, w.now), 0);
    gn_place_wake(&w.p, v, w.now);
    return v;
}

static void run(struct gn_place_vgpu *v, uint64_t ns, bool more_work)
{
    gn_place_wake(&w.p, v, w.now);
    assert_true(gn_place_is_resident(v));
    gn_place_turn(&w.p, v, w.now);
    gn_place_set_changed(v, &v->needs);
    w.now += ns;
    gn_place_yield(&w.p, v, ns, more_work, w.now);
}

/* Swaps in the vGPU that may come in now. */
static struct gn_place_vgpu *next(void)
{
    struct gn_place_plan plan;
    struct gn_place_vgpu *v = gn_residency_next(&w.p, w.now, &plan, &w.again);
    if (v) {
        gn_place_apply(&w.p, &plan, w.now);
        assert_true(gn_place_is_resident(v));
    }
    return v;
}

/* Runs one vGPU in slices until another comes in; returns the time that it got. */
static uint64_t run_until_swap(struct gn_place_vgpu *v, struct gn_place_vgpu *wanted)
{
    const uint64_t since = w.now;
    struct gn_place_vgpu *came;
    do {
        run(v, MS, true);
        assert_true(w.now - since < 1000 * S);
    } while (!(came = next()));
    assert_ptr_equal(came, wanted);
    return w.now - since;
}

static void all_that_fits_comes_in_at_once(void **state)
{
    device("turn", 10);
    struct gn_place_vgpu *a = add(4, 100), *b = add(6, 100);
    assert_ptr_equal(next(), a);
    assert_ptr_equal(next(), b);
    assert_null(next());
    assert_int_equal(w.again, 0);
    assert_int_equal(w.p.n_free, 0);
}

/* Both ways 8 ms; a tenth of the time is nine times as long for work. */
static void a_period_brings_theta(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    assert_null(next());
    assert_int_equal(run_until_swap(a, b), 72 * MS);
    /* Level after 72 ms; 72 ms ahead after twice that. */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(run_until_swap(b, a), 144 * MS);
        assert_int_equal(run_until_swap(a, b), 144 * MS);
    }
}

static void clean_memory_makes_periods_shorter(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    for (;;) {
        gn_place_set_clean(a, &a->needs);
        if (next())
            break;
        run(a, MS, true);
    }
    assert_int_equal(w.now, 36 * MS);
    assert_true(gn_place_is_resident(b));
}

static void periods_follow_weights(void **state)
{
    uint64_t used[2] = {0};
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 300);
    /* Of equal tags, the one with the greater weight has to wait less, and is first. */
    assert_ptr_equal(next(), b);
    for (int i = 0; i < 50; i++) {
        used[1] += run_until_swap(b, a);
        used[0] += run_until_swap(a, b);
    }
    assert_in_range(used[1] * 100 / used[0], 290, 310);
    /* A tenant's weight is divided among its vGPUs. */
    struct gn_place_vgpu *c = &w.v[2];
    assert_int_equal(gn_place_add(&w.p, &w.t[1], c, 200, 4, w.now), 0);
    gn_place_wake(&w.p, c, w.now);
    uint64_t before = b->period_tag;
    gn_place_turn(&w.p, b, w.now);
    gn_place_yield(&w.p, b, 30 * MS, true, w.now);
    const uint64_t by_third = b->period_tag - before;
    before = c->period_tag;
    gn_place_turn(&w.p, c, w.now);
    gn_place_yield(&w.p, c, 30 * MS, true, w.now);
    assert_in_range(by_third, 2 * (c->period_tag - before) - 2, 2 * (c->period_tag - before) + 2);
}

static void a_change_of_weight_keeps_the_time_ahead(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 1), *b = &w.v[1];
    assert_int_equal(gn_place_add(&w.p, a->tenant, b, 100, 4, w.now), 0);
    gn_place_wake(&w.p, b, w.now);
    assert_ptr_equal(next(), a);
    (void)run_until_swap(a, b);
    (void)run_until_swap(b, a);
    const uint64_t period = run_until_swap(a, b);
    assert_int_equal(gn_place_tenant_set_weight(&w.p, a->tenant, 10000), 0);
    assert_in_range(run_until_swap(b, a), period - MS, period + MS);
    assert_int_equal(gn_place_tenant_set_weight(&w.p, a->tenant, 1), 0);
    assert_in_range(run_until_swap(a, b), period - MS, period + MS);
}

static void the_longest_period_is_bounded(void **state)
{
    device("turn", 4);
    w.p.residency_max_ns = 20 * MS;
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    assert_int_equal(run_until_swap(a, b), 20 * MS);
}

/* Within a pause's length of the last work nobody knows whether it goes on. */
static void without_work_memory_is_free(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    run(a, MS, false);
    assert_null(next());
    assert_int_equal(w.again, a->used_ns + GN_PLACE_PAUSE_NS);
    w.now = w.again;
    assert_ptr_equal(next(), b);
    assert_false(gn_place_is_resident(a));
}

/* A vGPU that was swapped in keeps its memory until it has had a turn. */
static void a_vgpu_gets_its_turn(void **state)
{
    device("turn", 8);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    assert_ptr_equal(next(), b);
    struct gn_place_vgpu *c = add(8, 100);
    for (int i = 0; i < 1000; i++) {
        run(a, MS, true);
        assert_null(next());
    }
    run(b, MS, true);
    b->period_tag += S * 100;
    assert_ptr_equal(next(), c);
}

/* One that pauses, but is not idle, is asked for as if it had work; the time of its idleness is
 * told. */
static void a_pause_is_not_idleness(void **state)
{
    device("turn", 8);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    next();
    next();
    run(a, MS, false);
    run(b, MS, true);
    struct gn_place_vgpu *c = add(8, 100);
    assert_null(next());
    assert_int_equal(w.again, a->used_ns + w.p.idle_ns);
    w.now = w.again;
    gn_place_tick(&w.p, w.now);
    assert_true(a->idle);
    assert_null(next());
    b->period_tag += S;
    assert_ptr_equal(next(), c);
}

/* One that waits for its commands one by one has no work between two of them. It keeps its memory
 * for as long as the copies would take, and for theta in all: others wait meanwhile. */
static void a_gap_between_commands_ends_no_period(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    const uint64_t began = w.now;
    do {
        run(a, MS, false);
        w.now += 7 * MS;
    } while (!next());
    assert_true(gn_place_is_resident(b));
    assert_int_equal(w.now - began, 80 * MS);
    /* Then it stops: the time of both copies is 8 ms, and the least is told. */
    gn_place_sleep(&w.p, b, w.now);
    gn_place_wake(&w.p, a, w.now);
    assert_null(next());
    assert_int_equal(w.again, w.now + GN_PLACE_PAUSE_NS);
    w.now = w.again;
    assert_ptr_equal(next(), a);
}

/* One that comes in for a request has no commands yet. It is not evicted before it can send any. */
static void one_that_has_come_in_has_time_to_work(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    for (uint32_t i = 0; i < GN_PLACE_COPIES; i++)
        gn_place_note_copy(&w.p, true, 1, 2 * S);
    assert_ptr_equal(next(), a);
    gn_place_sleep(&w.p, a, w.now);
    assert_null(next());
    assert_true(w.again > w.now + 4 * S);
    w.now = w.again;
    assert_ptr_equal(next(), b);
}

/* While the first copies are slow, one that waits must not get a place in line for good. */
static void those_that_wait_are_in_line_by_the_latest_times(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    assert_null(next());
    const uint64_t key = b->wanting_key;
    for (uint32_t i = 0; i < GN_PLACE_COPIES; i++)
        gn_place_note_copy(&w.p, false, 1, S);
    assert_true(b->wanting_key > key + 10 * S);
    for (uint32_t i = 0; i < GN_PLACE_COPIES; i++)
        gn_place_note_copy(&w.p, false, 1, MS);
    assert_int_equal(b->wanting_key, key);
}

/* Chunks that are not needed leave at once. */
static void unneeded_chunks_leave_at_once(void **state)
{
    device("turn", 8);
    struct gn_place_vgpu *a = add(6, 100);
    const struct gn_chunk_set half = gn_chunk_range(3);
    next();
    run(a, MS, true);
    gn_place_set_needs(&w.p, a, &half);
    struct gn_place_vgpu *b = add(4, 100);
    assert_ptr_equal(next(), b);
    assert_true(gn_place_is_resident(a));
    assert_int_equal(a->n_occupied, 4);
}

/* A vGPU that has lost a part of its memory cannot work: the rest is the first to go. */
static void the_rest_of_an_evicted_vgpu_leaves_first(void **state)
{
    device("turn", 9);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    next();
    next();
    run(a, 10 * MS, true);
    run(b, MS, true);
    struct gn_place_vgpu *c = add(3, 100), *d = add(2, 100);
    a->period_tag += S;
    assert_ptr_equal(next(), d);
    assert_int_equal(a->n_occupied, 3);
    run(d, MS, true);
    /* Now b is the furthest ahead, and keeps its memory. */
    b->period_tag += 10 * S;
    assert_ptr_equal(next(), c);
    assert_int_equal(a->n_occupied, 0);
    assert_int_equal(b->n_occupied, 4);
}

/*
 * A vGPU that ran alone for an hour has used much more than one that comes then. The new one must
 * not keep the other out for an hour.
 */
static void arrears_are_bounded(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100);
    next();
    for (int i = 0; i < 3600; i++)
        run(a, S, true);
    struct gn_place_vgpu *b = add(4, 100);
    assert_int_equal(run_until_swap(a, b), 72 * MS);
    assert_int_equal(run_until_swap(b, a), 144 * MS);
    /* The same with a vGPU that was there, and far behind. */
    b->period_tag = a->period_tag - 3600 * S;
    assert_ptr_equal(next(), NULL);
    run(a, MS, true);
    assert_ptr_equal(next(), b);
    assert_true(run_until_swap(b, a) <= (4 + 1) * 72 * MS + MS);
}

static void long_pauses_earn_nothing(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100), *c = add(4, 100);
    next();
    run_until_swap(a, b);
    gn_place_sleep(&w.p, c, w.now);
    for (int i = 0; i < 100; i++) {
        run_until_swap(b, a);
        run_until_swap(a, b);
    }
    gn_place_wake(&w.p, c, w.now);
    /* It is behind the least of those that want memory by one theta at most. */
    assert_true(c->period_tag + 100 * S > a->period_tag);
    assert_true(a->period_tag - c->period_tag <= 72 * MS * 256 / 100 + MS);
}

/* 3 max(n, W / w), the weight of a tenant divided among its vGPUs. */
static void the_wait_bound(void **state)
{
    device("turn", 8);
    for (int i = 0; i < 4; i++)
        add(2, 100);
    assert_int_equal(gn_residency_wait_bound(&w.p, &w.v[0]), 12);
    add(2, 1000);
    assert_int_equal(gn_residency_wait_bound(&w.p, &w.v[0]), 3 * 14);
    assert_int_equal(gn_residency_wait_bound(&w.p, &w.v[4]), 3 * 5);
    assert_int_equal(gn_place_add(&w.p, &w.t[0], &w.v[5], 300, 2, 0), 0);
    assert_int_equal(gn_residency_wait_bound(&w.p, &w.v[0]), 3 * 56);
}

static void addresses_have_periods_too(void **state)
{
    static const char *const policies[] = {"first-fit", "size", "utilization"};
    for (int i = 0; i < 3; i++) {
        device(policies[i], 4);
        struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
        assert_ptr_equal(next(), a);
        assert_int_equal(run_until_swap(a, b), 72 * MS);
        assert_int_equal(run_until_swap(b, a), 144 * MS);
    }
}

static void no_share_no_periods(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100);
    add(4, 100);
    next();
    gn_residency_set_share(&w.p, 0);
    assert_null(next());
    gn_residency_set_share(&w.p, GN_PLACE_WHOLE);
    run(a, MS, true);
    assert_non_null(next());
}

/*
 * Both are to be saved at once. The first one in line finds room for all of its memory only when
 * the second one, whose memory is in part on the device, has been saved; so that one comes first.
 */
static void two_that_move_do_not_wait_for_each_other(void **state)
{
    device("turn", 32);
    struct gn_place_vgpu *a = add(20, 100), *b = add(20, 100);
    assert_ptr_equal(next(), a);
    run_until_swap(a, b);
    struct gn_place_vgpu *c = add(18, 100);
    gn_place_sleep(&w.p, a, w.now);
    run_until_swap(b, c);
    gn_place_wake(&w.p, a, w.now);
    assert_int_equal(a->n_occupied, 0);
    assert_int_equal(b->n_occupied, 14);
    run(c, MS, true);
    gn_place_set_moves(&w.p, a, true);
    gn_place_set_moves(&w.p, b, true);
    assert_ptr_equal(next(), b);
    assert_null(next());
    gn_place_set_moves(&w.p, b, false);
    run(b, MS, true);
    assert_ptr_equal(next(), a);
}

/* One that moves and finds no room does not hold up those that do. */
static void one_that_moves_and_has_no_room_delays_nobody(void **state)
{
    device("turn", 32);
    struct gn_place_vgpu *a = add(20, 100);
    assert_ptr_equal(next(), a);
    struct gn_place_vgpu *c = add(12, 100);
    assert_ptr_equal(next(), c);
    run(a, MS, true);
    gn_place_set_moves(&w.p, a, true);
    struct gn_place_vgpu *b = add(20, 100), *d = add(8, 100);
    gn_place_set_moves(&w.p, b, true);
    assert_int_equal(a->n_occupied, 20);
    run_until_swap(c, d);
    assert_int_equal(a->n_occupied, 20);
}

/*
 * A vGPU that uses the device for a moment, and pauses for less than its eviction would cost, holds
 * its memory for as long as one that works. The other one has half of the time, less the copies.
 */
static void short_pauses_keep_nobody_out(void **state)
{
    uint64_t used = 0, copies = 0;
    device("turn", 5); /* each keeps a slot in the other's period */
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    for (int i = 0; i < 100; i++) {
        do {
            run(a, MS / 10, false);
            w.now += 9 * MS;
            gn_place_wake(&w.p, a, w.now);
            assert_true(w.now < 1000 * S);
        } while (!next());
        assert_true(gn_place_is_resident(b));
        used += run_until_swap(b, a);
        copies += 2 * 8 * MS;
    }
    assert_in_range(used * 100 / (w.now + copies), 42, 50);
}

/*
 * A vGPU that brings its memory in again and again, and uses the device hardly or not, delays the
 * others by the part for copies alone. The device time of b, by all time with that of the copies.
 */
static void memory_that_is_only_touched_costs_the_part_for_copies(void **state)
{
    uint64_t used = 0, copies = 0;
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    run_until_swap(a, b);
    run_until_swap(b, a);
    for (int i = 0; i < 200; i++) {
        run(a, MS / 10, false);
        for (w.now += 8 * MS; next() != b;)
            w.now += MS;
        assert_true(gn_place_is_resident(b));
        copies += 8 * MS;
        gn_place_wake(&w.p, a, w.now);
        used += run_until_swap(b, a);
        copies += 8 * MS;
    }
    assert_in_range(used * 100 / (used + copies), 80, 95);
}

/*
 * A vGPU that allocates all of the device and gives it back, again and again, uses no device time
 * and is never evicted. It must not displace the other one each time.
 */
static void storms_of_allocations_cost_the_part_for_copies(void **state)
{
    uint64_t used = 0, copies = 0;
    device("turn", 4);
    struct gn_place_vgpu *a = add(1, 100), *b = add(3, 100);
    assert_non_null(next());
    assert_non_null(next());
    run(a, MS, false);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(gn_place_resize(&w.p, a, 4, w.now), 0);
        gn_place_wake(&w.p, a, w.now);
        used += run_until_swap(b, a);
        const struct gn_chunk_set first = gn_chunk_range(1);
        const struct gn_chunk_set rest = gn_chunk_minus(&a->occupied, &first);
        gn_place_vacate(&w.p, a, &rest);
        assert_int_equal(gn_place_resize(&w.p, a, 1, w.now), 0);
        gn_place_sleep(&w.p, a, w.now);
        assert_ptr_equal(next(), b);
        copies += 9 * MS;
    }
    assert_in_range(used * 100 / (used + copies), 80, 95);
}

/* A program that allocates in pieces, and pauses in between, is evicted many times before it has
 * used the device. What it owes for that must not keep it out for as many periods. */
static void many_swaps_without_use_owe_few_periods(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    for (int i = 0; i < 50; i++) {
        gn_place_sleep(&w.p, a, w.now);
        for (w.now += GN_PLACE_PAUSE_NS; next() != b;)
            w.now += MS;
        gn_place_sleep(&w.p, b, w.now);
        gn_place_wake(&w.p, a, w.now);
        for (w.now += GN_PLACE_PAUSE_NS; next() != a;)
            w.now += MS;
        gn_place_wake(&w.p, b, w.now);
    }
    const uint64_t period = 8 * MS * 9;
    assert_in_range(run_until_swap(a, b), period, 6 * period);
    assert_in_range(run_until_swap(b, a), period, 6 * period);
}

/* A vGPU that wants the device and gives up before it gets a turn: its pause counts once. */
static void a_pause_counts_once(void **state)
{
    device("turn", 4);
    struct gn_place_vgpu *a = add(4, 100), *b = add(4, 100);
    assert_ptr_equal(next(), a);
    run(a, MS, false);
    w.now += 4 * MS;
    assert_null(next());
    gn_place_wake(&w.p, a, w.now);
    const uint64_t tag = a->period_tag;
    for (int i = 0; i < 10; i++) {
        gn_place_sleep(&w.p, a, w.now);
        gn_place_wake(&w.p, a, w.now);
    }
    assert_int_equal(a->period_tag, tag);
    assert_true(b->wants);
}

/* The vGPU allocates n chunks while the other one pauses, and displaces it. */
static void displace_in_a_pause(struct gn_place_vgpu *a, struct gn_place_vgpu *b, uint32_t n)
{
    gn_place_sleep(&w.p, b, w.now);
    w.now += S;
    assert_int_equal(gn_place_resize(&w.p, a, n, w.now), 0);
    gn_place_wake(&w.p, a, w.now);
    assert_ptr_equal(next(), a);
}

/* A swap in a pause of the others needs no debt to be paid. A small one must not cancel the debt of
 * large ones. */
static void a_small_swap_cancels_no_debt(void **state)
{
    const struct gn_chunk_set first = gn_chunk_range(1);
    device("turn", 10);
    struct gn_place_vgpu *a = add(1, 100), *b = add(9, 100);
    assert_non_null(next());
    assert_non_null(next());
    run(a, MS, false);
    for (int i = 0; i < 3; i++) {
        displace_in_a_pause(a, b, 10);
        const struct gn_chunk_set rest = gn_chunk_minus(&a->occupied, &first);
        gn_place_vacate(&w.p, a, &rest);
        assert_int_equal(gn_place_resize(&w.p, a, 1, w.now), 0);
        gn_place_sleep(&w.p, a, w.now);
        gn_place_wake(&w.p, b, w.now);
        assert_ptr_equal(next(), b);
    }
    const uint64_t owed = a->period_tag + a->owed_tag;
    displace_in_a_pause(a, b, 2);
    assert_true(a->period_tag + a->owed_tag >= owed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_fits_comes_in_at_once),
        cmocka_unit_test(a_period_brings_theta),
        cmocka_unit_test(clean_memory_makes_periods_shorter),
        cmocka_unit_test(periods_follow_weights),
        cmocka_unit_test(a_change_of_weight_keeps_the_time_ahead),
        cmocka_unit_test(the_longest_period_is_bounded),
        cmocka_unit_test(without_work_memory_is_free),
        cmocka_unit_test(a_vgpu_gets_its_turn),
        cmocka_unit_test(a_pause_is_not_idleness),
        cmocka_unit_test(a_gap_between_commands_ends_no_period),
        cmocka_unit_test(one_that_has_come_in_has_time_to_work),
        cmocka_unit_test(those_that_wait_are_in_line_by_the_latest_times),
        cmocka_unit_test(unneeded_chunks_leave_at_once),
        cmocka_unit_test(the_rest_of_an_evicted_vgpu_leaves_first),
        cmocka_unit_test(arrears_are_bounded),
        cmocka_unit_test(long_pauses_earn_nothing),
        cmocka_unit_test(the_wait_bound),
        cmocka_unit_test(addresses_have_periods_too),
        cmocka_unit_test(no_share_no_periods),
        cmocka_unit_test(two_that_move_do_not_wait_for_each_other),
        cmocka_unit_test(one_that_moves_and_has_no_room_delays_nobody),
        cmocka_unit_test(short_pauses_keep_nobody_out),
        cmocka_unit_test(memory_that_is_only_touched_costs_the_part_for_copies),
        cmocka_unit_test(storms_of_allocations_cost_the_part_for_copies),
        cmocka_unit_test(many_swaps_without_use_owe_few_periods),
        cmocka_unit_test(a_pause_counts_once),
        cmocka_unit_test(a_small_swap_cancels_no_debt),
    };
    return cmocka_run_group_tests_name("residency", tests, NULL, NULL);
}
