/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the gate: a vGPU is quiesced while a fake driver completes commands as the test
 * says.
 */
#include "vgpu/core/fake_api.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define LONG_NS  UINT64_C(20000000000)
#define SHORT_NS UINT64_C(50000000)

/* ---- a fake driver: a finish completes all commands, and returns when the test allows it */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool holds;      /* finishes do not return */
    bool tells_late; /* the test reports completions itself */
    uint32_t n_finishing;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void finish_queue(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
    pthread_mutex_lock(&driver.lock);
    driver.n_finishing++;
    pthread_cond_broadcast(&driver.wake);
    while (driver.holds)
        pthread_cond_wait(&driver.wake, &driver.lock);
    driver.n_finishing--;
    bool late = driver.tells_late;
    pthread_mutex_unlock(&driver.lock);
    if (!late)
        gn_fake_end_all();
}

static void let_finish(void)
{
    pthread_mutex_lock(&driver.lock);
    driver.holds = false;
    pthread_cond_broadcast(&driver.wake);
    pthread_mutex_unlock(&driver.lock);
}

static void until_finishing(void)
{
    pthread_mutex_lock(&driver.lock);
    while (!driver.n_finishing)
        pthread_cond_wait(&driver.wake, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
}

static const struct gn_request_class plain = {
    .name = "plain", .admit = gn_fake_admit, .submit = gn_fake_submit};
static const struct gn_vgpu_api api = {GN_FAKE_API, .flush = gn_fake_leave_queue,
                                       .finish = finish_queue, .wait_failed = -14};

static struct gn_vgpu vgpu;
static struct gn_vdevice device;
static struct gn_counters counters;
static struct gn_vgpu_boot boot = {.session_fd = -1};
static struct gn_grant_page grants;
static _Alignas(64) unsigned char ring_memory[GN_RING_BYTES(64)];
static struct gn_ring_producer producer;
static uint64_t queue_id;
static pthread_t ring_thread;
static _Atomic bool ends;
static _Atomic uint32_t n_served;

/* The ring thread's loop, reduced to the gate and the ring. */
static void *serve_ring(void *arg)
{
    unsigned char message[GN_RING_MAX_BYTES];
    (void)arg;
    gn_objects_own_thread();
    while (!atomic_load(&ends)) {
        if (gn_gate_is_closed(&vgpu.gate))
            gn_gate_quiesce(&vgpu);
        else if (gn_ring_try_receive(&vgpu.ring, message) > 0)
            atomic_fetch_add(&n_served, 1);
        else if (gn_ring_spin(&vgpu.ring) == -EAGAIN)
            gn_ring_park(&vgpu.ring, 0);
    }
    return NULL;
}

static int setup(void **state)
{
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_shm;
    memset(&device, 0, sizeof device);
    memset(&grants, 0, sizeof grants);
    memset(ring_memory, 0, sizeof ring_memory);
    driver.holds = driver.tells_late = gn_fake.busy = false;
    gn_fake.quiet = NULL;
    gn_fake.n_given = 0;
    vgpu.api = &api;
    vgpu.boot = &boot;
    vgpu.counters = &counters;
    vgpu.devices = &device;
    vgpu.n_devices = 1;
    vgpu.events = mmap(NULL, GN_EVENT_TABLE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(vgpu.events != MAP_FAILED);
    gn_lost_init(&vgpu.lost);
    struct gn_waiter waiter = {gn_spin_policy_default(), &vgpu.lost};
    assert_int_equal(gn_ring_producer_init(&producer, (void *)ring_memory, 64, 0, waiter), 0);
    assert_int_equal(gn_ring_consumer_init(&vgpu.ring, (void *)ring_memory, 64, 0, waiter), 0);
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    pthread_mutex_init(&vgpu.helper_lock, NULL);
    assert_int_equal(gn_gate_init(&vgpu.gate), 0);
    assert_int_equal(gn_lease_init(&vgpu.lease, -1, &counters), 0);
    boot.grants.base = &grants;
    boot.tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    gn_device_init(&vgpu, 0);
    gn_objects_own_thread();
    queue_id = gn_id_make(7, 1);
    struct gn_vobject *queue = gn_object_put(&vgpu, queue_id, GN_FAKE_KIND_QUEUE, &gn_fake.event);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, true, false, false);
    atomic_store(&ends, false);
    atomic_store(&n_served, 0);
    assert_int_equal(pthread_create(&ring_thread, NULL, serve_ring, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&ends, true);
    if (gn_gate_is_closed(&vgpu.gate))
        gn_gate_open(&vgpu);
    gn_lost_declare(&vgpu.lost);
    gn_ring_nudge(&vgpu.ring);
    pthread_join(ring_thread, NULL);
    /* Commands that wait for an event that is never set. */
    gn_list_for_each(q, &device.queues, struct gn_vqueue, link)
        gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        gn_list_remove(&c->link);
        gn_command_unref(c);
    }
    gn_object_remove(&vgpu, queue_id, GN_FAKE_KIND_QUEUE);
    for (uint32_t i = 0; i < GN_ARRAY_SIZE(vgpu.event_chunks); i++)
        free(vgpu.event_chunks[i]);
    free(vgpu.objects.generations[0]);
    free((void *)atomic_load(&vgpu.objects.chunks[0]));
    munmap(vgpu.events, GN_EVENT_TABLE_BYTES);
    close(boot.tell_fd);
    return 0;
}

/* Enqueues a command with this event that waits for another event (GN_NO_EVENT: for none). */
static void enqueue(uint32_t event, uint32_t wait)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
        uint32_t waits[2];
    } m = {.msg = {.size = sizeof m},
           .head = {.queue = queue_id, .event = event, .waits = {.segment = GN_SPAN_NULL}}};
    if (wait != GN_NO_EVENT) {
        m.head.waits = (struct gn_span){GN_SPAN_INLINE, 4, sizeof m.msg + sizeof m.head};
        m.waits[0] = wait;
    }
    if (event != GN_NO_EVENT)
        gn_event_arm(gn_event_at(vgpu.events, event));
    gn_command_admit(&vgpu, &plain, (void *)&m, sizeof m, 0);
}

