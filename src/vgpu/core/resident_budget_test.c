/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the budget of resident memory: threads that obey and wait, a fake gantryd at the
 * other end of a real socket, and an API that counts what is evicted and brought in.
 */
#include "vgpu/core/evict.h"
#include "vgpu/core/serve.h"

#include "base/clock.h"
#include "link/worker_wire.h"

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define MEM_KIND  7u
#define OBJECT    gn_id_make(9, 1)
#define ANSWER_NS UINT64_C(10000000000)

/* ---- an API with one object, which has 60 of the vGPU's 100 bytes */

static struct gn_vgpu vgpu;
static struct {
    _Atomic bool evicted, refuses; /* refuses: the driver makes no object */
    _Atomic int n_evictions, n_bring_ins, n_flushes, n_served, n_answers;
    _Atomic int32_t result;
    _Atomic uint64_t most_bytes;
} seen;

static void set_evicted(bool evicted)
{
    seen.evicted = evicted;
    atomic_store(&vgpu.n_evicted, evicted);
}

static uint64_t evict(void *arg, uint64_t most_bytes, uint64_t until_ns)
{
    (void)arg;
    assert_true(until_ns > gn_now_ns());
    seen.n_evictions++;
    seen.most_bytes = most_bytes;
    if (seen.evicted)
        return 0;
    gn_lease_move(&vgpu.lease, 60, GN_LEASE_EVICTABLE, GN_LEASE_EVICTED);
    set_evicted(true);
    return 60;
}

static uint64_t bring_in(void *arg)
{
    (void)arg;
    seen.n_bring_ins++;
    if (!seen.evicted || seen.refuses)
        return 0;
    gn_lease_move(&vgpu.lease, 60, GN_LEASE_EVICTED, GN_LEASE_EVICTABLE);
    set_evicted(false);
    return 60;
}

static uint64_t evicted_bytes(void *arg)
{
    (void)arg;
    return seen.evicted ? 60 : 0;
}

static const struct gn_budget_ops ops = {evict, bring_in, evicted_bytes, NULL};

static bool is_resident(struct gn_vobject *o)
{
    (void)o;
    return !seen.evicted;
}

static int32_t bring_object_in(struct gn_vobject *o)
{
    (void)o;
    return seen.evicted ? -4 : 0;
}

static void serve_use(struct gn_vgpu *v, struct gn_request *r)
{
    (void)v;
    seen.n_served++;
    (void)gn_request_object(r, MEM_KIND, OBJECT);
    if (gn_request_faulty(r))
        return;
    assert_false(seen.evicted);
    r->result = 0;
}

static void serve_creation(struct gn_vgpu *v, struct gn_request *r)
{
    seen.n_served++;
    r->result = -4;
    if (!gn_request_charge(r, 10))
        return;
    assert_true(r->off_ring && v->budget.n_users);
    r->result = 0;
}

/* The object is never to be evicted again. */
static void serve_pin(struct gn_vgpu *v, struct gn_request *r)
{
    (void)v;
    seen.n_served++;
    r->result = -4;
    if (!gn_request_may_pin(r, 60))
        return;
    assert_true(r->off_ring);
    r->result = 0;
}

static const struct gn_request_class pin = {.name = "pin", .serve = serve_pin};
static const struct gn_request_class use = {.name = "use", .serve = serve_use},
                                     creation = {.name = "creation", .serve = serve_creation};
static bool has_resident(struct gn_vgpu *v)
{
    (void)v;
    return !seen.evicted;
}

static uint64_t evict_objects(struct gn_vgpu *v, uint64_t most_bytes)
{
    return evict(v, most_bytes, UINT64_MAX);
}

static const struct gn_vgpu_api api = {.has_resident = has_resident,
                                       .evict = evict_objects,

                                       .name = "fake",
                                       .is_resident = is_resident,
                                       .bring_in = bring_object_in,
                                       .out_of_memory = -5};

static void take_answer(struct gn_vgpu *v, const struct gn_request *r, uint32_t token,
                        const void *payload, size_t n)
{
    (void)v, (void)token, (void)payload, (void)n;
    seen.result = r->result;
    seen.n_answers++;
}

