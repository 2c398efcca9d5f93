/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the slot ring with one producer and one consumer: lengths, wraps, waits, a lost
 * peer, and every impossible value that a hostile peer can write.
 */
#include "shm/shm_test.h"
#include "shm/slot_ring.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CAPACITY 32u

struct fixture {
    struct gn_ring *ring;
    struct gn_lost lost;
    struct gn_waiter waiter;
    struct gn_ring_producer p;
    struct gn_ring_consumer c;
    unsigned char buf[GN_RING_MAX_BYTES];
};

/* The consumer that the n-th reading of the clock from now nudges. */
static struct {
    struct gn_ring_consumer *c;
    unsigned looks_left;
} nudge;

/* Arms a nudge. Returns true if the previous one has happened. */
static bool nudges_at_look(struct gn_ring_consumer *c, unsigned n)
{
    const bool happened = !nudge.c;
    nudge.c = c;
    nudge.looks_left = n;
    return happened;
}

/* Replaces the C library's function. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    struct gn_ring_consumer *c = nudge.c;
    if (c && !--nudge.looks_left) {
        nudge.c = NULL;
        gn_ring_nudge(c);
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static struct fixture *at(uint64_t start)
{
    struct fixture *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
    assert_non_null(f);
    f->ring = gn_test_shared(GN_RING_BYTES(CAPACITY));
    gn_lost_init(&f->lost);
    f->waiter = (struct gn_waiter){.policy = {0}, .lost = &f->lost};
    if (start != 0)
        gn_ring_reset(f->ring, CAPACITY, start);
    assert_int_equal(gn_ring_producer_init(&f->p, f->ring, CAPACITY, start, f->waiter), 0);
    assert_int_equal(gn_ring_consumer_init(&f->c, f->ring, CAPACITY, start, f->waiter), 0);
    return f;
}

static void done(struct fixture *f)
{
    free(f->ring);
    free(f);
}

/* Byte i of message k. */
static unsigned char pattern(unsigned k, unsigned i)
{
    return (unsigned char)(k * 31 + i * 7 + 1);
}

static int send_pattern(struct fixture *f, unsigned k, unsigned n, unsigned n_head,
                        uint64_t *ret_end)
{
    unsigned char bytes[GN_RING_MAX_BYTES];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = pattern(k, i);
    return gn_ring_try_send(&f->p, bytes, n_head, bytes + n_head, n - n_head, ret_end);
}

static void receive_pattern(struct fixture *f, unsigned k, unsigned n)
{
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(f->buf[i], pattern(k, i));
}

static void capacities_are_checked(void **state)
{
    struct fixture *f = at(0);
    const uint32_t bad[] = {0, 1, 16, 31, 33, 48, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        assert_int_equal(gn_ring_producer_init(&f->p, f->ring, bad[i], 0, f->waiter), -EINVAL);
        assert_int_equal(gn_ring_consumer_init(&f->c, f->ring, bad[i], 0, f->waiter), -EINVAL);
    }
    struct gn_ring *crooked = (struct gn_ring *)((char *)f->ring + 32);
    assert_int_equal(gn_ring_consumer_init(&f->c, crooked, CAPACITY, 0, f->waiter), -EINVAL);
    done(f);
}

static void every_length_arrives_whole(void **state)
{
    struct fixture *f = at(0);
    for (unsigned n = 1; n <= GN_RING_MAX_BYTES; n++) {
        const unsigned heads[] = {0, 1, n / 2, n > 56 ? 56 : n, n};
        for (size_t h = 0; h < GN_ARRAY_SIZE(heads); h++) {
            assert_int_equal(send_pattern(f, n, n, heads[h], NULL), 0);
            receive_pattern(f, n, n);
            assert_int_equal(f->c.n_bytes, n);
        }
    }
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EAGAIN);
    done(f);
}

static void impossible_lengths_are_refused(void **state)
{
    struct fixture *f = at(0);
    unsigned char big[GN_RING_MAX_BYTES + 1] = {0};
    assert_int_equal(gn_ring_try_send(&f->p, big, 0, NULL, 0, NULL), -EMSGSIZE);
    assert_int_equal(gn_ring_try_send(&f->p, big, sizeof big, NULL, 0, NULL), -EMSGSIZE);
    assert_int_equal(gn_ring_try_send(&f->p, big, GN_RING_MAX_BYTES, big, 1, NULL), -EMSGSIZE);
    assert_int_equal(gn_ring_send(&f->p, big, 1, big, SIZE_MAX, NULL), -EMSGSIZE);
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EAGAIN);
    done(f);
}

