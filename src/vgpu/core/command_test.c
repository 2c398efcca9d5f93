/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of command completion when a driver reports ends in any order, and of a vGPU's turns
 * on a device.
 */
#include "vgpu/core/evict.h"
#include "vgpu/core/fake_api.h"

#include "shm/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define N 16u

/* ---- a fake API: its driver keeps each command until the test ends it */

/* A finish that has nothing to wait for in the driver. */
static int32_t submit_over(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                           void *const *waits, void **event)
{
    (void)v, (void)c, (void)queue, (void)n_waits, (void)waits, (void)event;
    return 0;
}

static int32_t submit_slowly(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits,
                             void *const *waits, void **event)
{
    const struct timespec takes = {0, 3000000};
    assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &takes, NULL), 0);
    return gn_fake_submit(v, c, queue, n_waits, waits, event);
}

static int32_t submit_refused(struct gn_vgpu *v, struct gn_command *c, void *queue,
                              uint32_t n_waits, void *const *waits, void **event)
{
    (void)v, (void)c, (void)queue, (void)n_waits, (void)waits, (void)event;
    return -6;
}

static uint32_t n_finished;

static void finish_queue(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
    n_finished++;
}

static uint32_t n_flushed;

static void flush(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
    n_flushed = gn_fake.n_given;
}

static uint64_t started_ns, ended_ns;

static void ran(struct gn_vgpu *v, void *event, uint64_t *ret_start_ns, uint64_t *ret_end_ns)
{
    (void)v, (void)event;
    *ret_start_ns = started_ns;
    *ret_end_ns = ended_ns;
}

static const struct gn_request_class plain = {
    .name = "plain", .admit = gn_fake_admit, .submit = gn_fake_submit};
static const struct gn_request_class many = {
    .name = "many", .admit = gn_fake_admit, .submit = gn_fake_submit, .many = true};
static const struct gn_request_class slow = {
    .name = "slow", .admit = gn_fake_admit, .submit = submit_slowly};
static uint32_t n_judged;
static int32_t verdict;

static int32_t judge(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
    n_judged++;
    return verdict;
}

static const struct gn_request_class judged = {
    .name = "judged", .admit = gn_fake_admit, .submit = gn_fake_submit, .judge = judge};
static const struct gn_request_class finish = {
    .name = "finish", .admit = gn_fake_admit, .submit = submit_over, .ordered = true};
static const struct gn_request_class refused = {
    .name = "refused", .admit = gn_fake_admit, .submit = submit_refused};
static const struct gn_vgpu_api api = {GN_FAKE_API, .flush = flush, .finish = finish_queue,
                                       .ran = ran};

static struct gn_vgpu vgpu;
static struct gn_vdevice device;
static struct gn_counters counters;
static struct gn_vgpu_boot boot;
static struct gn_grant_slot slot;
static struct gn_ring ring; /* no thread sleeps on it */
static uint64_t queue_id;

static void start(bool in_order)
{
    vgpu = (struct gn_vgpu){.session = &gn_vgpu_session_shm};
    gn_budget_init(&vgpu.budget, &vgpu.lease, &gn_evict_ops, &vgpu);
    memset(&device, 0, sizeof device);
    gn_fake.n_given = n_finished = n_flushed = 0;
    gn_fake.busy = false;
    gn_fake.quiet = NULL;
    memset(&slot, 0, sizeof slot);
    vgpu.ring.ring = &ring;
    vgpu.api = &api;
    vgpu.boot = &boot;
    vgpu.counters = &counters;
    vgpu.devices = &device;
    vgpu.n_devices = 1;
    vgpu.events = mmap(NULL, GN_EVENT_TABLE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(vgpu.events != MAP_FAILED);
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    device.vgpu = &vgpu;
    gn_list_init(&device.queues);
    pthread_mutex_init(&device.role, NULL);
    gn_objects_own_thread();
    queue_id = gn_id_make(7, 1);
    struct gn_vobject *queue = gn_object_put(&vgpu, queue_id, GN_FAKE_KIND_QUEUE, &gn_fake.event);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, in_order, false, true);
    assert_non_null(queue->detail);
}

