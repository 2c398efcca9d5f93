/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of cutting: for any grid and any cut, every group runs once, in order, in parts of at
 * least the minimum size.
 */
#include "vgpu/core/slice.h"

#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static uint64_t number_of(const struct gn_grid *g, uint64_t x, uint64_t y, uint64_t z)
{
    return (z * g->groups[1] + y) * g->groups[0] + x;
}

/* Cuts the grid into parts of about `want` groups; 0: a different size each time. */
static void check_grid(const struct gn_grid *g, uint64_t want, uint64_t least)
{
    const uint64_t all = gn_grid_groups(g);
    unsigned char *seen = calloc(all, 1);
    uint64_t at = 0;
    assert_non_null(seen);
    while (at < all) {
        const uint64_t wanted = want ? want : 1 + any(2 * all);
        struct gn_box box;
        const uint64_t n = gn_grid_cut(g, at, wanted, least, &box);
        assert_true(n >= (least < all ? least : all));
        assert_true(n <= 2 * (wanted > least ? wanted : least) + least);
        assert_int_equal(n, box.n[0] * box.n[1] * box.n[2]);
        for (int d = 0; d < 3; d++)
            assert_true(box.n[d] && gn_range_ok(box.first[d], box.n[d], g->groups[d]));
        for (uint64_t z = 0; z < box.n[2]; z++)
            for (uint64_t y = 0; y < box.n[1]; y++)
                for (uint64_t x = 0; x < box.n[0]; x++) {
                    const uint64_t i =
                        number_of(g, box.first[0] + x, box.first[1] + y, box.first[2] + z);
                    /* Groups below `at` have run; the new part is exactly [at, at + n). */
                    assert_true(i >= at && i < at + n);
                    assert_false(seen[i]);
                    seen[i] = 1;
                }
        at += n;
    }
    assert_int_equal(at, all);
    assert_null(memchr(seen, 0, all));
    free(seen);
    struct gn_box none;
    assert_int_equal(gn_grid_cut(g, all, 1, least, &none), 0);
}

static void test_the_parts_are_the_whole_once(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct gn_grid g;
        for (int d = 0; d < 3; d++)
            g.groups[d] = any(3) ? 1 + any(30) : 1;
        check_grid(&g, any(2) ? 1 + any(200) : 0, 1 + any(any(2) ? 8 : 120));
    }
}

static void test_no_part_has_less_than_pays(void **state)
{
    static const struct gn_grid grids[] = {
        {{100000, 1, 1}}, {{1, 100000, 1}}, {{1, 1, 100000}}, {{600, 600, 1}}, {{1499, 101, 1}},
        {{1500, 60, 1}},  {{2999, 40, 1}},  {{3000, 40, 1}},  {{7, 7, 7000}},  {{64, 64, 64}},
        {{2, 3, 5}},      {{1, 1, 1}},      {{40000, 2, 3}},  {{3001, 1, 1}}};
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(grids); i++) {
        check_grid(&grids[i], GN_SLICE_LEAST_GROUPS, GN_SLICE_LEAST_GROUPS);
        check_grid(&grids[i], 1, GN_SLICE_LEAST_GROUPS);
        for (int round = 0; round < 20; round++)
            check_grid(&grids[i], 0, GN_SLICE_LEAST_GROUPS);
    }
}

static void test_a_grid_that_cannot_be_counted_is_none(void **state)
{
    const struct gn_grid wide = {{UINT64_MAX, 2, 1}}, empty = {{0, 5, 5}};
    struct gn_box box;
    (void)state;
    assert_int_equal(gn_grid_groups(&wide), 0);
    assert_int_equal(gn_grid_groups(&empty), 0);
    assert_int_equal(gn_grid_cut(&wide, 0, 1, 1, &box), 0);
    assert_int_equal(gn_grid_cut(&empty, 0, 1, 1, &box), 0);
    /* The largest possible grids do not overflow. */
    const struct gn_grid huge = {{UINT64_C(1) << 31, UINT64_C(1) << 31, 2}};
    assert_int_equal(gn_grid_cut(&huge, UINT64_C(1) << 62, UINT64_MAX, 1500, &box), UINT64_C(1)
                                                                                        << 62);
    assert_int_equal(gn_grid_cut(&huge, 0, 5000, 1500, &box), 5000);
}

static void test_what_a_group_takes(void **state)
{
    (void)state;
    assert_int_equal(gn_pace_of(1000, 5000000), 5000000);
    assert_int_equal(gn_pace_of(0, 5), 0);
    assert_int_equal(gn_pace_of(5, 0), 0);
    assert_int_equal(gn_pace_of(UINT64_MAX, 1), 1); /* known, even if tiny */
    assert_int_equal(gn_pace_ns(5000000, 1000), 5000000);
    assert_int_equal(gn_pace_ns(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(gn_pace_learn(0, 7), 7);
    assert_int_equal(gn_pace_learn(7, 0), 7);
    /* A first launch that included compilation loses its weight after a few samples. */
    uint64_t pace = 100000;
    for (int i = 0; i < 6; i++)
        pace = gn_pace_learn(pace, 10);
    assert_true(pace >= 10 && pace < 100);
    /* A single delayed launch does not dominate. */
    assert_true(gn_pace_learn(100, 1000) < 400);
}

#define MS UINT64_C(1000000)

static void test_what_goes_next(void **state)
{
    /* One second in all: 200,000 groups of 5 us. */
    struct gn_slice_case k = {.groups = 200000,
                              .pace_ps = 5000000,
                              .least = 1500,
                              .slice_ns = 6 * MS,
                              .left_ns = 6 * MS,
                              .max_open = 1};
    uint64_t n = 0;
    (void)state;
    /* 6 ms are 1,200 groups, fewer than the minimum. */
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 1500);
    k.pace_ps = 1000000;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 6000);
    /* One at a time. */
    k.n_open = 1;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_WAIT);
    /* With room for two parts, each gets half. */
    k.max_open = 2;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 3000);
    k.max_open = 1, k.n_open = 0;
    /* Nearly over: 1,500 groups take 1.5 ms, 0.5 ms are left. */
    k.left_ns = MS / 2;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_STOP);
    k.left_ns = MS;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 1500);
    /* However slow the groups are, a whole slice always fits one part. */
    k.left_ns = 6 * MS, k.pace_ps = 1000 * MS;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 1500);
    /* The rest fits into the slice, or is too small for a cut. */
    k.pace_ps = 1000000, k.groups = 5000;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_ALL);
    k.pace_ps = 1000 * MS, k.groups = 2999;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_ALL);
    /* The pace is unknown: a small part measures it. */
    k.pace_ps = 0, k.groups = 200000;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_PART);
    assert_int_equal(n, 1500);
    k.n_open = 1, k.max_open = 2;
    assert_int_equal(gn_slice_decide(&k, &n), GN_SLICE_WAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_parts_are_the_whole_once),
        cmocka_unit_test(test_no_part_has_less_than_pays),
        cmocka_unit_test(test_a_grid_that_cannot_be_counted_is_none),
        cmocka_unit_test(test_what_a_group_takes),
        cmocka_unit_test(test_what_goes_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
