/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of strangers.c: the limit on connections, their deadlines, and the debts of addresses. */
#include "daemon/net/strangers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define NOW   UINT64_C(1000000000000)
#define FLOOD 7u
#define OTHER 8u

static struct gn_strangers s;
static struct gn_stranger all[GN_STRANGERS_MOST + 8];

static int set_up(void **state)
{
    (void)state;
    gn_strangers_init(&s);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        gn_list_init(&all[i].link);
    return 0;
}

static void an_address_with_many_gives_way_to_the_others(void **state)
{
    (void)state;
    gn_strangers_add(&s, &all[0], OTHER, NOW);
    for (uint32_t i = 1; i < GN_STRANGERS_MOST; i++) {
        assert_null(gn_strangers_in_excess(&s));
        gn_strangers_add(&s, &all[i], FLOOD, NOW + i);
    }
    /* The oldest of the flood, although the other connection is older. */
    assert_ptr_equal(gn_strangers_in_excess(&s), &all[1]);
    gn_strangers_refuse(&s, &all[1], NOW);
    assert_null(gn_strangers_in_excess(&s));
    assert_false(gn_stranger_is(&all[1]));
    assert_true(gn_stranger_is(&all[0]));
}

static void time_is_one_for_all_that_it_takes(void **state)
{
    (void)state;
    assert_int_equal(gn_strangers_deadline(&s), 0);
    for (uint32_t i = 0; i < 3; i++)
        gn_strangers_add(&s, &all[i], OTHER, NOW + i);
    /* From handshake to greeting: neither the deadline nor the order changes. */
    gn_strangers_replace(&all[0], &all[5]);
    assert_false(gn_stranger_is(&all[0]));
    assert_int_equal(gn_strangers_deadline(&s), NOW + GN_STRANGERS_NS);
    assert_null(gn_strangers_late(&s, NOW + GN_STRANGERS_NS - 1));
    assert_ptr_equal(gn_strangers_late(&s, NOW + GN_STRANGERS_NS), &all[5]);
    gn_strangers_replace(&all[2], &all[6]);
    gn_strangers_admit(&s, &all[5]);
    assert_ptr_equal(gn_strangers_late(&s, NOW + GN_STRANGERS_NS + 9), &all[1]);
    gn_strangers_admit(&s, &all[1]);
    assert_ptr_equal(gn_strangers_late(&s, NOW + GN_STRANGERS_NS + 9), &all[6]);
    gn_strangers_admit(&s, &all[6]);
    gn_strangers_admit(&s, &all[6]);
    assert_int_equal(s.n, 0);
    assert_int_equal(gn_strangers_deadline(&s), 0);
}

/* Handshakes that fail one after the other, as fast as they are accepted, for 100 seconds. */
static void handshakes_that_come_to_nothing_are_paid_for(void **state)
{
    const uint64_t cost = 4000000, seconds = 100;
    uint64_t used = 0;
    (void)state;
    for (uint64_t now = NOW; now < NOW + seconds * 1000000000; now += cost) {
        if (!gn_strangers_may_come(&s, FLOOD, now))
            continue;
        gn_strangers_add(&s, &all[0], FLOOD, now);
        all[0].cost_ns = cost;
        gn_strangers_refuse(&s, &all[0], now);
        used += cost;
        assert_true(gn_strangers_may_come(&s, OTHER, now));
    }
    assert_in_range(used, GN_STRANGERS_BURST_NS,
                    GN_STRANGERS_BURST_NS + seconds * 1000000000 / GN_STRANGERS_PART + 2 * cost);
}

static void those_that_are_admitted_pay_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        assert_true(gn_strangers_may_come(&s, OTHER, NOW));
        gn_strangers_add(&s, &all[0], OTHER, NOW);
        all[0].cost_ns = 4000000;
        gn_strangers_admit(&s, &all[0]);
    }
}

static void many_addresses_need_no_more_memory(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 10 * GN_STRANGERS_ADDRESSES; i++) {
        gn_strangers_add(&s, &all[0], 1000 + i, NOW);
        all[0].cost_ns = GN_STRANGERS_BURST_NS * (i == 5 ? 100 : 2);
        gn_strangers_refuse(&s, &all[0], NOW);
    }
    /* The address with the largest debt is still remembered. */
    assert_false(gn_strangers_may_come(&s, 1005, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_address_with_many_gives_way_to_the_others, set_up),
        cmocka_unit_test_setup(time_is_one_for_all_that_it_takes, set_up),
        cmocka_unit_test_setup(handshakes_that_come_to_nothing_are_paid_for, set_up),
        cmocka_unit_test_setup(those_that_are_admitted_pay_nothing, set_up),
        cmocka_unit_test_setup(many_addresses_need_no_more_memory, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