static void a_full_ring_says_so_and_recovers(void **state)
{
    struct fixture *f = at(0);
    for (unsigned k = 0; k < CAPACITY; k++)
        assert_int_equal(send_pattern(f, k, 8, 8, NULL), 0);
    assert_int_equal(send_pattern(f, 99, 8, 8, NULL), -EAGAIN);
    receive_pattern(f, 0, 8);
    /* The message is not released: its slot is not free yet. */
    assert_int_equal(send_pattern(f, 99, 8, 8, NULL), -EAGAIN);
    gn_ring_release(&f->c);
    gn_ring_release(&f->c);
    assert_int_equal(send_pattern(f, 99, 57, 8, NULL), -EAGAIN); /* needs two slots */
    assert_int_equal(send_pattern(f, CAPACITY, 8, 8, NULL), 0);
    assert_int_equal(send_pattern(f, 99, 8, 8, NULL), -EAGAIN);
    for (unsigned k = 1; k <= CAPACITY; k++)
        receive_pattern(f, k, 8);
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EAGAIN);
    /* All slots are free again: two messages of the largest size fill the ring exactly. */
    assert_int_equal(send_pattern(f, 1, GN_RING_MAX_BYTES, 0, NULL), 0);
    assert_int_equal(send_pattern(f, 2, GN_RING_MAX_BYTES, 0, NULL), 0);
    assert_int_equal(send_pattern(f, 3, 1, 0, NULL), -EAGAIN);
    receive_pattern(f, 1, GN_RING_MAX_BYTES);
    receive_pattern(f, 2, GN_RING_MAX_BYTES);
    done(f);
}

static void positions_wrap(void **state)
{
    const uint64_t starts[] = {UINT32_MAX - 40, UINT32_MAX - 31, UINT32_MAX,
                               (UINT64_C(1) << 31) - 17, (UINT64_C(7) << 32) - 5};
    for (size_t s = 0; s < GN_ARRAY_SIZE(starts); s++) {
        struct fixture *f = at(starts[s]);
        uint64_t first_end = 0, end;
        for (unsigned k = 0; k < 200; k++) {
            unsigned n = 1 + k * 37 % GN_RING_MAX_BYTES;
            assert_int_equal(send_pattern(f, k, n, n / 3, &end), 0);
            if (k == 0)
                first_end = end;
            assert_false(gn_ring_passed(&f->p, end));
            receive_pattern(f, k, n);
            assert_false(gn_ring_passed(&f->p, end));
            assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EAGAIN);
            assert_true(gn_ring_passed(&f->p, end));
            assert_true(gn_ring_passed(&f->p, first_end));
        }
        /* Fill the ring at the wrap. */
        for (unsigned k = 0; k < CAPACITY; k++)
            assert_int_equal(send_pattern(f, k, 1, 1, NULL), 0);
        assert_int_equal(send_pattern(f, 0, 1, 1, NULL), -EAGAIN);
        done(f);
    }
}

static void passed_stays_true(void **state)
{
    struct fixture *f = at(0);
    uint64_t end;
    assert_int_equal(send_pattern(f, 1, 1, 1, &end), 0);
    receive_pattern(f, 1, 1);
    gn_ring_release(&f->c);
    /* As if 2^31 and 2^32 slots had passed: a 32-bit difference would become negative or zero. */
    const uint64_t later[] = {(UINT64_C(1) << 31) + 5, (UINT64_C(1) << 32) - CAPACITY,
                              (UINT64_C(1) << 32) + 5};
    for (size_t i = 0; i < GN_ARRAY_SIZE(later); i++) {
        gn_ring_reset(f->ring, CAPACITY, later[i]);
        assert_int_equal(gn_ring_producer_init(&f->p, f->ring, CAPACITY, later[i], f->waiter), 0);
        assert_true(gn_ring_passed(&f->p, end));
    }
    done(f);
}