static void stop(void)
{
    gn_object_remove(&vgpu, queue_id, GN_FAKE_KIND_QUEUE);
    assert_true(gn_list_empty(&device.queues));
    for (uint32_t i = 0; i < GN_EVENT_ENTRIES / GN_OBJECT_CHUNK; i++)
        free(vgpu.event_chunks[i]);
    free(vgpu.objects.generations[0]);
    free((void *)atomic_load(&vgpu.objects.chunks[0]));
    munmap(vgpu.events, GN_EVENT_TABLE_BYTES);
    assert_int_equal(vgpu.fault, 0);
}

static void enqueue(const struct gn_request_class *class, uint32_t event)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
    } m = {{sizeof m, 0, 0, GN_NO_REPLY, 0}, {queue_id, {GN_SPAN_NULL, 0, 0}, event, 0}};
    if (event != GN_NO_EVENT)
        gn_event_arm(&vgpu.events[event]);
    gn_command_admit(&vgpu, class, (const void *)&m, sizeof m, 0);
}

/* ---- the parts of gantryd and of the submit thread */

static void scheduled(void)
{
    device.turn.slot = &slot;
    device.turn.tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(device.turn.tell_fd >= 0);
}

static bool was_gantryd_told(void)
{
    uint64_t n;
    return read(device.turn.tell_fd, &n, sizeof n) == sizeof n;
}

static void assign_grant(uint64_t slice_ns, bool preempted)
{
    assert_true(gn_grant_assign(&slot, slice_ns, preempted));
    pthread_mutex_lock(&device.role);
    gn_turn_began(&device);
    pthread_mutex_unlock(&device.role);
    gn_device_pump(&device);
}

static void end_turn(void)
{
    pthread_mutex_lock(&device.role);
    gn_turn_end(&device);
    pthread_mutex_unlock(&device.role);
}

static void unscheduled(void)
{
    close(device.turn.tell_fd);
    stop();
}

static bool over(uint32_t event)
{
    return gn_event_phase(&vgpu.events[event], NULL) == GN_EVENT_DONE;
}

static void test_in_order_queue_ends_in_order(void **state)
{
    (void)state;
    start(true);
    for (uint32_t i = 0; i < 3; i++)
        enqueue(&plain, i);
    assert_int_equal(gn_fake.n_given, 3);
    gn_command_over(gn_fake.given[2], 0);
    gn_command_over(gn_fake.given[1], -5);
    assert_false(over(0) || over(1) || over(2));
    gn_command_over(gn_fake.given[0], 0);
    int32_t error = 0;
    assert_true(over(0) && over(1) && over(2));
    gn_event_phase(&vgpu.events[1], &error);
    assert_int_equal(error, -5);
    stop();
}

/*
 * After a finish returns, every event of the queue is complete, even if the driver has not called
 * back yet.
 */
static void test_finish_waits_for_what_is_not_told(void **state)
{
    for (int in_order = 0; in_order < 2; in_order++) {
        (void)state;
        start(in_order);
        enqueue(&plain, 0);
        enqueue(&finish, 1);
        assert_false(over(1));
        gn_command_over(gn_fake.given[0], 0);
        assert_true(over(0) && over(1));
        stop();
    }
}

static void test_out_of_order_queue_ends_as_the_driver_does(void **state)
{
    (void)state;
    start(false);
    enqueue(&plain, 0);
    enqueue(&plain, 1);
    enqueue(&finish, 2);
    gn_command_over(gn_fake.given[1], 0);
    assert_true(over(1));
    assert_false(over(0) || over(2));
    gn_command_over(gn_fake.given[0], 0);
    assert_true(over(0) && over(2));
    stop();
}

static void test_what_the_driver_refuses_has_its_place(void **state)
{
    int32_t error = 0;
    (void)state;
    start(true);
    enqueue(&plain, 0);
    enqueue(&refused, 1);
    assert_false(over(1));
    gn_command_over(gn_fake.given[0], 0);
    assert_true(over(0) && over(1));
    gn_event_phase(&vgpu.events[1], &error);
    assert_int_equal(error, -6);
    stop();
}