static enum gn_event_phase phase(uint32_t event)
{
    return gn_event_phase(gn_event_at(vgpu.events, event), NULL);
}

static uint32_t n_pending(void)
{
    uint32_t n = 0;
    const struct gn_vqueue *q = gn_list_first(&device.queues, struct gn_vqueue, link);
    gn_list_for_each(c, &q->pending, const struct gn_command, link) n++;
    return n;
}

static void test_what_has_begun_ends_and_what_waits_stays(void **state)
{
    struct gn_error err;
    (void)state;
    assert_int_equal(gn_user_event_new(&vgpu, 9), 0);
    enqueue(1, GN_NO_EVENT);
    enqueue(2, 9);
    assert_int_equal(phase(1), GN_EVENT_SUBMITTED);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    assert_int_equal(phase(1), GN_EVENT_DONE);
    assert_int_equal(phase(2), GN_EVENT_QUEUED);
    assert_int_equal(n_pending(), 1);
    /* The command becomes ready, but is not submitted while the gate is closed. */
    assert_int_equal(gn_user_event_set(&vgpu, 9, 0), 0);
    assert_int_equal(phase(2), GN_EVENT_QUEUED);
    gn_gate_open(&vgpu);
    gn_device_pump(&device);
    assert_int_equal(phase(2), GN_EVENT_SUBMITTED);
    gn_fake_end_all();
    assert_int_equal(phase(2), GN_EVENT_DONE);
}

