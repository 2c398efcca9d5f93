/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of commands in parts: when a command is cut, the phases that the program sees, and the
 * grant between two parts.
 */
#include "vgpu/core/played_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define LONG UINT64_C(3600000000000)

/*
 * One event, submitted with the first part and complete with the last. The times are those of the
 * first and of the last part.
 */
static void test_one_command_to_the_program(void **state)
{
    int32_t error = 1;
    (void)state;
    gn_played_start(true, 5000);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 4);
    gn_played_check_once(20000);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_SUBMITTED);
    /* An in-order queue needs no waits between parts. */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(gn_played.parts[i].n_waits, 0);
    for (uint32_t i = 0; i < 3; i++) {
        gn_played_end(i, 0);
        assert_int_equal(gn_played_phase(0, &error), GN_EVENT_SUBMITTED);
    }
    gn_played_end(3, 0);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, 0);
    assert_int_equal(gn_played.vgpu.events[0].submit_ns, 990);
    assert_int_equal(gn_played.vgpu.events[0].start_ns, 1000);
    assert_int_equal(gn_played.vgpu.events[0].end_ns, 1390);
    assert_int_equal(atomic_load(&gn_played.counters.pending), 0);
    gn_played_stop();
}

static void test_ends_come_in_any_order(void **state)
{
    (void)state;
    gn_played_start(true, 5000);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    for (uint32_t i = 4; i-- > 1;)
        gn_played_end(i, 0);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_SUBMITTED);
    gn_played_end(0, 0);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    gn_played_stop();
}

/* In an out-of-order queue only events order the parts. */
static void test_out_of_order_parts_follow_each_other(void **state)
{
    (void)state;
    gn_played_start(false, 5000);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_marker, 2, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 4);
    assert_int_equal(gn_played.parts[0].n_waits, 0);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(gn_played.parts[i].n_waits, 1);
        assert_ptr_equal(gn_played.parts[i].after, &gn_played.events[i - 1]);
    }
    assert_int_equal(gn_played.n_whole, 2);
    gn_command_over(gn_played.whole[0], 0);
    assert_int_equal(gn_played_phase(1, NULL), GN_EVENT_DONE);
    for (uint32_t i = 0; i < 4; i++)
        gn_played_end(i, 0);
    gn_command_over(gn_played.whole[1], 0);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    assert_int_equal(gn_played_phase(2, NULL), GN_EVENT_DONE);
    gn_played_stop();
}

static void test_without_an_event(void **state)
{
    (void)state;
    gn_played_start(true, 5000);
    gn_played_enqueue(&gn_played_launch, GN_NO_EVENT, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 4);
    for (uint32_t i = 0; i < 4; i++)
        gn_played_end(i, 0);
    gn_command_over(gn_played.whole[0], 0);
    assert_int_equal(gn_played_phase(1, NULL), GN_EVENT_DONE);
    assert_int_equal(atomic_load(&gn_played.counters.pending), 0);
    gn_played_stop();
}

/*
 * While other vGPUs wait, a part is no longer than the slice. Then the grant is yielded, and the
 * rest stays pending.
 */
static void test_between_two_parts_the_grant_goes(void **state)
{
    int32_t error = 0;
    (void)state;
    gn_played_start(true, 0);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    /* Waits for the launch: in the driver once that has the last part, here until then. */
    gn_played_enqueue(&gn_played_other, 1, 0);
    assert_int_equal(gn_played.n_parts, 0);
    gn_played_grant(6000000);
    assert_int_equal(gn_played.n_parts, 1);
    assert_true(gn_played.parts[0].box.n[0] >= 1500 && gn_played.parts[0].box.n[0] <= 6000);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_SUBMITTED);
    assert_int_equal(gn_played_phase(1, NULL), GN_EVENT_QUEUED);
    /* The slice ends while the part runs. */
    gn_played.device.turn.slice_ns = 0;
    gn_played_end(0, 0);
    assert_int_equal(gn_played.n_took, 1);
    assert_int_equal(gn_played.n_parts, 1);
    pthread_mutex_lock(&gn_played.device.role);
    gn_turn_end(&gn_played.device);
    pthread_mutex_unlock(&gn_played.device.role);
    assert_int_equal(gn_grant_look(&gn_played.slot), GN_GRANT_WANTED);
    while (gn_played_phase(0, &error) != GN_EVENT_DONE) {
        const uint32_t before = gn_played.n_parts;
        gn_played_grant(6000000);
        assert_int_equal(gn_played.n_parts, before + 1);
        /* The next turn. */
        gn_played.device.turn.slice_ns = 0;
        gn_played_end(before, 0);
        if (gn_played_phase(0, &error) == GN_EVENT_DONE)
            break;
        pthread_mutex_lock(&gn_played.device.role);
        gn_turn_end(&gn_played.device);
        pthread_mutex_unlock(&gn_played.device.role);
    }
    gn_played_check_once(20000);
    assert_int_equal(error, 0);
    gn_played.device.turn.slice_ns = LONG;
    gn_played.device.turn.over = false;
    gn_device_pump(&gn_played.device);
    assert_int_equal(gn_played.n_whole, 1);
    gn_command_over(gn_played.whole[0], 0);
    gn_played_stop();
}

