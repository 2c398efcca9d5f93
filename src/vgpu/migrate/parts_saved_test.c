/* SPDX-License-Identifier: Apache-2.0 */
/* Sliced commands that are saved between two parts and resumed at the destination. */
#include "stream/stream_samples.h"
#include "vgpu/core/played_parts.h"
#include "vgpu/migrate/save.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void hold(bool holds)
{
    atomic_store(&gn_played.vgpu.gate.holds, holds);
    atomic_store(&gn_played.device.dirty, true);
    gn_device_pump(&gn_played.device);
}

/* Saves the pending commands; `lie` replaces the true state of the first one. */
static void save(struct gn_sample_file *f, const struct gn_stream_command_state *lie)
{
    const struct gn_stream_sink sink = gn_sample_sink(f);
    const struct gn_stream_options options = {
        .purpose = GN_STREAM_MOVE, .api = "opencl", .creator = "test"};
    const struct gn_stream_announce most = {
        .entries_bytes = 1 << 20, .n_objects = 4, .n_rounds = 1};
    struct gn_stream_writer *w;
    assert_int_equal(gn_stream_writer_create(&sink, &options, &w, NULL), 0);
    assert_int_equal(gn_stream_announce(w, &most), 0);
    assert_int_equal(gn_stream_entry_begin(w, GN_STREAM_OBJECTS, gn_played.queue_id,
                                           GN_PLAYED_KIND_QUEUE, NULL, 0),
                     0);
    assert_int_equal(gn_stream_entry_end(w), 0);
    if (lie) {
        const struct gn_command *c = gn_list_first(
            &((struct gn_vqueue *)gn_list_first(&gn_played.device.queues, struct gn_vqueue, link))
                 ->pending,
            struct gn_command, link);
        const struct gn_saved_command own = {0};
        assert_int_equal(gn_stream_entry_begin(w, GN_STREAM_COMMANDS, 1,
                                               c->class == &gn_played_other, &gn_played.queue_id,
                                               1),
                         0);
        assert_int_equal(gn_stream_part(w, GN_PART_STATE, lie, sizeof *lie), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_REQUEST, c->bytes, c->n_bytes), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_WAITS, NULL, 0), 0);
        assert_int_equal(gn_stream_part(w, GN_PART_API, &own, sizeof own), 0);
        assert_int_equal(gn_stream_entry_end(w), 0);
    } else {
        assert_int_equal(gn_commands_save(&gn_played.vgpu, w), 0);
    }
    assert_int_equal(gn_stream_commit(w), 0);
    gn_stream_writer_destroy(w);
}

/* Loads the saved commands. Returns the first error, or 0. */
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
                rc = gn_command_restore(&gn_played.vgpu, &e, clock_ahead_ns);
    } while (s.what != GN_STREAM_IS_COMMIT);
    gn_stream_reader_destroy(r);
    return rc;
}

static void forget_pending(void)
{
    gn_list_for_each(q, &gn_played.device.queues, struct gn_vqueue, link)
        gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        gn_command_forget(c);
    }
}

/* Saves a launch of which a sixth has run, while the gate holds. */
static void cut_and_save(struct gn_sample_file *f, const struct gn_stream_command_state *lie)
{
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    gn_played.groups = 120000;
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    gn_played_enqueue(&gn_played_other, 1, GN_NO_EVENT);
    assert_int_equal(gn_played.n_parts, 2);
    hold(true);
    gn_played_end(0, 0);
    gn_played_end(1, 0);
    assert_int_equal(gn_played.n_parts, 2);
    memset(f, 0, sizeof *f);
    save(f, lie);
}

static void pending_events(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct gn_vevent *e = gn_vevent_at(&gn_played.vgpu, i);
        e->state = GN_EVENT_PENDING;
        gn_event_arm(&gn_played.vgpu.events[i]);
    }
}

static void test_the_gate_cuts_it(void **state)
{
    struct gn_sample_file f;
    (void)state;
    cut_and_save(&f, NULL);
    /* No destination loaded it: it continues here. */
    hold(false);
    for (uint32_t i = 2; i < 12; i++)
        gn_played_end(i, 0);
    gn_played_check_once(120000);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    assert_int_equal(gn_played.vgpu.events[0].start_ns, 1000);
    gn_command_over(gn_played.whole[0], 0);
    gn_played_stop();
    gn_sample_free(&f);
}

