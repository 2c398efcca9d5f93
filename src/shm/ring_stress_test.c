/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stress: many producer threads against one consumer, which is another process or (so that TSan
 * sees both sides) a thread. Every message carries its thread and number and is checked byte by
 * byte; each thread's numbers must arrive in order.
 */
#include "shm/session_layout.h"
#include "shm/shm_test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 4u

struct run {
    uint32_t n_messages; /* for each thread */
    uint32_t capacity;
    uint64_t start;
    uint64_t producer_spin_ns, consumer_spin_ns;
    bool answers; /* every 16th message is a call that waits for its reply */
};

struct message {
    uint32_t thread, number, token, n_bytes;
    unsigned char fill[GN_RING_MAX_BYTES - 16];
};

_Static_assert(sizeof(struct message) == GN_RING_MAX_BYTES, "the largest message");

static unsigned char fill_byte(const struct message *m, uint32_t i)
{
    return (unsigned char)(m->thread * 5 + m->number * 3 + i);
}

struct producer_thread {
    const struct run *run;
    struct gn_ring_producer *producer;
    struct gn_replies *replies;
    uint32_t thread;
    int failed;
};

static void *produce(void *arg)
{
    struct producer_thread *t = arg;
    struct message m = {.thread = t->thread};
    uint32_t random = t->thread * 7919 + 1;
    for (uint32_t k = 0; k < t->run->n_messages; k++) {
        random = random * 1664525 + 1013904223;
        /* Mostly one slot, sometimes up to all sixteen. */
        uint32_t n = random >> 29 ? (random >> 8) % 40 : (random >> 8) % (uint32_t)sizeof m.fill;
        bool call = t->run->answers && k % 16 == 0;
        m.number = k;
        m.n_bytes = n;
        m.token = GN_REPLY_NONE;
        for (uint32_t i = 0; i < n; i++)
            m.fill[i] = fill_byte(&m, i);
        if (call && gn_reply_claim(t->replies, &m.token) != 0)
            t->failed = 1;
        if (gn_ring_send(t->producer, &m, 16, m.fill, n, NULL) != 0)
            t->failed = 2;
        if (call) {
            struct gn_reply reply;
            if (gn_reply_wait(t->replies, m.token, &reply) != 0 || reply.result != (int32_t)k)
                t->failed = 3;
            gn_reply_put(t->replies, m.token);
        }
    }
    return NULL;
}

struct consumer_thread {
    const struct run *run;
    struct gn_session_view *view;
    struct gn_lost *lost;
    int failed; /* the line of the failed check, or 0 */
};

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            t->failed = __LINE__;                                                                  \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

static void *consume(void *arg)
{
    struct consumer_thread *t = arg;
    struct gn_ring_consumer c;
    uint32_t next[N_THREADS] = {0};
    union {
        unsigned char bytes[GN_RING_MAX_BYTES];
        struct message m;
    } buf;
    struct gn_waiter waiter = {.policy = {t->run->consumer_spin_ns}, .lost = t->lost};
    EXPECT(gn_ring_consumer_init(&c, t->view->requests, t->run->capacity, t->run->start, waiter) ==
           0);
    for (uint32_t left = N_THREADS * t->run->n_messages; left;) {
        int n = gn_ring_try_receive(&c, buf.bytes);
        if (n == -EAGAIN) {
            EXPECT(gn_ring_wait(&c) == 0);
            continue;
        }
        EXPECT(n >= 16);
        EXPECT(buf.m.n_bytes + 16 == (uint32_t)n);
        EXPECT(buf.m.thread < N_THREADS);
        EXPECT(buf.m.number == next[buf.m.thread]);
        next[buf.m.thread]++;
        for (uint32_t i = 0; i < buf.m.n_bytes; i++)
            EXPECT(buf.m.fill[i] == fill_byte(&buf.m, i));
        if (buf.m.token != GN_REPLY_NONE)
            gn_reply_send(t->view->replies, buf.m.token, (int32_t)buf.m.number, NULL, 0);
        left--;
    }
    gn_ring_release(&c);
    EXPECT(gn_ring_try_receive(&c, buf.bytes) == -EAGAIN);
    return NULL;
}

