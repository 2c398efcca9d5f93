/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU into a file and out of one; docs/moves.md. gantryd has no file: `gantry` gives it the end
 * of a socket to write to, and a file to read from, and gantryd passes both to the worker. A key,
 * made at each stop, is in the file and with the program and nowhere else. Only its holder can
 * restore the vGPU, only into the program that stopped, and only once.
 *
 * One message to the program decides a stop, sent over the worker's end of the session's socket:
 * before it the worker can go on, after it the program waits and needs neither this worker nor this
 * gantryd. Over tcp, where a message may be lost, the program's answer decides. Called by control
 * commands and with the program's frames, on gantryd's thread; it never waits.
 */
#include "daemon/migrate/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/secret.h"
#include "control/control.h"
#include "daemon/tenants/admission.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/tcp_sessions.h"
#include "daemon/migrate/migration.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/segments.h"
#include "daemon/vgpu/worker.h"

static const struct gn_migration_ops save_ops, restore_ops;

/* ---- out */

static int judge_checkpoint(const struct gn_vgpu_record *v, bool stop, struct gn_error *err)
{
    int rc = v->session_ops->judge_checkpoint(v, stop, err);
    if (!rc)
        rc = gn_serving_permits(v->serving, GN_SERVING_CHECKPOINT, err);
    if (!rc)
        rc = gn_migration_refuse_busy(v, err);
    return !rc && stop ? gn_refuse_stopped_program(v, err) : rc;
}

int gn_checkpoint_start(struct gn_conn *c, struct gn_vgpu_record *v, bool stop,
                        uint32_t drain_timeout_ms, struct gn_error *err)
{
    struct gn_worker_save how = {
        .drain_timeout_ms = drain_timeout_ms, .flags = GN_WORKER_SAVE_FILE, .vgpu_id = v->id};
    const enum gn_transaction_kind kind = stop ? v->session_ops->stop_kind : GN_TX_SNAPSHOT;
    int rc = judge_checkpoint(v, stop, err);
    if (stop) {
        how.flags |= GN_WORKER_SAVE_STOP;
        how.route = v->session_ops->route_here;
    }
    if (!rc && stop && getrandom(how.key, sizeof how.key, 0) != sizeof how.key)
        rc = gn_fail(err, EIO, NULL, "cannot get random numbers");
    struct gn_migration *m = rc ? NULL : gn_migration_new(kind, &save_ops, v, c, &how, err);
    explicit_bzero(how.key, sizeof how.key);
    if (!m)
        return rc ? rc : -ENOMEM;
    rc = gn_migration_set_file(c, &m->stream_fd, err);
    if (!rc)
        rc = gn_migration_save(m, err);
    if (rc)
        gn_migration_cancel(m);
    return rc;
}

static char *figures(const struct gn_migration *m, const char *state)
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

static char *save_reply(const struct gn_migration *m)
{
    return figures(m, m->tx.kind == GN_TX_SNAPSHOT ? "running" : "stopped");
}

/* All is written: the asker is to bring the file to the disk. */
static void ask_flush(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_conn *c = m->asker;
    struct gn_error err;
    int rc = 0;
    GN_FAULT("daemon-checkpoint-saved");
    if (m->session_lost)
        rc = gn_conn_no_room(&err);
    else if (!c)
        rc = gn_fail(&err, EPROTO, NULL, "the command that asked for it has ended");
    else
        rc = v->session_ops->judge_saved(v, &err);
    if (rc) {
        (void)gn_migration_input(m, GN_TX_ON_FAILED, &err);
        return;
    }
    char *text = figures(m, "saved");
    m->answered = true;
    if (text)
        gn_conn_reply(c, m->seq, text);
    free(text);
}

static void settle(struct gn_migration *m)
{
    const struct gn_vgpu_record *v = m->from;
    if (v->session_ops->awaits_restore(v) && v->process.fd < 0)
        (void)gn_migration_input(m, GN_TX_ON_SETTLED, NULL);
}

/* The program waits from here on, and its worker is not needed. */
static void park(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->from;
    memcpy(v->stop_key, m->how.key, sizeof v->stop_key);
    gn_record_set_state(v, GN_RECORD_STOPPED);
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) is stopped, and in a file", v->id,
                 v->program, (int)v->program_pid);
    if (v->process.fd < 0)
        gn_vgpus_worker_over(v);
    else
        gn_vgpus_end_worker(v);
}

