/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of both kinds of processes that serve a vGPU (serving_process.h), on bare records. */
#include "daemon/vgpu/serving_process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/list.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/worker.h"

static const struct gn_serving_process_ops *const worker = &gn_serving_worker,
                                                  *const program = &gn_serving_program;

static void each_mode_has_its_process(void **state)
{
    (void)state;
    assert_ptr_equal(gn_serving_in_mode(GN_MODE_REMOTE), worker);
    assert_ptr_equal(gn_serving_in_mode(GN_MODE_PASSTHROUGH), program);
    assert_int_equal(worker->mode, GN_MODE_REMOTE);
    assert_int_equal(program->mode, GN_MODE_PASSTHROUGH);
}

static void a_program_refuses_with_reason_and_remedy(void **state)
{
    (void)state;
    for (int request = 0; request < GN_SERVING_N_REQUESTS; request++) {
        struct gn_error err = {{0}, {0}};
        assert_int_equal(gn_serving_permits(worker, request, &err), 0);
        assert_int_equal(gn_serving_permits(program, request, &err), -EOPNOTSUPP);
        assert_true(err.what[0] && err.fix[0]);
    }
}

struct migration {
    struct gn_record_owner owner;
    struct gn_vgpu_record *from;
};

static struct gn_vgpu_record *session_of(struct gn_record_owner *o, const struct gn_vgpu_record *v)
{
    (void)v;
    return gn_container_of(o, struct migration, owner)->from;
}

static void a_worker_is_the_process_of_its_record(void **state)
{
    struct gn_vgpu_record v = {.serving = worker, .process = {.fd = 5}};
    struct gn_awaited_process p;
    (void)state;
    assert_false(worker->process(&v, &p)); /* not spawned */
    v.worker_pid = 10;
    assert_true(worker->process(&v, &p));
    assert_int_equal(p.pid, 10);
    assert_int_equal(p.pidfd, 5);
    assert_null(p.program);
    v.process.fd = -1;
    assert_false(worker->process(&v, &p)); /* ended */
}

/* A destination in the program has no connection of its own. */
static void a_program_is_the_process_of_its_session(void **state)
{
    static const struct gn_record_owner_ops ops = {.session_of = session_of};
    struct gn_conn c = {.pid = 20, .process = {.fd = 6}};
    struct gn_vgpu_record from = {.serving = worker, .conn = &c, .program = "blender"};
    struct migration m = {.owner = {&ops}, .from = &from};
    struct gn_vgpu_record to = {
        .serving = program, .owned_by = &m.owner, .program = "blender", .process = {.fd = 7}};
    struct gn_awaited_process p;
    (void)state;
    assert_true(program->process(&to, &p));
    assert_int_equal(p.pid, 20);
    assert_int_equal(p.pidfd, 6);
    assert_string_equal(p.program, "blender");
    from.conn = NULL;
    assert_false(program->process(&to, &p)); /* the program is gone */
}

/* Of a process that `unreachable` has dealt with: true when that has killed it. */
static bool is_killed_by(const struct gn_serving_process_ops *serving, int rc)
{
    int go[2], status;
    char byte = 0;
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
    struct gn_vgpu_record v = {.serving = serving, .worker_pid = pid};
    v.process.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(v.process.fd >= 0);
    gn_vgpus_unreachable(&v, rc);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(v.process.fd);
    close(go[0]);
    close(go[1]);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGKILL);
    return WIFSIGNALED(status);
}

/* A program that has closed its end goes on; one that does not read is killed, as is any worker. */
static void only_a_program_may_close_its_end(void **state)
{
    (void)state;
    assert_false(is_killed_by(program, -EPIPE));
    assert_false(is_killed_by(program, -ECONNRESET));
    assert_true(is_killed_by(program, -ENOBUFS));
    assert_true(is_killed_by(worker, -EPIPE));
    assert_true(is_killed_by(worker, -ENOBUFS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mode_has_its_process),
        cmocka_unit_test(a_program_refuses_with_reason_and_remedy),
        cmocka_unit_test(a_worker_is_the_process_of_its_record),
        cmocka_unit_test(a_program_is_the_process_of_its_session),
        cmocka_unit_test(only_a_program_may_close_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
