/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the identity of peers by both transports (net/transport.h), on bare connections. */
#include "daemon/net/transport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/migrate/inbound.h"

#define TOKEN "a-token-of-a-length-that-may-be-one"

static const struct gn_transport *const local = &gn_transport_local, *const tcp = &gn_transport_tcp;

static void a_peer_is_named_by_user_or_address(void **state)
{
    struct gn_conn c = {.uid = 7, .peer = {.address = "10.0.0.1:2"}};
    char name[32];
    (void)state;
    local->name_user(&c, name, sizeof name);
    assert_string_equal(name, "uid 7");
    tcp->name_user(&c, name, sizeof name);
    assert_string_equal(name, "10.0.0.1:2");
}

/* A worker runs as a user, and has a user's caches, only where the kernel names the user. */
static void only_the_kernel_names_users(void **state)
{
    struct gn_conn c = {.socket = {.fd = 5}};
    (void)state;
    assert_int_equal(local->user_socket(&c), 5);
    assert_int_equal(tcp->user_socket(&c), -1);
    assert_true(local->is_admitted_by_user(&c));
    assert_false(tcp->is_admitted_by_user(&c));
    c.n_token = 1;
    assert_false(local->is_admitted_by_user(&c));
    c.n_token = 0;
    c.is_bound = true;
    assert_false(local->is_admitted_by_user(&c));
}

static void facts_of_a_peer(void **state)
{
    static struct gn_daemon d = {.insecure = true};
    struct gn_conn c = {.daemon = &d, .uid = geteuid()};
    struct gn_peer here = {.uid = c.uid}, there = {.uid = c.uid};
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    c.socket.fd = ends[0];
    gid_t *groups = local->identify(&c, &here);
    assert_ptr_equal(here.groups, groups);
    assert_true(here.is_default);
    assert_false(here.anybody);
    free(groups);
    assert_null(tcp->identify(&c, &there));
    assert_true(there.anybody);
    assert_false(there.is_default || there.n_groups);
    close(ends[0]);
    close(ends[1]);
}

static void owners_of_vgpus(void **state)
{
    struct gn_tenant t = {.n_tokens = 3};
    struct gn_conn c = {.uid = 7, .n_token = strlen(TOKEN)};
    struct gn_error err;
    (void)state;
    gn_tenant_rules_init(&t.rules, "blue");
    memcpy(c.token, TOKEN, strlen(TOKEN));
    assert_int_equal(gn_tenant_set_token(&t.rules, TOKEN, strlen(TOKEN), &err), 0);
    assert_int_equal(local->owner_of(&c, &t).kind, GN_OWNER_USER);
    assert_int_equal(local->owner_of(&c, &t).uid, 7);
    assert_int_equal(tcp->owner_of(&c, &t).kind, GN_OWNER_TOKEN);
    assert_int_equal(tcp->owner_of(&c, &t).token, 3);
    c.n_token = 0;
    assert_int_equal(tcp->owner_of(&c, &t).kind, GN_OWNER_NOBODY);
    strcpy(c.peer.subject, "blue");
    assert_int_equal(tcp->owner_of(&c, &t).kind, GN_OWNER_CERTIFICATE);
    assert_false(tcp->may_announce(&c, "blue"));
    c.tenant = &t;
    assert_true(tcp->may_announce(&c, "blue"));
    assert_false(tcp->may_announce(&c, "red"));
    assert_false(local->may_announce(&c, "blue"));
}

/* A session over tcp comes by tcp alone, with TLS or without as before. Each other one comes. */
static void sessions_that_may_come(void **state)
{
    struct gn_conn c = {.peer = {.secure = false}};
    struct gn_control_about about = {.remote = false, .secure = false};
    struct gn_error err;
    (void)state;
    assert_int_equal(local->judge_announced(&c, &about, &err), 0);
    assert_int_equal(tcp->judge_announced(&c, &about, &err), 0);
    about.remote = true;
    assert_int_equal(local->judge_announced(&c, &about, &err), -EOPNOTSUPP);
    assert_int_equal(tcp->judge_announced(&c, &about, &err), 0);
    about.secure = true;
    assert_int_equal(tcp->judge_announced(&c, &about, &err), -EACCES);
    c.peer.secure = true;
    assert_int_equal(tcp->judge_announced(&c, &about, &err), 0);
    about.secure = false;
    assert_int_equal(tcp->judge_announced(&c, &about, &err), -EACCES);
}

static void a_claim_over_tcp_brings_nothing(void **state)
{
    struct gn_link_claim frame = {.n_segments = 0};
    struct gn_frame f = {.payload = &frame, .n_payload = sizeof frame};
    struct gn_claim claim;
    struct gn_conn c = {.uid = 0};
    (void)state;
    assert_true(tcp->read_claim(&c, &f, &claim));
    assert_true(claim.is_session && claim.named && !claim.near);
    assert_int_equal(claim.ring_fd, -1);
    assert_int_equal(claim.hand_fd, -1);
    assert_false(local->read_claim(&c, &f, &claim));
    frame.n_segments = 1;
    assert_false(tcp->read_claim(&c, &f, &claim));
    frame.n_segments = 0;
    f.n_fds = 1;
    assert_false(tcp->read_claim(&c, &f, &claim));
    f.n_fds = 3;
    assert_false(local->read_claim(&c, &f, &claim));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_is_named_by_user_or_address),
        cmocka_unit_test(only_the_kernel_names_users),
        cmocka_unit_test(facts_of_a_peer),
        cmocka_unit_test(owners_of_vgpus),
        cmocka_unit_test(sessions_that_may_come),
        cmocka_unit_test(a_claim_over_tcp_brings_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
