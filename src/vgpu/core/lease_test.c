/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the lease: threads that charge and refund, and a fake gantryd at the other end of a
 * real socket.
 */
#include "vgpu/core/lease.h"

#include "link/frame.h"
#include "link/worker_control.h"
#include "link/worker_wire.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB UINT64_C(1048576)

static struct {
    struct gn_lease lease;
    struct gn_counters counters;
    int worker_fd, gantryd_fd;
    struct gn_frame_reader reader; /* of gantryd */
    struct gn_worker_control control;
    pthread_t control_thread;
    _Atomic bool ends;
} t;

/*
 * Replaces the C library's: the wall clock jumps by an hour with each call. No wait may end because
 * of that.
 */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int r = (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec -= clock == CLOCK_REALTIME ? 3600 : 0;
    return r;
}

/* The worker's control thread as in serve.c, except that it obeys recalls itself. */
static void *listen_to_gantryd(void *arg)
{
    struct gn_worker_event e;
    int rc = 0;
    (void)arg;
    gn_worker_control_init(&t.control, t.worker_fd);
    while (rc >= 0) {
        struct pollfd p[2] = {{.fd = t.worker_fd, .events = POLLIN},
                              {.fd = t.lease.wake_fd, .events = POLLIN}};
        poll(p, 2, -1);
        while ((rc = gn_worker_control_next(&t.control, &e)) == 1) {
            if (e.kind == GN_WORKER_EVENT_LEASED)
                gn_lease_answered(&t.lease, e.index, e.bytes);
            if (e.kind == GN_WORKER_EVENT_RECALL) {
                gn_lease_recalled(&t.lease, e.index);
                gn_lease_shed(&t.lease);
            }
        }
        if (rc == 0)
            rc = gn_lease_settle(&t.lease);
    }
    gn_frame_reader_fini(&t.control.reader);
    return NULL;
}

static int open_lease(void **state)
{
    int ends[2];
    (void)state;
    memset(&t, 0, sizeof t);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    t.worker_fd = ends[0];
    t.gantryd_fd = ends[1];
    gn_frame_reader_init(&t.reader, t.gantryd_fd);
    assert_int_equal(gn_lease_init(&t.lease, t.worker_fd, &t.counters), 0);
    assert_int_equal(pthread_create(&t.control_thread, NULL, listen_to_gantryd, NULL), 0);
    return 0;
}

static int close_lease(void **state)
{
    (void)state;
    gn_frame_reader_fini(&t.reader);
    close(t.gantryd_fd);
    pthread_join(t.control_thread, NULL);
    close(t.worker_fd);
    close(t.lease.wake_fd);
    return 0;
}

static struct gn_frame expect(uint16_t op)
{
    struct gn_frame f = {.op = 0};
    assert_int_equal(gn_frame_wait(&t.reader, 60000, &f), 1);
    assert_int_equal(f.op, op);
    return f;
}

static struct gn_worker_lease expect_question(uint32_t *ret_seq)
{
    struct gn_worker_lease ask;
    struct gn_frame f = expect(GN_WORKER_LEASE);
    assert_true(gn_frame_payload(&f, &ask, sizeof ask));
    *ret_seq = f.seq;
    return ask;
}

static struct gn_worker_returned expect_return(void)
{
    struct gn_worker_returned r;
    struct gn_frame f = expect(GN_WORKER_RETURNED);
    assert_true(gn_frame_payload(&f, &r, sizeof r));
    return r;
}

static void send_to_worker(uint16_t op, uint32_t seq, const void *payload, size_t n)
{
    assert_int_equal(gn_frame_send(t.gantryd_fd, 60000, op, 0, seq, payload, n, NULL, 0), 0);
}

static void grant(uint32_t seq, uint64_t bytes)
{
    struct gn_worker_leased l = {bytes};
    send_to_worker(GN_WORKER_LEASED, seq, &l, sizeof l);
}

static void recall(bool tight)
{
    struct gn_worker_recall r = {.tight = tight};
    send_to_worker(GN_WORKER_RECALL, 0, &r, sizeof r);
}

static void *charge_thread(void *arg)
{
    return (void *)(intptr_t)gn_lease_charge(&t.lease, *(const uint64_t *)arg, true, true);
}

struct taker {
    pthread_t thread;
    uint64_t bytes;
};

