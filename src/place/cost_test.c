/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how the cost of a residency decision grows with the number of vGPUs, under `turn`. The
 * count does not depend on the machine's load: src/place is compiled once more so that every basic
 * block that it runs is counted (-fsanitize-coverage=trace-pc).
 */
#include "place/residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS      UINT64_C(1000000)
#define N_SLOTS 128
#define N_TURNS 20000

static uint64_t blocks;

/* The compiler calls it at the beginning of each basic block of src/place. */
void __sanitizer_cov_trace_pc(void);
__attribute__((no_sanitize("address", "undefined", "thread"))) void __sanitizer_cov_trace_pc(void)
{
    blocks++;
}

/*
 * n vGPUs of 4 slots each, of as many tenants, which always have work. The resident ones take
 * turns. A decision is the end of a turn, the choice of a swap, perhaps the swap, and the begin of
 * the next turn. Returns the mean number of blocks.
 */
static double measure(uint32_t n, uint64_t *ret_swaps)
{
    struct gn_place *p = calloc(1, sizeof *p);
    struct gn_place_tenant *t = calloc(n, sizeof *t);
    struct gn_place_vgpu *v = calloc(n, sizeof *v), *running = NULL;
    uint64_t now = 0, again, spent = 0;
    struct gn_place_plan plan;
    assert_int_equal(gn_place_init(p, &gn_place_turn_policy, N_SLOTS * GN_PLACE_SLOT_BYTES, 0, 0),
                     0);
    gn_place_note_copy(p, true, 1, MS / 10);
    gn_place_note_copy(p, false, 1, MS / 10);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gn_place_tenant_add(p, &t[i], 1 + i % 97, 0), 0);
        assert_int_equal(gn_place_add(p, &t[i], &v[i], 1 + i % 89, 4, 0), 0);
        gn_place_wake(p, &v[i], 0);
    }
    *ret_swaps = 0;
    for (uint32_t i = 0; i < N_TURNS; i++) {
        const uint64_t since = blocks;
        if (running) {
            now += 6 * MS;
            gn_place_set_changed(running, &running->needs);
            gn_place_yield(p, running, 6 * MS, true, now);
        }
        struct gn_place_vgpu *in = gn_residency_next(p, now, &plan, &again);
        if (in) {
            gn_place_apply(p, &plan, now);
            (*ret_swaps)++;
        }
        /* The device's scheduler would choose; here the oldest resident goes to the end. */
        running = gn_list_first(&p->occupying, struct gn_place_vgpu, occupying);
        gn_list_remove(&running->occupying);
        gn_list_append(&p->occupying, &running->occupying);
        gn_place_turn(p, running, now);
        spent += blocks - since;
    }
    free(p);
    free(t);
    free(v);
    return (double)spent / N_TURNS;
}

static void cost_is_logarithmic(void **state)
{
    static const uint32_t counts[] = {40, 100, 1000, 10000};
    double cost[4];
    for (int i = 0; i < 4; i++) {
        uint64_t swaps;
        cost[i] = measure(counts[i], &swaps);
        printf("%5u vGPUs on %u slots: %.0f blocks a decision, %llu swaps\n", counts[i],
               (unsigned)N_SLOTS, cost[i], (unsigned long long)swaps);
        assert_true(swaps > 100);
    }
    /* A hundred times as many vGPUs: the depth of a tree more, not a hundred times as much. */
    assert_true(cost[3] < 1.5 * cost[1]);
}

/* While all fits, a decision costs nothing that grows. */
static void cost_is_constant_while_all_fits(void **state)
{
    uint64_t swaps;
    const double few = measure(2, &swaps), many = measure(32, &swaps);
    printf("all fits: %.0f and %.0f blocks\n", few, many);
    assert_true(many < 1.1 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_is_logarithmic),
        cmocka_unit_test(cost_is_constant_while_all_fits),
    };
    return cmocka_run_group_tests_name("place-cost", tests, NULL, NULL);
}
