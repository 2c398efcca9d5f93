/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of fault_throttle.c: faults that are free, the pause between starts, and the bound on
 * records. */
#include "daemon/tenants/fault_throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define PAUSE UINT64_C(1000000000)
#define START (100 * PAUSE)
#define USER  1000u

static struct gn_fault_throttle b;

static int set_up(void **state)
{
    (void)state;
    gn_fault_throttle_init(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gn_fault_throttle_fini(&b);
    return 0;
}

static void note(unsigned n, uint64_t now)
{
    for (unsigned i = 0; i < n; i++)
        gn_fault_throttle_note(&b, "t", USER, PAUSE, now);
}

/* When a program of the user may start if it asks now. */
static uint64_t next(uint64_t user, uint64_t now)
{
    const struct gn_fault_user *u = gn_fault_throttle_find(&b, "t", user, now);
    return u ? gn_fault_throttle_next_start(u, PAUSE, now) : now;
}

static void start_program(uint64_t user, uint64_t now)
{
    struct gn_fault_user *u = gn_fault_throttle_find(&b, "t", user, now);
    if (u)
        gn_fault_throttle_start(u, now);
}

static void first_faults_are_free(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GN_BREACHES_FREE; i++) {
        note(1, START);
        assert_int_equal(next(USER, START), START);
        start_program(USER, START);
    }
}

static void repeated_faults_allow_one_start_a_pause(void **state)
{
    unsigned n = 0;
    (void)state;
    /* Each program causes a fault as soon as it has started, for 100 pauses. */
    for (uint64_t now = START; now < START + 100 * PAUSE; n++) {
        now = next(USER, now);
        start_program(USER, now);
        note(1, now);
    }
    assert_in_range(n, 100, 100 + GN_BREACHES_FREE + 2);
}

static void waiting_programs_start_one_a_pause(void **state)
{
    (void)state;
    note(1000, START);
    uint64_t now = START;
    for (uint64_t i = 0; i < GN_BREACHES_MOST - GN_BREACHES_FREE; i++) {
        assert_int_equal(next(USER, now), START + i * PAUSE);
        now = START + i * PAUSE;
        start_program(USER, now);
    }
    now = START + (GN_BREACHES_MOST - GN_BREACHES_FREE) * PAUSE;
    assert_int_equal(next(USER, now), now);
    start_program(USER, now);
    assert_int_equal(next(USER, now), now);
}

/* Programs that ask and then leave delay no others, however many there are. */
static void asking_reserves_no_start(void **state)
{
    (void)state;
    note(1000, START);
    start_program(USER, START);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(next(USER, START), START + PAUSE);
}

static void other_users_and_tenants_do_not_wait(void **state)
{
    (void)state;
    note(1000, START);
    start_program(USER, START);
    assert_int_equal(next(USER, START), START + PAUSE);
    assert_null(gn_fault_throttle_find(&b, "t", USER + 1, START));
    assert_null(gn_fault_throttle_find(&b, "another", USER, START));
}

static void level_is_bounded(void **state)
{
    (void)state;
    note(1000, START);
    const uint64_t later = START + (GN_BREACHES_MOST - GN_BREACHES_FREE) * PAUSE;
    assert_int_equal(next(USER, later), later);
}

static void no_wait_without_pause(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        gn_fault_throttle_note(&b, "t", USER, 0, START);
    assert_int_equal(
        gn_fault_throttle_next_start(gn_fault_throttle_find(&b, "t", USER, START), 0, START),
        START);
}

static void records_are_bounded_and_kept_for_waiters(void **state)
{
    (void)state;
    note(1000, START);
    gn_fault_throttle_find(&b, "t", USER, START)->n_waiting = 1;
    for (unsigned i = 0; i < 2 * GN_BREACHES_USERS; i++)
        gn_fault_throttle_note(&b, "t", USER + 1 + i, PAUSE, START);
    assert_int_equal(b.n, GN_BREACHES_USERS);
    struct gn_fault_user *u = gn_fault_throttle_find(&b, "t", USER, START + 1000 * PAUSE);
    assert_non_null(u);
    assert_int_equal(b.n, 1);
    u->n_waiting = 0;
    assert_null(gn_fault_throttle_find(&b, "another", USER, START + 1000 * PAUSE));
    assert_int_equal(b.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_faults_are_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repeated_faults_allow_one_start_a_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_programs_start_one_a_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asking_reserves_no_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_users_and_tenants_do_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(level_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_wait_without_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_are_bounded_and_kept_for_waiters, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
