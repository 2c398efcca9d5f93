/* SPDX-License-Identifier: Apache-2.0 */
/* Tests each transition of a grant page from each state, and both sides against each other. */
#include "shm/grant.h"
#include "shm/shm_test.h"

#include <sched.h>

#define ROUNDS (GN_TEST_SANITIZED ? 20000 : 100000)

static struct gn_grant_slot slot;

static void put(enum gn_grant_state state, bool preempted)
{
    memset(&slot, 0, sizeof slot);
    atomic_store(&slot.state, state);
    atomic_store(&slot.preempted, preempted);
}

static bool acquire_tells(void)
{
    bool tell, held = gn_grant_acquire(&slot, &tell);
    assert_false(held && tell);
    return tell;
}

static bool acquires(void)
{
    bool tell;
    return gn_grant_acquire(&slot, &tell);
}

static bool parks(void)
{
    return gn_grant_park(&slot);
}

static bool yields(void)
{
    gn_grant_yield(&slot, false);
    return false;
}

static bool yields_and_wants(void)
{
    gn_grant_yield(&slot, true);
    return false;
}

static bool declines(void)
{
    return gn_grant_decline(&slot);
}

static bool assigns(void)
{
    return gn_grant_assign(&slot, 77, true);
}

static bool preempts(void)
{
    return gn_grant_preempt(&slot);
}

static bool clears(void)
{
    gn_grant_clear(&slot);
    return false;
}

/*
 * For each function, in NONE, WANTED, HELD and RESTING: the state after the call, and its return
 * value.
 */
static void each_transition(void **state)
{
    enum { N = GN_GRANT_NONE, W = GN_GRANT_WANTED, H = GN_GRANT_HELD, R = GN_GRANT_PARKED };
    static const struct {
        bool (*act)(void);
        bool preempted; /* before the action */
        struct {
            uint32_t state;
            bool returns;
        } then[4];
    } all[] = {
        {acquire_tells, false, {{W, true}, {W, false}, {H, false}, {H, false}}},
        {acquire_tells, true, {{W, true}, {W, false}, {H, false}, {H, false}}},
        {acquires, false, {{W, false}, {W, false}, {H, true}, {H, true}}},
        {parks, false, {{N, false}, {W, false}, {R, false}, {R, false}}},
        {parks, true, {{N, false}, {W, false}, {N, true}, {R, false}}},
        {yields, true, {{N, false}, {W, false}, {N, false}, {R, false}}},
        {yields_and_wants, true, {{N, false}, {W, false}, {W, false}, {R, false}}},
        {declines, false, {{N, false}, {N, true}, {R, false}, {R, false}}},
        {declines, true, {{N, false}, {N, true}, {N, true}, {R, false}}},
        {assigns, false, {{N, false}, {H, true}, {H, false}, {R, false}}},
        {preempts, false, {{N, false}, {W, false}, {H, false}, {N, true}}},
        {clears, true, {{N, false}, {W, false}, {H, false}, {R, false}}},
    };
    for (size_t i = 0; i < GN_ARRAY_SIZE(all); i++) {
        for (uint32_t from = N; from <= R; from++) {
            put((enum gn_grant_state)from, all[i].preempted);
            const bool returned = all[i].act();
            if (returned != all[i].then[from].returns ||
                gn_grant_look(&slot) != all[i].then[from].state)
                fail_msg("row %zu from %u: %d, state %d", i, from, returned, gn_grant_look(&slot));
        }
    }
    put(GN_GRANT_WANTED, false);
    assert_true(gn_grant_assign(&slot, 77, true));
    assert_true(gn_grant_is_preempted(&slot));
    assert_int_equal(atomic_load(&slot.slice_ns), 77);
    gn_grant_clear(&slot);
    assert_false(gn_grant_is_preempted(&slot));
    assert_false(gn_grant_preempt(&slot));
    assert_true(gn_grant_is_preempted(&slot));
}

/*
 * A reader that reads rarely has to notice that no vGPU waited in between: during that time the
 * worker may have given the driver commands without an end report.
 */
static void each_preemption_has_a_new_number(void **state)
{
    put(GN_GRANT_WANTED, false);
    assert_true(gn_grant_assign(&slot, 1, true));
    const uint32_t seen = atomic_load(&slot.preempted);
    gn_grant_clear(&slot);
    assert_false(gn_grant_preempt(&slot));
    assert_true(gn_grant_is_preempted(&slot));
    assert_int_not_equal(atomic_load(&slot.preempted), seen);
    atomic_store(&slot.preempted, UINT32_MAX);
    assert_false(gn_grant_preempt(&slot));
    assert_true(gn_grant_is_preempted(&slot));
}