/* Only a launch that would outlast the slice is cut, and only if it can be. */
static void test_what_runs_whole(void **state)
{
    (void)state;
    for (int why = 0; why < 4; why++) {
        gn_played_start(true, 0);
        /* 2 ms in all */
        if (why == 0)
            gn_played.pace_ps = 100000;
        if (why == 1)
            gn_played.groups = 2999;
        /* a kernel variant that is not built yet */
        if (why == 2)
            gn_played.ready = false;
        gn_played_enqueue(why == 3 ? &gn_played_other : &gn_played_launch, 0, GN_NO_EVENT);
        gn_played_grant(6000000);
        assert_int_equal(gn_played.n_parts, 0);
        assert_int_equal(gn_played.n_whole, 1);
        gn_command_over(gn_played.whole[0], 0);
        assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
        assert_int_equal(gn_played.n_took, why == 3 ? 0 : 1);
        gn_played_stop();
    }
    /* No other vGPU waits. */
    gn_played_start(true, 0);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_true(gn_grant_assign(&gn_played.slot, 6000000, false));
    pthread_mutex_lock(&gn_played.device.role);
    gn_turn_began(&gn_played.device);
    pthread_mutex_unlock(&gn_played.device.role);
    gn_device_pump(&gn_played.device);
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(gn_played.n_whole, 1);
    gn_command_over(gn_played.whole[0], 0);
    gn_played_stop();
}

/* The first part that fails ends the command as soon as the driver has no other part of it. */
static void test_a_part_fails(void **state)
{
    int32_t error = 0;
    (void)state;
    gn_played_start(true, 5000);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
    gn_played_end(0, 0);
    gn_played_end(1, -5);
    gn_played_end(2, -14);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_SUBMITTED);
    gn_played_end(3, -14);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -5);
    gn_command_over(gn_played.whole[0], 0);
    gn_played_stop();

    /* The rest is not submitted. */
    gn_played_start(true, 0);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_other, 1, 0);
    gn_played_grant(6000000);
    assert_int_equal(gn_played.n_parts, 1);
    gn_played_end(0, -6);
    assert_int_equal(gn_played.n_parts, 1);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -6);
    gn_device_pump(&gn_played.device);
    assert_int_equal(gn_played_phase(1, &error), GN_EVENT_DONE);
    assert_int_equal(error, -14);
    gn_played_stop();
}

static void test_the_driver_refuses_a_part(void **state)
{
    int32_t error = 0;
    (void)state;
    /* The first part: the driver judges the whole command. */
    gn_played_start(true, 5000);
    gn_played.refuse_at = 1;
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -4);
    gn_played_stop();
    /* A later part. */
    gn_played_start(true, 5000);
    gn_played.refuse_at = 3;
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 2);
    gn_played_end(0, 0);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_SUBMITTED);
    gn_played_end(1, 0);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -4);
    gn_played_stop();
}

/* An unset user event blocks all parts. */
static void test_user_events_keep_it(void **state)
{
    (void)state;
    gn_played_start(true, 5000);
    assert_int_equal(gn_user_event_new(&gn_played.vgpu, 5), 0);
    gn_played_enqueue(&gn_played_launch, 0, 5);
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(gn_user_event_set(&gn_played.vgpu, 5, 0), 0);
    assert_int_equal(gn_played.n_parts, 4);
    for (uint32_t i = 0; i < 4; i++)
        gn_played_end(i, 0);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    /* If the user event fails, no part runs. */
    int32_t error = 0;
    assert_int_equal(gn_user_event_new(&gn_played.vgpu, 5), 0);
    gn_played_enqueue(&gn_played_launch, 1, 5);
    assert_int_equal(gn_user_event_set(&gn_played.vgpu, 5, -3), 0);
    assert_int_equal(gn_played.n_parts, 4);
    assert_int_equal(gn_played_phase(1, &error), GN_EVENT_DONE);
    assert_int_equal(error, -14);
    gn_played_stop();
}

