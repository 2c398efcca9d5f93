/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in parts: a driver that is played ends parts when the test says so. Long because that driver serves all of it. */
#include "stream/stream_samples.h"
#include "vgpu/core/save.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define KIND_QUEUE 3
#define LONG       UINT64_C(3600000000000)

static struct {
    struct gn_box box;
    struct gn_part *part;
    uint32_t n_waits;
    void *after;
} parts[64];
static uint32_t n_parts, n_whole, n_took, refuse_at;
static struct gn_command *whole[8];
static uint64_t pace_ps, groups;
static bool ready, busy; /* busy: what the driver has goes on */
static char events[64];

static void admit(struct gn_vgpu *v, struct gn_command *c)
{
    (void)v, (void)c;
}

static int32_t submit(struct gn_vgpu *v, struct gn_command *c, void *queue, uint32_t n_waits, void *const *waits, void **event)
{
    (void)v, (void)queue;
    if (refuse_at && n_parts + 1 == refuse_at)
        return -4;
    if (c->cut) {
        parts[n_parts].box = c->cut->now;
        parts[n_parts].n_waits = n_waits;
        parts[n_parts].after = n_waits ? waits[0] : NULL;
        *event = &events[n_parts];
    } else {
        *event = &events[63 - n_whole];
    }
    return 0;
}

static int32_t when_over(struct gn_vgpu *v, void *event, struct gn_command *c)
{
    (void)v, (void)event;
    whole[n_whole++] = c;
    return 0;
}

static int32_t when_part_over(struct gn_vgpu *v, void *event, struct gn_part *part)
{
    (void)v, (void)event;
    parts[n_parts++].part = part;
    return 0;
}

static void release_event(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
}

static void times(struct gn_vgpu *v, void *event, struct gn_event_times *ret)
{
    (void)v;
    ret->start_ns = 1000 + (uint64_t)((char *)event - events) * 100;
    ret->end_ns = ret->start_ns + 90;
    ret->submit_ns = ret->start_ns - 10;
}

static void finish_queue(struct gn_vgpu *v, void *queue)
{
    (void)v, (void)queue;
}

static bool is_over(struct gn_vgpu *v, void *event)
{
    (void)v, (void)event;
    return !busy;
}

static void release(struct gn_vobject *o)
{
    gn_queue_free(o->detail);
}

static bool look(struct gn_vgpu *v, struct gn_command *c, uint64_t least, struct gn_grid *ret_grid, uint64_t *ret_pace_ps)
{
    (void)v, (void)c;
    *ret_grid = (struct gn_grid){{groups, 1, 1}};
    *ret_pace_ps = pace_ps;
    return groups / 2 >= least;
}

static bool prepare(struct gn_vgpu *v, struct gn_command *c, uint32_t n, void **ret_how)
{
    (void)v, (void)c, (void)n, (void)ret_how;
    return ready;
}

static bool resume(struct gn_vgpu *v, struct gn_command *c, struct gn_grid *ret_grid, void **ret_how)
{
    (void)v, (void)c, (void)ret_how;
    *ret_grid = (struct gn_grid){{groups, 1, 1}};
    return ready;
}

static void took(struct gn_vgpu *v, struct gn_command *c, uint64_t n, uint64_t ns)
{
    (void)v, (void)c, (void)n, (void)ns;
    n_took++;
    pace_ps = pace_ps ? pace_ps : 1000000;
}

/* By their op. */
static const struct gn_request_class requests[] = {{.name = "launch", .admit = admit, .submit = submit},
                                                   {.name = "other", .admit = admit, .submit = submit}};