/* The queue may be released while its commands run. */
static void test_the_last_end_takes_the_queue_with_it(void **state)
{
    (void)state;
    start(true);
    enqueue(&plain, 0);
    gn_object_remove(&vgpu, queue_id, GN_FAKE_KIND_QUEUE);
    assert_false(gn_list_empty(&device.queues));
    gn_command_over(gn_fake.given[0], 0);
    assert_true(over(0));
    stop();
}

/* Reserved fields must be zero, so that they can get a meaning later. */
static void test_padding_is_zero(void **state)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
    } m;
    (void)state;
    start(true);
    m.msg = (struct gn_msg){sizeof m, 0, 0, GN_NO_REPLY, 0};
    m.head = (struct gn_command_head){queue_id, {GN_SPAN_NULL, 0, 0}, GN_NO_EVENT, 1};
    gn_command_admit(&vgpu, &plain, (const void *)&m, sizeof m, 0);
    assert_int_equal(atomic_exchange(&vgpu.fault, 0), 1);
    stop();
}

/*
 * An answer is due while the command's data is still on its way: the command is dropped, and data
 * that arrives later does not affect it.
 */
static void test_what_is_dropped_waits_for_no_data(void **state)
{
    static struct gn_reply_slot reply;
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
    } m;
    (void)state;
    start(true);
    gn_list_init(&vgpu.batch_waiters);
    vgpu.view.replies = &reply;
    m.msg = (struct gn_msg){sizeof m, 0, GN_MSG_ASK, 0, -5};
    m.head = (struct gn_command_head){queue_id, {GN_SPAN_NULL, 0, 0}, GN_NO_EVENT, 0};
    gn_command_admit(&vgpu, &plain, (const void *)&m, sizeof m, 1);
    assert_int_equal(reply.result, -5);
    assert_true(gn_list_empty(&vgpu.batch_waiters));
    gn_commands_batch_came(&vgpu, 1);
    assert_int_equal(gn_fake.n_given, 0);
    stop();
}

static int32_t ask(uint32_t event, uint64_t batch, int32_t assumed)
{
    static struct gn_reply_slot reply;
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
    } m = {{sizeof m, 0, GN_MSG_ASK, 0, assumed}, {queue_id, {GN_SPAN_NULL, 0, 0}, event, 0}};
    vgpu.view.replies = &reply;
    gn_event_arm(&vgpu.events[event]);
    gn_command_admit(&vgpu, &judged, (const void *)&m, sizeof m, batch);
    return reply.result;
}

/* The driver judges a command that it is given; the vGPU judges one that has to wait. */
static void test_what_the_driver_is_not_given_is_judged(void **state)
{
    (void)state;
    start(true);
    gn_list_init(&vgpu.batch_waiters);
    n_judged = 0;
    verdict = -7;
    assert_int_equal(ask(0, 0, 0), 0);
    assert_int_equal(gn_fake.n_given, 1);
    assert_int_equal(n_judged, 0);
    assert_int_equal(ask(1, 1, 0), -7);
    assert_true(gn_list_empty(&vgpu.batch_waiters));
    verdict = 0;
    assert_int_equal(ask(1, 1, 0), 0);
    assert_int_equal(n_judged, 2);
    /* The guest's own verdict comes first. */
    assert_int_equal(ask(2, 1, -9), -9);
    assert_int_equal(n_judged, 2);
    assert_int_equal(gn_fake.n_given, 1);
    gn_commands_batch_came(&vgpu, 1);
    assert_int_equal(gn_fake.n_given, 2);
    gn_command_over(gn_fake.given[0], 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_true(over(0) && over(1));
    stop();
}

#define LONG UINT64_C(3600000000000)

static void test_nothing_goes_to_the_driver_without_a_grant(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, 0);
    enqueue(&plain, 1);
    assert_int_equal(gn_fake.n_given, 0);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_WANTED);
    assert_true(was_gantryd_told());
    assign_grant(LONG, false);
    assert_int_equal(gn_fake.n_given, 2);
    assert_false(was_gantryd_told());
    gn_command_over(gn_fake.given[0], 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_true(over(0) && over(1));
    /* Idle: the grant is parked, and acquired again without gantryd. */
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_PARKED);
    enqueue(&plain, 2);
    assert_int_equal(gn_fake.n_given, 3);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_HELD);
    gn_command_over(gn_fake.given[2], 0);
    assert_false(was_gantryd_told());
    unscheduled();
}