/* Where the worker is dead, the program now hears that it is. */
static void stay(struct gn_migration *m)
{
    m->from->session_ops->close_program_end(m->from);
}

static void recall(struct gn_migration *m)
{
    if (m->from->conn)
        gn_conn_queue(m->from->conn, GN_LINK_RESTORED, 0, NULL, 0);
}

static const struct gn_migration_action save_actions[] = {
    {GN_TX_DO_FLUSH, ask_flush}, {GN_TX_DO_STAY, stay},     {GN_TX_DO_RECALL, recall},
    {GN_TX_DO_PARK, park},       {GN_TX_DO_SETTLE, settle}, {0}};

static const struct gn_migration_ops save_ops = {.what = "checkpoint",
                                                 .failure = "no checkpoint was made",
                                                 .outcome = "the program goes on",
                                                 .actions = save_actions,
                                                 .reply = save_reply};

static int tell_stopped(const struct gn_migration *m, struct gn_error *err)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_link_stopped stopped = {.vgpu_id = v->id};
    memcpy(stopped.key, m->how.key, sizeof stopped.key);
    const int rc = v->session_ops->send_stopped(v, &stopped, err);
    explicit_bzero(&stopped, sizeof stopped);
    return rc;
}

void gn_checkpoint_returned(struct gn_vgpu_record *v)
{
    const struct gn_migration *m = gn_migration_of(v);
    struct gn_error err;
    if (m && m->tx.state == GN_TX_NOTIFIED)
        (void)tell_stopped(m, &err); /* it is connected */
}

int gn_checkpoint_confirm(struct gn_conn *c, struct gn_error *err)
{
    struct gn_migration *m = NULL;
    gn_list_for_each(it, &c->daemon->migrations, struct gn_migration, link)
    {
        if (it->ops == &save_ops && it->asker == c && it->tx.state == GN_TX_SAVED)
            m = it;
    }
    if (!m)
        return gn_fail(err, EINVAL, NULL,
                       "no vGPU waits for this file, or it has waited for too long and goes on");
    GN_FAULT("daemon-before-stop");
    /* A program that was stopped by a signal meanwhile would not hear that it has to wait. */
    int rc = gn_refuse_stopped_program(m->from, err);
    if (!rc)
        rc = tell_stopped(m, err);
    if (rc) {
        m->asker = NULL; /* this is the answer */
        (void)gn_migration_input(m, GN_TX_ON_FAILED, err);
        return rc;
    }
    GN_FAULT("daemon-stopped");
    m->seq = c->request_seq;
    m->answered = false;
    m->from->session_ops->was_notified(m->from);
    (void)gn_migration_input(m, GN_TX_ON_NOTIFIED, NULL);
    return 0;
}

/* ---- the program waits */

/* A program that waits here since its own gantryd has ended, or has forgotten it. Takes *ring_fd,
 * or makes a ring. */
static int take_up(struct gn_conn *c, const struct gn_link_wait *w, int *ring_fd,
                   struct gn_vgpu_record **ret, struct gn_error *err)
{
    int rc = 0;
    if (!c->tenant)
        return gn_fail(err, EACCES, NULL, "the tenant of this connection was removed");
    struct gn_tenant *tenant = gn_admit(c, c->tenant->rules.name, &rc, err);
    if (tenant && *ring_fd < 0)
        rc = gn_migration_make_ring(ring_fd, err);
    if (!tenant || rc)
        return rc;
    struct gn_vgpu_record *v = gn_vgpus_make_stopped(c, tenant, w, *ring_fd, err);
    if (!v)
        return -ENOMEM;
    *ring_fd = -1;
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) waits for a restore", v->id,
                 v->program, (int)v->program_pid);
    *ret = v;
    return 0;
}