#define launch requests[0]
#define other  requests[1]
static const struct gn_request_class marker = {.name = "marker", .admit = admit, .submit = submit, .ordered = true};
static const struct gn_slicer slicer = {.class = &launch, .look = look, .prepare = prepare, .resume = resume, .took = took};
static const struct gn_vgpu_api api = {.when_over = when_over,
                                       .when_part_over = when_part_over,
                                       .release_event = release_event,
                                       .release = release,
                                       .requests = requests,
                                       .n_requests = 2,
                                       .queue_kind = KIND_QUEUE,
                                       .finish = finish_queue,
                                       .flush = finish_queue,
                                       .is_over = is_over,
                                       .times = times,
                                       .out_of_memory = -5,
                                       .wait_failed = -14};

static struct gn_vgpu vgpu;
static struct gn_vdevice device;
static struct gn_counters counters;
static struct gn_vgpu_boot boot;
static struct gn_grant_slot slot;
static struct gn_ring ring;
static uint64_t queue_id;

#define NO_TURNS UINT64_MAX

/* `every`: the knob of tests and benchmarks; 0: a grant that others wait for; NO_TURNS: there is no policy. */
static void start(bool in_order, uint64_t every)
{
    memset(&vgpu, 0, sizeof vgpu);
    memset(&device, 0, sizeof device);
    memset(&slot, 0, sizeof slot);
    memset(parts, 0, sizeof parts);
    n_parts = n_whole = n_took = refuse_at = 0;
    pace_ps = 1000000; /* 1 us a group */
    groups = 20000;
    ready = true;
    busy = false;
    assert_int_equal(gn_gate_init(&vgpu.gate), 0);
    vgpu.ring.ring = &ring;
    vgpu.api = &api;
    vgpu.boot = &boot;
    vgpu.counters = &counters;
    vgpu.devices = &device;
    vgpu.n_devices = 1;
    vgpu.slicer = &slicer;
    vgpu.slice_groups = every == NO_TURNS ? 0 : every;
    vgpu.events = mmap(NULL, GN_EVENT_TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(vgpu.events != MAP_FAILED);
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.objects.lock, NULL);
    device.vgpu = &vgpu;
    gn_list_init(&device.queues);
    pthread_mutex_init(&device.role, NULL);
    gn_objects_own_thread();
    queue_id = gn_id_make(7, 1);
    struct gn_vobject *queue = gn_object_put(&vgpu, queue_id, KIND_QUEUE, &events[0]);
    assert_non_null(queue);
    queue->detail = gn_queue_new(&vgpu, queue, 0, in_order, true, false);
    assert_non_null(queue->detail);
    if (!every) {
        device.turn.slot = &slot;
        device.turn.tell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_true(device.turn.tell_fd >= 0);
    }
}

static void stop(void)
{
    gn_object_take_out(&vgpu, queue_id, KIND_QUEUE);
    assert_true(gn_list_empty(&device.queues));
    for (uint32_t i = 0; i < GN_EVENT_ENTRIES / GN_OBJECT_CHUNK; i++)
        free(vgpu.event_chunks[i]);
    free(vgpu.objects.generations[0]);
    free((void *)atomic_load(&vgpu.objects.chunks[0]));
    munmap(vgpu.events, GN_EVENT_TABLE_BYTES);
    if (device.turn.slot)
        close(device.turn.tell_fd);
    assert_int_equal(vgpu.fault, 0);
}

/* wait: another event's index, or GN_NO_EVENT. */
static void enqueue(const struct gn_request_class *class, uint32_t event, uint32_t wait)
{
    struct {
        struct gn_msg msg;
        struct gn_command_head head;
        uint32_t wait;
    } m = {{sizeof m, class == &other, 0, GN_NO_REPLY, 0}, {queue_id, {GN_SPAN_NULL, 0, 0}, event, 0}, wait};
    if (wait != GN_NO_EVENT)
        m.head.waits = (struct gn_span){.segment = GN_SPAN_INLINE, .offset = offsetof(__typeof__(m), wait), .bytes = sizeof m.wait};
    if (event != GN_NO_EVENT)
        gn_event_arm(&vgpu.events[event]);
    gn_command_admit(&vgpu, class, (const void *)&m, sizeof m, 0);
}