static void test_what_nobody_asks_about_is_waited_for(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, GN_NO_EVENT);
    assign_grant(LONG, false);
    gn_fake.busy = true;
    gn_turn_park(&device);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_HELD);
    assert_non_null(gn_fake.quiet);
    gn_fake.busy = false;
    gn_fake.quiet(gn_fake.quiet_arg);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_PARKED);
    /* Another vGPU waits when the command ends: the program gets a moment to continue. */
    enqueue(&plain, GN_NO_EVENT);
    assert_false(gn_grant_preempt(&slot));
    gn_fake.busy = true;
    gn_turn_park(&device);
    gn_fake.busy = false;
    atomic_store(&vgpu.ring.nudged, false);
    gn_fake.quiet(gn_fake.quiet_arg);
    assert_true(atomic_load(&vgpu.ring.nudged));
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_HELD);
    gn_vgpu_park_grants(&vgpu);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
    unscheduled();
}

static void test_the_slice_ends_with_an_empty_driver(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, 0);
    assign_grant(LONG, false);
    assert_false(gn_grant_preempt(&slot));
    atomic_store(&slot.slice_ns, 0);
    device.turn.slice_ns = 0; /* the slice has ended */
    enqueue(&plain, 1);
    assert_int_equal(gn_fake.n_given, 1);
    assert_true(was_gantryd_told());
    end_turn();
    assert_int_equal(n_finished, 1);
    /* Wanted again at once. */
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_WANTED);
    assert_true(was_gantryd_told());
    gn_command_over(gn_fake.given[0], 0);
    assign_grant(LONG, true);
    assert_int_equal(gn_fake.n_given, 2);
    gn_command_over(gn_fake.given[1], 0);
    unscheduled();
}

static void test_while_others_wait_the_driver_has_a_slice_of_work(void **state)
{
    (void)state;
    start(true);
    scheduled();
    for (uint32_t i = 0; i < 5; i++)
        enqueue(&plain, i);
    assign_grant(LONG, true);
    /* The commands' length is not known yet. */
    assert_int_equal(gn_fake.n_given, 2);
    gn_command_over(gn_fake.given[0], 0);
    assert_true(atomic_load(&device.dirty));
    /* An hour each: the slice has room for the second only. */
    atomic_store(&device.turn.service_ns, LONG);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 2);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 2);
    atomic_store(&device.turn.service_ns, 1);
    gn_command_over(gn_fake.given[1], 0);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 5);
    for (uint32_t i = 2; i < 5; i++)
        gn_command_over(gn_fake.given[i], 0);
    /*
     * Another vGPU waits, and the program may continue at any moment: the ring thread waits for it
     * before it yields.
     */
    assert_true(atomic_load(&vgpu.ring.nudged));
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_HELD);
    assert_true(gn_vgpu_hold_ns(&vgpu) > 0);
    gn_vgpu_park_grants(&vgpu);
    assert_int_equal(gn_vgpu_hold_ns(&vgpu), 0);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
    assert_true(was_gantryd_told());
    unscheduled();
}

/*
 * A driver may measure a command that stands for many only from the last of them, and report a time
 * that is too short.
 */
static void test_the_times_of_many_commands_are_not_believed(void **state)
{
    const struct timespec takes = {0, 3000000};
    (void)state;
    start(true);
    scheduled();
    started_ns = 1000;
    ended_ns = 1010;
    enqueue(&plain, 0);
    assign_grant(LONG, true);
    gn_command_over(gn_fake.given[0], 0);
    assert_int_equal(atomic_load(&slot.device_ns), 10);
    started_ns = 2000;
    ended_ns = 2010;
    enqueue(&many, 1);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 2);
    assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &takes, NULL), 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_true(atomic_load(&slot.device_ns) >= 3000000);
    unscheduled();
}

