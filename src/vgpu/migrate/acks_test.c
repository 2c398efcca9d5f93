/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the source and the messages of the destination, played by the test. */
#include "vgpu/migrate/transfer_internal.h"

#include "link/worker_wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMEOUT_MS 30000 /* for messages that have been sent already */

static int ends[2];
static struct gn_frame_reader from;

static int set_up(void **state)
{
    (void)state;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    gn_frame_reader_init(&from, ends[0]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gn_frame_reader_fini(&from);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void say(uint16_t op, uint32_t seq)
{
    assert_int_equal(gn_frame_send(ends[1], TIMEOUT_MS, op, 0, seq, NULL, 0, NULL, 0), 0);
}

static void steps_are_heard_one_after_the_other(void **state)
{
    struct gn_error err;
    uint32_t made = 0, others = 0;
    (void)state;
    say(GN_WORKER_HAND_FITS, 1);
    say(GN_WORKER_HAND_MADE, 1);
    say(GN_WORKER_HAND_MADE, 3);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, NULL, NULL, &err), 0);
    assert_int_equal(others, 1);
    assert_int_equal(gn_acks_made(&from, TIMEOUT_MS, 2, &made, &err), 0);
    assert_int_equal(made, 3);
    assert_int_equal(gn_acks_made(&from, 0, 3, &made, &err), 0);
}

static void repeated_step_is_refused(void **state)
{
    struct gn_error err;
    uint32_t made = 0;
    (void)state;
    say(GN_WORKER_HAND_MADE, 1);
    say(GN_WORKER_HAND_MADE, 1);
    say(GN_WORKER_HAND_MADE, 2);
    assert_int_equal(gn_acks_made(&from, TIMEOUT_MS, 2, &made, &err), -EPROTO);
}

static void other_messages_are_refused(void **state)
{
    struct gn_error err;
    uint32_t made = 0;
    (void)state;
    assert_int_equal(gn_acks_made(&from, 1, 1, &made, &err), -ETIMEDOUT);
    say(GN_WORKER_HAND_FITS, 1);
    assert_int_equal(gn_acks_made(&from, TIMEOUT_MS, 1, &made, &err), -EPIPE);
}

static void say_kept(const void *ids, uint32_t n_bytes)
{
    assert_int_equal(
        gn_frame_send(ends[1], TIMEOUT_MS, GN_WORKER_HAND_RETAINED, 0, 0, ids, n_bytes, NULL, 0),
        0);
}

static void retained_ids_come_first(void **state)
{
    static const uint64_t kept[] = {7, 9, 11};
    struct gn_error err;
    uint64_t *ids = NULL;
    uint32_t others = 7, n = 7;
    (void)state;
    say_kept(kept, 2 * sizeof *kept);
    say_kept(kept + 2, sizeof *kept);
    say(GN_WORKER_HAND_FITS, 0);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, &ids, &n, &err), 0);
    assert_int_equal(others, 0);
    assert_int_equal(n, 3);
    assert_memory_equal(ids, kept, sizeof kept);
    free(ids);
    say(GN_WORKER_HAND_FITS, 1);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, &ids, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_null(ids);
}

static void invalid_retained_ids_are_refused(void **state)
{
    static uint64_t kept[GN_WORKER_HAND_RETAINED_MOST];
    struct gn_error err;
    uint64_t *ids = NULL;
    uint32_t others, n;
    (void)state;
    /* Half an id; none; from a destination that cannot have any; without end. */
    say_kept(kept, sizeof *kept + 4);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, &ids, &n, &err), -EPROTO);
    say_kept(NULL, 0);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, &ids, &n, &err), -EPROTO);
    say_kept(kept, sizeof *kept);
    assert_int_equal(gn_acks_fits(&from, TIMEOUT_MS, &others, NULL, NULL, &err), -EPIPE);
    say_kept(kept, sizeof kept);
    assert_int_equal(gn_acks_fits(&from, 1, &others, &ids, &n, &err), -ETIMEDOUT);
    assert_null(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_are_heard_one_after_the_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repeated_step_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(retained_ids_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(invalid_retained_ids_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_messages_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
