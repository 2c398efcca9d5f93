/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU into a file and out of one; docs/moves.md. gantryd sees neither: `gantry` gives it the end
 * of a socket to write to, and a file to read from, and it passes them to the worker. Whose file it
 * is is said by a key, made at each stop, which is in the file and with the program and nowhere
 * else: without it no vGPU is put back, and with it only into the program that stopped, once.
 *
 * A stop is decided by one message, to the program, over the worker's end of the session's socket:
 * before it the worker can go on, after it the program waits, and needs neither this worker nor
 * this gantryd. Over tcp, where what was sent may not come, the program's answer decides. gantryd's
 * thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/secret.h"
#include "control/control.h"
#include "daemon/tenants/admission.h"
#include "daemon/migrate/inbound.h"
#include "daemon/vgpu/template.h"
#include "daemon/migrate/transaction.h"
#include "daemon/net/program_watch.h"
#include "daemon/vgpu/tcp_sessions.h"
#include "shm/session_layout.h"

#define FILE_NS UINT64_C(3600000000000) /* to write or read a file: who asks may give up before */
#define KEEP_NS UINT64_C(600000000000)  /* to bring it to the disk */
#define SETTLE_NS                                                                                  \
    UINT64_C(2000000000) /* for the old worker's end, and for the program to say that it waits */
#define TELL_NS                                                                                    \
    UINT64_C(10000000000) /* for a program on another machine to say so: until then it is not      \
                             decided */

static void set_deadline(struct gn_move *m, uint64_t in_ns)
{
    m->until_ns = gn_now_ns() + in_ns;
    gn_vgpus_arm(m->from->daemon);
}

static void close_session(struct gn_vgpu_record *v)
{
    gn_quota_close(v->quota, &v->session_fd);
}

/* ---- out */