static void wake_nobody(struct gn_vgpu *v)
{
    (void)v;
}

static void count_flush(struct gn_vgpu *v)
{
    (void)v;
    seen.n_flushes++;
}

static const struct gn_vgpu_session_ops session = {.send_pending = count_flush,
                                                   .name = "fake",
                                                   .answer = take_answer,
                                                   .wake = wake_nobody,
                                                   .gate_changed = wake_nobody};

/* ---- gantryd */

static struct gn_counters counters;
static struct gn_vgpu_boot boot = {.session_fd = -1, .evicts = true};
static struct gn_frame_reader reader;
static int worker_fd, gantryd_fd;
static struct gn_vobject *object;

static struct gn_worker_resides expect_answer(uint32_t seq)
{
    struct gn_frame f;
    struct gn_worker_resides r = {0};
    assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
    assert_int_equal(f.op, GN_WORKER_RESIDES);
    assert_int_equal(f.seq, seq);
    assert_true(gn_frame_payload(&f, &r, sizeof r));
    return r;
}

static void expect_wish(void)
{
    struct gn_frame f;
    assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
    assert_int_equal(f.op, GN_WORKER_WANTS_MEMORY);
    assert_int_equal(f.n_payload, 0);
}

static void expect_nothing(void)
{
    struct gn_frame f;
    assert_int_equal(gn_frame_read(&reader, &f), 0);
}

/* The vGPU has 40 bytes that stay and 60 that can be evicted. */
static int setup(void **state)
{
    int ends[2];
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    memset(&seen, 0, sizeof seen);
    memset(&counters, 0, sizeof counters);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    worker_fd = ends[0];
    gantryd_fd = ends[1];
    gn_frame_reader_init(&reader, gantryd_fd);
    reader.keeps_frames = true;
    vgpu.boot = &boot;
    vgpu.api = &api;
    vgpu.session = &session;
    vgpu.counters = &counters;
    vgpu.evicts = true;
    gn_lost_init(&vgpu.lost);
    assert_int_equal(gn_gate_init(&vgpu.gate), 0);
    assert_int_equal(gn_lease_init(&vgpu.lease, worker_fd, &counters), 0);
    vgpu.lease.patient = true;
    vgpu.lease.leased_bytes = 1000;
    gn_budget_init(&vgpu.budget, &vgpu.lease, &ops, NULL);
    assert_int_equal(gn_lease_charge(&vgpu.lease, 100, false, true), 0);
    gn_lease_move(&vgpu.lease, 60, GN_LEASE_PINNED, GN_LEASE_EVICTABLE);
    vgpu.lessee.vgpu = &vgpu;
    gn_list_init(&vgpu.lessee.queue);
    gn_list_init(&vgpu.lessee.jobs);
    gn_objects_own_thread();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gn_vgpu_end_waits(&vgpu);
    assert_true(gn_vgpu_change_state(&vgpu.life, GN_VGPU_OWNED, GN_VGPU_SAVED));
    assert_true(gn_vgpu_change_state(&vgpu.life, GN_VGPU_SAVED, GN_VGPU_AWAY));
    gn_helpers_end(&vgpu);
    free(object);
    object = NULL;
    free(vgpu.objects.generations[0]);
    free((void *)atomic_load(&vgpu.objects.chunks[0]));
    gn_frame_reader_fini(&reader);
    close(gantryd_fd);
    close(worker_fd);
    close(vgpu.lease.wake_fd);
    return 0;
}

static void told(uint32_t seq, uint64_t bytes)
{
    gn_budget_order(&vgpu.budget, seq, bytes);
}

static void evict_to(uint32_t seq, uint64_t bytes)
{
    told(seq, bytes);
    gn_budget_obey(&vgpu.budget);
    (void)expect_answer(seq);
}

static void *await_serving(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)gn_budget_await_whole(&vgpu.budget, true);
}

static void *await(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)gn_budget_await_whole(&vgpu.budget, false);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static intptr_t join(pthread_t thread)
{
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    return (intptr_t)result;
}

/* ---- obeying */

