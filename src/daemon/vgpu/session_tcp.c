/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions over tcp (record_session.h): program and worker have memory of their own each, the
 * session has a name and a key (tcp_sessions.c), and the program has a grace to come back after its
 * connection broke. Called through v->session_ops by vgpu and migrate, on gantryd's thread; it
 * never waits.
 */
#include "daemon/vgpu/record_session.h"

#include <errno.h>
#include <string.h>

#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/tcp_sessions.h"
#include "link/worker_wire.h"

/* ---- life */

static void fill_boot(const struct gn_vgpu_record *v, struct gn_worker_boot *boot)
{
    boot->remote = v->secure ? GN_WORKER_REMOTE_TLS : GN_WORKER_REMOTE_PLAIN;
    boot->grace_ms = v->daemon->tcp_grace_ms;
    memcpy(boot->session, v->session, sizeof boot->session);
    memcpy(boot->key, v->key, sizeof boot->key);
}

static void send_attached(struct gn_vgpu_record *v)
{
    gn_vgpus_notify_session(v, v->attach_seq);
}

/* The program has no end of its worker's socket, which must not hang up: gantryd keeps that end. */
static void close_program_end(struct gn_vgpu_record *v)
{
    (void)v;
}

static bool has_program(const struct gn_vgpu_record *v)
{
    return !v->conn || gn_conn_has_peer(v->conn);
}

/* Its process is on another machine. */
static bool is_program_running(const struct gn_vgpu_record *v)
{
    (void)v;
    return false;
}

/* ---- migrations */

static int judge_migration(const struct gn_vgpu_record *v, struct gn_error *err)
{
    return v->conn ? 0
                   : gn_fail(err, ENOTCONN, "try again in a moment",
                             "the connection to its program is broken");
}

static int judge_checkpoint(const struct gn_vgpu_record *v, bool stop, struct gn_error *err)
{
    const int rc = judge_migration(v, err);
    if (rc)
        return rc;
    /* It is admitted by its session's key, which ends with this gantryd. */
    if (stop && v->conn->claims)
        return gn_fail(
            err, EOPNOTSUPP,
            "gantry migrate VGPU tcp:HOST:PORT takes it to another gantryd; without --stop it "
            "goes on, and the file is to look at",
            "its program has come from another gantryd, and has no token by which it could come "
            "back to this one");
    return 0;
}

static int judge_in_process(const struct gn_vgpu_record *v, struct gn_error *err)
{
    (void)v;
    return gn_fail(err, EOPNOTSUPP, NULL,
                   "its program is attached over tcp, and passthrough needs one that shares "
                   "gantryd's machine");
}

/* A session over tcp stays one, with TLS or without, unless the program finds the other gantryd on
 * its own machine. */
static int plan_outbound(const struct gn_vgpu_record *v, bool by_tcp, bool secure,
                         struct gn_outbound_route *ret, struct gn_error *err)
{
    (void)secure;
    if (!by_tcp)
        return gn_fail(
            err, EOPNOTSUPP, "name tcp:HOST:PORT of another gantryd",
            "its program is attached over tcp, and cannot reach a socket of this machine");
    *ret = (struct gn_outbound_route){
        .route = GN_ROUTE_TCP, .source_by_tcp = true, .secure = v->secure};
    return 0;
}

static void describe(const struct gn_vgpu_record *v, struct gn_control_about *ret)
{
    ret->remote = true;
    ret->secure = v->secure;
}

static int begin_claimed(struct gn_vgpu_record *v, const struct gn_conn *c, int contents_fd,
                         const struct gn_owner *announcer)
{
    (void)contents_fd;
    v->owner = *announcer; /* the program's connection shows a ticket, and no token */
    const int rc = gn_vgpus_make_memory(v);
    return rc ? rc : gn_vgpus_make_session(v, c);
}

static void send_claimed(struct gn_vgpu_record *v, const struct gn_link_claimed *claimed)
{
    struct gn_link_claimed_remote far = {.claimed = *claimed, .grace_ms = v->daemon->tcp_grace_ms};
    memcpy(far.session, v->session, sizeof far.session);
    memcpy(far.key, v->key, sizeof far.key);
    gn_conn_send(v->conn, GN_LINK_CLAIMED_REMOTE, v->attach_seq, &far, sizeof far, NULL, 0);
    explicit_bzero(&far, sizeof far);
}

/* ---- stops and restores */

/* All of the session is in the file. */
static int judge_saved(const struct gn_vgpu_record *v, struct gn_error *err)
{
    (void)v;
    (void)err;
    return 0;
}

/* The message may be lost: the program's answer decides. */
static int send_stopped(struct gn_vgpu_record *v, const struct gn_link_stopped *stopped,
                        struct gn_error *err)
{
    if (!v->conn)
        return gn_fail(err, ENOTCONN, "try again in a moment",
                       "the connection to its program is broken");
    gn_conn_queue(v->conn, GN_LINK_STOPPED, 0, stopped, sizeof *stopped);
    return 0;
}

static void was_notified(struct gn_vgpu_record *v)
{
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) is told that it is in a file",
                 v->id, v->program, (int)v->program_pid);
}

/* Its wait was the decision to stop. */
static bool awaits_restore(const struct gn_vgpu_record *v)
{
    (void)v;
    return true;
}

static int pass_file(const struct gn_vgpu_record *v, struct gn_vgpu_record *n, int file_fd)
{
    (void)v;
    (void)n;
    return file_fd;
}

static void request_session(struct gn_vgpu_record *v)
{
    (void)v;
}

/* The program asks before it believes that. */
static void send_restored(struct gn_vgpu_record *v)
{
    if (v->conn)
        gn_conn_queue(v->conn, GN_LINK_RESTORED, 0, NULL, 0);
}

static void refuse_restore(struct gn_vgpu_record *v, const struct gn_error *err)
{
    (void)v;
    (void)err;
}

const struct gn_record_session_ops gn_record_session_tcp = {
    .name = "tcp",
    .worker_has_area = true,
    .route_here = GN_ROUTE_TCP_SAME_DAEMON,
    .route_inbound = GN_ROUTE_TCP,
    .may_become_shm = true,
    .stop_kind = GN_TX_STOP_TCP,
    .begin = gn_vgpus_make_session,
    .make_memory = gn_vgpus_make_memory,
    .fill_boot = fill_boot,
    .send_attached = send_attached,
    .close_program_end = close_program_end,
    .await_return = gn_vgpus_await_return,
    .has_program = has_program,
    .is_program_running = is_program_running,
    .judge_migration = judge_migration,
    .judge_checkpoint = judge_checkpoint,
    .judge_in_process = judge_in_process,
    .plan_outbound = plan_outbound,
    .describe = describe,
    .begin_claimed = begin_claimed,
    .send_claimed = send_claimed,
    .judge_saved = judge_saved,
    .send_stopped = send_stopped,
    .was_notified = was_notified,
    .awaits_restore = awaits_restore,
    .pass_file = pass_file,
    .request_session = request_session,
    .send_restored = send_restored,
    .refuse_restore = refuse_restore,
};
