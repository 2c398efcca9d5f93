/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the simulation of memory: results that can be calculated by hand, DymGPU's figures 9(a) and
 * 9(c) as ranges, and the promises of residency periods.
 */
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static struct gn_sim_workload w;
static struct gn_sim_result r;

static int end(void **state)
{
    gn_sim_result_fini(&r);
    gn_sim_workload_fini(&w);
    return 0;
}

static void simulate_policy(const char *policy, const char *place, const char *text)
{
    struct gn_error err = {{0}, {0}};
    end(NULL);
    gn_sim_workload_init(&w);
    if (gn_sim_workload_parse(&w, "test", text, strlen(text), &err) ||
        gn_sim_workload_finish(&w, &err) ||
        gn_sim_run(&w, gn_sched_policy_find(policy), gn_place_policy_find(place), false, &r, &err))
        fail_msg("%s", err.what);
}

static void simulate(const char *place, const char *text)
{
    simulate_policy("fair", place, text);
}

static double busy(void)
{
    return (double)r.devices[0].busy_ns / (double)r.time_ns;
}

static double copier(void)
{
    return (double)r.devices[0].copying_ns / (double)r.time_ns;
}

#define assert_between(value, least, most)                                                         \
    do {                                                                                           \
        const double value_ = (value), least_ = (least), most_ = (most);                           \
        if (!(value_ >= least_ && value_ <= most_))                                                \
            fail_msg("%s is %.4f, not in %.4f..%.4f", #value, value_, least_, most_);              \
    } while (0)

/* ---- calculated by hand */

/* 16 slots over 1 GiB a second take a second, before the first kernel. */
static void a_swap_takes_its_bytes_over_the_bus(void **state)
{
    simulate("turn", "[sim]\nmemory = 1G\nbus = 1G\n[tenant a]\nmemory = 1G\n");
    assert_int_equal(r.n_slots, 16);
    assert_int_equal(r.tenants[0].usage.used_ns, 9 * S);
    assert_int_equal(r.tenants[0].usage.waits.longest_ns, 1 * S);
    assert_int_equal(r.all.copied_in, 16);
    assert_int_equal(r.all.copied_out, 0);
    assert_int_equal(r.all.swaps, 1);
    assert_int_equal(r.devices[0].copying_ns, 1 * S);
    /* Without a bus, copies take no time. */
    simulate("turn", "[sim]\nmemory = 1G\n[tenant a]\nmemory = 1G\n");
    assert_int_equal(r.tenants[0].usage.used_ns, 10 * S);
}

/*
 * A slot for two, a swap at each turn: 64 ms out and 64 ms in (1000 MiB a second), then 6 ms of
 * work. The first turn of each has nothing to copy out, or is the other's.
 */
static void a_swap_at_each_turn_is_before_the_work(void **state)
{
    static const char text[] = "[sim]\nmemory = 64M\nbus = 1000M\nswap-share = none\ntime = 67s\n"
                               "[tenant a]\nmemory = 64M\n%s[tenant b]\nmemory = 64M\n%s";
    char full[sizeof text + 64];
    snprintf(full, sizeof full, text, "", "");
    simulate("turn", full);
    assert_between(busy(), 6.0 / 134 - 0.0002, 6.0 / 134 + 0.0002);
    assert_between(copier(), 128.0 / 134 - 0.001, 128.0 / 134);
    /* Memory that is not written is not copied out. */
    snprintf(full, sizeof full, text, "writes = 0\n", "writes = 0\n");
    simulate("turn", full);
    assert_between(busy(), 6.0 / 70 - 0.0002, 6.0 / 70 + 0.0002);
    assert_int_equal(r.all.copied_out, 0);
}

/* Half of the memory is named: that is all that must be there. */
static void unused_memory_is_not_copied(void **state)
{
    simulate("turn", "[sim]\nmemory = 1G\nswap-share = none\n[tenant a]\nmemory = 1G\nuses = 50%\n"
                     "[tenant b]\nmemory = 512M\n");
    assert_int_equal(r.all.swaps, 2);
    assert_int_equal(r.all.copied_in, 16);
}

static void all_that_fits_costs_nothing(void **state)
{
    const struct gn_place_policy *place;
    static const char text[] =
        "[tenant a]\nkernel = 200us\n%s[tenant b]\nkernel = exp:1ms\nthink = exp:2ms\n%s";
    char full[sizeof text + 100];
    snprintf(full, sizeof full, text, "", "");
    simulate("turn", full);
    const uint64_t used[] = {r.programs[0].used_ns, r.programs[1].used_ns};
    for (unsigned i = 0; (place = gn_place_policy_at(i)); i++) {
        for (int share = 0; share < 2; share++) {
            char with[sizeof full + 100];
            snprintf(full, sizeof full, text, "memory = 512M\n", "memory = 512M\n");
            snprintf(with, sizeof with, "[sim]\nmemory = 1G\nswap-share = %s\n%s",
                     share ? "10%" : "none", full);
            simulate(place->name, with);
            assert_int_equal(r.all.copied_in, 16);
            assert_int_equal(r.all.swaps, 2);
            for (int k = 0; k < 2; k++)
                assert_int_equal(r.programs[k].used_ns, used[k]);
        }
    }
}

/* ---- DymGPU's figures 9(a) and 9(c), in virtual time */

static uint32_t numbers;

static uint32_t draw(uint32_t n)
{
    numbers = numbers * 1664525u + 1013904223u;
    return (numbers >> 8) % n;
}

/* n values, shuffled. */
static void shuffle(const char **values, uint32_t n)
{
    for (uint32_t i = n - 1; i; i--) {
        const uint32_t k = draw(i + 1);
        const char *other = values[i];
        values[i] = values[k];
        values[k] = other;
    }
}

#define HEAD    "[sim]\nmemory = 3456M\nslice = 16ms\nspin = 0\nswap-share = none\ntime = %us\n"
#define MAX_VMS 15

/* Copies of one arrangement under a placement. */
static double copies(const char *place, uint32_t n, const char *const *sizes,
                     const char *const *loads, unsigned seconds)
{
    char text[4096];
    int at = snprintf(text, sizeof text, HEAD, seconds);
    for (uint32_t i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "[tenant t%u]\nwrites = 0\nmemory = %s\n%s", i, sizes[i], loads[i]);
    simulate_policy("rr", place, text);
    return (double)r.all.copied_in;
}

enum { TURN, FIRST_FIT, SIZE, UTILIZATION, N_PLACES };

/* Sums of copies over some orders; each order has a third of the vGPUs of each size. */
static void sum_copies(uint32_t n, const char *const *loads, unsigned orders, unsigned seconds,
                       double sums[N_PLACES])
{
    static const char *const sizes[] = {"384M", "704M", "1G"};
    for (int p = 0; p < N_PLACES; p++)
        sums[p] = 0;
    for (unsigned order = 0; order < orders; order++) {
        const char *of_size[MAX_VMS], *of_load[MAX_VMS];
        for (uint32_t i = 0; i < n; i++) {
            of_size[i] = sizes[i % 3];
            of_load[i] = loads[i];
        }
        numbers = order + 1;
        shuffle(of_size, n);
        shuffle(of_load, n);
        for (unsigned p = 0; p < N_PLACES; p++)
            sums[p] += copies(gn_place_policy_at(p)->name, n, of_size, of_load, seconds);
    }
}

static void figure_9a(void **state)
{
    static const struct {
        uint32_t n;
        double gvirt, size[2], utilization[2], turn[2], bound;
    } wanted[] = {
        {6, 4.00, {0.70, 0.80}, {0.90, 1.05}, {0.57, 0.63}, 2.0},
        {9, 10.00, {0.58, 0.65}, {0.64, 0.72}, {0.54, 0.58}, 5.0},
        {12, 11.00, {0.64, 0.70}, {0.68, 0.75}, {0.62, 0.67}, 6.5},
        {15, 11.00, {0.74, 0.80}, {0.73, 0.79}, {0.70, 0.74}, 7.4},
    };
    const char *loads[MAX_VMS];
    for (int i = 0; i < MAX_VMS; i++)
        loads[i] = "kernel = 1ms\n";
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        double sums[N_PLACES];
        const unsigned orders = 6, seconds = 40;
        sum_copies(wanted[i].n, loads, orders, seconds, sums);
        const double turns = orders * seconds * 1000.0 / 16;
        assert_between(sums[FIRST_FIT] / turns, wanted[i].gvirt * 0.97, wanted[i].gvirt * 1.03);
        const double gvirt = sums[FIRST_FIT];
        assert_between(sums[SIZE] / gvirt, wanted[i].size[0], wanted[i].size[1]);
        assert_between(sums[UTILIZATION] / gvirt, wanted[i].utilization[0],
                       wanted[i].utilization[1]);
        assert_between(sums[TURN] / gvirt, wanted[i].turn[0], wanted[i].turn[1]);
        assert_true(sums[TURN] < sums[SIZE] && sums[TURN] < sums[UTILIZATION]);
        /* No placement copies less than this in each round. */
        assert_between(sums[TURN] / turns, wanted[i].bound, wanted[i].bound * 1.21);
    }
}