int gn_checkpoint_start(struct gn_conn *c, uint32_t seq, struct gn_vgpu_record *v, bool stop,
                        uint32_t drain_timeout_ms, struct gn_error *err)
{
    struct gn_worker_save save = {.drain_timeout_ms = drain_timeout_ms,
                                  .flags = GN_WORKER_SAVE_FILE | (stop ? GN_WORKER_SAVE_STOP : 0),
                                  .vgpu_id = v->id};
    if (v->remote && !v->conn)
        return gn_fail(err, ENOTCONN, "try again in a moment",
                       "the connection to its program is broken");
    /* It is let in by its session's key, which ends with this gantryd. */
    if (v->remote && stop && v->conn->claims)
        return gn_fail(
            err, EOPNOTSUPP,
            "gantry migrate VGPU tcp:HOST:PORT takes it to another gantryd; without --stop it "
            "goes on, and the file is to look at",
            "its program has come from another gantryd, and has no token by which it could come "
            "back to this one");
    if (v->remote && stop)
        save.flags |= GN_WORKER_SAVE_FAR | GN_WORKER_SAVE_BESIDE;
    if (v->hosted)
        return gn_fail(err, EOPNOTSUPP, "gantry mode VGPU remote, and try again",
                       "it lives in its program, which cannot be saved from there yet");
    if (v->move)
        return gn_fail(err, EBUSY, "wait until it is over", "it is being moved or saved already");
    if (v->leaving)
        return gn_refuse_leaving(v, err);
    if (v->stopped)
        return gn_fail(err, ESRCH, "gantry restore gives its program a worker again",
                       "it is stopped, and in a file already");
    if (!v->booted || v->ending || !v->conn || v->process.fd < 0 || v->control.fd < 0)
        return gn_fail(err, ENODEV, NULL, "it has no worker any more");
    if (stop && gn_refuse_stopped_program(v, err))
        return -EBUSY;
    if (stop && getrandom(save.key, sizeof save.key, 0) != sizeof save.key)
        return gn_fail(err, EIO, NULL, "no random numbers can be had");
    struct gn_move *m = calloc(1, sizeof *m);
    int fd = -1,
        rc = m ? gn_move_set_file(c, &fd, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    GN_FAULT("daemon-before-save");
    if (!rc && gn_frame_push(&v->writer, GN_WORKER_SAVE, 0, 0, &save, sizeof save, &fd, 1))
        rc = gn_fail(err, EPIPE, NULL, "its worker does not hear");
    gn_quota_close(c->quota, &fd);
    if (rc) {
        free(m);
        return rc;
    }
    if (gn_frame_writer_pending(&v->writer))
        gn_loop_change(&v->daemon->loop, &v->control, EPOLLIN | EPOLLOUT);
    *m = (struct gn_move){.what = GN_MOVE_SAVE,
                          .from = v,
                          .asker = c,
                          .seq = seq,
                          .how = save,
                          .stream_fd = -1,
                          .asked = true,
                          .began_ns = gn_now_ns()};
    explicit_bzero(save.key, sizeof save.key);
    v->move = m;
    v->leaving = true;
    set_deadline(m, (uint64_t)drain_timeout_ms * 1000000u + FILE_NS);
    return 0;
}

static char *checkpoint_reply(const struct gn_move *m, const char *state)
{
    const struct gn_worker_moved *out = &m->out;
    return gn_control_checkpoint_reply(
        &(struct gn_control_checkpoint){.id = m->from->id,
                                        .state = state,
                                        .downtime_ns = gn_now_ns() - out->began_ns,
                                        .hold_ns = out->hold_ns,
                                        .drain_ns = out->quiet_ns - out->began_ns,
                                        .save_ns = out->done_ns - out->quiet_ns,
                                        .pages = out->pages,
                                        .pages_zero = out->pages_zero,
                                        .bytes = out->bytes});
}

void gn_checkpoint_saved(struct gn_move *m, int session_fd)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_conn *c = m->asker;
    struct gn_error err;
    GN_FAULT("daemon-checkpoint-saved");
    if (!(m->how.flags & GN_WORKER_SAVE_STOP)) {
        gn_vgpus_notify_worker(v, GN_WORKER_RESUME, 0, NULL, 0);
        gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: saved, and goes on", v->id);
        gn_move_answer(m, checkpoint_reply(m, "running"));
        gn_move_drop(m);
        return;
    }
    v->session_fd = session_fd < 0 ? -1 : session_fd;
    if (session_fd == -EMFILE) {
        gn_conn_no_room(&err);
        gn_move_give_up(m, &err);
        return;
    }
    if ((session_fd < 0 && !v->remote) || !c) {
        gn_fail(&err, EPROTO, NULL,
                c ? "its worker does not let go of its program"
                  : "the command that asked for it has ended");
        gn_move_give_up(m, &err);
        return;
    }
    set_deadline(m, KEEP_NS);
    char *text = checkpoint_reply(m, "saved");
    m->answered = true;
    if (text)
        gn_conn_reply(c, m->seq, text); /* gone meanwhile: gn_move_forget */
    free(text);
}

static void say(struct gn_conn *c, uint16_t op, const void *payload, size_t n)
{
    /* Not sent at once: if that ended the connection, it might end its vGPU, which is in hand. */
    (void)gn_frame_push(&c->writer, op, 0, 0, payload, n, NULL, 0);
    gn_loop_change(&c->daemon->loop, &c->socket, EPOLLIN | EPOLLOUT);
}

void gn_checkpoint_given_up(struct gn_move *m)
{
    struct gn_vgpu_record *v = m->from;
    close_session(v); /* where the worker is dead, the program now hears that it is */
    if (m->told && v->conn)
        say(v->conn, GN_LINK_RESTORED, NULL, 0);
}

/* From here on its worker is not needed. */
static void decide(struct gn_move *m)
{
    struct gn_vgpu_record *v = m->from;
    memcpy(v->stop_key, m->how.key, sizeof v->stop_key);
    v->stopped = m->kept = true;
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) is stopped, and in a file", v->id,
                 v->program, (int)v->program_pid);
    if (v->process.fd < 0)
        gn_vgpus_worker_over(v);
    else
        gn_vgpus_end_worker(v);
    set_deadline(m, SETTLE_NS);
}