static void hand(uint64_t slice_ns)
{
    assert_true(gn_grant_hand(&slot, slice_ns, true));
    pthread_mutex_lock(&device.role);
    gn_turn_came(&device);
    pthread_mutex_unlock(&device.role);
    gn_device_pump(&device);
}

static void end_part(uint32_t i, int32_t status)
{
    gn_part_over(parts[i].part, &events[i], status);
    gn_device_pump(&device);
}

static enum gn_event_phase phase_of(uint32_t event, int32_t *ret_error)
{
    return gn_event_phase(&vgpu.events[event], ret_error);
}

static void check_once(uint64_t all)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        assert_int_equal(parts[i].box.first[0], at);
        at += parts[i].box.n[0];
    }
    assert_int_equal(at, all);
}

/* One event, submitted with the first part and over with the last; times of the first and of the last. */
static void test_one_command_to_the_program(void **state)
{
    int32_t error = 1;
    (void)state;
    start(true, 5000);
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_int_equal(n_parts, 4);
    check_once(20000);
    assert_int_equal(phase_of(0, &error), GN_EVENT_SUBMITTED);
    /* In order by themselves. */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(parts[i].n_waits, 0);
    for (uint32_t i = 0; i < 3; i++) {
        end_part(i, 0);
        assert_int_equal(phase_of(0, &error), GN_EVENT_SUBMITTED);
    }
    end_part(3, 0);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, 0);
    assert_int_equal(vgpu.events[0].submit_ns, 990);
    assert_int_equal(vgpu.events[0].start_ns, 1000);
    assert_int_equal(vgpu.events[0].end_ns, 1390);
    assert_int_equal(atomic_load(&counters.pending), 0);
    stop();
}

static void test_ends_come_in_any_order(void **state)
{
    (void)state;
    start(true, 5000);
    enqueue(&launch, 0, GN_NO_EVENT);
    for (uint32_t i = 4; i-- > 1;)
        end_part(i, 0);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_SUBMITTED);
    end_part(0, 0);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    stop();
}

/* Nothing orders an out-of-order queue's launches but their events. */
static void test_out_of_order_parts_follow_each_other(void **state)
{
    (void)state;
    start(false, 5000);
    enqueue(&launch, 0, GN_NO_EVENT);
    enqueue(&other, 1, GN_NO_EVENT);
    enqueue(&marker, 2, GN_NO_EVENT);
    assert_int_equal(n_parts, 4);
    assert_int_equal(parts[0].n_waits, 0);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(parts[i].n_waits, 1);
        assert_ptr_equal(parts[i].after, &events[i - 1]);
    }
    assert_int_equal(n_whole, 2);
    gn_command_over(whole[0], 0);
    assert_int_equal(phase_of(1, NULL), GN_EVENT_DONE);
    for (uint32_t i = 0; i < 4; i++)
        end_part(i, 0);
    gn_command_over(whole[1], 0);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    assert_int_equal(phase_of(2, NULL), GN_EVENT_DONE);
    stop();
}

static void test_without_an_event(void **state)
{
    (void)state;
    start(true, 5000);
    enqueue(&launch, GN_NO_EVENT, GN_NO_EVENT);
    enqueue(&other, 1, GN_NO_EVENT);
    assert_int_equal(n_parts, 4);
    for (uint32_t i = 0; i < 4; i++)
        end_part(i, 0);
    gn_command_over(whole[0], 0);
    assert_int_equal(phase_of(1, NULL), GN_EVENT_DONE);
    assert_int_equal(atomic_load(&counters.pending), 0);
    stop();
}