static void the_sender_s_processor_arrives(void **state)
{
    struct fixture *f = at(0);
    assert_int_equal(f->c.peer_cpu, GN_CPU_UNKNOWN);
    assert_int_equal(send_pattern(f, 1, 1, 1, NULL), 0);
    f->ring->slots[0].cpu = 77;
    receive_pattern(f, 1, 1);
    assert_int_equal(f->c.peer_cpu, 77);
    done(f);
}

static void a_later_consumer_goes_on_where_the_first_stopped(void **state)
{
    struct fixture *f = at(0);
    assert_int_equal(send_pattern(f, 1, 100, 0, NULL), 0);
    assert_int_equal(send_pattern(f, 2, 100, 0, NULL), 0);
    receive_pattern(f, 1, 100);
    gn_ring_release(&f->c);
    uint64_t stopped = f->c.head;
    assert_int_equal(gn_ring_consumer_init(&f->c, f->ring, CAPACITY, stopped, f->waiter), 0);
    receive_pattern(f, 2, 100);
    done(f);
}

/* ---- a hostile producer ---- */

static void stopped_at_finds_the_next_position(void **state)
{
    const uint64_t starts[] = {0, 7, UINT64_C(0x1ffffffe0)};
    for (size_t s = 0; s < GN_ARRAY_SIZE(starts); s++) {
        struct fixture *f = at(starts[s]);
        uint64_t end = starts[s];
        assert_int_equal(gn_ring_stopped_at(&f->p), end);
        for (unsigned k = 0; k < 100; k++) {
            const unsigned n = 1 + k * 37 % GN_RING_MAX_BYTES;
            uint64_t later;
            assert_int_equal(send_pattern(f, k, n, n, &later), 0);
            assert_int_equal(gn_ring_stopped_at(&f->p), end);
            receive_pattern(f, k, n);
            /* Not released yet: the next consumer would receive it again. */
            assert_int_equal(gn_ring_stopped_at(&f->p), end);
            gn_ring_release(&f->c);
            assert_int_equal(gn_ring_stopped_at(&f->p), later);
            end = later;
        }
        done(f);
    }
}

static void expect_fault(struct fixture *f)
{
    assert_int_equal(gn_ring_wait(&f->c), 0);
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EPROTO);
    assert_int_equal(gn_ring_try_receive(&f->c, f->buf), -EPROTO);
    assert_int_equal(gn_ring_wait(&f->c), 0); /* never sleeps on a faulted ring */
    done(f);
}

static void every_impossible_seq_is_a_fault(void **state)
{
    const uint32_t bad[] = {2,          CAPACITY,    CAPACITY + 1,     3 * CAPACITY,
                            UINT32_MAX, 0x80000000u, 0u - CAPACITY + 1};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct fixture *f = at(0);
        atomic_store(&f->ring->slots[0].seq, bad[i]);
        expect_fault(f);
    }
}

static void every_impossible_length_is_a_fault(void **state)
{
    const uint16_t bad[] = {0, GN_RING_MAX_BYTES + 1, 0x7fff, 0x8000, UINT16_MAX};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct fixture *f = at(0);
        f->ring->slots[0].n_bytes = bad[i];
        atomic_store(&f->ring->slots[0].seq, 1);
        expect_fault(f);
    }
}

static void an_unpublished_inner_slot_is_a_fault(void **state)
{
    const uint32_t bad[] = {0, 2, CAPACITY, CAPACITY + 1, UINT32_MAX};
    for (unsigned inner = 1; inner < GN_RING_MAX_SLOTS; inner++)
        for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
            struct fixture *f = at(0);
            assert_int_equal(send_pattern(f, 1, GN_RING_MAX_BYTES, 0, NULL), 0);
            atomic_store(&f->ring->slots[inner].seq, bad[i]);
            expect_fault(f);
        }
}

static void an_inner_slot_that_is_a_first_slot_is_a_fault(void **state)
{
    struct fixture *f = at(0);
    assert_int_equal(send_pattern(f, 1, 8, 0, NULL), 0);
    assert_int_equal(send_pattern(f, 2, 8, 0, NULL), 0);
    f->ring->slots[0].n_bytes = 60;
    expect_fault(f);
}