int gn_program_waits(struct gn_conn *c, uint32_t seq, const struct gn_link_wait *w,
                     int fds[static GN_LINK_WAIT_FDS], struct gn_error *err)
{
    struct gn_vgpu_record *v = c->vgpu;
    if (v && (!gn_record_is_stopped(v) || !gn_secret_same(v->stop_key, w->key, sizeof w->key)))
        return gn_fail(err, EINVAL, NULL, "this connection's vGPU was not stopped");
    struct gn_migration *m = v ? gn_migration_of(v) : NULL;
    if (m && m->tx.kind == GN_TX_RESTORE)
        return gn_fail(err, EBUSY, NULL, "it is being restored already");
    if (!v) {
        if (!gn_segment_is_session(fds[GN_LINK_WAIT_RING]))
            return gn_fail(err, EINVAL, NULL, "the descriptors are no session");
        const int rc = take_up(c, w, &fds[GN_LINK_WAIT_RING], &v, err);
        if (rc)
            return rc;
        c->transport->watch_program(c);
    }
    gn_quota_close(v->quota, &v->hand_fd);
    v->n_segments = w->n_segments; /* the program's next segments have the numbers behind it */
    v->hand_fd = fds[GN_LINK_WAIT_HAND];
    fds[GN_LINK_WAIT_HAND] = -1;
    v->wait_seq = seq;
    if (m)
        (void)gn_migration_input(m, GN_TX_ON_WAITS, NULL);
    return 0;
}

static int take_up_tcp(struct gn_conn *c, const struct gn_link_wait *w, struct gn_vgpu_record **ret,
                       struct gn_error *err)
{
    int ring_fd = -1, rc = c->claims ? gn_fail(err, EACCES, NULL, "this connection is no tenant's")
                                     : take_up(c, w, &ring_fd, ret, err);
    gn_quota_close(c->quota, &ring_fd);
    if (rc || !gn_vgpus_make_session(*ret, c))
        return rc;
    c->vgpu = NULL;
    gn_vgpus_leave(*ret);
    return gn_fail(err, EIO, NULL, "cannot get random numbers");
}

int gn_program_waits_tcp(struct gn_conn *c, uint32_t seq, const struct gn_link_wait_tcp *w,
                         struct gn_error *err)
{
    struct gn_vgpu_record *v = gn_vgpus_of_conn(c, w->session, w->key);
    if (!v && c->vgpu)
        return gn_fail(err, EINVAL, NULL, "this connection's vGPU was not stopped");
    int rc = v ? gn_vgpus_return(v, c, err) : 0;
    if (rc)
        return rc;
    if (!v && take_up_tcp(c, &w->wait, &v, err))
        return -EACCES;
    struct gn_migration *m = gn_migration_of(v);
    const bool decides = m && m->tx.state == GN_TX_NOTIFIED &&
                         gn_secret_same(m->how.key, w->wait.key, sizeof w->wait.key);
    v->n_segments = w->wait.n_segments;
    if (!gn_record_is_stopped(v) && !decides) {
        gn_conn_send(c, GN_LINK_RETURNED, seq, NULL, 0, NULL, 0);
        return 0;
    }
    if (gn_record_is_stopped(v) && !gn_secret_same(v->stop_key, w->wait.key, sizeof w->wait.key))
        return gn_fail(err, EINVAL, NULL, "its vGPU was not stopped with this key");
    gn_vgpus_notify_session(v, seq);
    GN_FAULT("daemon-waits-far");
    if (decides)
        (void)gn_migration_input(m, GN_TX_ON_WAITS, NULL);
    return 0;
}

/* ---- back */

struct gn_vgpu_record *gn_restore_awaits(struct gn_daemon *d, const struct gn_control_restore *wish,
                                         struct gn_error *err)
{
    struct gn_vgpu_record *same = NULL;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (gn_record_is_stopped(v) && v->conn &&
            gn_secret_same(v->stop_key, wish->key, sizeof v->stop_key))
            return v;
        if (v->id == wish->id && gn_record_is_listed(v) && v->conn)
            same = v;
    }
    gn_fail(err, ESRCH,
            !same ? "restore it at the gantryd where its program waits, or start the program anew"
            : gn_record_is_stopped(same) ? "restore the later one"
                                         : "gantry checkpoint makes another one",
            !same ? "no program waits for vGPU %08x: it has ended, or waits at another gantryd"
            : gn_record_is_stopped(same)
                ? "the program of vGPU %08x has gone on since, and waits for a later checkpoint"
                : "the program of vGPU %08x has gone on since this checkpoint was made",
            wish->id);
    return NULL;
}

/* Before the destination may go on: a program must not believe that it still waits, once anything
 * has happened that is not in the file. */
