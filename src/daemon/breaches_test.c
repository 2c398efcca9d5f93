/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/breaches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define PAUSE UINT64_C(1000000000)
#define START (100 * PAUSE)

static void the_first_ones_cost_nothing(void **state)
{
    struct gn_breaches b = {0};
    for (unsigned i = 0; i < GN_BREACHES_FREE; i++) {
        gn_breaches_note(&b, PAUSE, START);
        assert_int_equal(gn_breaches_let_in(&b, PAUSE, START), START);
    }
}

static void whoever_goes_on_starts_one_program_a_pause(void **state)
{
    struct gn_breaches b = {0};
    unsigned n = 0;
    /* Breaks one as soon as it is there, for 100 pauses. */
    for (uint64_t now = START; now < START + 100 * PAUSE; n++) {
        now = gn_breaches_let_in(&b, PAUSE, now);
        gn_breaches_note(&b, PAUSE, now);
    }
    assert_in_range(n, 100, 100 + GN_BREACHES_FREE + 2);
}

static void many_at_once_wait_in_line(void **state)
{
    struct gn_breaches b = {0};
    for (unsigned i = 0; i < 1000; i++)
        gn_breaches_note(&b, PAUSE, START);
    const uint64_t first = gn_breaches_let_in(&b, PAUSE, START);
    assert_int_equal(first, START);
    for (uint64_t i = 1; i < 50; i++)
        assert_int_equal(gn_breaches_let_in(&b, PAUSE, START), START + i * PAUSE);
}

static void whoever_stops_is_soon_rid_of_it(void **state)
{
    struct gn_breaches b = {0};
    for (unsigned i = 0; i < 1000; i++)
        gn_breaches_note(&b, PAUSE, START);
    const uint64_t later = START + (GN_BREACHES_MOST - GN_BREACHES_FREE) * PAUSE;
    assert_int_equal(gn_breaches_let_in(&b, PAUSE, later), later);
    assert_int_equal(gn_breaches_let_in(&b, PAUSE, later), later);
}

static void without_a_pause_nobody_waits(void **state)
{
    struct gn_breaches b = {0};
    for (unsigned i = 0; i < 1000; i++)
        gn_breaches_note(&b, 0, START);
    assert_int_equal(gn_breaches_let_in(&b, 0, START), START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_ones_cost_nothing),  cmocka_unit_test(whoever_goes_on_starts_one_program_a_pause),
        cmocka_unit_test(many_at_once_wait_in_line),    cmocka_unit_test(whoever_stops_is_soon_rid_of_it),
        cmocka_unit_test(without_a_pause_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