/*
 * A command that would run mostly in the next turn is left to it, unless this turn has run nothing.
 */
static void test_while_others_wait_a_turn_ends_where_it_is_nearest_to_its_slice(void **state)
{
    (void)state;
    start(true);
    scheduled();
    for (uint32_t i = 0; i < 4; i++)
        enqueue(&plain, i);
    vgpu.on_processors = true;
    atomic_store(&device.turn.service_ns, 3 * LONG);
    assign_grant(LONG, true);
    assert_int_equal(gn_fake.n_given, 1);
    gn_command_over(gn_fake.given[0], 0);
    atomic_store(&device.turn.service_ns, 3 * LONG);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 1);
    assert_true(device.turn.over);
    was_gantryd_told();
    end_turn();
    assert_int_equal(n_finished, 0);
    /*
     * A device that computes on this machine's processors is refilled only when it is idle. Each
     * command takes three fifths of a slice: two are nearer to a slice than one.
     */
    atomic_store(&device.turn.service_ns, LONG / 5 * 3);
    assign_grant(LONG, true);
    assert_int_equal(gn_fake.n_given, 3);
    gn_command_over(gn_fake.given[1], 0);
    assert_false(atomic_load(&device.dirty));
    gn_command_over(gn_fake.given[2], 0);
    assert_true(atomic_load(&device.dirty));
    atomic_store(&device.turn.service_ns, 1);
    gn_device_pump(&device);
    gn_command_over(gn_fake.given[3], 0);
    vgpu.on_processors = false;
    unscheduled();
}

/* So a newcomer waits no longer than a slice. */
static void test_alone_the_driver_has_a_slice_of_work_and_is_refilled_at_half(void **state)
{
    (void)state;
    start(true);
    scheduled();
    atomic_store(&device.turn.service_ns, 100);
    for (uint32_t i = 0; i < 10; i++)
        enqueue(&plain, i);
    assign_grant(400, false);
    assert_int_equal(gn_fake.n_given, 4);
    gn_command_over(gn_fake.given[0], 0);
    assert_false(atomic_load(&device.dirty));
    gn_command_over(gn_fake.given[1], 0);
    assert_true(atomic_load(&device.dirty));
    /* Overwrites the measured time, which the test's completions made meaningless. */
    atomic_store(&device.turn.service_ns, 100);
    gn_device_pump(&device);
    assert_int_equal(gn_fake.n_given, 6);
    atomic_store(&device.turn.service_ns, 1);
    for (uint32_t i = 2; i < 10; i++) {
        gn_command_over(gn_fake.given[i], 0);
        gn_device_pump(&device);
    }
    unscheduled();
}

/* A program that waits for each of its commands has none ready when its slice ends. */
static void test_who_has_used_up_a_slice_stays_in_line(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, 0);
    assign_grant(LONG, true);
    assert_true(was_gantryd_told());
    device.turn.over = true;
    gn_command_over(gn_fake.given[0], 0);
    end_turn();
    /* No finish on an idle queue. */
    assert_int_equal(n_finished, 0);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_WANTED);
    assert_true(was_gantryd_told());
    /* The program had no more work after all. */
    assign_grant(LONG, true);
    gn_turn_park(&device);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
    assert_true(was_gantryd_told());
    unscheduled();
}

/*
 * A slice may end while the program still looks at a result: it keeps its place. A program that has
 * not sent anything in all the time that the device was kept for it has no more work.
 */