static void tell_restored(struct gn_vgpu_record *v)
{
    gn_record_set_state(v, GN_RECORD_ATTACHED);
    explicit_bzero(v->stop_key, sizeof v->stop_key);
    v->session_ops->send_restored(v);
}

static void commit(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_error err;
    int rc = 0;
    GN_FAULT("daemon-before-commit");
    if (v->conn && gn_frame_writer_pending(&v->conn->writer))
        rc = gn_fail(&err, EBUSY, "try again", "its program does not read what gantryd says");
    if (rc || gn_migration_exchange(m, &err)) {
        (void)gn_migration_input(m, GN_TX_ON_FAILED, &err);
        return;
    }
    tell_restored(v);
    if (gn_transaction_is_over(m->tx.state))
        return; /* the program has gone */
    GN_FAULT("daemon-program-told");
    gn_vgpus_notify_worker(v, GN_WORKER_GO, 0, NULL, 0);
    GN_FAULT("daemon-committed");
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: restored, worker %d", v->id,
                 (int)v->worker_pid);
    (void)gn_migration_input(m, GN_TX_ON_DONE, NULL);
}

static void fetch(struct gn_migration *m)
{
    m->from->session_ops->request_session(m->from);
}

static void await_another(struct gn_migration *m)
{
    m->from->session_ops->refuse_restore(m->from, &m->why);
}

static const struct gn_migration_action restore_actions[] = {
    {GN_TX_DO_FETCH, fetch}, {GN_TX_DO_COMMIT, commit}, {GN_TX_DO_STAY, await_another}, {0}};

static char *restore_reply(const struct gn_migration *m)
{
    return gn_control_restore_reply(
        &(struct gn_control_restored){.id = m->from->id,
                                      .boot_ns = m->in.began_ns - m->began_ns,
                                      .load_ns = m->load_ns,
                                      .bytes = m->in.bytes});
}

static const struct gn_migration_ops restore_ops = {.what = "restore",
                                                    .makes_worker = true,
                                                    .failure = "the vGPU was not restored",
                                                    .outcome = "its program waits on",
                                                    .actions = restore_actions,
                                                    .reply = restore_reply};

int gn_restore_start(struct gn_conn *c, const struct gn_control_restore *wish, bool *ret_absent,
                     struct gn_error *err)
{
    struct gn_daemon *d = c->daemon;
    struct gn_vgpu_record *v = gn_restore_awaits(d, wish, err);
    *ret_absent = false;
    if (v && gn_refuse_stopped_program(v, err))
        return -EBUSY;
    *ret_absent = !v || !v->session_ops->awaits_restore(v);
    if (v && *ret_absent)
        gn_fail(err, ESRCH, "try again in a moment",
                "the program of vGPU %08x does not wait for it yet", wish->id);
    if (*ret_absent)
        return -ESRCH;
    if (strcmp(wish->tenant, v->tenant->rules.name) != 0)
        return gn_fail(err, EACCES, NULL,
                       "the checkpoint is of a vGPU of the tenant \"%.63s\", and the "
                       "waiting program is of \"%s\"",
                       wish->tenant, v->tenant->rules.name);
    if (gn_migration_of(v))
        return gn_fail(err, EBUSY, "wait until it is over", "it is being restored already");
    if (d->stopping)
        return gn_fail(err, ESHUTDOWN, NULL, "gantryd is ending");
    if (d->draining)
        return gn_fail(err, ESHUTDOWN, "gantry drain --undo ends that",
                       "this gantryd is draining and starts no workers");
    const struct gn_worker_save how = {.route = v->session_ops->route_here};
    struct gn_migration *m = gn_migration_new(GN_TX_RESTORE, &restore_ops, v, c, &how, err);
    if (!m)
        return -ENOMEM;
    int file_fd = -1, rc = gn_migration_set_file(c, &file_fd, err);
    if (rc) {
        gn_migration_cancel(m);
        return rc;
    }
    m->to->ring_at = wish->ring_at;
    const int session_fd = v->session_ops->pass_file(v, m->to, file_fd);
    rc = gn_migration_boot(m, session_fd, err);
    if (session_fd == file_fd) /* else it is the worker's record's */
        gn_quota_close(c->quota, &file_fd);
    if (rc)
        return rc;
    gn_quota_close(v->quota, &v->hand_fd);
    GN_FAULT("daemon-restore-begun");
    return 0;
}
