/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of both kinds of sessions as gantryd has them (record_session.h), on bare records. */
#include "daemon/vgpu/record_session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "control/control.h"
#include "daemon/daemon.h"
#include "link/worker_wire.h"

static const struct gn_record_session_ops *const shm = &gn_record_session_shm,
                                                 *const tcp = &gn_record_session_tcp;

static void check_route(const struct gn_outbound_route *r, enum gn_worker_route route,
                        bool source_by_tcp, bool secure)
{
    assert_int_equal(r->route, route);
    assert_int_equal(r->source_by_tcp, source_by_tcp);
    assert_int_equal(r->secure, secure);
}

/* To another gantryd by a Unix socket, by tcp, and by TLS, which `gantry` speaks for the source. */
static void routes_of_a_session_in_shared_memory(void **state)
{
    struct gn_vgpu_record v = {.session_ops = shm};
    struct gn_outbound_route r;
    struct gn_error err;
    (void)state;
    assert_int_equal(shm->plan_outbound(&v, false, false, &r, &err), 0);
    check_route(&r, GN_ROUTE_SHM, false, false);
    assert_int_equal(shm->plan_outbound(&v, true, false, &r, &err), 0);
    check_route(&r, GN_ROUTE_TCP, true, false);
    assert_int_equal(shm->plan_outbound(&v, true, true, &r, &err), 0);
    check_route(&r, GN_ROUTE_TCP, false, true);
}

/* Whether the session uses TLS decides, not the way by which `gantry` has reached the other
 * gantryd. */
static void routes_of_a_session_over_tcp(void **state)
{
    struct gn_vgpu_record v = {.session_ops = tcp};
    struct gn_outbound_route r;
    struct gn_error err;
    (void)state;
    assert_int_equal(tcp->plan_outbound(&v, false, false, &r, &err), -EOPNOTSUPP);
    assert_int_equal(tcp->plan_outbound(&v, true, true, &r, &err), 0);
    check_route(&r, GN_ROUTE_TCP, true, false);
    v.secure = true;
    assert_int_equal(tcp->plan_outbound(&v, true, false, &r, &err), 0);
    check_route(&r, GN_ROUTE_TCP, true, true);
}

static void a_worker_gets_the_name_and_the_key(void **state)
{
    static const struct gn_worker_boot none;
    static struct gn_daemon d = {.tcp_grace_ms = 1234};
    struct gn_vgpu_record v = {.daemon = &d};
    struct gn_worker_boot boot = none;
    (void)state;
    memset(v.session, 1, sizeof v.session);
    memset(v.key, 2, sizeof v.key);
    shm->fill_boot(&v, &boot);
    assert_memory_equal(&boot, &none, sizeof boot);
    tcp->fill_boot(&v, &boot);
    assert_int_equal(boot.remote, GN_WORKER_REMOTE_PLAIN);
    assert_int_equal(boot.grace_ms, 1234);
    assert_memory_equal(boot.session, v.session, sizeof v.session);
    assert_memory_equal(boot.key, v.key, sizeof v.key);
    v.secure = true;
    tcp->fill_boot(&v, &boot);
    assert_int_equal(boot.remote, GN_WORKER_REMOTE_TLS);
}

static void another_gantryd_is_told_of_the_session(void **state)
{
    struct gn_vgpu_record v = {.secure = true};
    struct gn_control_about about = {.id = 1};
    (void)state;
    shm->describe(&v, &about);
    assert_false(about.remote || about.secure);
    tcp->describe(&v, &about);
    assert_true(about.remote && about.secure);
}

/* A stop needs the program's connection over tcp, and a token by which the program can come back.
 */
static void a_stop_over_tcp_needs_a_program_that_can_come_back(void **state)
{
    struct gn_vgpu_record v = {.program_pid = 1};
    struct gn_conn c = {.claims = false};
    struct gn_error err;
    (void)state;
    assert_int_equal(shm->judge_checkpoint(&v, true, &err), 0);
    assert_int_equal(tcp->judge_checkpoint(&v, true, &err), -ENOTCONN);
    assert_int_equal(tcp->judge_checkpoint(&v, false, &err), -ENOTCONN);
    assert_int_equal(tcp->judge_migration(&v, &err), -ENOTCONN);
    assert_int_equal(shm->judge_migration(&v, &err), -ENOENT);
    v.conn = &c;
    assert_int_equal(tcp->judge_checkpoint(&v, true, &err), 0);
    c.claims = true;
    assert_int_equal(tcp->judge_checkpoint(&v, true, &err), -EOPNOTSUPP);
    assert_int_equal(tcp->judge_checkpoint(&v, false, &err), 0);
    assert_int_equal(tcp->judge_migration(&v, &err), 0);
    assert_int_equal(shm->judge_checkpoint(&v, true, &err), 0);
}

/* In shared memory the program hands over its session, and the file is in the data area's place;
 * over tcp the file has both. */
static void a_restored_worker_gets_file_and_session(void **state)
{
    struct gn_vgpu_record v = {.hand_fd = -1, .session_fd = -1}, n = {.data_fd = -1};
    struct gn_error err;
    (void)state;
    assert_int_equal(shm->judge_saved(&v, &err), -EPROTO);
    assert_int_equal(tcp->judge_saved(&v, &err), 0);
    v.session_fd = 5;
    assert_int_equal(shm->judge_saved(&v, &err), 0);
    assert_false(shm->awaits_restore(&v));
    assert_true(tcp->awaits_restore(&v));
    v.hand_fd = 6;
    assert_true(shm->awaits_restore(&v));
    assert_int_equal(tcp->pass_file(&v, &n, 7), 7);
    assert_int_equal(n.data_fd, -1);
    assert_int_equal(shm->pass_file(&v, &n, 7), 6);
    assert_int_equal(n.data_fd, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_a_session_in_shared_memory),
        cmocka_unit_test(routes_of_a_session_over_tcp),
        cmocka_unit_test(a_worker_gets_the_name_and_the_key),
        cmocka_unit_test(another_gantryd_is_told_of_the_session),
        cmocka_unit_test(a_stop_over_tcp_needs_a_program_that_can_come_back),
        cmocka_unit_test(a_restored_worker_gets_file_and_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