/* While others wait: no more than the slice has room for; then the grant goes, and what is left stays pending. */
static void test_between_two_parts_the_grant_goes(void **state)
{
    int32_t error = 0;
    (void)state;
    start(true, 0);
    enqueue(&launch, 0, GN_NO_EVENT);
    enqueue(&other, 1, 0); /* waits for it, in the driver when that has the last part, here until then */
    assert_int_equal(n_parts, 0);
    hand(6000000);
    assert_int_equal(n_parts, 1);
    assert_true(parts[0].box.n[0] >= 1500 && parts[0].box.n[0] <= 6000);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_SUBMITTED);
    assert_int_equal(phase_of(1, NULL), GN_EVENT_QUEUED);
    /* The slice is over while it runs. */
    device.turn.slice_ns = 0;
    end_part(0, 0);
    assert_int_equal(n_took, 1);
    assert_int_equal(n_parts, 1);
    pthread_mutex_lock(&device.role);
    gn_turn_end(&device);
    pthread_mutex_unlock(&device.role);
    assert_int_equal(gn_grant_look(&slot), GN_GRANT_WANTED);
    while (phase_of(0, &error) != GN_EVENT_DONE) {
        const uint32_t before = n_parts;
        hand(6000000);
        assert_int_equal(n_parts, before + 1);
        /* The next turn. */
        device.turn.slice_ns = 0;
        end_part(before, 0);
        if (phase_of(0, &error) == GN_EVENT_DONE)
            break;
        pthread_mutex_lock(&device.role);
        gn_turn_end(&device);
        pthread_mutex_unlock(&device.role);
    }
    check_once(20000);
    assert_int_equal(error, 0);
    device.turn.slice_ns = LONG;
    device.turn.over = false;
    gn_device_pump(&device);
    assert_int_equal(n_whole, 1);
    gn_command_over(whole[0], 0);
    stop();
}

/* Only what would outlast the slice, and only if it can be. */
static void test_what_runs_whole(void **state)
{
    (void)state;
    for (int why = 0; why < 4; why++) {
        start(true, 0);
        if (why == 0)
            pace_ps = 100000; /* 2 ms in all */
        if (why == 1)
            groups = 2999;
        if (why == 2)
            ready = false; /* a variant that is not built yet */
        enqueue(why == 3 ? &other : &launch, 0, GN_NO_EVENT);
        hand(6000000);
        assert_int_equal(n_parts, 0);
        assert_int_equal(n_whole, 1);
        gn_command_over(whole[0], 0);
        assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
        assert_int_equal(n_took, why == 3 ? 0 : 1);
        stop();
    }
    /* Nobody waits. */
    start(true, 0);
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_true(gn_grant_hand(&slot, 6000000, false));
    pthread_mutex_lock(&device.role);
    gn_turn_came(&device);
    pthread_mutex_unlock(&device.role);
    gn_device_pump(&device);
    assert_int_equal(n_parts, 0);
    assert_int_equal(n_whole, 1);
    gn_command_over(whole[0], 0);
    stop();
}

/* The first part that fails is the end, as soon as the driver has no other of it. */
static void test_a_part_fails(void **state)
{
    int32_t error = 0;
    (void)state;
    start(true, 5000);
    enqueue(&launch, 0, GN_NO_EVENT);
    enqueue(&other, 1, GN_NO_EVENT);
    end_part(0, 0);
    end_part(1, -5);
    end_part(2, -14);
    assert_int_equal(phase_of(0, &error), GN_EVENT_SUBMITTED);
    end_part(3, -14);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -5);
    gn_command_over(whole[0], 0);
    stop();

    /* The rest is not given. */
    start(true, 0);
    enqueue(&launch, 0, GN_NO_EVENT);
    enqueue(&other, 1, 0);
    hand(6000000);
    assert_int_equal(n_parts, 1);
    end_part(0, -6);
    assert_int_equal(n_parts, 1);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -6);
    gn_device_pump(&device);
    assert_int_equal(phase_of(1, &error), GN_EVENT_DONE);
    assert_int_equal(error, -14);
    stop();
}

static void test_the_driver_refuses_a_part(void **state)
{
    int32_t error = 0;
    (void)state;
    /* The first: the driver judges the whole. */
    start(true, 5000);
    refuse_at = 1;
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_int_equal(n_parts, 0);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -4);
    stop();
    /* A later one. */
    start(true, 5000);
    refuse_at = 3;
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_int_equal(n_parts, 2);
    end_part(0, 0);
    assert_int_equal(phase_of(0, &error), GN_EVENT_SUBMITTED);
    end_part(1, 0);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -4);
    stop();
}