/* No other vGPU waits: a long launch still goes in parts, two at a time. */
static void test_alone(void **state)
{
    (void)state;
    for (int turns = 0; turns < 2; turns++) {
        gn_played_start(true, turns ? 0 : GN_PLAYED_NO_TURNS);
        gn_played.groups = 120000; /* 120 ms */
        gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
        gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
        if (turns) {
            assert_true(gn_grant_assign(&gn_played.slot, 6000000, false));
            pthread_mutex_lock(&gn_played.device.role);
            gn_turn_began(&gn_played.device);
            pthread_mutex_unlock(&gn_played.device.role);
            gn_device_pump(&gn_played.device);
        }
        assert_int_equal(gn_played.n_parts, 2);
        assert_int_equal(gn_played.parts[0].box.n[0], 10000);
        for (uint32_t i = 0; i < 10; i++) {
            assert_int_equal(gn_played.n_whole, 0);
            assert_int_equal(gn_played.n_parts, i + 2);
            gn_played_end(i, 0);
        }
        assert_int_equal(gn_played.n_parts, 12);
        gn_played_check_once(120000);
        /* The driver orders the commands behind it. */
        assert_int_equal(gn_played.n_whole, 1);
        gn_played_end(10, 0);
        assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_SUBMITTED);
        gn_played_end(11, 0);
        assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
        gn_command_over(gn_played.whole[0], 0);
        assert_int_equal(atomic_load(&gn_played.counters.pending), 0);
        gn_played_stop();
    }
}

/* An unknown kernel: the first part is measured before more is submitted. */
static void test_alone_and_not_known(void **state)
{
    (void)state;
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    gn_played.pace_ps = 0;
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 1);
    assert_int_equal(gn_played.parts[0].box.n[0], GN_SLICE_LEAST_GROUPS);
    gn_played_end(0, 0);
    assert_int_equal(gn_played.n_took, 1);
    assert_int_equal(gn_played.n_parts, 3);
    gn_played_end(1, 0);
    gn_played_end(2, 0);
    gn_played_check_once(20000);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    /* Behind another command a part's time is not the kernel's own; the next part's is. */
    gn_played.pace_ps = 0;
    gn_played.n_took = 0;
    gn_played.busy = true;
    gn_played.n_parts = 0;
    gn_played_enqueue(&gn_played_launch, 1, GN_NO_EVENT);
    gn_played_end(0, 0);
    assert_int_equal(gn_played.n_took, 0);
    assert_int_equal(gn_played.n_parts, 2);
    gn_played_end(1, 0);
    assert_int_equal(gn_played.n_took, 1);
    assert_int_equal(gn_played.n_parts, 4);
    gn_played_end(2, 0);
    gn_played_end(3, 0);
    gn_played_check_once(20000);
    gn_played_stop();
}

/*
 * Short launches run whole, and every 13th is measured; so is each long launch that cannot be cut.
 */
static void test_alone_and_whole(void **state)
{
    uint32_t n = 0;
    (void)state;
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    for (uint32_t i = 0; i < 40; i++) {
        gn_played_enqueue(&gn_played_launch, GN_NO_EVENT, GN_NO_EVENT);
        if (gn_played.n_whole) {
            gn_command_over(gn_played.whole[--gn_played.n_whole], 0);
            n++;
        }
    }
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(n, 3);
    assert_int_equal(gn_played.n_took, 3);
    gn_played.ready = false;
    gn_played.groups = 120000;
    for (uint32_t i = 0; i < 3; i++) {
        gn_played.busy = i == 2; /* its time cannot be measured */
        gn_played_enqueue(&gn_played_launch, GN_NO_EVENT, GN_NO_EVENT);
        assert_int_equal(gn_played.n_whole, i < 2);
        if (gn_played.n_whole)
            gn_command_over(gn_played.whole[--gn_played.n_whole], 0);
    }
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(gn_played.n_took, 5);
    gn_played_stop();
}

/*
 * While a command waits for the end of a part, other commands may be submitted: of an out-of-order
 * queue, and of other queues.
 */
static void test_alone_it_keeps_nobody_else(void **state)
{
    (void)state;
    gn_played_start(false, GN_PLAYED_NO_TURNS);
    gn_played.groups = 120000;
    const uint64_t id = gn_id_make(8, 1), first = gn_played.queue_id;
    struct gn_vobject *second =
        gn_object_put(&gn_played.vgpu, id, GN_PLAYED_KIND_QUEUE, &gn_played.events[0]);
    assert_non_null(second);
    second->detail = gn_queue_new(&gn_played.vgpu, second, 0, true, true, false);
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 2);
    gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_marker, 2, GN_NO_EVENT);
    assert_int_equal(gn_played.n_whole, 1);
    gn_played.queue_id = id;
    gn_played_enqueue(&gn_played_launch, 3, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 4);
    gn_played_enqueue(&gn_played_other, 4, GN_NO_EVENT);
    assert_int_equal(gn_played.n_whole, 1);
    gn_played.queue_id = first;
    for (uint32_t i = 0; i < 24; i++)
        gn_played_end(i, 0);
    assert_int_equal(gn_played.n_parts, 24);
    assert_int_equal(gn_played.n_whole, 3);
    for (uint32_t i = 0; i < 3; i++)
        gn_command_over(gn_played.whole[i], 0);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(gn_played_phase(i, NULL), GN_EVENT_DONE);
    gn_object_remove(&gn_played.vgpu, id, GN_PLAYED_KIND_QUEUE);
    gn_played_stop();
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