static void start_charge(struct taker *taker, uint64_t bytes)
{
    taker->bytes = bytes;
    assert_int_equal(pthread_create(&taker->thread, NULL, charge_thread, &taker->bytes), 0);
}

static int finish_charge(struct taker *taker)
{
    void *rc;
    pthread_join(taker->thread, &rc);
    return (int)(intptr_t)rc;
}

static uint64_t used(void)
{
    return atomic_load(&t.counters.memory_bytes);
}

static void only_what_is_not_covered_is_asked_for(void **state)
{
    struct taker a;
    uint32_t seq;
    (void)state;
    assert_int_equal(gn_lease_charge(&t.lease, 0, false, true), 0);
    assert_int_equal(gn_lease_charge(&t.lease, 1, false, true), -EAGAIN);
    start_charge(&a, 100);
    struct gn_worker_lease ask = expect_question(&seq);
    assert_int_equal(ask.need_bytes, 100);
    assert_true(ask.want_bytes > 100);
    grant(seq, 1000);
    assert_int_equal(finish_charge(&a), 0);
    assert_int_equal(used(), 100);
    assert_int_equal(gn_lease_charge(&t.lease, 900, false, true), 0); /* slack */
    assert_int_equal(gn_lease_charge(&t.lease, 1, false, true), -EAGAIN);
    gn_lease_refund(&t.lease, 400);
    assert_int_equal(gn_lease_charge(&t.lease, 400, false, true), 0);
    gn_lease_refund(&t.lease, 100);
    start_charge(&a, 300);
    ask = expect_question(&seq);
    assert_int_equal(ask.need_bytes, 200);
    grant(seq, 0);
    assert_int_equal(finish_charge(&a), -ENOMEM);
    assert_int_equal(used(), 900);
}

static void pins_are_asked_for_within_the_lease(void **state)
{
    const uint64_t mib = UINT64_C(1) << 20;
    struct taker a;
    uint32_t seq;
    (void)state;
    t.lease.patient = t.lease.asks_pins = true;
    t.lease.leased_bytes = 8 * mib;
    assert_int_equal(gn_lease_charge(&t.lease, 100, false, false), 0);
    gn_lease_move(&t.lease, 100, GN_LEASE_PINNED, GN_LEASE_EVICTABLE);
    assert_int_equal(gn_lease_charge(&t.lease, 100, false, true), -EAGAIN);
    start_charge(&a, 100);
    struct gn_worker_lease ask = expect_question(&seq);
    assert_true(ask.need_bytes == 1 && ask.pins && ask.pinned_bytes == mib);
    grant(seq, 1);
    assert_int_equal(finish_charge(&a), 0);
    /* gantryd knows of a whole mebibyte. */
    assert_int_equal(gn_lease_charge(&t.lease, mib - 100, false, true), 0);
    assert_true(gn_lease_may_pin(&t.lease, 0) && !gn_lease_may_pin(&t.lease, 1));
    recall(false);
    assert_int_equal(expect_return().pinned_bytes, mib);
    start_charge(&a, 1);
    ask = expect_question(&seq);
    assert_int_equal(ask.pinned_bytes, 2 * mib);
    grant(seq, 0);
    assert_int_equal(finish_charge(&a), -ENOMEM);
    assert_false(gn_lease_may_pin(&t.lease, 1));
    /* gantryd may have counted it before it refused the bytes. */
    assert_int_equal(expect_return().pinned_bytes, mib);
    assert_int_equal(used(), mib + 100);
}

static void *charge_pins(void *arg)
{
    return (void *)(intptr_t)gn_lease_charge_pins(&t.lease, 0, *(const uint64_t *)arg);
}

static uint64_t counted_pins(void)
{
    uint64_t resident, pinned;
    gn_lease_figures(&t.lease, &resident, &pinned);
    return pinned;
}