static void test_the_serving_thread_obeys(void **state)
{
    (void)state;
    assert_false(gn_budget_has_order(&vgpu.budget));
    told(5, 50);
    assert_true(gn_budget_has_order(&vgpu.budget) && !gn_budget_is_whole(&vgpu.budget));
    expect_nothing();
    gn_budget_obey(&vgpu.budget);
    struct gn_worker_resides r = expect_answer(5);
    assert_true(r.resident_bytes == 40 && r.pinned_bytes == 40 && r.copied_bytes == 60);
    assert_int_equal(seen.most_bytes, 50);
    gn_budget_obey(&vgpu.budget); /* once */
    assert_int_equal(seen.n_evictions, 1);
    assert_int_equal(gn_budget_state(&vgpu.budget), GN_BUDGET_PARTIAL);
    told(6, GN_WORKER_RESIDE_ALL);
    gn_budget_obey(&vgpu.budget);
    r = expect_answer(6);
    assert_true(r.resident_bytes == 100 && r.pinned_bytes == 40 && r.copied_bytes == 60);
    assert_true(gn_budget_is_whole(&vgpu.budget) && !seen.evicted);
    expect_nothing();
}

static void test_a_vgpu_that_never_evicts_answers_at_once(void **state)
{
    (void)state;
    gn_lease_move(&vgpu.lease, 60, GN_LEASE_EVICTABLE, GN_LEASE_PINNED);
    vgpu.evicts = false;
    gn_vgpu_reside(&vgpu, 3, 10, true);
    struct gn_worker_resides r = expect_answer(3);
    assert_true(r.resident_bytes == 100 && r.pinned_bytes == 100);
    assert_true(gn_budget_is_whole(&vgpu.budget));
}

/* The control thread answers for a vGPU that is being saved, and for a thread that does not come.
 */
static void test_the_truth_is_told_in_time(void **state)
{
    (void)state;
    told(1, 0);
    assert_in_range(gn_budget_check(&vgpu.budget, false, false), 1, 10001);
    assert_int_equal(gn_budget_check(&vgpu.budget, true, false), -1);
    assert_int_equal(expect_answer(1).resident_bytes, 100);
    told(2, 0);
    vgpu.budget.ordered_ns -= ANSWER_NS;
    assert_int_equal(gn_budget_check(&vgpu.budget, false, false), -1);
    assert_int_equal(expect_answer(2).resident_bytes, 100);
    assert_int_equal(seen.n_evictions, 0);
    told(3, GN_WORKER_RESIDE_ALL);
    assert_in_range(gn_budget_check(&vgpu.budget, true, false), 1, 10001);
    assert_int_equal(gn_budget_check(&vgpu.budget, true, true), -1);
    (void)expect_answer(3);
    assert_true(gn_budget_is_whole(&vgpu.budget));
    assert_int_equal(gn_budget_check(&vgpu.budget, false, false), -1);
}

static void *enter_and_leave(void *arg)
{
    _Atomic bool *leaves = arg;
    if (!gn_budget_begin_use(&vgpu.budget))
        return NULL;
    while (!*leaves)
        sched_yield();
    assert_false(seen.evicted);
    gn_budget_end_use(&vgpu.budget);
    return (void *)1;
}

static void *obey(void *arg)
{
    (void)arg;
    gn_budget_obey(&vgpu.budget);
    return NULL;
}

static void test_nothing_is_evicted_under_a_user(void **state)
{
    _Atomic bool leaves = false;
    pthread_t user = start(enter_and_leave, &leaves);
    (void)state;
    for (bool in = false; !in; sched_yield()) {
        pthread_mutex_lock(&vgpu.budget.lock);
        in = vgpu.budget.n_users == 1;
        pthread_mutex_unlock(&vgpu.budget.lock);
    }
    told(1, 0);
    pthread_t server = start(obey, NULL);
    while (gn_budget_state(&vgpu.budget) != GN_BUDGET_EVICTING)
        sched_yield();
    assert_int_equal(seen.n_evictions, 0);
    expect_nothing();
    leaves = true;
    assert_int_equal(join(user), 1);
    (void)join(server);
    assert_int_equal(expect_answer(1).resident_bytes, 40);
    /* It does not enter again before everything is in. */
    user = start(enter_and_leave, &leaves);
    expect_wish();
    told(2, GN_WORKER_RESIDE_ALL);
    assert_int_equal(join(user), 1);
    (void)expect_answer(2);
}