static void test_requests_wait_in_the_ring(void **state)
{
    struct gn_error err;
    uint64_t before = 0, end = 0;
    const uint32_t word = 1;
    (void)state;
    assert_int_equal(gn_ring_send(&producer, &word, sizeof word, NULL, 0, &before), 0);
    while (!gn_ring_passed(&producer, before))
        ;
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    assert_int_equal(gn_ring_send(&producer, &word, sizeof word, NULL, 0, &end), 0);
    assert_int_equal(atomic_load(&n_served), 1);
    assert_int_equal(vgpu.ring.head, before);
    gn_gate_open(&vgpu);
    while (!gn_ring_passed(&producer, end))
        ;
    assert_int_equal(atomic_load(&n_served), 2);
}

/* The driver may report a completion after the queue has been finished. */
static void *close_gate(void *arg)
{
    struct gn_error err;
    int r = gn_gate_close(&vgpu, LONG_NS, &err);
    *(int *)arg = r;
    return NULL;
}

static void test_ends_that_are_told_late_are_waited_for(void **state)
{
    pthread_t thread;
    int r = 1;
    (void)state;
    driver.tells_late = driver.holds = true;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(pthread_create(&thread, NULL, close_gate, &r), 0);
    until_finishing();
    let_finish();
    gn_fake_end_all();
    pthread_join(thread, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(phase(1), GN_EVENT_DONE);
    gn_gate_open(&vgpu);
}

static void test_a_drain_that_takes_too_long_is_given_up(void **state)
{
    struct gn_error err;
    (void)state;
    driver.holds = true;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(gn_gate_close(&vgpu, SHORT_NS, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.what, "longer"));
    assert_false(gn_gate_is_closed(&vgpu.gate));
    /* The program continues. */
    enqueue(2, GN_NO_EVENT);
    assert_int_equal(phase(2), GN_EVENT_SUBMITTED);
    /* The first wait goes on, too. Until it ends, there is no second one. */
    assert_int_equal(gn_gate_close(&vgpu, SHORT_NS, &err), -EBUSY);
    let_finish();
    pthread_mutex_lock(&vgpu.gate.lock);
    while (vgpu.gate.draining)
        pthread_cond_wait(&vgpu.gate.wake, &vgpu.gate.lock);
    pthread_mutex_unlock(&vgpu.gate.lock);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    assert_int_equal(phase(2), GN_EVENT_DONE);
    gn_gate_open(&vgpu);
}

/* Ahead of the stop: nothing is submitted any more, but the program is served. */
static void *hold_gate(void *arg)
{
    struct gn_error err;
    *(int *)arg = gn_gate_hold(&vgpu, LONG_NS, &err);
    return NULL;
}

static void test_commands_are_held_while_the_program_goes_on(void **state)
{
    struct gn_error err;
    pthread_t thread;
    uint64_t end = 0;
    const uint32_t word = 1;
    int r = 1;
    (void)state;
    driver.holds = true;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(pthread_create(&thread, NULL, hold_gate, &r), 0);
    until_finishing();
    enqueue(2, GN_NO_EVENT);
    assert_int_equal(phase(2), GN_EVENT_QUEUED);
    assert_int_equal(gn_ring_send(&producer, &word, sizeof word, NULL, 0, &end), 0);
    while (!gn_ring_passed(&producer, end))
        ;
    assert_int_equal(atomic_load(&n_served), 1);
    assert_false(gn_gate_is_closed(&vgpu.gate));
    let_finish();
    pthread_join(thread, NULL);
    assert_int_equal(r, 0);
    assert_int_equal(phase(1), GN_EVENT_DONE);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    assert_int_equal(n_pending(), 1);
    gn_gate_open(&vgpu);
    gn_device_pump(&device);
    assert_int_equal(phase(2), GN_EVENT_SUBMITTED);
    gn_fake_end_all();
}

static void test_a_hold_that_takes_too_long_is_given_up(void **state)
{
    struct gn_error err;
    (void)state;
    driver.holds = true;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(gn_gate_hold(&vgpu, SHORT_NS, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.what, "longer"));
    enqueue(2, GN_NO_EVENT);
    assert_int_equal(phase(2), GN_EVENT_SUBMITTED);
    let_finish();
    pthread_mutex_lock(&vgpu.gate.lock);
    while (vgpu.gate.draining)
        pthread_cond_wait(&vgpu.gate.wake, &vgpu.gate.lock);
    pthread_mutex_unlock(&vgpu.gate.lock);
}

static void test_the_grant_is_given_up_and_asked_for_anew(void **state)
{
    struct gn_error err;
    (void)state;
    device.turn.slot = &grants.slots[0];
    device.turn.tell_fd = boot.tell_fd;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_WANTED);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_NONE);
    assert_int_equal(n_pending(), 1);
    gn_gate_open(&vgpu);
    gn_device_pump(&device);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_WANTED);
    assert_true(gn_grant_assign(device.turn.slot, 1000000, false));
    gn_turn_began(&device);
    gn_device_pump(&device);
    assert_int_equal(phase(1), GN_EVENT_SUBMITTED);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
    /* gantryd's as soon as it preempts */
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_PARKED);
    assert_int_equal(phase(1), GN_EVENT_DONE);
    gn_gate_open(&vgpu);
}