static void a_too_long_run_over_the_wrap_is_a_fault(void **state)
{
    struct fixture *f = at(CAPACITY - 1);
    assert_int_equal(send_pattern(f, 1, 8, 0, NULL), 0);
    f->ring->slots[CAPACITY - 1].n_bytes = GN_RING_MAX_BYTES;
    expect_fault(f);
}

/* ---- waiting ---- */

struct sleeper {
    struct fixture *f;
    int (*wait)(struct fixture *f);
    _Atomic pid_t tid;
    int result;
};

static void *sleep_thread(void *arg)
{
    struct sleeper *s = arg;
    atomic_store(&s->tid, (pid_t)syscall(SYS_gettid));
    s->result = s->wait(s->f);
    return NULL;
}

static void start_sleeper(struct sleeper *s, pthread_t *thread)
{
    atomic_store(&s->tid, 0);
    assert_int_equal(pthread_create(thread, NULL, sleep_thread, s), 0);
    while (atomic_load(&s->tid) == 0)
        ;
    gn_test_wait_until_asleep(atomic_load(&s->tid));
}

static int wait_message(struct fixture *f)
{
    return gn_ring_wait(&f->c);
}

static int send_one(struct fixture *f)
{
    return gn_ring_send(&f->p, "x", 1, NULL, 0, NULL);
}

static int send_largest(struct fixture *f)
{
    unsigned char big[GN_RING_MAX_BYTES] = {0};
    return gn_ring_send(&f->p, big, sizeof big, NULL, 0, NULL);
}

static void a_message_wakes_the_consumer(void **state)
{
    struct fixture *f = at(0);
    struct sleeper s = {.f = f, .wait = wait_message};
    pthread_t thread;
    start_sleeper(&s, &thread);
    assert_int_equal(send_pattern(f, 1, 8, 8, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(s.result, 0);
    receive_pattern(f, 1, 8);
    assert_int_equal(atomic_load(&f->ring->parked), 0);
    done(f);
}

static void a_nudge_ends_a_park_and_nothing_else(void **state)
{
    struct fixture *f = at(0);
    struct sleeper s = {.f = f, .wait = wait_message};
    unsigned char buf[GN_RING_MAX_BYTES];
    pthread_t thread;
    gn_ring_nudge(&f->c); /* no thread sleeps: the next park returns at once */
    assert_int_equal(gn_ring_wait(&f->c), 0);
    start_sleeper(&s, &thread);
    gn_ring_nudge(&f->c);
    pthread_join(thread, NULL);
    assert_int_equal(s.result, 0);
    assert_int_equal(gn_ring_try_receive(&f->c, buf), -EAGAIN);
    start_sleeper(&s, &thread);
    assert_int_equal(send_pattern(f, 1, 8, 8, NULL), 0);
    pthread_join(thread, NULL);
    receive_pattern(f, 1, 8);
    done(f);
}

static void a_park_may_have_an_end(void **state)
{
    struct fixture *f = at(0);
    assert_int_equal(gn_ring_park(&f->c, 1000000), -ETIMEDOUT);
    assert_int_equal(atomic_load(&f->c.ring->parked), 0);
    assert_int_equal(send_pattern(f, 1, 8, 8, NULL), 0);
    assert_int_equal(gn_ring_park(&f->c, 1000000), 0);
    receive_pattern(f, 1, 8);
    done(f);
}

/* At every place between two readings of the clock, a nudge ends this park or the next one. */
static void nudge_at_the_end_of_a_park_counts(void **state)
{
    struct fixture *f = at(0);
    for (unsigned at_look = 1; at_look <= 4; at_look++) {
        nudges_at_look(&f->c, at_look);
        const int first = gn_ring_park(&f->c, 1000000);
        const bool nudged = nudges_at_look(NULL, 0);
        const int then = gn_ring_park(&f->c, 1000000);
        assert_int_equal(first == 0 || then == 0, nudged);
    }
    done(f);
}

static void room_wakes_every_starved_producer(void **state)
{
    struct fixture *f = at(0);
    for (unsigned k = 0; k < CAPACITY; k++)
        assert_int_equal(send_pattern(f, k, 8, 8, NULL), 0);
    struct sleeper s[3] = {
        {.f = f, .wait = send_one}, {.f = f, .wait = send_largest}, {.f = f, .wait = send_one}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        start_sleeper(&s[i], &threads[i]);
    for (unsigned k = 0; k < CAPACITY; k++)
        receive_pattern(f, k, 8);
    unsigned long bytes = 0;
    for (int n = 0; n < 3; n++) {
        assert_int_equal(gn_ring_wait(&f->c), 0);
        bytes += (unsigned long)gn_ring_try_receive(&f->c, f->buf);
    }
    assert_int_equal(bytes, 1 + 1 + GN_RING_MAX_BYTES);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(s[i].result, 0);
    }
    done(f);
}

static void a_lost_peer_wakes_all(void **state)
{
    for (int without_waitv = 0; without_waitv < 2; without_waitv++) {
        gn_park_without_waitv(without_waitv);
        struct fixture *full = at(0), *empty = at(0);
        empty->p.waiter.lost = empty->c.waiter.lost = &full->lost;
        for (unsigned k = 0; k < CAPACITY; k++)
            assert_int_equal(send_pattern(full, k, 8, 8, NULL), 0);
        struct sleeper s[3] = {{.f = full, .wait = send_one},
                               {.f = full, .wait = send_largest},
                               {.f = empty, .wait = wait_message}};
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            start_sleeper(&s[i], &threads[i]);
        gn_lost_declare(&full->lost);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(s[i].result, -EPIPE);
        }
        /* A thread that comes later does not fall asleep, and sent messages can still be read. */
        assert_int_equal(wait_message(empty), -EPIPE);
        assert_int_equal(send_one(empty), -EPIPE);
        assert_int_equal(wait_message(full), 0);
        receive_pattern(full, 0, 8);
        done(full);
        done(empty);
    }
    gn_park_without_waitv(false);
}

static void a_hostile_consumer_cannot_hang_a_sender_for_ever(void **state)
{
    const uint32_t bad[] = {2, 5 * CAPACITY, UINT32_MAX};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct fixture *f = at(0);
        for (unsigned k = 0; k < CAPACITY; k++)
            atomic_store(&f->ring->slots[k].seq, bad[i]);
        assert_int_equal(gn_ring_try_send(&f->p, "x", 1, NULL, 0, NULL), -EAGAIN);
        struct sleeper s = {.f = f, .wait = send_one};
        pthread_t thread;
        start_sleeper(&s, &thread);
        gn_lost_declare(&f->lost);
        pthread_join(thread, NULL);
        assert_int_equal(s.result, -EPIPE);
        done(f);
    }
}