static void test_a_user_that_stays_is_not_waited_for(void **state)
{
    (void)state;
    assert_true(gn_budget_begin_use(&vgpu.budget));
    told(1, 0);
    vgpu.budget.ordered_ns -= ANSWER_NS;
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(1).resident_bytes, 100);
    assert_int_equal(seen.n_evictions, 0);
    gn_budget_end_use(&vgpu.budget);
}

static void test_nothing_is_evicted_while_the_vgpu_moves(void **state)
{
    (void)state;
    gn_budget_init(&vgpu.budget, &vgpu.lease, &gn_evict_ops, &vgpu);
    atomic_store(&vgpu.moving, true);
    told(1, 0);
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(1).resident_bytes, 100);
    told(2, 0);
    assert_int_equal(gn_vgpu_check_budget(&vgpu), -1); /* the serving thread stands at the gate */
    assert_int_equal(expect_answer(2).resident_bytes, 100);
    atomic_store(&vgpu.moving, false);
    told(3, 100);
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(3).copied_bytes, 0); /* there is nothing to do */
    assert_int_equal(seen.n_evictions, 0);
    told(4, 99);
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(4).resident_bytes, 40);
    assert_int_equal(seen.most_bytes, 99);
}

/* ---- waiting */

static void test_waits_end_when_everything_is_in(void **state)
{
    (void)state;
    assert_true(gn_budget_await_whole(&vgpu.budget, false));
    evict_to(1, 0);
    pthread_t a = start(await, NULL), b = start(await, NULL);
    expect_wish();
    /* One of the waiting threads does it. */
    told(2, GN_WORKER_RESIDE_ALL);
    assert_true(join(a) && join(b));
    assert_int_equal(expect_answer(2).resident_bytes, 100);
    assert_int_equal(seen.n_bring_ins, 1);
    expect_nothing(); /* the second thread's wish was not sent */
}

static void test_a_serving_thread_that_waits_obeys(void **state)
{
    (void)state;
    evict_to(1, 50);
    pthread_t server = start(await_serving, NULL), other = start(await, NULL);
    expect_wish();
    told(2, 45);
    assert_int_equal(expect_answer(2).resident_bytes, 40);
    assert_int_equal(seen.most_bytes, 45);
    expect_wish(); /* again after an answer */
    told(3, GN_WORKER_RESIDE_ALL);
    (void)expect_answer(3);
    assert_true(join(server) && join(other));
    assert_int_equal(seen.n_evictions, 2);
}

static void test_waits_go_on_while_the_driver_refuses(void **state)
{
    (void)state;
    evict_to(1, 0);
    pthread_t waits = start(await, NULL);
    expect_wish();
    seen.refuses = true;
    told(2, GN_WORKER_RESIDE_ALL);
    struct gn_worker_resides r = expect_answer(2);
    assert_true(r.refused_bytes == 60 && r.resident_bytes == 40);
    expect_wish();
    seen.refuses = false;
    told(3, GN_WORKER_RESIDE_ALL);
    assert_int_equal(expect_answer(3).refused_bytes, 0);
    assert_true(join(waits));
}

static void test_in_the_end_the_program_gets_the_refusal(void **state)
{
    (void)state;
    for (uint32_t seq = 1; seq < 20;) {
        evict_to(seq++, 0);
        seen.refuses = true;
        for (uint32_t i = 0; i < GN_WORKER_REFUSALS; i++) {
            told(seq, GN_WORKER_RESIDE_ALL);
            gn_budget_obey(&vgpu.budget);
            assert_int_equal(expect_answer(seq++).refused_bytes, 60);
            assert_int_equal(gn_budget_state(&vgpu.budget), GN_BUDGET_PARTIAL);
        }
        told(seq, GN_WORKER_RESIDE_ALL);
        gn_budget_obey(&vgpu.budget);
        assert_int_equal(expect_answer(seq++).refused_bytes, 0);
        assert_true(gn_budget_is_whole(&vgpu.budget) && seen.evicted);
    }
}