/* Decides where the program shares the machine. */
static int tell_stopped(struct gn_move *m, struct gn_error *err)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_link_stopped stopped = {.vgpu_id = v->id};
    int rc = 0;
    memcpy(stopped.key, m->how.key, sizeof stopped.key);
    if (!v->remote)
        rc = gn_frame_send(v->session_fd, 0, GN_LINK_STOPPED, 0, 0, &stopped, sizeof stopped,
                           &v->session_fd, 1);
    else if (v->conn)
        say(v->conn, GN_LINK_STOPPED, &stopped, sizeof stopped);
    else
        rc = gn_fail(err, ENOTCONN, "try again in a moment",
                     "the connection to its program is broken");
    explicit_bzero(&stopped, sizeof stopped);
    return rc && !v->remote
               ? gn_fail(err, -rc, "try again", "its program does not read what it is told")
               : rc;
}

void gn_checkpoint_returned(struct gn_vgpu_record *v)
{
    struct gn_error err;
    if (v->move && v->move->told && !v->stopped)
        (void)tell_stopped(v->move, &err); /* it is connected */
}

int gn_checkpoint_keep(struct gn_conn *c, uint32_t seq, struct gn_error *err)
{
    struct gn_move *m = NULL;
    gn_list_for_each(v, &c->daemon->vgpus, struct gn_vgpu_record, link)
    {
        if (v->move && v->move->what == GN_MOVE_SAVE && v->move->asker == c && v->move->stops &&
            v->move->saved && !v->move->kept && !v->move->told)
            m = v->move;
    }
    if (!m)
        return gn_fail(err, EINVAL, NULL,
                       "no vGPU waits for this file, or it has waited for too long and goes on");
    GN_FAULT("daemon-before-stop");
    /* A program that was stopped while the file was written would not hear that it has to wait. */
    int rc = gn_refuse_stopped_program(m->from, err);
    if (!rc)
        rc = tell_stopped(m, err);
    if (rc) {
        m->asker = NULL; /* this is the answer */
        gn_move_give_up(m, err);
        return rc;
    }
    GN_FAULT("daemon-stopped");
    m->seq = seq;
    m->answered = false;
    if (m->from->remote) {
        m->told = true;
        gn_quota_log(m->from->quota, GN_LOG_INFO,
                     "vgpu=%08x: \"%s\" (%d) is told that it is in a file", m->from->id,
                     m->from->program, (int)m->from->program_pid);
        set_deadline(m, TELL_NS);
        return 0;
    }
    close_session(m->from);
    decide(m);
    return 0;
}

static bool settled(const struct gn_move *m)
{
    return (m->from->remote || m->from->hand_fd >= 0) && m->from->process.fd < 0;
}

void gn_checkpoint_settle(struct gn_move *m)
{
    if (!settled(m) && m->until_ns > gn_now_ns())
        return;
    gn_move_answer(m, checkpoint_reply(m, "stopped"));
    gn_move_drop(m);
}

/* ---- the program waits */

int gn_program_waits(struct gn_conn *c, uint32_t seq, const struct gn_link_wait *w,
                     int fds[static GN_LINK_WAIT_FDS], struct gn_error *err)
{
    struct gn_vgpu_record *v = c->vgpu;
    int code = 0;
    if (v && (!v->stopped || !gn_secret_same(v->stop_key, w->key, sizeof w->key)))
        return gn_fail(err, EINVAL, NULL, "this connection's vGPU was not stopped");
    if (v && v->move && v->move->what == GN_MOVE_RESTORE)
        return gn_fail(err, EBUSY, NULL, "it is being restored already");
    if (!v) {
        if (!gn_segment_is_session(fds[GN_LINK_WAIT_RING]))
            return gn_fail(err, EINVAL, NULL, "what came is no session");
        if (!c->tenant)
            return gn_fail(err, EACCES, NULL, "the tenant of this connection was removed");
        struct gn_tenant *tenant = gn_admit(c, c->tenant->rules.name, &code, err);
        if (!tenant)
            return code;
        v = gn_vgpus_make_stopped(c, tenant, 0, w, 0, NULL, fds[GN_LINK_WAIT_RING], err);
        if (!v)
            return -ENOMEM;
        fds[GN_LINK_WAIT_RING] = -1;
        gn_quota_log(v->quota, GN_LOG_INFO,
                     "vgpu=%08x: \"%s\" (%d) waits for it, which is in a file", v->id, v->program,
                     (int)v->program_pid);
        gn_conn_watch_program(c);
    }
    gn_quota_close(v->quota, &v->hand_fd);
    v->n_segments = w->n_segments; /* whose numbers the program's next ones follow */
    v->hand_fd = fds[GN_LINK_WAIT_HAND];
    fds[GN_LINK_WAIT_HAND] = -1;
    v->wait_seq = seq;
    if (v->move)
        gn_checkpoint_settle(v->move);
    return 0;
}

