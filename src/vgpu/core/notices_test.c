/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the vGPU's notices to a program that does not read its socket. */
#include "vgpu/core/evict.h"
#include "vgpu/core/serve.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define LONG_NS    UINT64_C(20000000000)
#define SHORT_NS   UINT64_C(50000000)
#define N_NOTICES  20000u
#define LONG_BYTES 60000u

static struct gn_vgpu vgpu;
static struct gn_counters counters;
static struct gn_vgpu_boot boot;
static struct gn_ring ring; /* no thread sleeps on it */
static int program, gantryd;
static struct gn_frame_reader reader;
static pthread_t control_thread;

static int setup(void **state)
{
    int session[2], control[2];
    (void)state;
    memset(&vgpu, 0, sizeof vgpu);
    vgpu.session = &gn_vgpu_session_in_process; /* its threads return */
    gn_budget_init(&vgpu.budget, &vgpu.lease, &gn_evict_ops, &vgpu);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, session), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    program = session[0];
    gantryd = control[0];
    boot.session_fd = session[1];
    boot.control_fd = control[1];
    vgpu.boot = &boot;
    vgpu.counters = &counters;
    vgpu.ring.ring = &ring;
    vgpu.listens = true;
    gn_lost_init(&vgpu.lost);
    pthread_mutex_init(&vgpu.lock, NULL);
    pthread_mutex_init(&vgpu.frames_lock, NULL);
    pthread_mutex_init(&vgpu.helper_lock, NULL);
    gn_frame_writer_init(&vgpu.frames, boot.session_fd, UINT64_C(64) << 20);
    gn_frame_reader_init(&reader, program);
    assert_int_equal(gn_gate_init(&vgpu.gate), 0);
    assert_int_equal(gn_lease_init(&vgpu.lease, boot.control_fd, &counters), 0);
    assert_int_equal(pthread_create(&control_thread, NULL, gn_vgpu_control_thread, &vgpu), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gn_frame_reader_fini(&reader);
    close(program);
    pthread_join(control_thread, NULL);
    gn_frame_writer_fini(&vgpu.frames);
    close(gantryd);
    close(boot.session_fd);
    close(boot.control_fd);
    close(vgpu.lease.wake_fd);
    for (uint32_t i = 0; i < GN_ARRAY_SIZE(vgpu.event_chunks); i++)
        free(vgpu.event_chunks[i]);
    return 0;
}

/* Makes n callbacks due with the end of one event. */
static void make_due(uint32_t n)
{
    assert_int_equal(gn_user_event_new(&vgpu, 0), 0);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(gn_event_watch(&vgpu, 0, 0, i), 0);
    assert_int_equal(gn_user_event_set(&vgpu, 0, 0), 0);
}

static void expect_notices(uint32_t n)
{
    struct gn_session_event reported;
    struct gn_frame f;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gn_frame_wait(&reader, -1, &f), 1);
        assert_int_equal(f.op, GN_SESSION_EVENT);
        assert_true(gn_frame_payload(&f, &reported, sizeof reported));
        assert_int_equal(reported.cookie, i);
    }
}

static void test_a_stopped_program_hears_all_when_it_goes_on(void **state)
{
    (void)state;
    make_due(N_NOTICES);
    expect_notices(N_NOTICES);
    assert_int_equal(vgpu.fault, 0);
}

/* The socket takes none of the frames in one write. */
static void test_long_ones_come_whole(void **state)
{
    static unsigned char text[LONG_BYTES];
    const int least = 1;
    struct gn_frame f;
    (void)state;
    assert_int_equal(setsockopt(boot.session_fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    for (uint32_t i = 0; i < 40; i++) {
        memset(text, (int)i, sizeof text);
        assert_int_equal(gn_vgpu_send(&vgpu, GN_SESSION_CONTEXT, i, text, i % 2 ? 16 : sizeof text),
                         0);
    }
    for (uint32_t i = 0; i < 40; i++) {
        memset(text, (int)i, sizeof text);
        assert_int_equal(gn_frame_wait(&reader, -1, &f), 1);
        assert_int_equal(f.seq, i);
        assert_int_equal(f.n_payload, i % 2 ? 16 : sizeof text);
        assert_memory_equal(f.payload, text, f.n_payload);
    }
}

static void test_a_program_that_never_reads_loses_its_vgpu(void **state)
{
    static const unsigned char text[LONG_BYTES];
    uint32_t n = 0;
    (void)state;
    vgpu.frames.max_bytes = 10 * LONG_BYTES;
    while (gn_vgpu_notify(&vgpu, GN_SESSION_CONTEXT, text, sizeof text) == 0)
        assert_true(++n < 1000);
    assert_int_equal(vgpu.fault, 1);
    assert_true(gn_lost_is(&vgpu.lost));
}

static void *close_gate(void *arg)
{
    struct gn_error err;
    *(int *)arg = gn_gate_close(&vgpu, LONG_NS, &err);
    return NULL;
}

/* Otherwise the next owner would continue in the middle of a frame. */
static void test_what_is_owed_goes_out_before_another_has_the_socket(void **state)
{
    struct gn_error err;
    pthread_t thread;
    int r = 1;
    (void)state;
    gn_gate_quiesced(&vgpu, true);
    make_due(N_NOTICES);
    assert_int_equal(gn_gate_close(&vgpu, SHORT_NS, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.what, "socket"));
    assert_false(gn_gate_is_closed(&vgpu.gate));
    assert_int_equal(pthread_create(&thread, NULL, close_gate, &r), 0);
    expect_notices(N_NOTICES);
    pthread_join(thread, NULL);
    assert_int_equal(r, 0);
    gn_gate_open(&vgpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_stopped_program_hears_all_when_it_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_long_ones_come_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_program_that_never_reads_loses_its_vgpu, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_is_owed_goes_out_before_another_has_the_socket,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