static void invalid_states_read_as_none(void **state)
{
    for (uint32_t odd = GN_GRANT_PARKED + 1; odd; odd <<= 1) {
        atomic_store(&slot.state, odd);
        assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
        assert_false(gn_grant_assign(&slot, 1, false));
        assert_false(gn_grant_preempt(&slot));
    }
}

/*
 * ---- two threads in lockstep: both start a round together, and the round is checked when both
 * have finished
 */

static _Atomic uint32_t begun, ended;
static bool worker_told, gantryd_told;

/* Returns when both threads have arrived: the counter rises by two in each round. */
static void meet(_Atomic uint32_t *counter, uint32_t round)
{
    atomic_fetch_add(counter, 1);
    while (atomic_load(counter) < 2 * (round + 1))
        sched_yield();
}

static void *park_each_round(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        meet(&begun, i);
        worker_told = gn_grant_park(&slot);
        meet(&ended, i);
    }
    return NULL;
}

/*
 * A held grant is preempted while the worker parks it: exactly one side gets it back, in every
 * interleaving.
 */
static void preempt_and_park_lose_nothing(void **state)
{
    pthread_t worker;
    uint32_t by_worker = 0;
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    put(GN_GRANT_HELD, false);
    assert_int_equal(pthread_create(&worker, NULL, park_each_round, NULL), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        put(GN_GRANT_HELD, false);
        meet(&begun, i);
        gantryd_told = gn_grant_preempt(&slot);
        meet(&ended, i);
        if (worker_told == gantryd_told)
            fail_msg("round %u: %s", i, worker_told ? "both have it" : "neither has it");
        assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
        by_worker += worker_told;
    }
    pthread_join(worker, NULL);
    print_message("%u of %u rounds came back by the worker\n", by_worker, ROUNDS);
}

static void *decline_each_round(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        meet(&begun, i);
        worker_told = gn_grant_decline(&slot);
        meet(&ended, i);
    }
    return NULL;
}

/*
 * A wanted grant is declined while gantryd assigns it. Either it was assigned, and is parked or
 * returned by the worker, or it was not, and gantryd is told that the vGPU does not want it.
 */
static void assign_and_decline_lose_nothing(void **state)
{
    pthread_t worker;
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    put(GN_GRANT_WANTED, false);
    assert_int_equal(pthread_create(&worker, NULL, decline_each_round, NULL), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const bool preempted = i & 1;
        put(GN_GRANT_WANTED, false);
        meet(&begun, i);
        gantryd_told = gn_grant_assign(&slot, 1, preempted);
        meet(&ended, i);
        const enum gn_grant_state now = gn_grant_look(&slot);
        if (!gantryd_told)
            assert_true(worker_told && now == GN_GRANT_NONE);
        else if (preempted)
            assert_true(worker_told && now == GN_GRANT_NONE);
        else
            assert_true(!worker_told && now == GN_GRANT_PARKED);
    }
    pthread_join(worker, NULL);
}

static void *acquire_each_round(void *arg)
{
    bool tell;
    (void)arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        meet(&begun, i);
        worker_told = gn_grant_acquire(&slot, &tell);
        meet(&ended, i);
    }
    return NULL;
}

/*
 * A parked grant is acquired while gantryd preempts it: exactly one side has it. If the worker lost
 * it, it wants it; if the worker has it, it is preempted.
 */
static void preempt_and_acquire_lose_nothing(void **state)
{
    pthread_t worker;
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    put(GN_GRANT_PARKED, false);
    assert_int_equal(pthread_create(&worker, NULL, acquire_each_round, NULL), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        put(GN_GRANT_PARKED, false);
        meet(&begun, i);
        gantryd_told = gn_grant_preempt(&slot);
        meet(&ended, i);
        assert_true(worker_told != gantryd_told);
        assert_true(gn_grant_is_preempted(&slot));
        assert_int_equal(gn_grant_look(&slot), worker_told ? GN_GRANT_HELD : GN_GRANT_WANTED);
    }
    pthread_join(worker, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_transition),
        cmocka_unit_test(each_preemption_has_a_new_number),
        cmocka_unit_test(invalid_states_read_as_none),
        cmocka_unit_test(preempt_and_park_lose_nothing),
        cmocka_unit_test(assign_and_decline_lose_nothing),
        cmocka_unit_test(preempt_and_acquire_lose_nothing),
    };
    return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
