/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of trace rings: no event is lost uncounted, each thread's events keep their order, and a
 * corrupt ring crashes neither side.
 */
#include "shm/trace_ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct gn_trace_ring *ring;
static struct gn_trace_reader reader;

static int set_up(void **state)
{
    ring = aligned_alloc(128, GN_TRACE_RING_BYTES);
    memset(ring, 0, GN_TRACE_RING_BYTES);
    memset(&reader, 0, sizeof reader);
    return ring ? 0 : -1;
}

static int tear_down(void **state)
{
    free(ring);
    return 0;
}

static void put(uint32_t thread, uint64_t n)
{
    struct gn_trace_event e = {.at_ns = n, .vgpu = thread, .kind = GN_TRACE_WANT};
    gn_trace_set_text(&e, n % 2 ? "odd" : "");
    gn_trace_put(ring, &e);
}

static void events_are_read_in_order(void **state)
{
    struct gn_trace_event e;
    assert_false(gn_trace_get(ring, &reader, &e));
    for (uint64_t round = 0; round < 3 * GN_TRACE_SLOTS; round += 1000) {
        for (uint64_t i = 0; i < 1000; i++)
            put(7, round + i);
        for (uint64_t i = 0; i < 1000; i++) {
            assert_true(gn_trace_get(ring, &reader, &e));
            assert_true(e.at_ns == round + i && e.vgpu == 7 && e.kind == GN_TRACE_WANT);
            assert_int_equal(e.n_text, e.at_ns % 2 ? 3 : 0);
        }
        assert_false(gn_trace_get(ring, &reader, &e));
    }
    assert_int_equal(gn_trace_dropped(ring, &reader), 0);
}

static void dropped_events_are_counted(void **state)
{
    struct gn_trace_event e;
    for (uint64_t i = 0; i < GN_TRACE_SLOTS + 5; i++)
        put(1, i);
    assert_int_equal(gn_trace_dropped(ring, &reader), 5);
    assert_int_equal(gn_trace_dropped(ring, &reader), 0);
    for (uint64_t i = 0; i < GN_TRACE_SLOTS; i++) {
        assert_true(gn_trace_get(ring, &reader, &e));
        assert_int_equal(e.at_ns, i);
    }
    assert_false(gn_trace_get(ring, &reader, &e));
    put(1, 99);
    assert_true(gn_trace_get(ring, &reader, &e));
    assert_int_equal(e.at_ns, 99);
}

static void nothing_is_put_when_it_is_off(void **state)
{
    struct gn_trace_event e;
    atomic_store(&ring->off, 1);
    put(1, 1);
    assert_false(gn_trace_get(ring, &reader, &e));
    assert_int_equal(gn_trace_dropped(ring, &reader), 0);
}

#define THREADS 4
#define EACH    50000u

static void *putter(void *arg)
{
    for (uint64_t i = 1; i <= EACH; i++)
        put((uint32_t)(uintptr_t)arg, i);
    return NULL;
}

static void many_threads_put(void **state)
{
    pthread_t threads[THREADS];
    uint64_t last[THREADS + 1] = {0}, got = 0, dropped = 0;
    struct gn_trace_event e;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, putter, (void *)(i + 1)), 0);
    while (got + dropped < THREADS * EACH) {
        while (gn_trace_get(ring, &reader, &e)) {
            assert_true(e.vgpu >= 1 && e.vgpu <= THREADS && e.at_ns > last[e.vgpu]);
            assert_int_equal(e.n_text, e.at_ns % 2 ? 3 : 0);
            last[e.vgpu] = e.at_ns;
            got++;
        }
        dropped += gn_trace_dropped(ring, &reader);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_false(gn_trace_get(ring, &reader, &e));
    assert_int_equal(got + dropped, THREADS * EACH);
}

static void garbage_breaks_nothing(void **state)
{
    struct gn_trace_event e;
    srand(1);
    for (int i = 0; i < 200; i++) {
        unsigned char *bytes = (unsigned char *)ring;
        for (int j = 0; j < 200; j++)
            bytes[(size_t)rand() % sizeof *ring] = (unsigned char)rand();
        ring->n_claimed = i % 3 ? ring->n_claimed : (uint64_t)rand() << 40;
        atomic_store(&ring->off, 0);
        put(1, 1);
        for (uint32_t n = 0; n < GN_TRACE_SLOTS && gn_trace_get(ring, &reader, &e); n++)
            assert_true(e.n_text <= sizeof e.text);
        (void)gn_trace_dropped(ring, &reader);
    }
}

static void kinds_have_names(void **state)
{
    for (int i = 1; i < GN_TRACE_N_KINDS; i++)
        assert_int_equal(gn_trace_kind_named(gn_trace_kinds[i].name), i);
    assert_int_equal(gn_trace_kind_named("beauty"), 0);
    assert_int_equal(gn_trace_kind_named(NULL), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(events_are_read_in_order),      CASE(dropped_events_are_counted),
        CASE(nothing_is_put_when_it_is_off), CASE(many_threads_put),
        CASE(garbage_breaks_nothing),        CASE(kinds_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