static void test_its_rest_goes_on_elsewhere(void **state)
{
    struct gn_sample_file f;
    (void)state;
    cut_and_save(&f, NULL);
    forget_pending();
    gn_played_stop();
    /* A device with slower work-groups; the gate is closed during the load. */
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    gn_played.groups = 120000;
    gn_played.pace_ps = 4000000;
    atomic_store(&gn_played.vgpu.gate.holds, true);
    pending_events(2);
    assert_int_equal(load(&f, 50), 0);
    assert_int_equal(gn_played.n_parts, 0);
    assert_true(gn_vevent_at(&gn_played.vgpu, 0)->begun);
    assert_false(gn_vevent_at(&gn_played.vgpu, 1)->begun);
    hold(false);
    assert_int_equal(gn_played.n_parts, 2);
    assert_int_equal(gn_played.parts[0].box.first[0], 20000);
    assert_int_equal(gn_played.parts[0].box.n[0], 2500);
    for (uint32_t i = 0; i < 40; i++)
        gn_played_end(i, 0);
    assert_int_equal(gn_played.n_parts, 40);
    assert_int_equal(gn_played.parts[39].box.first[0] + gn_played.parts[39].box.n[0], 120000);
    assert_int_equal(gn_played_phase(0, NULL), GN_EVENT_DONE);
    /* It began with its first part, by the local clock, and ended with its last. */
    assert_int_equal(gn_played.vgpu.events[0].submit_ns, 1040);
    assert_int_equal(gn_played.vgpu.events[0].start_ns, 1050);
    assert_int_equal(gn_played.vgpu.events[0].end_ns, 1000 + 39 * 100 + 90);
    assert_int_equal(gn_played.n_whole, 1);
    gn_command_over(gn_played.whole[0], 0);
    gn_played_stop();
    gn_sample_free(&f);
}

/* The stream's claims about a command are checked. */
static void test_a_rest_that_is_none(void **state)
{
    static const struct gn_stream_command_state lies[] = {
        {.event = 0, .done = 120000}, /* nothing is left */
        {.event = 0, .done = UINT64_MAX},
        {.event = 0, .start_ns = 5}, /* it has not begun */
        {.event = 0, .submit_ns = 5},
        {.event = 0, .done = 20000, .submit_ns = 6, .start_ns = 5},
        {.event = 1, .done = 20000}, /* the event of another command */
        {.event = 0, .done = 20000, .zero = 1},
    };
    struct gn_sample_file f;
    (void)state;
    for (uint32_t i = 0; i <= GN_ARRAY_SIZE(lies); i++) {
        const bool last = i == GN_ARRAY_SIZE(lies);
        cut_and_save(&f, last ? NULL : &lies[i]);
        forget_pending();
        gn_played_stop();
        gn_played_start(true, GN_PLAYED_NO_TURNS);
        gn_played.groups = 120000;
        gn_played.ready = !last; /* it cannot be sliced here */
        atomic_store(&gn_played.vgpu.gate.holds, true);
        pending_events(2);
        assert_int_equal(load(&f, 0), -EBADMSG);
        forget_pending();
        gn_played_stop();
        gn_sample_free(&f);
    }
    /* A kind of command that is never sliced. */
    const struct gn_stream_command_state lie = {.event = 0, .done = 20000};
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    atomic_store(&gn_played.vgpu.gate.holds, true);
    gn_played_enqueue(&gn_played_other, 0, GN_NO_EVENT);
    memset(&f, 0, sizeof f);
    save(&f, &lie);
    forget_pending();
    assert_int_equal(load(&f, 0), -EBADMSG);
    gn_played_stop();
    gn_sample_free(&f);
}

/* A part fails while the gate holds: the command fails, at the source or at the destination. */
static void test_a_rest_behind_a_part_that_failed(void **state)
{
    struct gn_sample_file f = {0};
    int32_t error = 0;
    (void)state;
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    gn_played.groups = 120000;
    gn_played_enqueue(&gn_played_launch, 0, GN_NO_EVENT);
    hold(true);
    gn_played_end(0, -6);
    gn_played_end(1, 0);
    save(&f, NULL);
    forget_pending();
    gn_played_stop();
    gn_played_start(true, GN_PLAYED_NO_TURNS);
    gn_played.groups = 120000;
    atomic_store(&gn_played.vgpu.gate.holds, true);
    pending_events(1);
    assert_int_equal(load(&f, 0), 0);
    hold(false);
    assert_int_equal(gn_played.n_parts, 0);
    assert_int_equal(gn_played.n_whole, 0);
    assert_int_equal(gn_played_phase(0, &error), GN_EVENT_DONE);
    assert_int_equal(error, -6);
    gn_played_stop();
    gn_sample_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_gate_cuts_it),
        cmocka_unit_test(test_its_rest_goes_on_elsewhere),
        cmocka_unit_test(test_a_rest_that_is_none),
        cmocka_unit_test(test_a_rest_behind_a_part_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
