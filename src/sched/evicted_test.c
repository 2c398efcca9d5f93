/* SPDX-License-Identifier: Apache-2.0 */
/* Tests entities whose memory is not on the device, under every policy. */
#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MS    UINT64_C(1000000)
#define SLICE (6 * MS)
#define N     4

struct world {
    struct gn_sched s;
    struct gn_sched_tenant t[N];
    struct gn_sched_entity e[N];
    uint64_t now;
};

static struct world w;

/* N entities with work, each of a tenant of its own, or all of the first tenant. */
static void world_init(const struct gn_sched_policy *policy, bool one_tenant)
{
    memset(&w, 0, sizeof w);
    gn_sched_init(&w.s, policy, SLICE, 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(gn_sched_tenant_add(&w.s, &w.t[i], 100, 0), 0);
        assert_int_equal(gn_sched_add(&w.s, &w.t[one_tenant ? 0 : i], &w.e[i], 100, 0), 0);
        gn_sched_wake(&w.s, &w.e[i], 0);
    }
}

static struct gn_sched_entity *pick(void)
{
    uint64_t slice, retry;
    return gn_sched_pick(&w.s, w.now, &slice, &retry);
}

static struct gn_sched_entity *turn(bool more_work)
{
    struct gn_sched_entity *e = pick();
    w.now += SLICE;
    gn_sched_yield(&w.s, SLICE, more_work, w.now);
    return e;
}

/* Calls the test under each policy, with one tenant and with several. */
static void each(void (*test)(void))
{
    const struct gn_sched_policy *policy;
    for (unsigned i = 0; (policy = gn_sched_policy_at(i)); i++) {
        for (int one_tenant = 0; one_tenant < 2; one_tenant++) {
            world_init(policy, one_tenant);
            test();
        }
    }
}

static void evicted_are_not_picked(void)
{
    gn_sched_set_evicted(&w.s, &w.e[1], true, 0);
    gn_sched_set_evicted(&w.s, &w.e[2], true, 0);
    gn_sched_set_evicted(&w.s, &w.e[2], true, 0);
    assert_int_equal(w.s.n_ready, 2);
    for (int i = 0; i < 40; i++) {
        const struct gn_sched_entity *e = turn(true);
        assert_true(e == &w.e[0] || e == &w.e[3]);
    }
    gn_sched_set_evicted(&w.s, &w.e[1], false, w.now);
    gn_sched_set_evicted(&w.s, &w.e[1], false, w.now);
    assert_int_equal(w.s.n_ready, 3);
    for (int i = 0; w.e[1].n_grants == 0; i++) {
        turn(true);
        assert_true(i < 20);
    }
    /* Its wait began when it woke, not when its memory came back. */
    assert_true(w.e[1].waited_ns >= 40 * SLICE);
    assert_int_equal(w.e[2].n_grants, 0);
}

static void evicted_sleep_and_wake(void)
{
    for (int i = 0; i < N; i++)
        gn_sched_set_evicted(&w.s, &w.e[i], true, 0);
    assert_null(pick());
    assert_int_equal(w.s.n_ready, 0);
    gn_sched_sleep(&w.s, &w.e[0], 0);
    gn_sched_sleep(&w.s, &w.e[1], 0);
    gn_sched_wake(&w.s, &w.e[1], w.now = 50 * MS);
    gn_sched_wake(&w.s, &w.e[1], w.now = 60 * MS);
    gn_sched_set_evicted(&w.s, &w.e[0], false, w.now);
    assert_null(pick());
    gn_sched_set_evicted(&w.s, &w.e[1], false, w.now = 70 * MS);
    assert_ptr_equal(pick(), &w.e[1]);
    assert_int_equal(w.e[1].waited_ns, 20 * MS);
    gn_sched_yield(&w.s, SLICE, false, w.now += SLICE);
    gn_sched_wake(&w.s, &w.e[0], w.now);
    assert_ptr_equal(pick(), &w.e[0]);
}

/* It keeps the device until it yields, and waits for its memory afterwards. */
static void a_holder_is_evicted(void)
{
    struct gn_sched_entity *e = pick();
    gn_sched_set_evicted(&w.s, e, true, w.now);
    assert_ptr_equal(w.s.running, e);
    gn_sched_yield(&w.s, SLICE, true, w.now += SLICE);
    assert_int_equal(e->used_ns, SLICE);
    for (int i = 0; i < 20; i++)
        assert_ptr_not_equal(turn(true), e);
    gn_sched_set_evicted(&w.s, e, false, w.now);
    for (int i = 0; turn(true) != e; i++)
        assert_true(i < 20);
}

static void a_holder_is_evicted_and_has_no_work(void)
{
    struct gn_sched_entity *e = pick();
    gn_sched_set_evicted(&w.s, e, true, w.now);
    gn_sched_yield(&w.s, SLICE, false, w.now += SLICE);
    gn_sched_set_evicted(&w.s, e, false, w.now);
    for (int i = 0; i < 20; i++)
        assert_ptr_not_equal(turn(true), e);
    assert_int_equal(w.s.n_ready, N - 1);
}

static void evicted_are_removed(void)
{
    gn_sched_set_evicted(&w.s, &w.e[1], true, 0);
    gn_sched_remove(&w.s, &w.e[1], 0);
    assert_int_equal(w.s.n_ready, N - 1);
    for (int i = 0; i < 20; i++)
        assert_ptr_not_equal(turn(true), &w.e[1]);
}

static void test_evicted_are_not_picked(void **state)
{
    each(evicted_are_not_picked);
}

static void test_evicted_sleep_and_wake(void **state)
{
    each(evicted_sleep_and_wake);
}

static void test_a_holder_is_evicted(void **state)
{
    each(a_holder_is_evicted);
    each(a_holder_is_evicted_and_has_no_work);
}

static void test_evicted_are_removed(void **state)
{
    each(evicted_are_removed);
}

/* An entity that was evicted for long does not keep the others waiting for its arrears. */
static void no_other_waits_for_arrears(void **state)
{
    world_init(&gn_sched_fair, false);
    gn_sched_set_evicted(&w.s, &w.e[0], true, 0);
    for (int i = 0; i < 3000; i++)
        turn(true);
    gn_sched_set_evicted(&w.s, &w.e[0], false, w.now);
    for (int i = 0; i < 400; i++)
        turn(true);
    assert_in_range(w.e[0].n_grants, 99, 102);
}

/* A floor's debt does not grow for the time in which a tenant cannot run. */
static void a_floor_owes_nothing_to_the_evicted(void **state)
{
    world_init(&gn_sched_fair, false);
    assert_int_equal(gn_sched_tenant_set_floor(&w.s, &w.t[0], GN_SCHED_WHOLE / 2, 0), 0);
    gn_sched_set_evicted(&w.s, &w.e[0], true, 0);
    for (int i = 0; i < 300; i++)
        turn(true);
    gn_sched_set_evicted(&w.s, &w.e[0], false, w.now);
    for (int i = 0; i < 400; i++)
        turn(true);
    assert_in_range(w.e[0].n_grants, 195, 205);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evicted_are_not_picked),
        cmocka_unit_test(test_evicted_sleep_and_wake),
        cmocka_unit_test(test_a_holder_is_evicted),
        cmocka_unit_test(test_evicted_are_removed),
        cmocka_unit_test(no_other_waits_for_arrears),
        cmocka_unit_test(a_floor_owes_nothing_to_the_evicted),
    };
    return cmocka_run_group_tests_name("sched-evicted", tests, NULL, NULL);
}