/* What it waits for keeps all of it. */
static void test_user_events_keep_it(void **state)
{
    (void)state;
    start(true, 5000);
    assert_int_equal(gn_user_event_new(&vgpu, 5), 0);
    enqueue(&launch, 0, 5);
    assert_int_equal(n_parts, 0);
    assert_int_equal(gn_user_event_set(&vgpu, 5, 0), 0);
    assert_int_equal(n_parts, 4);
    for (uint32_t i = 0; i < 4; i++)
        end_part(i, 0);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    /* And one that fails: nothing of it runs. */
    int32_t error = 0;
    assert_int_equal(gn_user_event_new(&vgpu, 5), 0);
    enqueue(&launch, 1, 5);
    assert_int_equal(gn_user_event_set(&vgpu, 5, -3), 0);
    assert_int_equal(n_parts, 4);
    assert_int_equal(phase_of(1, &error), GN_EVENT_DONE);
    assert_int_equal(error, -14);
    stop();
}

/* What the submit thread does when the end of a part has woken it. */
static void end_alone(uint32_t i, int32_t status)
{
    gn_part_over(parts[i].part, &events[i], status);
    gn_device_pump(&device);
}

/* Nobody waits: a long one goes in parts all the same, two at a time. */
static void test_alone(void **state)
{
    (void)state;
    for (int turns = 0; turns < 2; turns++) {
        start(true, turns ? 0 : NO_TURNS);
        groups = 60000; /* 60 ms */
        enqueue(&launch, 0, GN_NO_EVENT);
        enqueue(&other, 1, GN_NO_EVENT);
        if (turns) {
            assert_true(gn_grant_hand(&slot, 6000000, false));
            pthread_mutex_lock(&device.role);
            gn_turn_came(&device);
            pthread_mutex_unlock(&device.role);
            gn_device_pump(&device);
        }
        assert_int_equal(n_parts, 2);
        assert_int_equal(parts[0].box.n[0], 10000);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(n_whole, 0);
            assert_int_equal(n_parts, i + 2);
            end_alone(i, 0);
        }
        assert_int_equal(n_parts, 6);
        check_once(60000);
        /* What comes behind it is the driver's to keep in order. */
        assert_int_equal(n_whole, 1);
        end_alone(4, 0);
        assert_int_equal(phase_of(0, NULL), GN_EVENT_SUBMITTED);
        end_alone(5, 0);
        assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
        gn_command_over(whole[0], 0);
        assert_int_equal(atomic_load(&counters.pending), 0);
        stop();
    }
}

/* Of which nothing is known: its first part tells, and that is waited for. */
static void test_alone_and_not_known(void **state)
{
    (void)state;
    start(true, NO_TURNS);
    pace_ps = 0;
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_int_equal(n_parts, 1);
    assert_int_equal(parts[0].box.n[0], GN_SLICE_LEAST_GROUPS);
    end_alone(0, 0);
    assert_int_equal(n_took, 1);
    assert_int_equal(n_parts, 3);
    end_alone(1, 0);
    end_alone(2, 0);
    check_once(20000);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    /* Behind something else its time tells nothing; the next part's does. */
    pace_ps = 0;
    n_took = 0;
    busy = true;
    n_parts = 0;
    enqueue(&launch, 1, GN_NO_EVENT);
    end_alone(0, 0);
    assert_int_equal(n_took, 0);
    assert_int_equal(n_parts, 2);
    end_alone(1, 0);
    assert_int_equal(n_took, 1);
    assert_int_equal(n_parts, 4);
    end_alone(2, 0);
    end_alone(3, 0);
    check_once(20000);
    stop();
}