static void test_a_slice_that_ends_while_the_program_thinks_costs_no_place(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, 0);
    assign_grant(LONG, true);
    assert_true(was_gantryd_told());
    gn_command_over(gn_fake.given[0], 0);
    device.turn.slice_ns = 0;
    assert_int_equal(gn_vgpu_hold_ns(&vgpu), 0);
    gn_vgpu_park_grants(&vgpu);
    end_turn(); /* the submit thread's part, as if woken */
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_WANTED);
    assert_true(was_gantryd_told());

    assign_grant(LONG, true);
    device.turn.slice_ns = 0;
    atomic_store(&device.turn.over_at_ns, 1);
    gn_vgpu_park_grants(&vgpu);
    end_turn();
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_NONE);
    assert_true(was_gantryd_told());
    unscheduled();
}

/*
 * The device is kept longer where other vGPUs' turns are long, but only for a program that always
 * comes back.
 */
static void test_the_device_is_kept_as_long_as_gantryd_says(void **state)
{
    (void)state;
    start(true);
    scheduled();
    enqueue(&plain, 0);
    gn_grant_set_keep(&slot, LONG / 2);
    assign_grant(LONG, true);
    gn_command_over(gn_fake.given[0], 0);
    assert_int_equal(gn_vgpu_hold_ns(&vgpu), 500000);
    atomic_store(&slot.interactive, 1);
    assert_true(gn_vgpu_hold_ns(&vgpu) == LONG / 2);
    gn_grant_set_keep(&slot, 0);
    assert_int_equal(gn_vgpu_hold_ns(&vgpu), 2000000);
    atomic_store(&slot.interactive, 0);
    gn_grant_set_keep(&slot, GN_GRANT_KEEP_ALL);
    assert_true(gn_vgpu_hold_ns(&vgpu) > LONG / 2);
    gn_vgpu_park_grants(&vgpu);
    unscheduled();
}

static struct gn_vdevice both[2];

static uint64_t put_queue(uint32_t index, uint32_t of_device)
{
    const uint64_t id = gn_id_make(index, 1);
    struct gn_vobject *queue = gn_object_put(&vgpu, id, GN_FAKE_KIND_QUEUE, &gn_fake.event);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, of_device, true, false, true);
    assert_non_null(queue->detail);
    return id;
}

static void enqueue_behind(uint64_t queue, uint32_t event, uint32_t wait)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
        uint32_t waits[2];
    } m = {{sizeof m, 0, 0, GN_NO_REPLY, 0},
           {queue, {GN_SPAN_INLINE, 4, sizeof m.msg + sizeof m.head}, event, 0},
           {wait, 0}};
    if (event != GN_NO_EVENT)
        gn_event_arm(&vgpu.events[event]);
    gn_command_admit(&vgpu, &plain, (const void *)&m, sizeof m, 0);
}