/* DymGPU's table II: the numbers of vGPUs with little, some and much use of the device. */
static void figure_9c(void **state)
{
    static const unsigned sets[5][3] = {{11, 2, 2}, {2, 2, 11}, {3, 6, 6}, {6, 3, 6}, {6, 6, 3}};
    static const char *const kinds[] = {"kernel = exp:4ms\nthink = exp:300ms\n",
                                        "kernel = exp:8ms\nthink = exp:90ms\n",
                                        "kernel = exp:12ms\nthink = exp:6ms\n"};
    for (int set = 0; set < 5; set++) {
        const char *loads[MAX_VMS];
        double sums[N_PLACES];
        unsigned n = 0;
        for (int kind = 0; kind < 3; kind++)
            for (unsigned i = 0; i < sets[set][kind]; i++)
                loads[n++] = kinds[kind];
        sum_copies(MAX_VMS, loads, 6, 200, sums);
        assert_true(sums[UTILIZATION] <= sums[SIZE]);
        assert_true(sums[TURN] <= sums[SIZE]);
        assert_true(sums[TURN] <= 1.2 * sums[UTILIZATION]);
        assert_between(sums[TURN] / sums[FIRST_FIT], 0.45, 0.75);
    }
}

/* ---- residency periods */

#define PERIODS "[sim]\nbus = 11446M\ntime = 600s\n"