/* Short ones go whole, and one in a while is measured; so is each long one that can't be cut. */
static void test_alone_and_whole(void **state)
{
    uint32_t n = 0;
    (void)state;
    start(true, NO_TURNS);
    for (uint32_t i = 0; i < 40; i++) {
        enqueue(&launch, GN_NO_EVENT, GN_NO_EVENT);
        if (n_whole) {
            gn_command_over(whole[--n_whole], 0);
            n++;
        }
    }
    assert_int_equal(n_parts, 0);
    assert_int_equal(n, 3);
    assert_int_equal(n_took, 3);
    ready = false;
    groups = 60000;
    for (uint32_t i = 0; i < 3; i++) {
        busy = i == 2; /* what it takes can't be known */
        enqueue(&launch, GN_NO_EVENT, GN_NO_EVENT);
        assert_int_equal(n_whole, i < 2);
        if (n_whole)
            gn_command_over(whole[--n_whole], 0);
    }
    assert_int_equal(n_parts, 0);
    assert_int_equal(n_took, 5);
    stop();
}

/* While it waits for the end of a part, others may go to the driver: a queue out of order, and other queues. */
static void test_alone_it_keeps_nobody_else(void **state)
{
    (void)state;
    start(false, NO_TURNS);
    groups = 60000;
    const uint64_t id = gn_id_make(8, 1), first = queue_id;
    struct gn_vobject *second = gn_object_put(&vgpu, id, KIND_QUEUE, &events[0]);
    assert_non_null(second);
    second->detail = gn_queue_new(&vgpu, second, 0, true, true, false);
    enqueue(&launch, 0, GN_NO_EVENT);
    assert_int_equal(n_parts, 2);
    enqueue(&other, 1, GN_NO_EVENT);
    enqueue(&marker, 2, GN_NO_EVENT);
    assert_int_equal(n_whole, 1);
    queue_id = id;
    enqueue(&launch, 3, GN_NO_EVENT);
    assert_int_equal(n_parts, 4);
    enqueue(&other, 4, GN_NO_EVENT);
    assert_int_equal(n_whole, 1);
    queue_id = first;
    for (uint32_t i = 0; i < 12; i++)
        end_alone(i, 0);
    assert_int_equal(n_parts, 12);
    assert_int_equal(n_whole, 3);
    for (uint32_t i = 0; i < 3; i++)
        gn_command_over(whole[i], 0);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(phase_of(i, NULL), GN_EVENT_DONE);
    gn_object_take_out(&vgpu, id, KIND_QUEUE);
    stop();
}

/* ---- its rest, elsewhere */

static void hold(bool holds)
{
    atomic_store(&vgpu.gate.holds, holds);
    atomic_store(&device.dirty, true);
    gn_device_pump(&device);
}

/* What is pending into a stream, with this said of the first one instead of what is so. */
static void save(struct gn_sample_file *f, const struct gn_stream_command_state *lie)
{
    const struct gn_stream_sink sink = gn_sample_sink(f);
    const struct gn_stream_options options = {.purpose = GN_STREAM_MOVE, .api = "opencl", .creator = "test"};
    const struct gn_stream_announce most = {.entries_bytes = 1 << 20, .n_objects = 4, .n_rounds = 1};
    struct gn_stream_writer *w;
    assert_int_equal(gn_stream_writer_create(&sink, &options, &w, NULL), 0);
    assert_int_equal(gn_stream_announce(w, &most), 0);
    assert_int_equal(gn_stream_entry_begin(w, GN_STREAM_OBJECTS, queue_id, KIND_QUEUE, NULL, 0), 0);
    assert_int_equal(gn_stream_entry_end(w), 0);
    if (lie) {
        const struct gn_command *c =
            gn_list_first(&((struct gn_vqueue *)gn_list_first(&device.queues, struct gn_vqueue, link))->pending, struct gn_command, link);
        const struct gn_saved_command own = {0};
        assert_int_equal(gn_stream_entry_begin(w, GN_STREAM_COMMANDS, 1, c->class == &other, &queue_id, 1), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_STATE, lie, sizeof *lie), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_REQUEST, c->bytes, c->n_bytes), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_WAITS, NULL, 0), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_API, &own, sizeof own), 0);
        assert_int_equal(gn_stream_entry_end(w), 0);
    } else {
        assert_int_equal(gn_commands_save(&vgpu, w), 0);
    }
    assert_int_equal(gn_stream_commit(w), 0);
    gn_stream_writer_destroy(w);
}