/* Between the ask and the pin gantryd is told of other changes, too. */
static void pins_that_are_granted_stay_counted(void **state)
{
    uint64_t bytes = UINT64_C(4) << 20;
    struct taker a;
    uint32_t seq;
    void *rc;
    (void)state;
    t.lease.patient = t.lease.asks_pins = true;
    t.lease.leased_bytes = 2 * bytes;
    assert_int_equal(gn_lease_charge(&t.lease, bytes, false, false), 0);
    gn_lease_move(&t.lease, bytes, GN_LEASE_PINNED, GN_LEASE_EVICTABLE);
    for (int granted = 0; granted <= 1; granted++) {
        assert_int_equal(pthread_create(&a.thread, NULL, charge_pins, &bytes), 0);
        assert_int_equal(expect_question(&seq).pinned_bytes, bytes);
        /* gantryd may have granted it, and must not count fewer again. */
        recall(false);
        assert_int_equal(expect_return().pinned_bytes, bytes);
        assert_int_equal(counted_pins(), bytes);
        assert_false(gn_lease_may_pin(&t.lease, 1));
        grant(seq, (uint64_t)granted);
        pthread_join(a.thread, &rc);
        assert_int_equal((intptr_t)rc, granted ? 0 : -ENOMEM);
        if (!granted)
            assert_int_equal(expect_return().pinned_bytes, 0);
    }
    gn_lease_move(&t.lease, 0, GN_LEASE_EVICTED, GN_LEASE_PINNED);
    assert_int_equal(gn_lease_settle(&t.lease), 0);
    assert_int_equal(counted_pins(), bytes);
    assert_true(gn_lease_may_pin(&t.lease, bytes));
    gn_lease_move(&t.lease, bytes, GN_LEASE_EVICTABLE, GN_LEASE_PINNED);
    gn_lease_end_pins(&t.lease, bytes);
    assert_int_equal(counted_pins(), bytes);
    assert_false(gn_lease_may_pin(&t.lease, 1));
    gn_lease_move(&t.lease, bytes, GN_LEASE_PINNED, GN_LEASE_EVICTABLE);
    assert_int_equal(expect_return().pinned_bytes, 0);
}

/* The answers to RESIDE have the number that the worker asks no more for. */
static void pins_that_need_no_ask_are_counted(void **state)
{
    const uint64_t mib = UINT64_C(1) << 20;
    struct taker a;
    uint32_t seq;
    (void)state;
    t.lease.patient = t.lease.asks_pins = true;
    t.lease.leased_bytes = mib;
    start_charge(&a, 100);
    assert_int_equal(expect_question(&seq).pinned_bytes, mib);
    grant(seq, 1);
    assert_int_equal(finish_charge(&a), 0);
    assert_true(gn_lease_may_pin(&t.lease, mib - 100));
    assert_int_equal(counted_pins(), mib);
}

static void buffers_in_the_data_area_are_counted_for_gantryd(void **state)
{
    (void)state;
    gn_lease_add_home(&t.lease, 300);
    gn_lease_add_home(&t.lease, 50);
    assert_int_equal(atomic_load(&t.counters.home_bytes), 350);
    gn_lease_remove_home(&t.lease, 300);
    assert_int_equal(atomic_load(&t.counters.home_bytes), 50);
    assert_int_equal(gn_lease_home_bytes(&t.lease), 50);
    gn_lease_remove_home(&t.lease, 50);
}

static void what_is_larger_than_anything_wraps_nothing(void **state)
{
    struct taker a;
    uint32_t seq;
    (void)state;
    start_charge(&a, UINT64_MAX);
    struct gn_worker_lease ask = expect_question(&seq);
    assert_true(ask.need_bytes == UINT64_MAX && ask.want_bytes == UINT64_MAX);
    grant(seq, 0);
    assert_int_equal(finish_charge(&a), -ENOMEM);
    assert_int_equal(used(), 0);
}

static void a_grant_is_its_askers_before_a_recall_behind_it(void **state)
{
    struct taker a;
    uint32_t seq;
    (void)state;
    start_charge(&a, 100);
    (void)expect_question(&seq);
    grant(seq, 150);
    recall(false);
    struct gn_worker_returned r = expect_return();
    assert_int_equal(r.bytes, 50);
    assert_int_equal(r.answers, 1);
    assert_int_equal(finish_charge(&a), 0);
    assert_int_equal(used(), 100);
}

static void one_asks_at_a_time(void **state)
{
    struct taker a, b;
    uint32_t first, second;
    struct gn_frame f;
    (void)state;
    start_charge(&a, 100);
    (void)expect_question(&first);
    start_charge(&b, 70);
    assert_int_equal(gn_frame_read(&t.reader, &f), 0);
    grant(first, 120);
    assert_int_equal(finish_charge(&a), 0);
    struct gn_worker_lease ask = expect_question(&second);
    assert_int_equal(ask.need_bytes, 50);
    assert_true(second != first);
    grant(first, 0); /* a second answer to the first request is ignored */
    grant(second, 50);
    assert_int_equal(finish_charge(&b), 0);
    assert_int_equal(used(), 170);
}