/* When the consumer gives up, fails the producers too, so that they do not hang. */
static void *consume_and_tell(void *arg)
{
    struct consumer_thread *t = arg;
    consume(t);
    if (t->failed)
        gn_lost_declare(t->lost);
    return NULL;
}

static void stress(const struct run *run, bool in_process)
{
    struct gn_segment s;
    struct gn_session_view view;
    struct gn_lost lost;
    assert_int_equal(gn_session_create("gn-test", &s), 0);
    assert_int_equal(gn_segment_map(&s), 0);
    assert_int_equal(gn_session_map(s.base, s.bytes, &view), 0);
    gn_ring_reset(view.requests, run->capacity, run->start);
    gn_lost_init(&lost);

    struct consumer_thread consumer = {run, &view, &lost, 0};
    pthread_t consumer_thread;
    pid_t pid = 0;
    if (in_process) {
        assert_int_equal(pthread_create(&consumer_thread, NULL, consume_and_tell, &consumer), 0);
    } else {
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct gn_segment mine;
            if (gn_segment_adopt(s.fd, GN_SESSION_BYTES, &mine) < 0 ||
                gn_session_map(mine.base, mine.bytes, &view) < 0)
                _exit(1);
            consume(&consumer);
            if (consumer.failed)
                dprintf(2, "consumer: line %d\n", consumer.failed);
            _exit(consumer.failed ? 1 : 0);
        }
    }

    struct gn_ring_producer producer;
    struct gn_replies replies;
    struct gn_waiter waiter = {.policy = {run->producer_spin_ns}, .lost = &lost};
    assert_int_equal(
        gn_ring_producer_init(&producer, view.requests, run->capacity, run->start, waiter), 0);
    gn_replies_init(&replies, view.replies, waiter);
    struct producer_thread producers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS; i++) {
        producers[i] = (struct producer_thread){run, &producer, &replies, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    int status = 0;
    if (in_process) {
        pthread_join(consumer_thread, NULL);
        assert_int_equal(consumer.failed, 0);
    } else {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
            gn_lost_declare(&lost);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(producers[i].failed, 0);
    }
    assert_int_equal(status, 0);
    gn_segment_fini(&s);
}

#define MANY (GN_TEST_SANITIZED ? 5000u : 40000u)
#define FEW  (GN_TEST_SANITIZED ? 1000u : 3000u)

static const struct run spinning = {
    MANY, GN_SESSION_REQUEST_SLOTS, 0, GN_SPIN_DEFAULT_NS, GN_SPIN_DEFAULT_NS, true};
/*
 * The smallest ring, close to the wrap of 32-bit positions: mostly full, so producers starve and
 * park.
 */
static const struct run cramped = {FEW, GN_RING_MIN_SLOTS,  UINT32_MAX - 1000,
                                   0,   GN_SPIN_DEFAULT_NS, false};
/* No side spins: every empty ring and every pending answer parks its waiter. */
static const struct run parking = {FEW, GN_RING_MIN_SLOTS, UINT32_MAX - 1000, 0, 0, true};

static void two_processes_spinning(void **state)
{
    stress(&spinning, false);
}

static void two_processes_on_a_cramped_ring(void **state)
{
    stress(&cramped, false);
}

static void two_processes_parking(void **state)
{
    stress(&parking, false);
}

static void threads_spinning(void **state)
{
    stress(&spinning, true);
}

static void threads_on_a_cramped_ring(void **state)
{
    stress(&cramped, true);
}

static void threads_parking(void **state)
{
    stress(&parking, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_spinning),
        cmocka_unit_test(two_processes_on_a_cramped_ring),
        cmocka_unit_test(two_processes_parking),
        cmocka_unit_test(threads_spinning),
        cmocka_unit_test(threads_on_a_cramped_ring),
        cmocka_unit_test(threads_parking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
