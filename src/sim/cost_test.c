/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how a decision's cost grows with the number of vGPUs. The count does not depend on the
 * machine's load: the scheduler is compiled once more so that every basic block that it runs is
 * counted (-fsanitize-coverage=trace-pc), including trees and lists.
 */
#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/checked.h"

#define MS UINT64_C(1000000)

static uint64_t blocks;

/* The compiler calls it at the beginning of each basic block of the scheduler. */
void __sanitizer_cov_trace_pc(void);
__attribute__((no_sanitize("address", "undefined", "thread"))) void __sanitizer_cov_trace_pc(void)
{
    blocks++;
}

struct cost {
    double mean;
    uint64_t most;
};

static void count(struct cost *c, uint64_t *n, uint64_t since)
{
    const uint64_t spent = blocks - since;
    c->mean += ((double)spent - c->mean) / (double)++*n;
    c->most = spent > c->most ? spent : c->most;
}

/*
 * n vGPUs of n_tenants tenants with all weights. After each turn of up to 12 ms, one of three goes
 * to sleep and another wakes up. A decision is the end of a turn, a wake and the next pick.
 */
static struct cost measure(const struct gn_sched_policy *policy, uint32_t n, uint32_t n_tenants)
{
    struct gn_sched s;
    struct gn_sched_tenant *t = calloc(n_tenants, sizeof *t);
    struct gn_sched_entity *e = calloc(n, sizeof *e), *asleep = NULL;
    struct cost c = {.mean = 0};
    uint64_t now = 0, n_counted = 0, slice, retry;
    uint32_t seed = 7;
    gn_sched_init(&s, policy, 6 * MS, 0);
    for (uint32_t i = 0; i < n_tenants; i++)
        assert_int_equal(gn_sched_tenant_add(&s, &t[i], 1 + i % 97, 0), 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gn_sched_add(&s, &t[i % n_tenants], &e[i], 1 + i % 89, 0), 0);
        gn_sched_wake(&s, &e[i], 0);
    }
    (void)gn_sched_pick(&s, now, &slice, &retry);
    for (int turn = 0; turn < 30000; turn++) {
        const uint64_t used = (1 + (seed = seed * 1664525u + 1013904223u) % 12000) * 1000;
        struct gn_sched_entity *runs = s.running;
        const uint64_t since = blocks;
        now += used;
        gn_sched_yield(&s, used, turn % 3 != 0, now);
        if (turn % 3 == 0) {
            if (asleep)
                gn_sched_wake(&s, asleep, now);
            asleep = runs;
        }
        assert_non_null(gn_sched_pick(&s, now, &slice, &retry));
        count(&c, &n_counted, since);
    }
    free(t);
    free(e);
    return c;
}

static const uint32_t sizes[] = {10, 100, 1000, 10000};

static void a_decision_grows_no_faster_than_the_logarithm(void **state)
{
    /* vGPUs per tenant: a tree of tenants, then two levels. */
    static const uint32_t tenants_of[] = {1, 10};
    for (size_t k = 0; k < GN_ARRAY_SIZE(tenants_of) + 1; k++) {
        struct cost c[GN_ARRAY_SIZE(sizes)];
        for (size_t i = 0; i < GN_ARRAY_SIZE(sizes); i++) {
            const uint32_t n_tenants =
                k == GN_ARRAY_SIZE(tenants_of) ? 2 : sizes[i] / tenants_of[k];
            c[i] = measure(&gn_sched_fair, sizes[i], n_tenants);
            print_message("%5u vGPUs of %5u tenants: %.1f basic blocks a decision, at most %lu\n",
                          sizes[i], n_tenants, c[i].mean, (unsigned long)c[i].most);
        }
        for (size_t i = 1; i < GN_ARRAY_SIZE(sizes); i++) {
            /* log n grows by the same amount from each size to the next. */
            assert_true(c[i].mean <= c[0].mean * (double)(i + 1));
            assert_true(c[i].most <= c[0].most * (i + 1));
            if (i > 1)
                assert_true(c[i].mean - c[i - 1].mean <= 1.5 * (c[1].mean - c[0].mean) + 10);
        }
    }
}

/* Shows that the count would detect linear growth: xenocredit looks at all ready nodes. */
static void the_count_would_see_more(void **state)
{
    const struct cost few = measure(&gn_sched_xenocredit, 10, 10),
                      many = measure(&gn_sched_xenocredit, 1000, 1000);
    assert_true(few.mean > 10);
    assert_true(many.mean > 20 * few.mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_grows_no_faster_than_the_logarithm),
        cmocka_unit_test(the_count_would_see_more),
    };
    return cmocka_run_group_tests_name("sim-cost", tests, NULL, NULL);
}