/* A program that waits here since its own gantryd has ended, or has forgotten it. */
static struct gn_vgpu_record *take_up(struct gn_conn *c, const struct gn_link_wait *w,
                                      struct gn_error *err)
{
    struct gn_segment ring;
    int code = 0;
    struct gn_tenant *tenant = NULL;
    if (c->claims || !c->tenant)
        gn_fail(err, EACCES, NULL, "this connection is no tenant's");
    else
        tenant = gn_admit(c, c->tenant->rules.name, &code, err);
    if (!tenant)
        return NULL;
    if (gn_session_create("gantry-ring", &ring)) {
        gn_fail(err, ENOMEM, NULL, "out of memory or descriptors");
        return NULL;
    }
    struct gn_vgpu_record *v = gn_vgpus_make_stopped(c, tenant, 0, w, 0, NULL, ring.fd, err);
    if (!v) {
        gn_segment_fini(&ring);
        return NULL;
    }
    if (gn_vgpus_make_session(v, c)) {
        gn_fail(err, EIO, NULL, "no random numbers can be had");
        c->vgpu = NULL;
        v->stopped = false;
        gn_vgpus_leave(v);
        return NULL;
    }
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) waits for it, which is in a file",
                 v->id, v->program, (int)v->program_pid);
    return v;
}

int gn_program_waits_far(struct gn_conn *c, uint32_t seq, const struct gn_link_wait_far *w,
                         struct gn_error *err)
{
    struct gn_vgpu_record *v = gn_vgpus_of_conn(c, w->session, w->key);
    if (!v && c->vgpu)
        return gn_fail(err, EINVAL, NULL, "this connection's vGPU was not stopped");
    int rc = v ? gn_vgpus_return(v, c, err) : 0;
    if (rc)
        return rc;
    if (!v && !(v = take_up(c, &w->wait, err)))
        return -EACCES;
    struct gn_move *m = v->move;
    const bool decides =
        !v->stopped && m && m->told && gn_secret_same(m->how.key, w->wait.key, sizeof w->wait.key);
    v->n_segments = w->wait.n_segments;
    if (!v->stopped && !decides) {
        gn_conn_send(c, GN_LINK_RETURNED, seq, NULL, 0, NULL, 0);
        return 0;
    }
    if (v->stopped && !gn_secret_same(v->stop_key, w->wait.key, sizeof w->wait.key))
        return gn_fail(err, EINVAL, NULL, "its vGPU was not stopped so");
    gn_vgpus_notify_session(v, seq);
    GN_FAULT("daemon-waits-far");
    if (decides) {
        decide(m);
        gn_checkpoint_settle(m);
    }
    return 0;
}

/* ---- back */

struct gn_vgpu_record *gn_restore_awaits(struct gn_daemon *d, const struct gn_control_restore *wish,
                                         struct gn_error *err)
{
    struct gn_vgpu_record *same = NULL;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->stopped && v->conn && gn_secret_same(v->stop_key, wish->key, sizeof v->stop_key))
            return v;
        if (v->id == wish->id && v->booted && v->conn)
            same = v;
    }
    gn_fail(err, ESRCH,
            !same ? "restore it at the gantryd where its program waits, or start the program anew"
            : same->stopped ? "restore the later one"
                            : "gantry checkpoint makes another one",
            !same ? "no program waits for vGPU %08x: it has ended, or waits at another gantryd"
            : same->stopped
                ? "the program of vGPU %08x has gone on since, and waits for a later checkpoint"
                : "the program of vGPU %08x has gone on since this checkpoint was made",
            wish->id);
    return NULL;
}

