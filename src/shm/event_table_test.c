/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the event table: phases, waits, a lost worker, hostile values. */
#include "shm/event_table.h"
#include "shm/futex.h"
#include "shm/segment.h"
#include "shm/shm_test.h"

#include <sys/stat.h>
#include <unistd.h>

#define LOST (-5) /* any error */

static struct gn_lost lost;
static struct gn_waiter waiter = {.policy = {0}, .lost = &lost};

static struct gn_event_entry *fresh(unsigned n)
{
    gn_lost_init(&lost);
    return gn_test_shared(n * sizeof(struct gn_event_entry));
}

static void phases_go_down_to_the_end(void **state)
{
    struct gn_event_entry *e = fresh(1);
    int32_t error = 99;
    struct gn_event_times times = {10, 20, 30}, read;
    /* fresh memory is a finished event */
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_DONE);
    assert_int_equal(error, 0);
    error = 99;
    gn_event_arm(e);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_QUEUED);
    gn_event_post(e, GN_EVENT_SUBMITTED);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_SUBMITTED);
    gn_event_post(e, GN_EVENT_RUNNING);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_RUNNING);
    gn_event_post(e, GN_EVENT_SUBMITTED); /* late: ignored */
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_RUNNING);
    assert_int_equal(error, 99);
    gn_event_finish(e, -14, &times);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_DONE);
    assert_int_equal(error, -14);
    gn_event_read_times(e, &read);
    assert_memory_equal(&read, &times, sizeof read);
    assert_int_equal(gn_event_wait(e, &waiter, &error), 0);
    assert_int_equal(error, -14);

    gn_event_arm(e); /* the entry is reused */
    assert_int_equal(gn_event_phase(e, NULL), GN_EVENT_QUEUED);
    gn_event_finish(e, 0, NULL);
    assert_int_equal(gn_event_wait(e, &waiter, &error), 0);
    assert_int_equal(error, 0);
    gn_event_read_times(e, &read);
    assert_int_equal(read.end_ns, 0);
    free(e);
}

static void indices_outside_the_table_are_refused(void **state)
{
    struct gn_event_entry *table = fresh(1);
    assert_ptr_equal(gn_event_at(table, 0), table);
    assert_ptr_equal(gn_event_at(table, GN_EVENT_ENTRIES - 1), table + (GN_EVENT_ENTRIES - 1));
    assert_null(gn_event_at(table, GN_EVENT_ENTRIES));
    assert_null(gn_event_at(table, UINT64_MAX));
    free(table);
}

static void a_hostile_worker_cannot_report_a_positive_error(void **state)
{
    struct gn_event_entry *e = fresh(1);
    int32_t error;
    gn_event_arm(e);
    gn_event_finish(e, 7, NULL);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_DONE);
    assert_int_equal(error, GN_EVENT_BAD);
    atomic_store(&e->word, UINT32_MAX); /* any word is one of the four phases */
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_QUEUED);
    atomic_store(&e->word, UINT32_MAX & ~7u);
    assert_int_equal(gn_event_phase(e, &error), GN_EVENT_DONE);
    free(e);
}

struct sleeper {
    struct gn_event_entry *e;
    _Atomic pid_t tid;
    int result;
    int32_t error;
};

static void *sleep_thread(void *arg)
{
    struct sleeper *s = arg;
    atomic_store(&s->tid, (pid_t)syscall(SYS_gettid));
    s->result = gn_event_wait(s->e, &waiter, &s->error);
    return NULL;
}

#define N_SLEEPERS 4

static void start(struct sleeper *s, pthread_t *threads, struct gn_event_entry *e)
{
    for (int i = 0; i < N_SLEEPERS; i++) {
        s[i] = (struct sleeper){.e = e, .error = 99};
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_thread, &s[i]), 0);
        while (atomic_load(&s[i].tid) == 0)
            ;
        gn_test_wait_until_asleep(atomic_load(&s[i].tid));
    }
}