static void copies_stay_within_their_share(void **state)
{
    static const struct {
        const char *text;
        double f, fairness;
    } all[] = {
        {PERIODS "memory = 3456M\n[tenant s]\nmemory = 384M\ncopies = 5\n"
                 "[tenant m]\nmemory = 704M\ncopies = 5\n[tenant l]\nmemory = 1G\ncopies = 5\n",
         0.1, 0.93},
        {PERIODS "memory = 3456M\nswap-share = 30%\n[tenant s]\nmemory = 384M\ncopies = 5\n"
                 "[tenant m]\nmemory = 704M\ncopies = 5\n[tenant l]\nmemory = 1G\ncopies = 5\n",
         0.3, 0.97},
        {PERIODS "memory = 8G\n[tenant a]\nmemory = 3G\ncopies = 4\n", 0.1, 0.97},
        {PERIODS "memory = 8G\n[tenant a]\nweight = 1\nmemory = 4G\n[tenant b]\nweight = 2\n"
                 "memory = 4G\n[tenant c]\nweight = 3\nmemory = 4G\n",
         0.1, 0.97},
        /* Several vGPUs of a tenant share its part. */
        {PERIODS "memory = 8G\n[tenant a]\nmemory = 3G\nvgpus = 3\n[tenant b]\nmemory = 3G\n", 0.1,
         0.97},
        /* Some pause, or use a part of their memory. */
        {PERIODS "memory = 8G\n[tenant a]\nmemory = 4G\nuses = 50%\ncopies = 3\n"
                 "[tenant b]\nmemory = 2G\nthink = exp:30ms\ncopies = 3\n",
         0.1, 0.8},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        simulate("turn", all[i].text);
        /* One period more than f: the first swaps come before any use. */
        const double one = 2.0 * (double)w.memory_bytes / (double)w.bus_bytes / 600;
        assert_between(copier(), all[i].f * 0.2, all[i].f + one);
        assert_between(r.fairness, all[i].fairness, 1);
        assert_between(r.all.of_wait_bound, 0.01, 1);
        assert_true(busy() > 0.9);
        assert_true(r.all.waits.longest_ns < 60 * S);
    }
}

/*
 * Under policies with addresses one contested slot is enough to keep a vGPU out. Copies stay within
 * their share, and all vGPUs work, but shares and waits are worse than under `turn`.
 */
static void periods_hold_under_every_placement(void **state)
{
    const struct gn_place_policy *place;
    for (unsigned i = 0; (place = gn_place_policy_at(i)); i++) {
        simulate(place->name,
                 PERIODS "memory = 3456M\n[tenant s]\nmemory = 384M\ncopies = 5\n"
                         "[tenant m]\nmemory = 704M\ncopies = 5\n[tenant l]\nmemory = 1G\n"
                         "copies = 5\n");
        assert_between(copier(), 0.02, 0.103);
        assert_between(r.fairness, place->addressed ? 0.4 : 0.93, 1);
        assert_true(busy() > 0.9);
    }
}

/* A chatty vGPU with a reserve stays, beside bulk work on twice the memory. */
static void a_reserve_keeps_a_chatty_vgpu(void **state)
{
    simulate("turn", PERIODS "memory = 8G\n[tenant chat]\nmemory = 1G\nreserve = 1G\n"
                             "kernel = 2ms\nthink = 20ms\n[tenant b]\nmemory = 6G\n"
                             "[tenant c]\nmemory = 7G\n[tenant d]\nmemory = 3G\n");
    assert_int_equal(r.tenants[0].usage.swaps, 1);
    assert_int_equal(r.tenants[0].usage.copied_out, 0);
    assert_true(gn_sim_waits_percentile(&r.tenants[0].usage.waits, 99) < 6 * MS);
    assert_true(r.tenants[1].usage.swaps > 5);
}