static void an_endless_spin_ends_with_the_peer(void **state)
{
    struct fixture *f = at(0);
    f->c.waiter.policy.spin_ns = f->p.waiter.policy.spin_ns = GN_SPIN_FOREVER;
    gn_lost_declare(&f->lost);
    assert_int_equal(wait_message(f), -EPIPE);
    assert_int_equal(send_one(f), -EPIPE);
    done(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacities_are_checked),
        cmocka_unit_test(every_length_arrives_whole),
        cmocka_unit_test(impossible_lengths_are_refused),
        cmocka_unit_test(a_full_ring_says_so_and_recovers),
        cmocka_unit_test(positions_wrap),
        cmocka_unit_test(passed_stays_true),
        cmocka_unit_test(the_sender_s_processor_arrives),
        cmocka_unit_test(a_later_consumer_goes_on_where_the_first_stopped),
        cmocka_unit_test(stopped_at_finds_the_next_position),
        cmocka_unit_test(every_impossible_seq_is_a_fault),
        cmocka_unit_test(every_impossible_length_is_a_fault),
        cmocka_unit_test(an_unpublished_inner_slot_is_a_fault),
        cmocka_unit_test(an_inner_slot_that_is_a_first_slot_is_a_fault),
        cmocka_unit_test(a_too_long_run_over_the_wrap_is_a_fault),
        cmocka_unit_test(a_message_wakes_the_consumer),
        cmocka_unit_test(a_nudge_ends_a_park_and_nothing_else),
        cmocka_unit_test(a_park_may_have_an_end),
        cmocka_unit_test(nudge_at_the_end_of_a_park_counts),
        cmocka_unit_test(room_wakes_every_starved_producer),
        cmocka_unit_test(a_lost_peer_wakes_all),
        cmocka_unit_test(a_hostile_consumer_cannot_hang_a_sender_for_ever),
        cmocka_unit_test(an_endless_spin_ends_with_the_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
