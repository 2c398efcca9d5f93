/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of bucket.c: the burst, the period, and the count of dropped lines. */
#include "daemon/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS    UINT64_C(1000000)
#define START (1000 * MS)

static const struct gn_bucket_bounds bounds = {4, 10 * MS};

static void a_full_one_gives_its_burst(void **state)
{
    struct gn_bucket b = {0};
    for (int i = 0; i < 4; i++)
        assert_true(gn_bucket_spend(&b, &bounds, START));
    assert_false(gn_bucket_spend(&b, &bounds, START));
    assert_int_equal(gn_bucket_ready_at(&b, &bounds, START), START + 10 * MS);
}

static void then_one_a_period(void **state)
{
    struct gn_bucket b = {0};
    unsigned n = 0;
    for (uint64_t now = START; now < START + 1000 * MS; now += MS)
        n += gn_bucket_spend(&b, &bounds, now);
    assert_int_equal(n, 4 + 99);
}

static void idle_bucket_refills_to_its_burst(void **state)
{
    struct gn_bucket b = {0};
    unsigned n = 0;
    while (gn_bucket_spend(&b, &bounds, START))
        n++;
    assert_int_equal(n, 4);
    for (n = 0; gn_bucket_spend(&b, &bounds, START + 1000000 * MS);)
        n++;
    assert_int_equal(n, 4);
    assert_int_equal(gn_bucket_ready_at(&b, &bounds, START + 2000000 * MS), START + 2000000 * MS);
}

static void passed_line_counts_dropped_ones(void **state)
{
    struct gn_line_limit l = {0};
    uint32_t dropped = 7;
    for (unsigned i = 0; i < GN_LINES_BURST; i++)
        assert_true(gn_line_limit_pass(&l, START, &dropped));
    assert_int_equal(dropped, 0);
    for (int i = 0; i < 100; i++)
        assert_false(gn_line_limit_pass(&l, START, &dropped));
    assert_true(gn_line_limit_pass(&l, START + GN_LINE_PERIOD_NS, &dropped));
    assert_int_equal(dropped, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_one_gives_its_burst),
        cmocka_unit_test(then_one_a_period),
        cmocka_unit_test(idle_bucket_refills_to_its_burst),
        cmocka_unit_test(passed_line_counts_dropped_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
