/* SPDX-License-Identifier: Apache-2.0 */
/* Tests runs with results that can be calculated by hand, and properties of every run. */
#include "sim/sim.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/checked.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static struct gn_sim_workload w;
static struct gn_sim_result r;

/* Simulates a description under a policy. */
static void simulate(const char *policy, const char *text)
{
    struct gn_error err = {{0}, {0}};
    gn_sim_workload_init(&w);
    if (gn_sim_workload_parse(&w, "test", text, strlen(text), &err) ||
        gn_sim_workload_finish(&w, &err) ||
        gn_sim_run(&w, gn_sched_policy_find(policy), w.places[0], false, &r, &err))
        fail_msg("%s", err.what);
}

static int end(void **state)
{
    gn_sim_result_fini(&r);
    gn_sim_workload_fini(&w);
    return 0;
}

static double busy(const struct gn_sim_result *result)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < result->n_devices; i++)
        ns += result->devices[i].busy_ns;
    return (double)ns / (double)result->time_ns / result->n_devices;
}

#define assert_near(value, wanted, slack)                                                          \
    do {                                                                                           \
        double value_ = (value), wanted_ = (wanted);                                               \
        if (!(value_ >= wanted_ - (slack) && value_ <= wanted_ + (slack)))                         \
            fail_msg("%s is %.5f and not %.5f", #value, value_, wanted_);                          \
    } while (0)

/* ---- calculated by hand */

/*
 * Slices of 6 ms in turn: a waits for 0 ms first, b for 6 ms, then each for 6 ms while the other
 * runs. 12 s are 1000 turns each.
 */
static void two_equal_tenants(void **state)
{
    simulate("fair", "[sim]\ntime = 12s\n[tenant a]\n[tenant b]\n");
    for (int i = 0; i < 2; i++) {
        const struct gn_sim_tenant_result *t = &r.tenants[i];
        assert_int_equal(t->usage.used_ns, 6 * S);
        assert_int_equal(t->usage.turns, 1000);
        assert_int_equal(t->usage.kernels, 6000);
        assert_int_equal(t->usage.waits.n, 1000);
        assert_int_equal(t->usage.waits.longest_ns, 6 * MS);
        assert_int_equal(gn_sim_waits_mean(&t->usage.waits), i ? 6 * MS : 5994 * US);
        assert_near((double)gn_sim_waits_percentile(&t->usage.waits, 95), 6e6, 0.016 * 6e6);
        assert_near(t->share, 0.5, 1e-9);
        assert_near(t->entitled, 0.5, 1e-9);
    }
    assert_near(r.fairness, 1, 1e-9);
    assert_near(busy(&r), 1, 1e-9);
    assert_int_equal(r.devices[0].wasted_ns, 0);
    assert_int_equal(r.devices[0].turns, 2000);
    assert_int_equal(r.decisions.n_wakes, 2);
    assert_int_equal(r.decisions.n_picks, 2000);
}

static void one_two_three(void **state)
{
    simulate("fair",
             "[sim]\ntime = 36s\n[tenant a]\nweight = 1\nkernel = 200us\n[tenant b]\nweight = "
             "2\nkernel = 20us\n"
             "[tenant c]\nweight = 3\nkernel = 3ms\n");
    for (int i = 0; i < 3; i++) {
        assert_near(r.tenants[i].share, (i + 1) / 6.0, 0.0005);
        assert_near(r.tenants[i].entitled, (i + 1) / 6.0, 1e-9);
    }
    assert_true(r.fairness > 0.99 && r.fairness <= 1);
    assert_near(busy(&r), 1, 1e-9);
}

/*
 * rr ignores weights: each gets a third. That is twice the entitlement of the first, and two thirds
 * of the entitlement of the last.
 */
static void unfairness_shows(void **state)
{
    simulate(
        "rr",
        "[sim]\ntime = 36s\n[tenant a]\nweight = 1\n[tenant b]\nweight = 2\n[tenant c]\nweight = "
        "3\n");
    assert_near(r.tenants[0].least_ratio, 2, 0.001);
    assert_near(r.tenants[2].most_ratio, 2 / 3.0, 0.001);
    assert_near(r.fairness, 1 / 3.0, 0.001);
}

static void a_cap_of_a_quarter(void **state)
{
    simulate("fair", "[tenant a]\ncap = 25%\nkernel = 200us\n");
    assert_near(r.tenants[0].share, 0.25, 0.005);
    assert_near(r.tenants[0].entitled, 0.25, 1e-6);
    end(state);
    simulate("fair",
             "[tenant a]\nweight = 300\ncap = 0.25\nkernel = 200us\n[tenant b]\nkernel = 200us\n");
    assert_near(r.tenants[0].share, 0.25, 0.005);
    assert_near(r.tenants[1].share, 0.75, 0.005);
    assert_near(r.tenants[1].entitled, 0.75, 1e-6);
    assert_near(busy(&r), 1, 0.001);
}

static void a_floor_against_weights(void **state)
{
    simulate("fair",
             "[tenant small]\nweight = 1\nfloor = 30%\nkernel = 200us\n[tenant big]\nweight = "
             "1000\nkernel = 200us\n");
    assert_near(r.tenants[0].share, 0.30, 0.01);
    assert_near(r.tenants[0].entitled, 0.30, 1e-6);
    assert_near(r.tenants[1].entitled, 0.70, 1e-6);
}

/*
 * One kernel of 1 ms every 10 ms, next to a tenant that always works: it uses a tenth, and the rest
 * is not lost.
 */
static void who_has_no_work_costs_nothing(void **state)
{
    simulate("fair",
             "[sim]\nspin = 0\n[tenant idle]\nevery = 10ms\n[tenant busy]\nkernel = 100us\n");
    assert_near(r.tenants[0].share, 0.1, 0.001);
    assert_near(r.tenants[0].entitled, 0.1, 0.001);
    assert_near(r.tenants[1].share, 0.9, 0.001);
    assert_near(busy(&r), 1, 1e-9);
    /* It arrives during a slice of the other, and is next. */
    assert_true(r.tenants[0].usage.waits.longest_ns <= 6 * MS);
    assert_int_equal(r.tenants[0].usage.kernels, 999);
}

/*
 * Launches every 10 ms, alone, spinning for 50 us after each: no vGPU waits, so no time is wasted.
 */
static void spinning_costs_only_who_waits(void **state)
{
    simulate("fair", "[tenant a]\nevery = 10ms\n");
    assert_near(busy(&r), 0.1, 0.001);
    assert_int_equal(r.devices[0].wasted_ns, 0);
    assert_int_equal(r.tenants[0].usage.waits.longest_ns, 0);
    end(state);
    /*
     * Thinks for 1 ms after each kernel of 1 ms: each turn ends with 50 us of spinning, for which
     * the other waits.
     */
    simulate("fair", "[tenant lazy]\nthink = 1ms\n[tenant busy]\n");
    assert_near((double)r.devices[0].wasted_ns / (double)r.time_ns,
                (double)r.tenants[0].usage.turns * 50e-6 / 10, 1e-9);
    assert_near(busy(&r) + (double)r.devices[0].wasted_ns / (double)r.time_ns, 1, 1e-9);
    end(state);
    /* Thinks for less than the spin time, so it holds the device for its slice. */
    simulate("fair", "[tenant chatty]\nkernel = 20us\nthink = 10us\n[tenant busy]\n");
    assert_near((double)r.tenants[0].usage.kernels / (double)r.tenants[0].usage.turns, 300, 2);
}

/*
 * Kernels of a second next to some of 200 us, with equal weights: half each, and a second's wait
 * for the short one.
 */
static void a_second_beside_200_us(void **state)
{
    simulate("fair",
             "[sim]\ntime = 100s\n[tenant long]\nkernel = 1s\n[tenant short]\nkernel = 200us\n");
    assert_near(r.tenants[0].share, 0.5, 0.011);
    assert_near(r.tenants[1].share, 0.5, 0.011);
    assert_int_equal(r.tenants[1].usage.waits.longest_ns, 1 * S);
    assert_true(r.fairness > 0.96);
}

/* It waits nearly all the time, but could use no more than a 26th of the device alone. */
static void nobody_is_entitled_to_more_than_it_can_use(void **state)
{
    simulate("fair", "[tenant bulk]\nkernel = 1s\n[tenant chat]\nkernel = 200us\nthink = 5ms\n");
    assert_near(r.tenants[1].entitled, 0.2 / 5.2, 1e-9);
    assert_near(r.tenants[0].entitled, 5 / 5.2, 1e-9);
    assert_true(r.tenants[1].most_ratio < 0.01);
    end(state);
    simulate("fair",
             "[tenant bulk]\nkernel = 1s\n[tenant chat]\nkernel = 200us\nburst = 5\nevery = "
             "10ms..30ms\nvgpus = 2\n");
    assert_near(r.tenants[1].entitled, 0.1, 0.001);
}

static void more_vgpus_gain_nothing(void **state)
{
    simulate("fair", "[tenant many]\nvgpus = 8\n[tenant one]\n");
    assert_near(r.tenants[0].share, 0.5, 0.001);
    assert_int_equal(r.tenants[0].usage.n_vgpus, 8);
    end(state);
    simulate("fair",
             "[tenant a]\n[program x]\ntenant = a\nweight = 100\n[program y]\ntenant = a\nweight = "
             "300\n[tenant b]\n");
    assert_near((double)r.programs[0].used_ns / (double)r.time_ns, 0.125, 0.001);
    assert_near((double)r.programs[1].used_ns / (double)r.time_ns, 0.375, 0.001);
}

/*
 * Overload: 1.5 kernels of 1 ms arrive each millisecond. Kernels that do not begin are counted, and
 * the wait grows.
 */
static void overload_shows(void **state)
{
    simulate("fair", "[sim]\ntime = 3s\n[tenant a]\nevery = 2ms\nburst = 3\n");
    assert_near(busy(&r), 2.998 / 3, 1e-9);
    assert_int_equal(r.tenants[0].usage.kernels, 2998);
    assert_int_equal(r.tenants[0].usage.left, 1499 * 3 - 2998);
    assert_near((double)r.tenants[0].usage.waits.longest_ns, 1e9, 0.002e9);
}

static void the_ways_to_come_and_go(void **state)
{
    /* b is present in the second half: a has 3/4 of the whole. */
    simulate("fair", "[sim]\ntime = 20s\n[tenant a]\n[tenant b]\narrive = 10s\n");
    assert_near(r.tenants[0].share, 0.75, 0.001);
    assert_near(r.tenants[0].entitled, 0.75, 1e-6);
    assert_near(r.fairness, 1, 0.002);
    end(state);
    simulate(
        "fair",
        "[sim]\ntime = 20s\n[tenant a]\n[tenant b]\narrive = 5s\nstay = 10s\n[tenant c]\narrive = "
        "21s\n");
    assert_near(r.tenants[0].share, 0.75, 0.001);
    assert_near(r.tenants[1].share, 0.25, 0.001);
    assert_int_equal(r.tenants[2].usage.used_ns, 0);
    assert_true(r.tenants[2].least_ratio < 0);
    assert_near(r.fairness, 1, 0.005);
    end(state);
    /* It leaves in the middle of a kernel: that kernel ends. */
    simulate("fair", "[sim]\ntime = 20s\n[tenant a]\nkernel = 3s\nstay = 7s\n");
    assert_int_equal(r.tenants[0].usage.used_ns, 9 * S);
    assert_int_equal(r.tenants[0].usage.kernels, 3);
    end(state);
    /* a has left its device, which c gets: b is on the other one. */
    simulate("fair",
             "[sim]\ndevices = 2\ntime = 20s\n[tenant a]\nweight = 300\nkernel = 3s\nstay = "
             "7s\n[tenant b]\n"
             "[tenant c]\narrive = 15s\n");
    assert_int_equal(r.tenants[2].usage.used_ns, 5 * S);
    assert_int_equal(r.tenants[1].usage.used_ns, 20 * S);
}

/* By the weights of tenants: a has a device alone, the light ones share the other. */
static void the_least_loaded_device(void **state)
{
    simulate("fair",
             "[sim]\ndevices = 2\n[tenant a]\nweight = 300\n[tenant b]\n[tenant c]\n[tenant d]\n");
    assert_near(r.tenants[0].share, 0.5, 0.001);
    for (int i = 1; i < 4; i++) {
        assert_near(r.tenants[i].share, 0.5 / 3, 0.001);
        assert_near(r.tenants[i].entitled, 0.5 / 3, 1e-6);
    }
    assert_int_equal(r.devices[0].n_vgpus, 1);
    end(state);
    simulate("fair", "[sim]\ndevices = 4\n[tenant a]\nvgpus = 12\n");
    for (int i = 0; i < 4; i++)
        assert_int_equal(r.devices[i].n_vgpus, 3);
}

/*
 * A kernel of 1 ms, then 5 ms of spinning, and a launch just after. The time that it held while the
 * other waited is charged, so the other has its three quarters.
 */
static void what_is_wasted_is_charged(void **state)
{
    simulate("fair",
             "[sim]\nspin = 5ms\n[tenant lazy]\nthink = 5100us\n[tenant busy]\nweight = 300\n");
    assert_near(r.tenants[1].share, 0.75, 0.002);
    assert_near((double)r.devices[0].wasted_ns / (double)r.time_ns, 0.25 * 5 / 6, 0.002);
}

static void polling_wastes_the_device(void **state)
{
    static const char text[] =
        "[tenant lazy]\nkernel = 500us\nthink = 20ms\n[tenant busy]\nkernel = 500us\n";
    simulate("credit", text);
    assert_true(busy(&r) < 0.9);
    assert_near(busy(&r) + (double)r.devices[0].wasted_ns / (double)r.time_ns, 1, 0.001);
    end(state);
    simulate("credit-hs", text);
    assert_true(busy(&r) > 0.99);
}

/*
 * strict: a vGPU that launches, and has credit, gets the device after the current kernel, not after
 * the slice.
 */
static void strict_brings_the_vgpu_with_its_program(void **state)
{
    static const char text[] =
        "[tenant chatty]\nkernel = 100us\nthink = 20ms\n[tenant bulk]\nkernel = 500us\n";
    simulate("credit", text);
    assert_true(r.tenants[0].usage.waits.longest_ns > 3 * MS);
    end(state);
    simulate("strict", text);
    assert_true(r.tenants[0].usage.waits.longest_ns <= 500 * US);
    assert_true(r.tenants[0].usage.waits.n > 300);
}

/* ---- all simulations */

/* Prints all parts of a result that must be reproducible; ret has room for n bytes. */
static void describe(const struct gn_sim_result *result, char *ret, size_t n)
{
    size_t at = 0;
    for (uint32_t i = 0; i < result->n_programs; i++) {
        const struct gn_sim_usage *u = &result->programs[i];
        at += (size_t)snprintf(
            ret + at, n - at, "%lu %lu %lu %lu %lu %lu\n", (unsigned long)u->used_ns,
            (unsigned long)u->kernels, (unsigned long)u->turns, (unsigned long)u->left,
            (unsigned long)gn_sim_waits_mean(&u->waits), (unsigned long)u->waits.longest_ns);
        assert_true(at < n);
    }
    snprintf(ret + at, n - at, "%.17g %lu", result->fairness,
             (unsigned long)result->decisions.n_picks);
}

static const char mixed[] =
    "[sim]\ndevices = 3\ntime = 5s\nseed = %d\n"
    "[tenant a]\nweight = 300\nkernel = exp:200us\nvgpus = 5\n"
    "[tenant b]\nkernel = 20us/20us/5ms\nthink = exp:1ms\ncap = 40%%\nvgpus = 7\n"
    "[tenant c]\nkernel = 100us..3ms\nevery = exp:5ms\nburst = 2\nfloor = "
    "5%%\narrive = 0..2s\nstay = exp:2s\n"
    "copies = 4\n[program d]\ntenant = a\nthink = 0..4ms\n";

static void a_seed_tells_all(void **state)
{
    const struct gn_sched_policy *policy;
    for (unsigned i = 0; (policy = gn_sched_policy_at(i)); i++) {
        char text[sizeof mixed + 16], one[2000], two[2000], other[2000];
        snprintf(text, sizeof text, mixed, 7);
        simulate(policy->name, text);
        describe(&r, one, sizeof one);
        end(state);
        simulate(policy->name, text);
        describe(&r, two, sizeof two);
        end(state);
        snprintf(text, sizeof text, mixed, 8);
        simulate(policy->name, text);
        describe(&r, other, sizeof other);
        end(state);
        assert_string_equal(one, two);
        assert_string_not_equal(one, other);
    }
}

static void sums_agree_under_every_policy(void **state)
{
    const struct gn_sched_policy *policy;
    for (unsigned i = 0; (policy = gn_sched_policy_at(i)); i++) {
        char text[sizeof mixed + 16];
        uint64_t used = 0, on_devices = 0, turns = 0;
        double share = 0;
        snprintf(text, sizeof text, mixed, 3);
        simulate(policy->name, text);
        for (uint32_t k = 0; k < r.n_programs; k++)
            used += r.programs[k].used_ns;
        for (uint32_t k = 0; k < r.n_devices; k++) {
            assert_true(r.devices[k].busy_ns + r.devices[k].wasted_ns <= r.time_ns);
            on_devices += r.devices[k].busy_ns;
            turns += r.devices[k].turns;
        }
        for (uint32_t k = 0; k < r.n_tenants; k++)
            share += r.tenants[k].share;
        assert_int_equal(used, on_devices);
        assert_int_equal(r.all.used_ns, used);
        assert_int_equal(r.all.turns, turns);
        assert_near(share, (double)used / (double)r.time_ns / r.n_devices, 1e-9);
        assert_true(r.all.waits.n >= turns);
        end(state);
    }
}

/* tests/commands checks the memory that this takes, in a process of its own. */
static void ten_thousand_vgpus_on_a_hundred_devices(void **state)
{
    simulate("fair",
             "[sim]\ndevices = 100\ntime = 5s\n[tenant busy]\ncopies = 500\nvgpus = 10\nkernel = "
             "exp:2ms\n"
             "[tenant lazy]\ncopies = 5000\nkernel = exp:2ms\nthink = exp:500ms\n");
    assert_int_equal(r.all.n_vgpus, 10000);
    for (int k = 0; k < 100; k++)
        assert_int_equal(r.devices[k].n_vgpus, 100);
    assert_true(busy(&r) > 0.95);
    assert_true(r.all.turns > 100 * 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(two_equal_tenants, end),
        cmocka_unit_test_teardown(one_two_three, end),
        cmocka_unit_test_teardown(unfairness_shows, end),
        cmocka_unit_test_teardown(a_cap_of_a_quarter, end),
        cmocka_unit_test_teardown(a_floor_against_weights, end),
        cmocka_unit_test_teardown(who_has_no_work_costs_nothing, end),
        cmocka_unit_test_teardown(spinning_costs_only_who_waits, end),
        cmocka_unit_test_teardown(a_second_beside_200_us, end),
        cmocka_unit_test_teardown(nobody_is_entitled_to_more_than_it_can_use, end),
        cmocka_unit_test_teardown(more_vgpus_gain_nothing, end),
        cmocka_unit_test_teardown(overload_shows, end),
        cmocka_unit_test_teardown(the_ways_to_come_and_go, end),
        cmocka_unit_test_teardown(the_least_loaded_device, end),
        cmocka_unit_test_teardown(what_is_wasted_is_charged, end),
        cmocka_unit_test_teardown(polling_wastes_the_device, end),
        cmocka_unit_test_teardown(strict_brings_the_vgpu_with_its_program, end),
        cmocka_unit_test(a_seed_tells_all),
        cmocka_unit_test(sums_agree_under_every_policy),
        cmocka_unit_test_teardown(ten_thousand_vgpus_on_a_hundred_devices, end),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