static void what_is_freed_meanwhile_serves_too(void **state)
{
    struct taker a;
    uint32_t seq;
    (void)state;
    t.lease.leased_bytes = 100;
    assert_int_equal(gn_lease_charge(&t.lease, 100, false, true), 0);
    start_charge(&a, 60);
    (void)expect_question(&seq);
    gn_lease_refund(&t.lease, 60);
    grant(seq, 0);
    assert_int_equal(finish_charge(&a), 0);
    assert_int_equal(used(), 100);
}

static void while_tight_nothing_stays_unused(void **state)
{
    (void)state;
    t.lease.leased_bytes = 100;
    assert_int_equal(gn_lease_charge(&t.lease, 80, false, true), 0);
    recall(true);
    struct gn_worker_returned r = expect_return();
    assert_true(r.bytes == 20 && r.answers == 1);
    assert_int_equal(gn_lease_charge(&t.lease, 1, false, true), -EAGAIN);
    gn_lease_refund(&t.lease, 30);
    r = expect_return();
    assert_true(r.bytes == 30 && r.answers == 0);
    recall(false);
    r = expect_return();
    assert_true(r.bytes == 0 && r.answers == 1);
    gn_lease_refund(&t.lease, 10);
    assert_int_equal(gn_lease_charge(&t.lease, 10, false, true), 0);
    assert_int_equal(used(), 50);
}

static void a_recall_is_obeyed_once_and_not_before_somebody_does(void **state)
{
    struct gn_lease l;
    struct gn_counters counters = {0};
    (void)state;
    assert_int_equal(gn_lease_init(&l, -1, &counters), 0);
    l.leased_bytes = 100;
    gn_lease_shed(&l);
    assert_int_equal(l.leased_bytes, 100);
    gn_lease_recalled(&l, false);
    assert_true(gn_lease_is_recalled(&l));
    assert_int_equal(gn_lease_charge(&l, 40, false, true), 0);
    gn_lease_shed(&l);
    assert_false(gn_lease_is_recalled(&l));
    assert_int_equal(l.leased_bytes, 40);
    assert_int_equal(l.returning_bytes, 60);
    gn_lease_shed(&l);
    assert_int_equal(l.returning_bytes, 60);
    close(l.wake_fd);
}

/*
 * Four threads allocate and free as fast as they can while gantryd grants, refuses and recalls: no
 * byte is lost.
 */
static void *churn(void *arg)
{
    uint64_t seed = 88172645463325252u + (uintptr_t)arg, held = 0;
    for (int i = 0; i < 2000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t n = 1 + seed % (4 * MIB);
        if (held && seed & 1) {
            gn_lease_refund(&t.lease, held);
            held = 0;
        } else if (gn_lease_charge(&t.lease, n, i % 8 == 0, true) == 0) {
            held += n;
        }
    }
    gn_lease_refund(&t.lease, held);
    return NULL;
}

static void *churn_all(void *arg)
{
    pthread_t threads[4];
    (void)arg;
    for (uintptr_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(i * 977)))
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    t.ends = true;
    const uint64_t one = 1;
    (void)!write(t.lease.wake_fd, &one, sizeof one);
    return NULL;
}

static void what_could_not_be_asked_is_asked_anew(void **state)
{
    (void)state;
    assert_int_equal(shutdown(t.worker_fd, SHUT_WR), 0);
    assert_int_equal(gn_lease_charge(&t.lease, MIB, true, true), -ENOMEM);
    assert_false(t.lease.asking); /* else the next request would wait for this one's answer */
}

