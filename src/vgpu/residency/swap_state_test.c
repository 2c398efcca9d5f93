/* SPDX-License-Identifier: Apache-2.0 */
/* The table of swap states, cell by cell, and its changes by several threads at once. */
#include "vgpu/residency/swap_state.h"

#include "base/list.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    enum gn_swap_state from;
    enum gn_swap_event event;
    enum gn_swap_state to;
} changes[] = {
    {GN_SWAP_RESIDENT, GN_SWAP_VACATE, GN_SWAP_OUT},
    {GN_SWAP_RESIDENT, GN_SWAP_PIN, GN_SWAP_PINNED},
    {GN_SWAP_OUT, GN_SWAP_SAVED, GN_SWAP_EVICTED},
    {GN_SWAP_OUT, GN_SWAP_UNREADABLE, GN_SWAP_PINNED},
    {GN_SWAP_EVICTED, GN_SWAP_ASSIGN, GN_SWAP_IN},
    {GN_SWAP_IN, GN_SWAP_FILLED, GN_SWAP_RESIDENT},
    {GN_SWAP_IN, GN_SWAP_REFUSED, GN_SWAP_EVICTED},
    {GN_SWAP_IN, GN_SWAP_BROKEN, GN_SWAP_LOST},
};

/* The state after the event; -1: there is no such change. */
static int after(int state, int event)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(changes); i++)
        if ((int)changes[i].from == state && (int)changes[i].event == event)
            return changes[i].to;
    return -1;
}

static void test_every_cell(void **state)
{
    (void)state;
    for (int from = 0; from < GN_SWAP_N_STATES; from++)
        for (int event = 0; event < GN_SWAP_N_EVENTS; event++) {
            const int expected = after(from, event);
            enum gn_swap_state next = (enum gn_swap_state)from;
            struct gn_swap s = {from};
            assert_int_equal(
                gn_swap_next((enum gn_swap_state)from, (enum gn_swap_event)event, &next),
                expected >= 0);
            assert_int_equal(next, expected >= 0 ? expected : from);
            assert_int_equal(gn_swap_step(&s, (enum gn_swap_event)event), expected >= 0);
            assert_int_equal(gn_swap_state(&s), next);
        }
}

static void test_states(void **state)
{
    (void)state;
    for (int at = 0; at < GN_SWAP_N_STATES; at++) {
        const enum gn_swap_state s = (enum gn_swap_state)at;
        assert_int_equal(gn_swap_is_usable(s), s == GN_SWAP_RESIDENT || s == GN_SWAP_PINNED);
        assert_int_equal(gn_swap_occupies(s), s != GN_SWAP_EVICTED && s != GN_SWAP_LOST);
        for (int other = 0; other < at; other++)
            assert_string_not_equal(gn_swap_state_name(s),
                                    gn_swap_state_name((enum gn_swap_state)other));
    }
}

/* gantryd moves an object only between states of rest and the start of a swap. */
static void test_sides(void **state)
{
    (void)state;
    for (size_t i = 0; i < GN_ARRAY_SIZE(changes); i++)
        assert_int_equal(gn_swap_is_gantryds(changes[i].event),
                         changes[i].to == GN_SWAP_OUT || changes[i].to == GN_SWAP_IN);
}

#define N_THREADS 4
#define N_ROUNDS  500

struct race {
    struct gn_swap swap;
    pthread_barrier_t round;
    _Atomic int n_won;
};

static void *run_racer(void *arg)
{
    struct race *r = arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(&r->round);
        if (gn_swap_step(&r->swap, i % 2 ? GN_SWAP_SAVED : GN_SWAP_VACATE))
            atomic_fetch_add(&r->n_won, 1);
        pthread_barrier_wait(&r->round);
    }
    return NULL;
}

/* Of several threads with the same event one changes the state. */
static void test_one_thread_wins(void **state)
{
    struct race r = {{GN_SWAP_RESIDENT}, .n_won = 0};
    pthread_t threads[N_THREADS];
    (void)state;
    assert_int_equal(pthread_barrier_init(&r.round, NULL, N_THREADS + 1), 0);
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, run_racer, &r), 0);
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(&r.round);
        pthread_barrier_wait(&r.round);
        assert_int_equal(atomic_exchange(&r.n_won, 0), 1);
        assert_int_equal(gn_swap_state(&r.swap), i % 2 ? GN_SWAP_EVICTED : GN_SWAP_OUT);
        if (i % 2)
            atomic_store(&r.swap.state, GN_SWAP_RESIDENT);
    }
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&r.round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_one_thread_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
