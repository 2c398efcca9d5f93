/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the reply slots: tokens, waits, a lost worker, hostile values. */
#include "shm/reply.h"
#include "shm/shm_test.h"

#include <sys/syscall.h>
#include <unistd.h>

struct fixture {
    struct gn_reply_slot *slots;
    struct gn_lost lost;
    struct gn_replies r;
};

static struct fixture *fresh(uint64_t spin_ns)
{
    struct fixture *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
    assert_non_null(f);
    f->slots = gn_test_shared(GN_REPLY_SLOTS * sizeof *f->slots);
    gn_lost_init(&f->lost);
    gn_replies_init(&f->r, f->slots, (struct gn_waiter){.policy = {spin_ns}, .lost = &f->lost});
    return f;
}

static void done(struct fixture *f)
{
    free(f->slots);
    free(f);
}

static void an_answer_reaches_the_call_it_is_for(void **state)
{
    struct fixture *f = fresh(0);
    uint32_t a, b;
    struct gn_reply reply;
    unsigned char payload[GN_REPLY_PAYLOAD];
    for (unsigned i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i + 1);
    assert_int_equal(gn_reply_claim(&f->r, &a), 0);
    assert_int_equal(gn_reply_claim(&f->r, &b), 0);
    assert_int_not_equal(a & 255, b & 255);
    gn_reply_send(f->slots, b, -30, payload, sizeof payload);
    gn_reply_send(f->slots, a, 7, NULL, 0);
    assert_int_equal(gn_reply_wait(&f->r, a, &reply), 0);
    assert_int_equal(reply.result, 7);
    assert_int_equal(reply.n_bytes, 0);
    assert_int_equal(gn_reply_wait(&f->r, b, &reply), 0);
    assert_int_equal(reply.result, -30);
    assert_int_equal(reply.n_bytes, sizeof payload);
    assert_memory_equal(reply.payload, payload, sizeof payload);
    gn_reply_put(&f->r, a);
    gn_reply_put(&f->r, b);
    done(f);
}

static void tokens_are_never_none_and_change_with_each_use(void **state)
{
    struct fixture *f = fresh(0);
    uint32_t before, now;
    assert_int_equal(gn_reply_claim(&f->r, &before), 0);
    gn_reply_put(&f->r, before);
    f->r.owners[before & 255].generation = 0xfffffe;
    for (int i = 0; i < 4; i++) { /* across the wrap of the generation */
        assert_int_equal(gn_reply_claim(&f->r, &now), 0);
        assert_int_equal(now & 255, before & 255); /* a thread returns to its slot */
        assert_int_not_equal(now, GN_REPLY_NONE);
        assert_int_not_equal(now >> 8, 0);
        assert_int_not_equal(now, before);
        gn_reply_send(f->slots, now, i, NULL, 0);
        struct gn_reply reply;
        assert_int_equal(gn_reply_wait(&f->r, now, &reply), 0);
        assert_int_equal(reply.result, i);
        gn_reply_put(&f->r, now);
        before = now;
    }
    done(f);
}

static void an_answer_of_an_earlier_generation_is_not_taken(void **state)
{
    struct fixture *f = fresh(0);
    uint32_t old, now;
    struct gn_reply reply;
    assert_int_equal(gn_reply_claim(&f->r, &old), 0);
    gn_reply_put(&f->r, old); /* released unused, as when the request could not be sent */
    assert_int_equal(gn_reply_claim(&f->r, &now), 0);
    gn_reply_send(f->slots, old, 1, NULL, 0);
    gn_lost_declare(&f->lost);
    assert_int_equal(gn_reply_wait(&f->r, now, &reply), -EPIPE);
    gn_reply_put(&f->r, now);
    done(f);
}

static void an_impossible_length_is_an_error(void **state)
{
    const uint32_t bad[] = {GN_REPLY_PAYLOAD + 1, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < GN_ARRAY_SIZE(bad); i++) {
        struct fixture *f = fresh(0);
        uint32_t token;
        struct gn_reply reply;
        assert_int_equal(gn_reply_claim(&f->r, &token), 0);
        gn_reply_send(f->slots, token, 0, NULL, 0);
        f->slots[token & 255].n_bytes = bad[i];
        assert_int_equal(gn_reply_wait(&f->r, token, &reply), -EPROTO);
        done(f);
    }
}

static void any_token_stays_inside_the_array(void **state)
{
    struct fixture *f = fresh(0);
    const uint32_t tokens[] = {0, 255, 256, 0x7fffffff, UINT32_MAX};
    for (size_t i = 0; i < GN_ARRAY_SIZE(tokens); i++)
        gn_reply_send(f->slots, tokens[i], 1, "x", 1); /* ASan checks the writes */
    done(f);
}