static void nothing_is_lost_between_threads(void **state)
{
    const uint64_t limit = 12 * MIB;
    pthread_t all;
    uint64_t leased = 0;
    int n = 0, owed = 0;
    (void)state;
    assert_int_equal(pthread_create(&all, NULL, churn_all, NULL), 0);
    while (!t.ends || owed) {
        struct gn_frame f;
        struct gn_worker_lease ask;
        struct gn_worker_returned r;
        int rc = gn_frame_wait(&t.reader, 20, &f);
        if (rc == -ETIMEDOUT)
            continue;
        assert_int_equal(rc, 1);
        if (f.op == GN_WORKER_LEASE) {
            assert_true(gn_frame_payload(&f, &ask, sizeof ask));
            uint64_t most = limit - leased, give = ask.need_bytes > most   ? 0
                                                   : ask.want_bytes < most ? ask.want_bytes
                                                                           : most;
            leased += give;
            grant(f.seq, give);
            if (++n % 3 == 0 && !owed) {
                recall(n % 2);
                owed++;
            }
        } else {
            assert_int_equal(f.op, GN_WORKER_RETURNED);
            assert_true(gn_frame_payload(&f, &r, sizeof r));
            assert_true(r.bytes <= leased);
            leased -= r.bytes;
            owed -= (int)r.answers;
        }
        if (used() > limit)
            fail_msg("used %llu leased-by-books %llu lease %llu/%llu returning %llu n %d",
                     (unsigned long long)used(), (unsigned long long)leased,
                     (unsigned long long)t.lease.used_bytes,
                     (unsigned long long)t.lease.leased_bytes,
                     (unsigned long long)t.lease.returning_bytes, n);
    }
    pthread_join(all, NULL);
    assert_int_equal(used(), 0);
    recall(true);
    for (;;) {
        struct gn_worker_returned r = expect_return();
        leased -= r.bytes;
        if (r.answers)
            break;
    }
    assert_int_equal(leased, 0);
    assert_int_equal(t.lease.leased_bytes, 0);
}

static void *charge_ahead(void *arg)
{
    return (void *)(intptr_t)gn_lease_charge_ahead(&t.lease, *(const uint64_t *)arg, false);
}

/* The figures that gantryd places memory by. */
static void the_parts_of_the_charge_are_told(void **state)
{
    uint64_t bytes = 70, resident, pinned;
    struct taker a;
    uint32_t seq;
    void *rc;
    (void)state;
    t.lease.leased_bytes = 100;
    assert_int_equal(gn_lease_charge(&t.lease, 100, false, true), 0);
    gn_lease_move(&t.lease, 50, GN_LEASE_PINNED, GN_LEASE_EVICTABLE);
    gn_lease_move(&t.lease, 20, GN_LEASE_EVICTABLE, GN_LEASE_EVICTED);
    gn_lease_figures(&t.lease, &resident, &pinned);
    assert_true(resident == 80 && pinned == 50);
    start_charge(&a, 5);
    assert_int_equal(expect_question(&seq).pinned_bytes, 55);
    grant(seq, 5);
    assert_int_equal(finish_charge(&a), 0);
    assert_int_equal(pthread_create(&a.thread, NULL, charge_ahead, &bytes), 0);
    assert_int_equal(expect_question(&seq).pinned_bytes, 55);
    grant(seq, 70);
    pthread_join(a.thread, &rc);
    assert_null(rc);
    gn_lease_figures(&t.lease, &resident, &pinned);
    assert_true(resident == 85 && pinned == 55); /* it is not made yet */
    gn_lease_move(&t.lease, 70, GN_LEASE_EVICTED, GN_LEASE_PINNED);
    gn_lease_figures(&t.lease, &resident, &pinned);
    assert_true(resident == 155 && pinned == 125);
}

static void waits_end_with_the_vgpu(void **state)
{
    struct taker a, b;
    uint32_t seq;
    (void)state;
    t.lease.patient = true;
    start_charge(&a, 100);
    (void)expect_question(&seq);
    start_charge(&b, 100);
    gn_lease_end(&t.lease);
    assert_int_equal(finish_charge(&a), -ENOMEM);
    assert_int_equal(finish_charge(&b), -ENOMEM);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_lease, close_lease)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(only_what_is_not_covered_is_asked_for),
        CASE(pins_are_asked_for_within_the_lease),
        CASE(pins_that_are_granted_stay_counted),
        CASE(pins_that_need_no_ask_are_counted),
        CASE(buffers_in_the_data_area_are_counted_for_gantryd),
        CASE(what_is_larger_than_anything_wraps_nothing),
        CASE(a_grant_is_its_askers_before_a_recall_behind_it),
        CASE(one_asks_at_a_time),
        CASE(what_is_freed_meanwhile_serves_too),
        CASE(while_tight_nothing_stays_unused),
        cmocka_unit_test(a_recall_is_obeyed_once_and_not_before_somebody_does),
        CASE(what_could_not_be_asked_is_asked_anew),
        CASE(the_parts_of_the_charge_are_told),
        CASE(waits_end_with_the_vgpu),
        CASE(nothing_is_lost_between_threads),
    };
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