/* Takes in what was saved. The first failure, or 0. */
static int load(struct gn_sample_file *f, int64_t clock_ahead_ns)
{
    const struct gn_stream_source source = gn_sample_source(f);
    struct gn_stream_reader *r;
    struct gn_stream_section s;
    struct gn_stream_entry e;
    int rc = gn_stream_reader_create(&source, &gn_stream_limits_default, &r, NULL);
    assert_int_equal(rc, 0);
    do {
        assert_int_equal(gn_stream_next(r, &s), 0);
        while (s.what == GN_STREAM_IS_TABLE && gn_stream_next_entry(r, &e))
            if (s.table == GN_STREAM_COMMANDS && !rc)
                rc = gn_command_restore(&vgpu, &e, clock_ahead_ns);
    } while (s.what != GN_STREAM_IS_COMMIT);
    gn_stream_reader_destroy(r);
    return rc;
}

static void forget_pending(void)
{
    gn_list_for_each(q, &device.queues, struct gn_vqueue, link) gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        gn_command_forget(c);
    }
}

/* A launch with a quarter of it run, behind a gate that holds; saved. */
static void cut_and_save(struct gn_sample_file *f, const struct gn_stream_command_state *lie)
{
    start(true, NO_TURNS);
    groups = 60000;
    enqueue(&launch, 0, GN_NO_EVENT);
    enqueue(&other, 1, GN_NO_EVENT);
    assert_int_equal(n_parts, 2);
    hold(true);
    end_alone(0, 0);
    end_alone(1, 0);
    assert_int_equal(n_parts, 2);
    memset(f, 0, sizeof *f);
    save(f, lie);
}

static void pending_events(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct gn_vevent *e = gn_vevent_at(&vgpu, i);
        e->state = GN_EVENT_PENDING;
        gn_event_arm(&vgpu.events[i]);
    }
}

static void test_the_gate_cuts_it(void **state)
{
    struct gn_sample_file f;
    (void)state;
    cut_and_save(&f, NULL);
    /* Nobody took it: it goes on here. */
    hold(false);
    for (uint32_t i = 2; i < 6; i++)
        end_alone(i, 0);
    check_once(60000);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    assert_int_equal(vgpu.events[0].start_ns, 1000);
    gn_command_over(whole[0], 0);
    stop();
    gn_sample_free(&f);
}

static void test_its_rest_goes_on_elsewhere(void **state)
{
    struct gn_sample_file f;
    (void)state;
    cut_and_save(&f, NULL);
    forget_pending();
    stop();
    /* A device on which a group takes longer; the gate is closed while it comes. */
    start(true, NO_TURNS);
    groups = 60000;
    pace_ps = 4000000;
    atomic_store(&vgpu.gate.holds, true);
    pending_events(2);
    assert_int_equal(load(&f, 50), 0);
    assert_int_equal(n_parts, 0);
    assert_true(gn_vevent_at(&vgpu, 0)->begun);
    assert_false(gn_vevent_at(&vgpu, 1)->begun);
    hold(false);
    assert_int_equal(n_parts, 2);
    assert_int_equal(parts[0].box.first[0], 20000);
    assert_int_equal(parts[0].box.n[0], 2500);
    for (uint32_t i = 0; i < 16; i++)
        end_alone(i, 0);
    assert_int_equal(n_parts, 16);
    assert_int_equal(parts[15].box.first[0] + parts[15].box.n[0], 60000);
    assert_int_equal(phase_of(0, NULL), GN_EVENT_DONE);
    /* It began with its first part, by the clock here, and ended with its last. */
    assert_int_equal(vgpu.events[0].submit_ns, 1040);
    assert_int_equal(vgpu.events[0].start_ns, 1050);
    assert_int_equal(vgpu.events[0].end_ns, 1000 + 15 * 100 + 90);
    assert_int_equal(n_whole, 1);
    gn_command_over(whole[0], 0);
    stop();
    gn_sample_free(&f);
}