static void test_waits_end_with_the_vgpu(void **state)
{
    (void)state;
    evict_to(1, 0);
    pthread_t server = start(await_serving, NULL), other = start(await, NULL);
    expect_wish();
    gn_budget_end(&vgpu.budget);
    assert_false(join(server) || join(other));
    told(2, GN_WORKER_RESIDE_ALL); /* too late */
    assert_false(gn_budget_await_whole(&vgpu.budget, true) || gn_budget_begin_use(&vgpu.budget));
    assert_int_equal(seen.n_bring_ins, 0);
}

static void test_the_test_mode_lets_nobody_in(void **state)
{
    (void)state;
    assert_true(gn_budget_begin_use(&vgpu.budget));
    assert_false(gn_budget_begin_test(&vgpu.budget));
    gn_budget_end_use(&vgpu.budget);
    assert_true(gn_budget_begin_test(&vgpu.budget));
    pthread_t other = start(await, NULL);
    gn_budget_end_test(&vgpu.budget);
    assert_true(join(other));
    expect_nothing();
}

/* ---- requests */

static void *serve(void *arg)
{
    struct gn_request *r = malloc(sizeof *r);
    struct gn_msg msg = {.size = sizeof msg, .reply = 1};
    gn_objects_own_thread();
    assert_non_null(r);
    gn_request_init(r, &vgpu);
    r->class = arg;
    r->n_bytes = sizeof msg;
    memcpy(r->bytes, &msg, sizeof msg);
    gn_vgpu_answer(&vgpu, r);
    free(r);
    return NULL;
}

static void put_object(void)
{
    static char driver;
    assert_non_null(object = gn_object_put(&vgpu, OBJECT, MEM_KIND, &driver));
}

static void test_a_request_waits_for_its_object(void **state)
{
    (void)state;
    put_object();
    evict_to(1, 0);
    pthread_t server = start(serve, (void *)&use);
    expect_wish();
    assert_int_equal(seen.n_answers, 0);
    told(2, GN_WORKER_RESIDE_ALL);
    (void)join(server);
    (void)expect_answer(2);
    assert_true(seen.n_answers == 1 && seen.result == 0 && seen.n_served == 2);
    assert_int_equal(seen.n_flushes, 1);
}

static void test_a_request_of_a_resident_object_does_not_wait(void **state)
{
    (void)state;
    put_object();
    evict_to(1, 0);
    set_evicted(false);
    (void)serve((void *)&use);
    assert_true(seen.n_answers == 1 && seen.result == 0 && seen.n_served == 1);
    expect_nothing();
}

static void test_a_request_fails_at_the_end(void **state)
{
    (void)state;
    put_object();
    evict_to(1, 0);
    pthread_t server = start(serve, (void *)&use);
    expect_wish();
    gn_vgpu_end_waits(&vgpu);
    (void)join(server);
    assert_true(seen.n_answers == 1 && seen.result == -5);
}

static void *judge(void *arg)
{
    gn_command_await_objects(arg);
    assert_true(gn_budget_is_whole(&vgpu.budget) && !seen.evicted);
    return NULL;
}

static void test_a_command_waits_before_it_is_judged(void **state)
{
    struct gn_command *c = calloc(1, sizeof *c);
    (void)state;
    assert_non_null(c);
    c->vgpu = &vgpu;
    gn_command_await_objects(c); /* everything is in */
    put_object();
    evict_to(1, 0);
    gn_command_await_objects(c); /* it names nothing */
    c->refs[0] = object;
    pthread_t server = start(judge, c);
    expect_wish();
    told(2, GN_WORKER_RESIDE_ALL);
    (void)expect_answer(2);
    (void)join(server);
    free(c);
}

static void await_answer(void)
{
    while (!seen.n_answers)
        sched_yield();
}

/* The lease covers it, but the budget does not. */
static void test_a_creation_waits(void **state)
{
    (void)state;
    evict_to(1, 0);
    (void)serve((void *)&creation);
    expect_wish();
    assert_int_equal(seen.n_answers, 0);
    /* Its bytes are in no driver. */
    told(2, 0);
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(2).resident_bytes, 40);
    expect_wish();
    told(3, GN_WORKER_RESIDE_ALL);
    await_answer();
    (void)expect_answer(3);
    assert_true(seen.result == 0 && seen.n_served == 2);
}

