/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parts that need no simulated world: timers, waiting times, entitlements. */
#include "sim/entitle.h"
#include "sim/heap.h"
#include "sim/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/checked.h"

#define N 200

/* Compares the heap with a linear search, while timers are set, moved and cleared at random. */
static void timers_come_in_order(void **state)
{
    static struct gn_sim_timer timers[N];
    struct gn_sim_heap heap;
    uint32_t seed = 5;
    uint64_t now = 0;
    assert_int_equal(gn_sim_heap_init(&heap, N), 0);
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525u + 1013904223u;
        struct gn_sim_timer *t = &timers[(seed >> 8) % N];
        switch ((seed >> 20) % 4) {
        case 0:
        case 1:
            gn_sim_heap_set(&heap, t, now + (seed >> 12) % 16);
            break;
        case 2:
            gn_sim_heap_clear(&heap, t);
            break;
        default: {
            struct gn_sim_timer *first = NULL;
            for (int i = 0; i < N; i++) {
                if (timers[i].place &&
                    (!first || timers[i].at_ns < first->at_ns ||
                     (timers[i].at_ns == first->at_ns && timers[i].order < first->order)))
                    first = &timers[i];
            }
            if (first && first->at_ns > 0)
                assert_null(gn_sim_heap_next(&heap, first->at_ns - 1));
            assert_ptr_equal(gn_sim_heap_next(&heap, UINT64_MAX), first);
            if (first) {
                assert_int_equal(first->place, 0);
                now = first->at_ns;
            }
        }
        }
    }
    gn_sim_heap_fini(&heap);
}

static void waits_are_counted(void **state)
{
    struct gn_sim_waits w = {.n = 0}, sum = {.n = 0};
    assert_int_equal(gn_sim_waits_percentile(&w, 95), 0);
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(gn_sim_waits_add(&w, i * 1000000), 0);
    assert_int_equal(gn_sim_waits_mean(&w), 50500000);
    assert_int_equal(w.longest_ns, 100000000);
    static const unsigned percents[] = {1, 50, 95, 99, 100};
    for (size_t i = 0; i < GN_ARRAY_SIZE(percents); i++) {
        uint64_t exact = percents[i] * UINT64_C(1000000),
                 got = gn_sim_waits_percentile(&w, percents[i]);
        assert_true(got >= exact && got <= exact + exact / 64);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(gn_sim_waits_merge(&sum, &w), 0);
    assert_int_equal(sum.n, 300);
    assert_int_equal(gn_sim_waits_mean(&sum), 50500000);
    assert_int_equal(gn_sim_waits_percentile(&sum, 95), gn_sim_waits_percentile(&w, 95));
    gn_sim_waits_fini(&w);
    gn_sim_waits_fini(&sum);
}

/* The class of every number contains it, from the least to the greatest. */
static void no_wait_is_too_long(void **state)
{
    for (int bits = 0; bits < 64; bits++) {
        for (int add = -1; add <= 1; add++) {
            const uint64_t ns = (UINT64_C(1) << bits) + (uint64_t)add;
            struct gn_sim_waits w = {.n = 0};
            assert_int_equal(gn_sim_waits_add(&w, ns), 0);
            assert_int_equal(gn_sim_waits_add(&w, UINT64_MAX), 0);
            const uint64_t got = gn_sim_waits_percentile(&w, 50);
            assert_true(got >= ns && got - ns <= ns / 64);
            gn_sim_waits_fini(&w);
        }
    }
}

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        const double wanted_[] = {__VA_ARGS__};                                                    \
        for (size_t i_ = 0; i_ < GN_ARRAY_SIZE(wanted_); i_++)                                     \
            assert_true(c[i_].part > wanted_[i_] - 1e-9 && c[i_].part < wanted_[i_] + 1e-9);       \
    } while (0)

static void parts_by_weight_within_bounds(void **state)
{
    struct gn_sim_claim c[3] = {
        {.weight = 1, .most = 1}, {.weight = 2, .most = 1}, {.weight = 3, .most = 1}};
    gn_sim_entitle(c, 3);
    CHECK(1 / 6.0, 2 / 6.0, 3 / 6.0);
    c[2].most = 0.1; /* wants no more */
    gn_sim_entitle(c, 3);
    CHECK(0.3, 0.6, 0.1);
    c[1].most = 0.25;
    gn_sim_entitle(c, 3);
    CHECK(0.65, 0.25, 0.1);
    c[0].most = 0.2; /* no claim wants the rest */
    gn_sim_entitle(c, 3);
    CHECK(0.2, 0.25, 0.1);
    c[0] = (struct gn_sim_claim){.weight = 1, .least = 0.4, .most = 1};
    c[1].most = c[2].most = 1;
    gn_sim_entitle(c, 3);
    CHECK(0.4, 0.24, 0.36);
    c[2].most = 0.1; /* A floor and a cap at once: the cap leaves more than the floor asks for. */
    gn_sim_entitle(c, 3);
    CHECK(0.4, 0.5, 0.1);
    c[1].most = 0;
    gn_sim_entitle(c, 3);
    CHECK(0.9, 0, 0.1);
    gn_sim_entitle(c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_come_in_order),
        cmocka_unit_test(waits_are_counted),
        cmocka_unit_test(no_wait_is_too_long),
        cmocka_unit_test(parts_by_weight_within_bounds),
    };
    return cmocka_run_group_tests_name("sim-parts", tests, NULL, NULL);
}
