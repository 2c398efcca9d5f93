/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions in shared memory (record_session.h): gantryd makes the memory and hands its descriptors
 * to the program and the worker; in a migration the session's socket passes from worker to worker.
 * The session ends with the program's connection. Called through v->session_ops by vgpu and
 * migrate, on gantryd's thread; it never waits.
 */
#include "daemon/vgpu/record_session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>

#include "daemon/daemon.h"
#include "daemon/net/transport.h"
#include "daemon/process_stat.h"
#include "link/worker_wire.h"

/* ---- life */

/* The name of such a session is its connection. */
static int begin(struct gn_vgpu_record *v, const struct gn_conn *c)
{
    (void)v;
    (void)c;
    return 0;
}

/* Events and data area come with the session. */
static int make_memory(struct gn_vgpu_record *n)
{
    (void)n;
    return 0;
}

static void fill_boot(const struct gn_vgpu_record *v, struct gn_worker_boot *boot)
{
    (void)v;
    (void)boot;
}

static void send_attached(struct gn_vgpu_record *v)
{
    const struct gn_link_attached a = {.vgpu_id = v->id,
                                       .platform = v->platform,
                                       .ring_bytes = v->ring_bytes,
                                       .events_bytes = v->events_bytes,
                                       .data_bytes = v->data_bytes,
                                       .memory_limit_bytes = gn_holder_limit(&v->lease)};
    const int fds[] = {v->session_fd, v->ring_fd, v->events_fd, v->data_fd};
    gn_conn_send(v->conn, GN_LINK_ATTACHED, v->attach_seq, &a, sizeof a, fds, 4);
}

static void close_program_end(struct gn_vgpu_record *v)
{
    gn_quota_close(v->quota, &v->session_fd);
}

static bool await_return(struct gn_vgpu_record *v)
{
    (void)v;
    return false;
}

static bool is_program_running(const struct gn_vgpu_record *v)
{
    struct gn_process_stat stat;
    return gn_process_stat_read(v->program_pid, &stat) == 0 &&
           !gn_process_is_ending(v->program_pid);
}

/* A program that ends takes its worker with it, and its worker may be gone before gantryd hears of
 * the program; one that runs on hangs up when it notices that the worker has ended. */
static bool has_program(const struct gn_vgpu_record *v)
{
    const struct gn_conn *c = v->conn;
    return !c || is_program_running(v) || (gn_conn_has_peer(c) && !gn_process_is_ending(c->pid));
}

/* ---- migrations */

static int judge_migration(const struct gn_vgpu_record *v, struct gn_error *err)
{
    return v->conn && has_program(v) ? 0 : gn_fail(err, ENOENT, NULL, "its program has ended");
}

static int judge_checkpoint(const struct gn_vgpu_record *v, bool stop, struct gn_error *err)
{
    (void)v;
    (void)stop;
    (void)err;
    return 0;
}

static int judge_in_process(const struct gn_vgpu_record *v, struct gn_error *err)
{
    return v->conn->transport->judge_in_process(v->conn, err);
}

static int plan_outbound(const struct gn_vgpu_record *v, bool by_tcp, bool secure,
                         struct gn_outbound_route *ret, struct gn_error *err)
{
    (void)v;
    (void)err;
    *ret = (struct gn_outbound_route){
        .route = by_tcp ? GN_ROUTE_TCP : GN_ROUTE_SHM,
        /* A worker that was started without TLS has `gantry` speak it in its place. */
        .source_by_tcp = by_tcp && !secure,
        .secure = by_tcp && secure};
    return 0;
}

static void describe(const struct gn_vgpu_record *v, struct gn_control_about *ret)
{
    (void)v;
    (void)ret;
}

/* The worker gets events and data with the session. The stream of the contents has the data's place
 * where the program hands over a session that was over tcp until now. */
static int begin_claimed(struct gn_vgpu_record *v, const struct gn_conn *c, int contents_fd,
                         const struct gn_owner *announcer)
{
    (void)c;
    (void)announcer;
    if (contents_fd >= 0)
        v->data_fd = fcntl(contents_fd, F_DUPFD_CLOEXEC, 0);
    return contents_fd >= 0 && v->data_fd < 0 ? -EMFILE : 0;
}

static void send_claimed(struct gn_vgpu_record *v, const struct gn_link_claimed *claimed)
{
    gn_conn_send(v->conn, GN_LINK_CLAIMED, v->attach_seq, claimed, sizeof *claimed, NULL, 0);
}

/* ---- stops and restores */

static int judge_saved(const struct gn_vgpu_record *v, struct gn_error *err)
{
    return v->session_fd >= 0
               ? 0
               : gn_fail(err, EPROTO, NULL, "its worker did not hand over the program's session");
}

/* By the worker's end of the session's socket. This message decides. */
static int send_stopped(struct gn_vgpu_record *v, const struct gn_link_stopped *stopped,
                        struct gn_error *err)
{
    const int rc = gn_frame_send(v->session_fd, 0, GN_LINK_STOPPED, 0, 0, stopped, sizeof *stopped,
                                 &v->session_fd, 1);
    return rc ? gn_fail(err, -rc, "try again", "its program does not read what it is told") : 0;
}

/* It makes another session for the restore, and hands over a socket for that with its WAIT. */
static bool awaits_restore(const struct gn_vgpu_record *v)
{
    return v->hand_fd >= 0;
}

static int pass_file(const struct gn_vgpu_record *v, struct gn_vgpu_record *n, int file_fd)
{
    n->data_fd = file_fd;
    return v->hand_fd;
}

static void request_session(struct gn_vgpu_record *v)
{
    gn_conn_send(v->conn, GN_LINK_HAND, v->wait_seq, NULL, 0, NULL, 0);
}

static void send_restored(struct gn_vgpu_record *v)
{
    gn_conn_send(v->conn, GN_LINK_RESTORED, v->wait_seq, NULL, 0, NULL, 0);
}

/* The session may have gone over the socket that the program waits with: the program makes another
 * one. */
static void refuse_restore(struct gn_vgpu_record *v, const struct gn_error *err)
{
    if (v->conn)
        gn_conn_refuse(v->conn, v->wait_seq, EAGAIN, err);
}

const struct gn_record_session_ops gn_record_session_shm = {
    .name = "shm",
    .route_here = GN_ROUTE_SHM,
    .route_inbound = GN_ROUTE_SHM,
    .stop_kind = GN_TX_STOP,
    .begin = begin,
    .make_memory = make_memory,
    .fill_boot = fill_boot,
    .send_attached = send_attached,
    .close_program_end = close_program_end,
    .await_return = await_return,
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
    .was_notified = close_program_end,
    .awaits_restore = awaits_restore,
    .pass_file = pass_file,
    .request_session = request_session,
    .send_restored = send_restored,
    .refuse_restore = refuse_restore,
};