static void test_an_ask_says_what_is_pinned(void **state)
{
    struct gn_frame f;
    struct gn_worker_lease ask;
    (void)state;
    vgpu.lease.leased_bytes = 100;
    (void)serve((void *)&creation);
    assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
    assert_int_equal(f.op, GN_WORKER_LEASE);
    assert_true(gn_frame_payload(&f, &ask, sizeof ask));
    assert_true(ask.need_bytes == 10 && ask.pinned_bytes == 40);
    /* While gantryd thinks, the memory may go. */
    told(2, 0);
    gn_budget_obey(&vgpu.budget);
    assert_int_equal(expect_answer(2).resident_bytes, 40);
    gn_lease_answered(&vgpu.lease, f.seq, 10);
    expect_wish();
    told(3, GN_WORKER_RESIDE_ALL);
    await_answer();
    (void)expect_answer(3);
    assert_int_equal(seen.result, 0);
}

static void test_gantryd_is_asked_before_a_pin(void **state)
{
    (void)state;
    vgpu.lease.asks_pins = true;
    for (int granted = 1; granted >= 0; granted--) {
        struct gn_frame f;
        struct gn_worker_lease ask;
        vgpu.lease.told_pinned_bytes = 40;
        seen.n_answers = 0;
        (void)serve((void *)&pin);
        assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
        assert_int_equal(f.op, GN_WORKER_LEASE);
        assert_true(gn_frame_payload(&f, &ask, sizeof ask));
        assert_true(ask.need_bytes == 1 && ask.pins && ask.pinned_bytes >= 100);
        gn_lease_answered(&vgpu.lease, f.seq, (uint64_t)granted);
        await_answer();
        assert_int_equal(seen.result, granted ? 0 : -4);
    }
}

static void test_an_ask_ends_with_the_vgpu(void **state)
{
    struct gn_frame f;
    (void)state;
    vgpu.lease.leased_bytes = 100;
    (void)serve((void *)&creation);
    assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
    assert_int_equal(f.op, GN_WORKER_LEASE);
    gn_vgpu_end_waits(&vgpu);
    await_answer();
    assert_int_not_equal(seen.result, 0);
}

static void test_a_refused_creation_fails(void **state)
{
    struct gn_frame f;
    (void)state;
    vgpu.lease.leased_bytes = 100;
    (void)serve((void *)&creation);
    assert_int_equal(gn_frame_wait(&reader, 60000, &f), 1);
    gn_lease_answered(&vgpu.lease, f.seq, 0);
    await_answer();
    assert_int_equal(seen.result, -4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_serving_thread_obeys),
        TEST(test_a_vgpu_that_never_evicts_answers_at_once),
        TEST(test_the_truth_is_told_in_time),
        TEST(test_nothing_is_evicted_under_a_user),
        TEST(test_a_user_that_stays_is_not_waited_for),
        TEST(test_nothing_is_evicted_while_the_vgpu_moves),
        TEST(test_waits_end_when_everything_is_in),
        TEST(test_a_serving_thread_that_waits_obeys),
        TEST(test_waits_go_on_while_the_driver_refuses),
        TEST(test_in_the_end_the_program_gets_the_refusal),
        TEST(test_waits_end_with_the_vgpu),
        TEST(test_the_test_mode_lets_nobody_in),
        TEST(test_a_request_waits_for_its_object),
        TEST(test_a_request_of_a_resident_object_does_not_wait),
        TEST(test_a_request_fails_at_the_end),
        TEST(test_a_command_waits_before_it_is_judged),
        TEST(test_a_creation_waits),
        TEST(test_an_ask_says_what_is_pinned),
        TEST(test_gantryd_is_asked_before_a_pin),
        TEST(test_an_ask_ends_with_the_vgpu),
        TEST(test_a_refused_creation_fails),
    };
    return cmocka_run_group_tests_name("resident budget", tests, NULL, NULL);
}