static void join(struct sleeper *s, pthread_t *threads, int result, int32_t error)
{
    for (int i = 0; i < N_SLEEPERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(s[i].result, result);
        if (result == 0)
            assert_int_equal(s[i].error, error);
    }
}

static void the_end_wakes_all_and_a_phase_wakes_none(void **state)
{
    struct gn_event_entry *e = fresh(1);
    struct sleeper s[N_SLEEPERS];
    pthread_t threads[N_SLEEPERS];
    gn_event_arm(e);
    start(s, threads, e);
    uint64_t wakes = atomic_load(&gn_futex_n_wakes);
    gn_event_post(e, GN_EVENT_SUBMITTED);
    gn_event_post(e, GN_EVENT_RUNNING);
    assert_int_equal(atomic_load(&gn_futex_n_wakes), wakes);
    assert_true(atomic_load(&e->word) & GN_EVENT_PARKED);
    gn_event_finish(e, -9999, NULL);
    assert_int_equal(atomic_load(&gn_futex_n_wakes), wakes + 1);
    join(s, threads, 0, -9999);
    gn_event_arm(e);
    gn_event_finish(e, 0, NULL); /* no sleeper: no wake */
    assert_int_equal(atomic_load(&gn_futex_n_wakes), wakes + 1);
    free(e);
}

static void a_lost_worker_wakes_all(void **state)
{
    for (int without_waitv = 0; without_waitv < 2; without_waitv++) {
        gn_park_without_waitv(without_waitv);
        struct gn_event_entry *e = fresh(1);
        struct sleeper s[N_SLEEPERS];
        pthread_t threads[N_SLEEPERS];
        gn_event_arm(e);
        start(s, threads, e);
        gn_lost_declare(&lost);
        join(s, threads, -EPIPE, 0);
        free(e);
    }
    gn_park_without_waitv(false);
}

static void fail_all_ends_open_events(void **state)
{
    enum { N = 64 };
    struct gn_event_entry *table = fresh(N + 1);
    struct sleeper s[N_SLEEPERS];
    pthread_t threads[N_SLEEPERS];
    int32_t error;
    for (unsigned i = 0; i <= N; i += 2)
        gn_event_arm(&table[i]);
    gn_event_post(&table[2], GN_EVENT_RUNNING);
    gn_event_finish(&table[4], -3, NULL);
    start(s, threads, &table[6]);
    assert_int_equal(gn_event_fail_all(table, N, LOST), N / 2 - 1);
    join(s, threads, 0, LOST);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(gn_event_phase(&table[i], &error), GN_EVENT_DONE);
        assert_int_equal(error, i % 2 ? 0 : i == 4 ? -3 : LOST);
    }
    assert_int_equal(gn_event_phase(&table[N], NULL), GN_EVENT_QUEUED); /* beyond n_entries */
    assert_int_equal(gn_event_fail_all(table, N, LOST), 0);
    free(table);
}

static void the_table_takes_memory_only_where_it_is_used(void **state)
{
    struct gn_segment s;
    struct stat st;
    assert_int_equal(gn_segment_create("gn-test", GN_EVENT_TABLE_BYTES, &s), 0);
    assert_int_equal(gn_segment_map(&s), 0);
    struct gn_event_entry *table = s.base;
    gn_event_arm(&table[0]);
    gn_event_arm(&table[GN_EVENT_ENTRIES - 1]);
    assert_int_equal(fstat(s.fd, &st), 0);
    assert_true(st.st_blocks * 512 <= 2 * 2 * 1024 * 1024); /* two pages, even if huge */
    gn_segment_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_go_down_to_the_end),
        cmocka_unit_test(indices_outside_the_table_are_refused),
        cmocka_unit_test(a_hostile_worker_cannot_report_a_positive_error),
        cmocka_unit_test(the_end_wakes_all_and_a_phase_wakes_none),
        cmocka_unit_test(a_lost_worker_wakes_all),
        cmocka_unit_test(fail_all_ends_open_events),
        cmocka_unit_test(the_table_takes_memory_only_where_it_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