int gn_restore_start(struct gn_conn *c, uint32_t seq, const struct gn_control_restore *wish,
                     bool *ret_absent, struct gn_error *err)
{
    struct gn_daemon *d = c->daemon;
    struct gn_vgpu_record *v = gn_restore_awaits(d, wish, err);
    *ret_absent = false;
    if (v && gn_refuse_stopped_program(v, err))
        return -EBUSY;
    *ret_absent = !v || (!v->remote && v->hand_fd < 0);
    if (v && *ret_absent)
        gn_fail(err, ESRCH, "try again in a moment",
                "the program of vGPU %08x does not wait for it yet", wish->id);
    if (*ret_absent)
        return -ESRCH;
    if (strcmp(wish->tenant, v->tenant->rules.name) != 0)
        return gn_fail(
            err, EACCES, NULL,
            "the checkpoint is of a vGPU of the tenant \"%.63s\", and the program that waits is "
            "of \"%s\"",
            wish->tenant, v->tenant->rules.name);
    if (v->move)
        return gn_fail(err, EBUSY, "wait until it is over", "it is being restored already");
    if (d->stopping)
        return gn_fail(err, ESHUTDOWN, NULL, "gantryd is ending");
    if (d->draining)
        return gn_fail(err, ESHUTDOWN, "gantry drain --undo ends that",
                       "this gantryd is being emptied, and gives no program a worker");
    struct gn_move *m = calloc(1, sizeof *m);
    struct gn_vgpu_record *n = m ? gn_vgpus_blank(v, err) : NULL;
    if (!n) {
        free(m);
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    }
    *m = (struct gn_move){.what = GN_MOVE_RESTORE,
                          .from = v,
                          .to = n,
                          .asker = c,
                          .seq = seq,
                          .stream_fd = -1,
                          .saved = true,
                          .began_ns = gn_now_ns()};
    v->move = m;
    n->takes_from = v;
    n->loads_file = true;
    n->host = &d->hosts[d->machine.platforms[v->platform].driver];
    n->ring_at = wish->ring_at;
    int file_fd = -1, rc = gn_move_set_file(c, &file_fd, err);
    /* The program's memory is its own: the worker makes what it has, and the session comes with the
     * file. */
    if (!rc && v->remote && gn_vgpus_make_memory(n))
        rc = gn_fail(err, ENOMEM, NULL, "out of memory or descriptors");
    else if (!rc && !v->remote)
        n->data_fd = file_fd;
    if (!rc && gn_move_lend(n, v))
        rc = gn_fail(err, EMFILE, NULL, "out of descriptors");
    if (!rc)
        rc = gn_vgpus_boot_worker(n, v->conn, v->remote ? file_fd : v->hand_fd, err);
    if (file_fd != n->data_fd)
        gn_quota_close(c->quota, &file_fd);
    if (rc) {
        m->asker = NULL;
        gn_move_drop(m);
        gn_vgpus_leave(n);
        return rc;
    }
    gn_quota_close(v->quota, &v->hand_fd);
    GN_FAULT("daemon-restore-begun");
    set_deadline(m, FILE_NS);
    return 0;
}

void gn_restore_given_up(struct gn_vgpu_record *v, const struct gn_error *err)
{
    /* Over the socket that it waits with the session may have gone: the program makes another. */
    if (v->conn && !v->remote)
        gn_conn_refuse(v->conn, v->wait_seq, EAGAIN, err);
}

bool gn_restore_tell(struct gn_move *m)
{
    struct gn_vgpu_record *v = m->from;
    v->stopped = false;
    explicit_bzero(v->stop_key, sizeof v->stop_key);
    if (v->remote && v->conn)
        say(v->conn, GN_LINK_RESTORED, NULL, 0); /* it asks before it believes that */
    else if (!v->remote)
        gn_conn_send(v->conn, GN_LINK_RESTORED, v->wait_seq, NULL, 0, NULL, 0);
    return v->move == m;
}

char *gn_restore_reply(const struct gn_move *m)
{
    return gn_control_restore_reply(
        &(struct gn_control_restored){.id = m->from->id,
                                      .boot_ns = m->in.began_ns - m->began_ns,
                                      .load_ns = m->in.done_ns - m->in.began_ns,
                                      .bytes = m->in.bytes});
}