/* What a stream says of it is no more than a claim. */
static void test_a_rest_that_is_none(void **state)
{
    static const struct gn_stream_command_state lies[] = {
        {.event = 0, .done = 60000}, /* nothing is left */
        {.event = 0, .done = UINT64_MAX},
        {.event = 0, .start_ns = 5}, /* it has not begun */
        {.event = 0, .submit_ns = 5},
        {.event = 0, .done = 20000, .submit_ns = 6, .start_ns = 5},
        {.event = 1, .done = 20000}, /* another's event */
        {.event = 0, .done = 20000, .zero = 1},
    };
    struct gn_sample_file f;
    (void)state;
    for (uint32_t i = 0; i <= GN_ARRAY_SIZE(lies); i++) {
        const bool last = i == GN_ARRAY_SIZE(lies);
        cut_and_save(&f, last ? NULL : &lies[i]);
        forget_pending();
        stop();
        start(true, NO_TURNS);
        groups = 60000;
        ready = !last; /* it can't be cut here */
        atomic_store(&vgpu.gate.holds, true);
        pending_events(2);
        assert_int_equal(load(&f, 0), -EBADMSG);
        forget_pending();
        stop();
        gn_sample_free(&f);
    }
    /* Of a kind that is never cut. */
    const struct gn_stream_command_state lie = {.event = 0, .done = 20000};
    start(true, NO_TURNS);
    atomic_store(&vgpu.gate.holds, true);
    enqueue(&other, 0, GN_NO_EVENT);
    memset(&f, 0, sizeof f);
    save(&f, &lie);
    forget_pending();
    assert_int_equal(load(&f, 0), -EBADMSG);
    stop();
    gn_sample_free(&f);
}

/* A part fails while the gate holds: the command fails, wherever it goes on. */
static void test_a_rest_behind_a_part_that_failed(void **state)
{
    struct gn_sample_file f = {0};
    int32_t error = 0;
    (void)state;
    start(true, NO_TURNS);
    groups = 60000;
    enqueue(&launch, 0, GN_NO_EVENT);
    hold(true);
    end_alone(0, -6);
    end_alone(1, 0);
    save(&f, NULL);
    forget_pending();
    stop();
    start(true, NO_TURNS);
    groups = 60000;
    atomic_store(&vgpu.gate.holds, true);
    pending_events(1);
    assert_int_equal(load(&f, 0), 0);
    hold(false);
    assert_int_equal(n_parts, 0);
    assert_int_equal(n_whole, 0);
    assert_int_equal(phase_of(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -6);
    stop();
    gn_sample_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_command_to_the_program),
        cmocka_unit_test(test_ends_come_in_any_order),
        cmocka_unit_test(test_out_of_order_parts_follow_each_other),
        cmocka_unit_test(test_without_an_event),
        cmocka_unit_test(test_between_two_parts_the_grant_goes),
        cmocka_unit_test(test_what_runs_whole),
        cmocka_unit_test(test_a_part_fails),
        cmocka_unit_test(test_the_driver_refuses_a_part),
        cmocka_unit_test(test_user_events_keep_it),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_alone_and_not_known),
        cmocka_unit_test(test_alone_and_whole),
        cmocka_unit_test(test_alone_it_keeps_nobody_else),
        cmocka_unit_test(test_the_gate_cuts_it),
        cmocka_unit_test(test_its_rest_goes_on_elsewhere),
        cmocka_unit_test(test_a_rest_that_is_none),
        cmocka_unit_test(test_a_rest_behind_a_part_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
