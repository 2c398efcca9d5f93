/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of spinning and parking. */
#include "base/clock.h"
#include "shm/futex.h"
#include "shm/shm_test.h"

#include <sched.h>
#include <unistd.h>

static void calibration_gives_a_plausible_pause(void **state)
{
    assert_true(gn_spin_pause_ps() >= 1);
    assert_true(gn_spin_pause_ps() < 100 * 1000 * 1000);
    uint64_t spin_ns = gn_spin_policy_default().spin_ns;
    assert_int_equal(spin_ns, sysconf(_SC_NPROCESSORS_ONLN) == 1 ? 0 : GN_SPIN_DEFAULT_NS);
}

static uint64_t count_steps(uint64_t spin_ns, uint16_t peer_cpu, uint64_t limit)
{
    struct gn_spin_policy policy = {.spin_ns = spin_ns};
    struct gn_spin s;
    uint64_t n = 0;
    gn_spin_start(&s, &policy, peer_cpu);
    while (n < limit && gn_spin_again(&s))
        n++;
    if (n < limit) /* after its end a spin stays over */
        assert_false(gn_spin_again(&s));
    return n;
}

static void zero_time_parks_at_once(void **state)
{
    assert_int_equal(count_steps(0, GN_CPU_UNKNOWN, 10), 0);
}

static void a_spin_takes_its_time_and_ends(void **state)
{
    uint64_t start = gn_now_ns();
    assert_true(count_steps(3000000, GN_CPU_UNKNOWN, UINT64_MAX) > 64);
    assert_true(gn_now_ns() - start >= 3000000);
}

static void no_spin_for_a_peer_on_the_same_processor(void **state)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(gn_spin_cpu(), cpu);
    assert_int_equal(count_steps(UINT64_MAX - 1, (uint16_t)cpu, 1000000), 0);
    assert_int_equal(count_steps(GN_SPIN_FOREVER, (uint16_t)cpu, 100000), 100000);
    assert_int_equal(count_steps(UINT64_MAX / 2, (uint16_t)(cpu + 1), 100000), 100000);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static bool spins(struct gn_spin_policy policy)
{
    struct gn_spin s;
    gn_spin_start(&s, &policy, GN_CPU_UNKNOWN);
    return gn_spin_again(&s);
}

static void waker_of_all_sleepers_parks_at_once(void **state)
{
    const struct gn_spin_policy plain = {.spin_ns = 3000000},
                                roomy = {.spin_ns = 3000000, .roomy_ns = 1};
    const struct timespec calm = {.tv_nsec = 2 * GN_SPIN_CALM_NS};
    nanosleep(&calm, NULL);
    uint64_t before = gn_now_ns();
    gn_spin_woke_peer();
    gn_spin_woke_peer(); /* the same wake-up */
    assert_false(spins(roomy));
    assert_true(spins(roomy));
    gn_spin_woke_peer();
    if (gn_now_ns() - before < GN_SPIN_CALM_NS)
        assert_true(spins(roomy));
    nanosleep(&calm, NULL);
    gn_spin_woke_peer();
    assert_true(spins(plain));
}

static void parting_restores_the_affinity_mask(void **state)
{
    struct gn_spin_parting apart = {0}, together = {0};
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < 100; i++) {
        gn_spin_part(&apart, GN_CPU_UNKNOWN);
        gn_spin_part(&together, gn_spin_cpu());
    }
    assert_int_equal(apart.n_moves, 0); /* whether the others found room depends on the machine */
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void single_processor_mask_stays(void **state)
{
    struct gn_spin_parting p = {0};
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < 100; i++)
        gn_spin_part(&p, gn_spin_cpu());
    assert_int_equal(p.n_moves, 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static uint64_t spun_ns(const struct gn_spin_policy *policy)
{
    struct gn_spin s;
    const uint64_t start = gn_now_ns();
    gn_spin_start(&s, policy, GN_CPU_UNKNOWN);
    while (gn_spin_again(&s))
        ;
    return gn_now_ns() - start;
}

/* In both cases of room. */
static void turn_decides_about_spinning(void **state)
{
    _Atomic uint32_t turn = GN_SPIN_MINE;
    const struct gn_spin_policy policy = {.spin_ns = 2000, .roomy_ns = 20000000, .turn = &turn};
    assert_true(spun_ns(&policy) >= 20000000);
    /* Load on the machine may lengthen a spin; at least one of many is short. */
    turn = GN_SPIN_AWAY;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 1000 && least >= 20000000; i++) {
        const uint64_t ns = spun_ns(&policy);
        least = ns < least ? ns : least;
    }
    assert_true(least < 20000000);
}

/*
 * Whether there is room depends on the machine. A spin lasts at least spin_ns in any case.
 */
static void room_lengthens_a_spin_and_never_shortens_it(void **state)
{
    struct gn_spin_policy policy = {.spin_ns = 1000000, .roomy_ns = 3000000};
    struct gn_spin s;
    uint64_t start = gn_now_ns();
    gn_spin_start(&s, &policy, gn_spin_cpu());
    while (gn_spin_again(&s))
        ;
    assert_true(gn_now_ns() - start >= 1000000);
    assert_false(gn_spin_again(&s));
}

static void a_park_is_over_when_the_word_differs_or_the_peer_is_lost(void **state)
{
    struct gn_lost lost;
    _Atomic uint32_t word = 3, shared = 5;
    for (int without_waitv = 0; without_waitv < 2; without_waitv++) {
        gn_park_without_waitv(without_waitv);
        for (int private_word = 0; private_word < 2; private_word++) {
            gn_lost_init(&lost);
            assert_false(gn_lost_is(&lost));
            gn_park(&word, 4, private_word, &lost);
            gn_lost_declare(&lost);
            assert_true(gn_lost_is(&lost));
            gn_park(&word, 3, private_word, &lost);
        }
        gn_lost_init(&lost);
        gn_park_or_shared(&word, 4, &lost, &shared, 5);
        gn_park_or_shared(&word, 3, &lost, &shared, 6);
        gn_lost_declare(&lost);
        gn_park_or_shared(&word, 3, &lost, &shared, 5);
    }
    gn_park_without_waitv(false);
}

static void a_timed_wait_times_out(void **state)
{
    _Atomic uint32_t word = 3;
    assert_int_equal(gn_futex_wait(&word, 3, false, 1000), -ETIMEDOUT);
    assert_int_equal(gn_futex_wait(&word, 3, true, 1000), -ETIMEDOUT);
    assert_int_equal(gn_futex_wait(&word, 2, false, UINT64_MAX), -EAGAIN);
    assert_int_equal(gn_futex_wake(&word, 1, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibration_gives_a_plausible_pause),
        cmocka_unit_test(zero_time_parks_at_once),
        cmocka_unit_test(a_spin_takes_its_time_and_ends),
        cmocka_unit_test(no_spin_for_a_peer_on_the_same_processor),
        cmocka_unit_test(waker_of_all_sleepers_parks_at_once),
        cmocka_unit_test(parting_restores_the_affinity_mask),
        cmocka_unit_test(single_processor_mask_stays),
        cmocka_unit_test(turn_decides_about_spinning),
        cmocka_unit_test(room_lengthens_a_spin_and_never_shortens_it),
        cmocka_unit_test(a_park_is_over_when_the_word_differs_or_the_peer_is_lost),
        cmocka_unit_test(a_timed_wait_times_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