/*
 * Another device's work, or a build, may delay a stop for long: meanwhile other vGPUs use this
 * device.
 */
static void test_a_grant_is_not_kept_for_what_is_held(void **state)
{
    struct gn_error err;
    (void)state;
    device.turn.slot = &grants.slots[0];
    device.turn.tell_fd = boot.tell_fd;
    enqueue(1, GN_NO_EVENT);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_WANTED);
    assert_int_equal(gn_gate_hold(&vgpu, LONG_NS, &err), 0);
    assert_true(gn_grant_assign(device.turn.slot, 1000000, true));
    gn_turn_began(&device);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_NONE);
    assert_false(atomic_load(&device.turn.wanted));
    gn_gate_open(&vgpu);
    gn_device_pump(&device);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_WANTED);
    assert_true(gn_grant_assign(device.turn.slot, LONG_NS, true));
    gn_turn_began(&device);
    gn_device_pump(&device);
    assert_int_equal(phase(1), GN_EVENT_SUBMITTED);
    /* The grant is held, and the commands that are ready behind it are held back. */
    enqueue(2, GN_NO_EVENT);
    enqueue(3, GN_NO_EVENT);
    enqueue(4, GN_NO_EVENT);
    gn_fake_end_all();
    assert_int_equal(gn_gate_hold(&vgpu, LONG_NS, &err), 0);
    assert_true(n_pending() > 0);
    assert_int_equal(gn_grant_look(device.turn.slot), GN_GRANT_NONE);
    gn_gate_open(&vgpu);
}

/* The program releases a queue while a command runs: this last command is still waited for. */
static void test_a_queue_that_is_gone_works_on(void **state)
{
    struct gn_error err;
    (void)state;
    gn_fake.busy = true;
    enqueue(GN_NO_EVENT, GN_NO_EVENT);
    assert_int_equal(gn_fake.n_given, 0); /* its completion is not tracked */
    gn_object_remove(&vgpu, queue_id, GN_FAKE_KIND_QUEUE);
    assert_non_null(gn_fake.quiet);
    assert_int_equal(gn_gate_settle(&vgpu, SHORT_NS), -ETIMEDOUT);
    assert_int_equal(gn_gate_close(&vgpu, SHORT_NS, &err), -ETIMEDOUT);
    gn_fake.quiet(gn_fake.quiet_arg);
    assert_int_equal(gn_gate_settle(&vgpu, LONG_NS), 0);
    assert_int_equal(gn_gate_close(&vgpu, LONG_NS, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_has_begun_ends_and_what_waits_stays, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_requests_wait_in_the_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends_that_are_told_late_are_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_drain_that_takes_too_long_is_given_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_commands_are_held_while_the_program_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_hold_that_takes_too_long_is_given_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_grant_is_given_up_and_asked_for_anew, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_grant_is_not_kept_for_what_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_queue_that_is_gone_works_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