/*
 * One that is idle has no memory, and one that works has all. When it wakes it waits for theta,
 * nine times the two seconds of the copies, and for the copies.
 */
static void idle_memory_is_free(void **state)
{
    simulate("turn", "[sim]\nmemory = 1G\nbus = 1G\ntime = 100s\n[tenant a]\nmemory = 1G\n"
                     "kernel = 1s\nevery = 60s\n[tenant b]\nmemory = 1G\n");
    assert_true(r.tenants[1].share > 0.9);
    assert_int_equal(r.tenants[0].usage.kernels, 1);
    assert_between((double)r.tenants[0].usage.waits.longest_ns, 19e9, 21.1e9);
}

/* vGPUs come and go at any moment, also in the middle of a copy. All is counted once. */
static void all_simulations_add_up(void **state)
{
    static const char text[] =
        "[sim]\ndevices = 2\ntime = 30s\nmemory = 2G\nslot = 64M\nbus = 2G\nseed = %d\n"
        "swap-share = %s\n[tenant a]\nmemory = 1G\nvgpus = 3\nkernel = exp:2ms\nreserve = 256M\n"
        "[tenant b]\nmemory = 700M\nkernel = 3ms\nthink = exp:5ms\nvgpus = 4\nuses = 70%%\n"
        "[tenant c]\nmemory = 1600M\nkernel = 1ms..9ms\nevery = exp:20ms\ncopies = 4\n"
        "arrive = 0..10s\nstay = exp:3s\nwrites = 20%%\n[tenant d]\nmemory = 100M\ncap = 20%%\n"
        "[tenant e]\n";
    const struct gn_place_policy *place;
    const struct gn_sched_policy *policy;
    for (unsigned k = 0; (policy = gn_sched_policy_at(k)); k++) {
        for (unsigned i = 0; (place = gn_place_policy_at(i)); i++) {
            for (int share = 0; share < 3; share++) {
                static const char *const shares[] = {"none", "5%", "100%"};
                uint64_t used = 0, in = 0, out = 0, swaps = 0, on = 0, of[3] = {0};
                char full[sizeof text + 32];
                snprintf(full, sizeof full, text, (int)k, shares[share]);
                simulate_policy(policy->name, place->name, full);
                for (uint32_t p = 0; p < r.n_programs; p++) {
                    used += r.programs[p].used_ns;
                    in += r.programs[p].copied_in;
                    out += r.programs[p].copied_out;
                    swaps += r.programs[p].swaps;
                    if (w.programs[p].memory_bytes == 0)
                        assert_int_equal(r.programs[p].swaps, 0);
                }
                for (uint32_t d = 0; d < r.n_devices; d++) {
                    on += r.devices[d].busy_ns;
                    of[0] += r.devices[d].copied_in;
                    of[1] += r.devices[d].copied_out;
                    of[2] += r.devices[d].swaps;
                    assert_true(r.devices[d].busy_ns + r.devices[d].wasted_ns <= r.time_ns);
                    assert_true(r.devices[d].copying_ns <= r.time_ns);
                }
                assert_int_equal(used, on);
                assert_int_equal(in, of[0]);
                assert_int_equal(out, of[1]);
                assert_int_equal(swaps, of[2]);
                assert_true(out <= in && swaps > 0);
                assert_true(used > 0);
            }
        }
    }
}

static void a_seed_tells_all(void **state)
{
    static const char text[] = "[sim]\nmemory = 2G\nbus = 4G\n[tenant a]\nmemory = 1G\n"
                               "kernel = exp:2ms\nthink = exp:9ms\ncopies = 5\n";
    simulate("turn", text);
    const uint64_t used = r.all.used_ns, in = r.all.copied_in;
    simulate("turn", text);
    assert_int_equal(r.all.used_ns, used);
    assert_int_equal(r.all.copied_in, in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_swap_takes_its_bytes_over_the_bus, end),
        cmocka_unit_test_teardown(a_swap_at_each_turn_is_before_the_work, end),
        cmocka_unit_test_teardown(unused_memory_is_not_copied, end),
        cmocka_unit_test_teardown(all_that_fits_costs_nothing, end),
        cmocka_unit_test_teardown(figure_9a, end),
        cmocka_unit_test_teardown(figure_9c, end),
        cmocka_unit_test_teardown(copies_stay_within_their_share, end),
        cmocka_unit_test_teardown(periods_hold_under_every_placement, end),
        cmocka_unit_test_teardown(a_reserve_keeps_a_chatty_vgpu, end),
        cmocka_unit_test_teardown(idle_memory_is_free, end),
        cmocka_unit_test_teardown(all_simulations_add_up, end),
        cmocka_unit_test_teardown(a_seed_tells_all, end),
    };
    return cmocka_run_group_tests_name("sim-memory", tests, NULL, NULL);
}