/* The driver's threads may report the end of a command before that of one it depends on. */
static void test_a_dependent_of_another_queue_ends_later(void **state)
{
    (void)state;
    start(true);
    const uint64_t first = put_queue(8, 0), second = put_queue(9, 0), third = put_queue(10, 0);
    enqueue_behind(first, 0, 40);
    enqueue_behind(second, 1, 0);
    enqueue_behind(third, 2, 1);
    assert_int_equal(gn_fake.n_given, 3);
    gn_command_over(gn_fake.given[2], 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_false(over(0) || over(1) || over(2));
    gn_command_over(gn_fake.given[0], 0);
    assert_true(over(0) && over(1) && over(2));
    gn_object_remove(&vgpu, first, GN_FAKE_KIND_QUEUE);
    gn_object_remove(&vgpu, second, GN_FAKE_KIND_QUEUE);
    gn_object_remove(&vgpu, third, GN_FAKE_KIND_QUEUE);
    stop();
}

/* The dependent has no event; the one behind it shows that it is over. */
static void test_a_dependent_without_an_event_ends_later(void **state)
{
    (void)state;
    start(true);
    const uint64_t first = put_queue(8, 0), second = put_queue(9, 0);
    enqueue_behind(first, 0, 40);
    enqueue_behind(second, GN_NO_EVENT, 0);
    enqueue_behind(second, 1, 40);
    assert_int_equal(gn_fake.n_given, 3);
    gn_command_over(gn_fake.given[2], 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_false(over(0) || over(1));
    gn_command_over(gn_fake.given[0], 0);
    assert_true(over(0) && over(1));
    gn_object_remove(&vgpu, first, GN_FAKE_KIND_QUEUE);
    gn_object_remove(&vgpu, second, GN_FAKE_KIND_QUEUE);
    stop();
}

/*
 * The first device's command waits for the second device's command, which waits for a user event.
 */
static void test_what_another_device_waits_for_wakes_it(void **state)
{
    (void)state;
    start(true);
    memset(both, 0, sizeof both);
    for (uint32_t i = 0; i < 2; i++) {
        both[i].vgpu = &vgpu;
        gn_list_init(&both[i].queues);
        pthread_mutex_init(&both[i].role, NULL);
    }
    vgpu.devices = both;
    vgpu.n_devices = 2;
    const uint64_t first = put_queue(8, 0), second = put_queue(9, 1);
    assert_int_equal(gn_user_event_new(&vgpu, 0), 0);
    enqueue_behind(second, 1, 0);
    enqueue_behind(first, 2, 1);
    assert_int_equal(gn_user_event_set(&vgpu, 0, 0), 0);
    assert_int_equal(gn_fake.n_given, 1);
    assert_int_equal(atomic_load(&both[0].woken), 1);
    assert_int_equal(atomic_load(&both[1].woken), 0);
    gn_device_pump(&both[0]);
    assert_int_equal(gn_fake.n_given, 2);
    gn_command_over(gn_fake.given[0], 0);
    gn_command_over(gn_fake.given[1], 0);
    assert_true(over(1) && over(2));
    gn_object_remove(&vgpu, first, GN_FAKE_KIND_QUEUE);
    gn_object_remove(&vgpu, second, GN_FAKE_KIND_QUEUE);
    stop();
}

/* Once a device counts as slow, the submit thread flushes it, including earlier commands. */
static void test_a_driver_that_turns_out_slow_is_flushed(void **state)
{
    (void)state;
    start(true);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(device.blocks);
        enqueue(&slow, i);
    }
    assert_true(device.blocks);
    gn_vgpu_flush(&vgpu);
    assert_true(n_flushed == 3 || atomic_load(&device.woken));
    for (uint32_t i = 0; i < 3; i++)
        gn_command_over(gn_fake.given[i], 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_the_driver_has_a_slice_of_work_and_is_refilled_at_half),
        cmocka_unit_test(test_who_has_used_up_a_slice_stays_in_line),
        cmocka_unit_test(test_a_slice_that_ends_while_the_program_thinks_costs_no_place),
        cmocka_unit_test(test_the_device_is_kept_as_long_as_gantryd_says),
        cmocka_unit_test(test_nothing_goes_to_the_driver_without_a_grant),
        cmocka_unit_test(test_what_nobody_asks_about_is_waited_for),
        cmocka_unit_test(test_the_slice_ends_with_an_empty_driver),
        cmocka_unit_test(test_while_others_wait_the_driver_has_a_slice_of_work),
        cmocka_unit_test(test_the_times_of_many_commands_are_not_believed),
        cmocka_unit_test(test_while_others_wait_a_turn_ends_where_it_is_nearest_to_its_slice),
        cmocka_unit_test(test_in_order_queue_ends_in_order),
        cmocka_unit_test(test_finish_waits_for_what_is_not_told),
        cmocka_unit_test(test_out_of_order_queue_ends_as_the_driver_does),
        cmocka_unit_test(test_what_the_driver_refuses_has_its_place),
        cmocka_unit_test(test_the_last_end_takes_the_queue_with_it),
        cmocka_unit_test(test_padding_is_zero),
        cmocka_unit_test(test_what_is_dropped_waits_for_no_data),
        cmocka_unit_test(test_what_the_driver_is_not_given_is_judged),
        cmocka_unit_test(test_a_dependent_of_another_queue_ends_later),
        cmocka_unit_test(test_a_dependent_without_an_event_ends_later),
        cmocka_unit_test(test_what_another_device_waits_for_wakes_it),
        cmocka_unit_test(test_a_driver_that_turns_out_slow_is_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