struct caller {
    struct fixture *f;
    uint32_t token; /* 0: take one */
    _Atomic pid_t tid;
    int result;
    struct gn_reply reply;
};

static void *call_thread(void *arg)
{
    struct caller *c = arg;
    atomic_store(&c->tid, (pid_t)syscall(SYS_gettid));
    if (c->token)
        c->result = gn_reply_wait(&c->f->r, c->token, &c->reply);
    else
        c->result = gn_reply_claim(&c->f->r, &c->token);
    return NULL;
}

static void start(struct caller *c, pthread_t *thread)
{
    assert_int_equal(pthread_create(thread, NULL, call_thread, c), 0);
    while (atomic_load(&c->tid) == 0)
        ;
    gn_test_wait_until_asleep(atomic_load(&c->tid));
}

static void a_parked_caller_is_woken(void **state)
{
    struct fixture *f = fresh(0);
    struct caller c = {.f = f};
    pthread_t thread;
    assert_int_equal(gn_reply_claim(&f->r, &c.token), 0);
    start(&c, &thread);
    assert_int_equal(atomic_load(&f->slots[c.token & 255].state) & GN_REPLY_PARKED,
                     GN_REPLY_PARKED);
    gn_reply_send(f->slots, c.token, 5, NULL, 0);
    pthread_join(thread, NULL);
    assert_int_equal(c.result, 0);
    assert_int_equal(c.reply.result, 5);
    gn_reply_put(&f->r, c.token);
    done(f);
}

static void taking_waits_until_a_slot_is_given_back(void **state)
{
    struct fixture *f = fresh(0);
    uint32_t tokens[GN_REPLY_SLOTS];
    unsigned char seen[GN_REPLY_SLOTS] = {0};
    for (unsigned i = 0; i < GN_REPLY_SLOTS; i++) {
        assert_int_equal(gn_reply_claim(&f->r, &tokens[i]), 0);
        assert_int_equal(seen[tokens[i] & 255]++, 0);
    }
    struct caller c[2] = {{.f = f}, {.f = f}};
    pthread_t threads[2];
    start(&c[0], &threads[0]);
    start(&c[1], &threads[1]);
    gn_reply_put(&f->r, tokens[100]);
    gn_reply_put(&f->r, tokens[200]);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(c[i].result, 0);
    }
    assert_int_not_equal(c[0].token & 255, c[1].token & 255);
    assert_int_equal(atomic_load(&f->r.n_starved), 0);
    done(f);
}

static void a_lost_worker_wakes_every_caller(void **state)
{
    for (int without_waitv = 0; without_waitv < 2; without_waitv++) {
        gn_park_without_waitv(without_waitv);
        struct fixture *f = fresh(0);
        struct caller c[4];
        pthread_t threads[4];
        uint32_t token;
        for (int i = 0; i < 3; i++) {
            c[i] = (struct caller){.f = f};
            assert_int_equal(gn_reply_claim(&f->r, &c[i].token), 0);
        }
        for (int i = 3; i < (int)GN_REPLY_SLOTS; i++)
            assert_int_equal(gn_reply_claim(&f->r, &token), 0);
        c[3] = (struct caller){.f = f}; /* waits for a free slot */
        for (int i = 0; i < 4; i++)
            start(&c[i], &threads[i]);
        gn_lost_declare(&f->lost);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(c[i].result, -EPIPE);
        }
        done(f);
    }
    gn_park_without_waitv(false);
}

static void an_answer_before_the_loss_counts(void **state)
{
    struct fixture *f = fresh(0);
    uint32_t token;
    struct gn_reply reply;
    assert_int_equal(gn_reply_claim(&f->r, &token), 0);
    gn_reply_send(f->slots, token, 3, NULL, 0);
    gn_lost_declare(&f->lost);
    assert_int_equal(gn_reply_wait(&f->r, token, &reply), 0);
    assert_int_equal(reply.result, 3);
    done(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_reaches_the_call_it_is_for),
        cmocka_unit_test(tokens_are_never_none_and_change_with_each_use),
        cmocka_unit_test(an_answer_of_an_earlier_generation_is_not_taken),
        cmocka_unit_test(an_impossible_length_is_an_error),
        cmocka_unit_test(any_token_stays_inside_the_array),
        cmocka_unit_test(a_parked_caller_is_woken),
        cmocka_unit_test(taking_waits_until_a_slot_is_given_back),
        cmocka_unit_test(a_lost_worker_wakes_every_caller),
        cmocka_unit_test(an_answer_before_the_loss_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
