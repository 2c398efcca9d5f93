/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit test of the socket options of both ends, as the kernel reports them. tests/tcp checks that a
 * dead peer is noticed.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "link/tcp.h"

#define NOTICED_AT_MOST_S 12

struct pair {
    int listener, dialled, accepted;
};

static int connect_both(void **state)
{
    static struct pair p;
    struct gn_address here = {.tcp = true, .host = "127.0.0.1"};
    struct gn_error err;
    p.listener = gn_tcp_listen(&here, &here.port, &err);
    assert_true(p.listener >= 0);
    p.dialled = gn_tcp_dial(&here, gn_now_ns() + UINT64_C(10000000000), &err);
    assert_true(p.dialled >= 0);
    /* The connection is established; accept it. */
    p.accepted = accept(p.listener, NULL, NULL);
    assert_true(p.accepted >= 0);
    gn_tcp_set_up(p.accepted);
    *state = &p;
    return 0;
}

static int close_both(void **state)
{
    struct pair *p = *state;
    close(p->dialled);
    close(p->accepted);
    close(p->listener);
    return 0;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t n = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &n), 0);
    return value;
}

static void check_keep_alive(int fd)
{
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_true(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                    option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT) <=
                NOTICED_AT_MOST_S);
    int unacknowledged_ms = option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    assert_in_range(unacknowledged_ms, 1, NOTICED_AT_MOST_S * 1000);
}

static void test_both_ends_notice_a_dead_peer(void **state)
{
    struct pair *p = *state;
    check_keep_alive(p->dialled);
    check_keep_alive(p->accepted);
}

static void test_one_that_is_busy_has_longer(void **state)
{
    struct pair *p = *state;
    gn_tcp_set_patience(p->dialled, 60000);
    assert_int_equal(option(p->dialled, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
    gn_tcp_set_up(p->dialled);
    check_keep_alive(p->dialled);
}

static void test_small_writes_are_not_delayed(void **state)
{
    struct pair *p = *state;
    assert_int_equal(option(p->dialled, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option(p->accepted, IPPROTO_TCP, TCP_NODELAY), 1);
}

static void check_unpaced(int fd)
{
    char name[16] = "";
    socklen_t n = sizeof name;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
    assert_string_equal(name, "reno");
}

static void test_nothing_is_paced_within_a_machine(void **state)
{
    struct pair *p = *state;
    check_unpaced(p->dialled);
    check_unpaced(p->accepted);
}

/* Sockets of another kind, or not connected, are left unchanged. */
static void test_other_sockets_are_no_harm(void **state)
{
    (void)state;
    int ends[2], alone = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char before[16] = "", after[16] = "";
    socklen_t n = sizeof before, m = sizeof after;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    gn_tcp_set_up(ends[0]);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(getsockopt(alone, IPPROTO_TCP, TCP_CONGESTION, before, &n), 0);
    gn_tcp_set_up(alone);
    assert_int_equal(getsockopt(alone, IPPROTO_TCP, TCP_CONGESTION, after, &m), 0);
    assert_string_equal(before, after);
    close(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_ends_notice_a_dead_peer, connect_both,
                                        close_both),
        cmocka_unit_test_setup_teardown(test_one_that_is_busy_has_longer, connect_both, close_both),
        cmocka_unit_test_setup_teardown(test_small_writes_are_not_delayed, connect_both,
                                        close_both),
        cmocka_unit_test_setup_teardown(test_nothing_is_paced_within_a_machine, connect_both,
                                        close_both),
        cmocka_unit_test(test_other_sockets_are_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
