/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU from its worker to a new one on this machine; docs/moves.md. gantryd starts the new
 * worker, has the old one save into a socket between the two, first while the program runs, and
 * decides: when the old one has written everything and stands still, and the new one has loaded
 * everything, the new one may go, and the old one ends. Before that the old one goes on whenever
 * anything fails. Neither goes on by itself. gantryd's thread.
 *
 * While it lasts the new worker has a record of its own, which no list shows and whose program is
 * nobody; in the end the two records exchange their workers, and the new one's ends with the old
 * worker in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/migrate/inbound.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/vgpu/template.h"
#include "daemon/migrate/transaction.h"
#include "daemon/process_stat.h"
#include "daemon/net/program_watch.h"

#define BOOT_NS                                                                                    \
    UINT64_C(120000000000) /* for the new worker's driver: as long as a program waits for one.     \
                              Nothing stands meanwhile */
#define LOAD_NS UINT64_C(60000000000) /* to save and load, after the drain */
#define SLOWEST_BYTES_PER_S                                                                        \
    UINT64_C(50000000) /* what is sent ahead, unless it is held back to less */

const char *const gn_move_names[GN_MOVE_TO_N] = {[GN_MOVE_TO_LOCAL] = "local",
                                                 [GN_MOVE_TO_REMOTE] = "remote",
                                                 [GN_MOVE_TO_PASSTHROUGH] = "passthrough"};

/* The stop may take so long. */
static uint64_t stop_ns(const struct gn_move *m)
{
    return (uint64_t)m->how.drain_timeout_ms * 1000000u + LOAD_NS;
}

void gn_move_answer(struct gn_move *m, char *text)
{
    struct gn_conn *c = m->asker;
    m->asker = NULL; /* a connection that breaks over the answer asks for nothing any more */
    if (c && text && !m->answered)
        gn_conn_reply(c, m->seq, text);
    free(text);
}

void gn_move_drop(struct gn_move *m)
{
    m->from->move = NULL;
    if (m->to)
        m->to->takes_from = NULL;
    gn_quota_close(m->from->quota, &m->stream_fd);
    explicit_bzero(m->how.key, sizeof m->how.key);
    free(m);
}

static void undo(struct gn_move *m, const struct gn_error *err)
{
    static const struct {
        const char *failure, *outcome;
    } undone[] = {
        [GN_MOVE_LOCAL] = {"the vGPU was not moved", "the vGPU goes on where it was"},
        [GN_MOVE_SAVE] = {"no checkpoint was made", "the program goes on"},
        [GN_MOVE_AWAY] = {"the vGPU was not moved", "the vGPU goes on where it was"},
        [GN_MOVE_RESTORE] = {"the vGPU was not restored", "its program waits on"},
    };
    struct gn_vgpu_record *v = m->from;
    struct gn_error why;
    const bool lost = m->what != GN_MOVE_RESTORE && v->process.fd < 0;
    gn_fail(&why, EREMOTEIO, err->fix, "%s; %s", err->what,
            lost ? "the vGPU is lost" : undone[m->what].outcome);
    gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: %s: %s", v->id, undone[m->what].failure,
                 why.what);
    gn_move_answer(
        m, gn_control_error(undone[m->what].failure, why.what, why.fix[0] ? why.fix : NULL));
    if (m->saved && m->what != GN_MOVE_RESTORE)
        gn_vgpus_notify_worker(v, GN_WORKER_RESUME, 0, NULL, 0);
    if (m->what == GN_MOVE_SAVE)
        gn_checkpoint_given_up(m);
    const bool restore = m->what == GN_MOVE_RESTORE, away = m->what == GN_MOVE_AWAY;
    const uint32_t number = m->number;
    const bool deserted = lost && m->saved;
    gn_move_drop(m);
    if (restore)
        gn_restore_given_up(v, err);
    if (away)
        gn_outbound_aborted(v, number, err);
    if (deserted)
        gn_vgpus_lost(v); /* its worker died while another was to say how it goes on */
}

/* The old worker goes on. */
void gn_move_give_up(struct gn_move *m, const struct gn_error *err)
{
    struct gn_vgpu_record *n = m->to;
    undo(m, err);
    if (n)
        gn_vgpus_leave(n);
}

/* By the clocks of two processes, which may say what they like. */
static uint64_t since(uint64_t before_ns, uint64_t ns)
{
    return ns > before_ns ? ns - before_ns : 0;
}

char *gn_move_figures(const struct gn_move *m, const char *to, uint64_t now_ns, uint64_t boot_ns,
                      uint64_t load_ns)
{
    const uint64_t last_ns = m->in.done_ns > m->out.done_ns ? m->in.done_ns : m->out.done_ns;
    return gn_control_move_reply(
        &(struct gn_control_move){.id = m->from->id,
                                  .to = to,
                                  .downtime_ns = now_ns - m->out.began_ns,
                                  .precopy_ns = m->out.ahead_ns,
                                  .hold_ns = m->out.hold_ns,
                                  .boot_ns = boot_ns,
                                  .drain_ns = m->out.quiet_ns - m->out.began_ns,
                                  .save_ns = m->out.done_ns - m->out.quiet_ns,
                                  .load_ns = load_ns,
                                  .stand_ns = since(m->out.began_ns, m->out.stood_ns),
                                  .driver_ns = since(m->out.stood_ns, m->out.drained_ns),
                                  .ends_ns = since(m->out.drained_ns, m->out.quiet_ns),
                                  .tables_ns = since(m->out.quiet_ns, m->out.told_ns),
                                  .contents_ns = since(m->out.told_ns, m->out.done_ns),
                                  .loaded_ns = since(m->out.done_ns, m->in.done_ns),
                                  .commit_ns = m->in.done_ns ? since(last_ns, now_ns) : 0,
                                  .pages = m->out.pages_total,
                                  .pages_kept = m->out.pages_kept,
                                  .pages_zero = m->out.pages_zero,
                                  .pages_sampled = m->out.sampled,
                                  .pages_hashed = m->out.hashed,
                                  .pages_device = m->out.device,
                                  .read_bytes = m->out.read_bytes,
                                  .pages_precopy = m->out.pages_ahead,
                                  .pages_stop = m->out.pages_stop,
                                  .bytes = m->out.bytes});
}

static void commit(struct gn_move *m)
{
    struct gn_vgpu_record *v = m->from, *n = m->to;
    struct gn_error err;
    GN_FAULT("daemon-before-commit");
    const bool hears =
        m->what != GN_MOVE_RESTORE || !v->conn || !gn_frame_writer_pending(&v->conn->writer);
    if (!hears || gn_vgpus_swap_workers(v, n)) {
        gn_fail(&err, EBUSY, "try again", "its %s does not read what gantryd says",
                hears ? "worker" : "program");
        gn_move_give_up(m, &err);
        return;
    }
    /* The program first: it must not believe that it waits still, once anything has happened that
     * is not in the file. */
    if (m->what == GN_MOVE_RESTORE && !gn_restore_tell(m))
        return;
    GN_FAULT("daemon-program-told");
    gn_vgpus_notify_worker(v, GN_WORKER_GO, 0, NULL, 0);
    GN_FAULT("daemon-committed");
    if (m->what == GN_MOVE_RESTORE) {
        gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: restored, worker %d", v->id,
                     (int)v->worker_pid);
        gn_move_answer(m, gn_restore_reply(m));
        gn_move_drop(m);
        gn_vgpus_leave(n);
        return;
    }
    const uint64_t now = gn_now_ns();
    /* It stays as long as the program lives. */
    v->driver_stays |= m->out.driver_stays != 0;
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: moved to %s %d, stopped for %llu us", v->id,
                 v->hosted ? "its program" : "worker", (int)v->worker_pid,
                 (unsigned long long)(now - m->out.began_ns) / 1000);
    gn_move_answer(m, gn_move_figures(m, gn_move_names[m->where], now, m->asked_ns - m->began_ns,
                                      m->in.done_ns - m->in.began_ns));
    gn_move_drop(m);
    gn_vgpus_leave(n);
}

bool gn_move_answered(const struct gn_frame *f, int n_fds, struct gn_worker_moved *ret)
{
    return f->n_fds <= n_fds && gn_frame_payload(f, ret, sizeof *ret) &&
           gn_frame_string_ok(ret->what, sizeof ret->what) &&
           gn_frame_string_ok(ret->fix, sizeof ret->fix) && ret->error <= 0 &&
           ret->error >= -INT32_MAX;
}

static void failed(struct gn_move *m, const struct gn_worker_moved *said)
{
    struct gn_error err;
    gn_fail(&err, -said->error, said->fix[0] ? said->fix : NULL, "%s", said->what);
    gn_move_give_up(m, &err);
}

void gn_move_fails_there(struct gn_move *m, const struct gn_error *err)
{
    if (!m->asked || m->saved || m->out.error) {
        gn_move_give_up(m, err);
        return;
    }
    if (m->in.error)
        return; /* it was the first reason that counted */
    m->in.error = -EREMOTEIO;
    gn_frame_string_set(m->in.what, sizeof m->in.what, err->what);
    gn_frame_string_set(m->in.fix, sizeof m->in.fix, err->fix);
}

/* The old worker only knows that nobody reads any more, and goes on. Whoever has stopped reading
 * says why, or its end does; of another gantryd's worker the program hears it, and stays. */
static bool other_side_says_why(const struct gn_move *m)
{
    return (m->out.error == -EPIPE || m->out.error == -ECONNRESET) &&
           (m->what == GN_MOVE_LOCAL || m->what == GN_MOVE_AWAY);
}

int gn_move_frame(struct gn_vgpu_record *v, const struct gn_frame *f)
{
    struct gn_move *m = v->move ? v->move : v->takes_from ? v->takes_from->move : NULL;
    struct gn_worker_moved said;
    struct gn_link_error refusal;
    if (v->arrival)
        return gn_inbound_loaded(v, f);
    if (v->takes_from && f->op == GN_LINK_ERROR && (!v->driver_up || v->hosted) && !m->loaded &&
        gn_frame_payload(f, &refusal, sizeof refusal) &&
        gn_frame_string_ok(refusal.what, sizeof refusal.what) &&
        gn_frame_string_ok(refusal.fix, sizeof refusal.fix)) {
        struct gn_error err;
        gn_fail(&err, ENODEV, refusal.fix[0] ? refusal.fix : NULL, "%s", refusal.what);
        gn_move_give_up(m, &err);
        return 1;
    }
    /* What it says after it was given up. */
    if (v->ending && f->n_fds == 0 &&
        (f->op == GN_WORKER_LOADED || (v->hosted && f->op == GN_LINK_ERROR)))
        return 1;
    if (f->op == GN_WORKER_STOPS && f->n_payload == 0 && f->n_fds == 0) {
        if (!m)
            return 1; /* it was given up meanwhile, and is about to hear so */
        if (v != m->from || !m->asked || m->stops || m->saved)
            return -EPROTO;
        m->stops = true;
        if (m->what == GN_MOVE_SAVE)
            return 1; /* a file takes the time that it takes */
        m->until_ns = gn_now_ns() + stop_ns(m);
        gn_vgpus_arm(v->daemon);
        return 1;
    }
    if (f->op != GN_WORKER_SAVED && f->op != GN_WORKER_LOADED)
        return 0;
    if (f->op == GN_WORKER_SAVED)
        v->leaving = false;
    if (f->op == GN_WORKER_SAVED && !m) {
        /* Of a move that was given up meanwhile. */
        gn_vgpus_notify_worker(v, GN_WORKER_RESUME, 0, NULL, 0);
        return 1;
    }
    if (!m || !gn_move_answered(f, m->what == GN_MOVE_SAVE && (m->how.flags & GN_WORKER_SAVE_STOP),
                                &said))
        return -EPROTO;
    if (f->op == GN_WORKER_SAVED && v == m->from && m->asked && !m->saved) {
        m->out = said;
        m->saved = !said.error;
        const bool other = said.error && other_side_says_why(m);
        if (other && !m->in.error)
            return 1;
        /* The new worker only saw the stream end, which gantryd may have heard of first. */
        if (said.error)
            failed(m, other ? &m->in : &said);
        else if (m->what == GN_MOVE_SAVE)
            gn_checkpoint_saved(m, f->n_fds      ? gn_frame_take_fd(&v->reader, 0)
                                   : f->lost_fds ? -EMFILE
                                                 : -1);
    } else if (f->op == GN_WORKER_LOADED && v == m->to && m->asked && !m->loaded) {
        m->in = said;
        m->loaded = !said.error;
        /* The old one is about to find out that it could not write all, and goes on by itself then:
         * this is why. */
        if (said.error && (m->saved || m->out.error))
            failed(m, &said);
        else if (said.error)
            m->in.error = said.error;
    } else {
        return -EPROTO;
    }
    if (v->move == m && m->what == GN_MOVE_AWAY && m->saved && !m->in.error) {
        gn_outbound_saved(m);
        return 1;
    }
    if ((v->move != m && (!v->takes_from || v->takes_from->move != m)) || m->what == GN_MOVE_SAVE)
        return 1;
    if (m->saved && m->in.error)
        failed(m, &m->in);
    else if (m->saved && m->loaded)
        commit(m);
    return 1;
}

/* What is ahead of the stop may take so long: everything in each round, and programs to build. */
static uint64_t ahead_ns(const struct gn_move *m)
{
    const uint64_t least = m->how.bytes_per_s && m->how.bytes_per_s < SLOWEST_BYTES_PER_S
                               ? m->how.bytes_per_s
                               : SLOWEST_BYTES_PER_S;
    const double s = 60.0 + (double)m->from->lease.leased_bytes / (double)least * 1.5;
    const double ns = m->how.n_ahead * (s + m->how.drain_timeout_ms / 1e3) * 1e9;
    return ns < 1e18 ? (uint64_t)ns : UINT64_C(1000000000000000000);
}

void gn_move_segment(struct gn_vgpu_record *v, const struct gn_link_segment_made *made, int fd)
{
    struct gn_vgpu_record *n = v->move && v->move->asked ? v->move->to : NULL;
    /* Until it is asked, the old worker hands over all that it has. */
    if (!n || n->control.fd < 0)
        return;
    const int rc = gn_frame_push(&n->writer, GN_WORKER_SEGMENT, 0, 0, made, sizeof *made, &fd, 1);
    if (rc)
        gn_vgpus_unreachable(n, rc); /* the old one goes on */
    else if (gn_frame_writer_pending(&n->writer))
        gn_loop_change(&n->daemon->loop, &n->control, EPOLLIN | EPOLLOUT);
}

void gn_move_up(struct gn_vgpu_record *n)
{
    struct gn_move *m = n->takes_from->move;
    struct gn_vgpu_record *v = m->from;
    if (m->asked)
        return;
    if (m->what == GN_MOVE_RESTORE) {
        m->asked = true;
        if (!v->remote) /* whose file has all of it */
            gn_conn_send(v->conn, GN_LINK_HAND, v->wait_seq, NULL, 0, NULL, 0);
        return;
    }
    gn_move_ask_save(m);
}

void gn_move_ask_save(struct gn_move *m)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_error err;
    GN_FAULT("daemon-before-save");
    m->until_ns = gn_now_ns() + stop_ns(m) + ahead_ns(m);
    gn_vgpus_arm(v->daemon);
    if (gn_frame_push(&v->writer, GN_WORKER_SAVE, 0, 0, &m->how, sizeof m->how, &m->stream_fd, 1)) {
        gn_fail(&err, EPIPE, NULL, "its worker does not hear");
        gn_move_give_up(m, &err);
        return;
    }
    if (gn_frame_writer_pending(&v->writer))
        gn_loop_change(&v->daemon->loop, &v->control, EPOLLIN | EPOLLOUT);
    m->asked = v->leaving = true;
    m->asked_ns = gn_now_ns();
    gn_quota_close(v->quota, &m->stream_fd);
}

bool gn_move_has_all(const struct gn_vgpu_record *v)
{
    return v->move && v->move->saved && v->move->what != GN_MOVE_RESTORE;
}

/* One that is ending closes what it has one after the other: its worker may have heard of it, and
 * be gone, before gantryd can. */
static bool is_ending(pid_t pid)
{
    enum { PF_EXITING = 4 }; /* the kernel's; proc(5) has it in `flags` */
    struct gn_process_stat stat;
    /* Cannot be read: another namespace's. */
    return gn_process_stat_read(pid, &stat) == 0 && (stat.flags & PF_EXITING);
}

/* False also of a program on another machine. */
static bool is_running(const struct gn_vgpu_record *v)
{
    struct gn_process_stat stat;
    return !v->remote && gn_process_stat_read(v->program_pid, &stat) == 0 &&
           !is_ending(v->program_pid);
}

/* A program that ends takes its worker with it; one that runs on hangs up when it notices that the
 * worker has ended. */
static bool has_program(const struct gn_vgpu_record *v)
{
    char byte;
    const struct gn_conn *c = v->conn;
    return !c || is_running(v) ||
           (recv(c->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0 &&
            (c->remote || !is_ending(c->pid)));
}

static const char *why_left(const struct gn_vgpu_record *v)
{
    struct pollfd worker = {.fd = v->process.fd, .events = POLLIN};
    if (v->return_by_ns)
        return "its program has not come back";
    const bool worker_ended =
        v->process.fd < 0 || poll(&worker, 1, 0) == 1 || is_ending(v->worker_pid);
    return worker_ended && is_running(v) ? "its worker has ended; the vGPU is lost"
                                         : "its program has ended";
}

bool gn_move_worker_died(struct gn_vgpu_record *v)
{
    struct gn_error err;
    if (v->takes_from) {
        struct gn_move *m = v->takes_from->move;
        gn_holder_gone(&v->lease, gn_now_ns());
        gn_memory_settle(v->daemon);
        if (m->in.error) {
            failed(m, &m->in); /* it has said why */
            return true;
        }
        gn_fail(&err, EPIPE, "look at what gantryd's log says of it",
                "the new worker ended before it had taken over");
        gn_move_give_up(m, &err);
        return true;
    }
    /* All of it has been written: whether it lives on is the new worker's to say. */
    if (v->move && v->move->saved) {
        if (v->move->kept) {
            gn_vgpus_worker_over(v);
            gn_checkpoint_settle(v->move);
        }
        return true;
    }
    if (v->stopped) {
        gn_vgpus_worker_over(v);
        return true;
    }
    if (v->move) {
        if (has_program(v))
            gn_fail(&err, EPIPE, "look at what gantryd's log says of it",
                    "the vGPU's own worker ended before all of it was saved");
        else
            gn_fail(&err, EPIPE, NULL, "its program has ended");
        gn_move_give_up(v->move, &err);
    }
    return false;
}

void gn_move_left(struct gn_vgpu_record *v)
{
    struct gn_error err;
    gn_inbound_session_left(v);
    if (v->takes_from) {
        gn_fail(&err, EPIPE, "look at what gantryd's log says of it",
                "the new worker could not be started");
        undo(v->takes_from->move, &err);
    } else if (v->move) {
        struct gn_vgpu_record *n = v->move->to;
        gn_move_answer(v->move, gn_control_error("it was given up", why_left(v), NULL));
        gn_move_drop(v->move);
        if (n)
            gn_vgpus_leave(n);
    }
}

int gn_move_set_file(struct gn_conn *c, int *ret, struct gn_error *err)
{
    if (c->file_fd < 0)
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request came without a file");
    *ret = c->file_fd;
    c->file_fd = -1;
    return 0;
}

/* Of those that this connection has asked for, the first. */
static struct gn_move *asked_by(struct gn_daemon *d, const struct gn_conn *c)
{
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record,
                     link) if (v->move && v->move->asker == c) return v->move;
    return NULL;
}

void gn_move_forget(struct gn_daemon *d, const struct gn_conn *c)
{
    struct gn_move *m;
    gn_inbound_conn_closed(d, c);
    while ((m = asked_by(d, c))) {
        m->asker = NULL;
        /* A checkpoint is its asker's to keep: while it is being written, the worker hears of his
         * end itself. */
        if (m->what == GN_MOVE_RESTORE || (m->what == GN_MOVE_SAVE && m->saved && !m->kept)) {
            struct gn_error err;
            gn_fail(&err, ECANCELED, NULL, "the command that asked for it has ended");
            gn_move_give_up(m, &err);
        }
    }
}

uint64_t gn_move_deadline(struct gn_daemon *d)
{
    uint64_t first = gn_inbound_deadline(d);
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (!v->move)
            continue;
        const uint64_t look_ns = gn_move_next_look(v->move), until_ns = v->move->until_ns;
        const uint64_t next_ns = look_ns < until_ns ? look_ns : until_ns;
        if (!first || next_ns < first)
            first = next_ns;
    }
    return first;
}

static void say_late(const struct gn_move *m, struct gn_error *ret)
{
    if (m->told)
        gn_fail(ret, ETIMEDOUT, "try again later", "its program does not say that it waits");
    else if (m->what == GN_MOVE_AWAY && !m->asked)
        gn_fail(ret, ETIMEDOUT, "look whether the program is stopped, and try again later",
                "its program has not said that the other gantryd takes it in");
    else
        gn_fail(ret, ETIMEDOUT, "try again later", "the workers took too long");
}

void gn_move_expire(struct gn_daemon *d, uint64_t now_ns)
{
    struct gn_error err;
    bool again = true;
    gn_inbound_expire(d, now_ns);
    while (again) {
        again = false;
        gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
        {
            struct gn_move *m = v->move;
            if (!m)
                continue;
            const bool stopped =
                gn_move_next_look(m) <= now_ns && gn_move_awaits_stopped(m, now_ns, &err);
            if (!stopped && m->until_ns > now_ns)
                continue;
            if (!stopped)
                say_late(m, &err);
            if (m->kept)
                gn_checkpoint_settle(m);
            else if (m->what == GN_MOVE_AWAY && m->saved)
                gn_outbound_unanswered(m);
            else /* whatever the old worker waits for, the end of the new one ends it: then it says
                    so, and goes on */
                gn_move_give_up(m, &err);
            again = true;
            break;
        }
    }
}

static int keep(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int gn_move_lend(struct gn_vgpu_record *n, const struct gn_vgpu_record *v)
{
    n->ring_fd = keep(v->ring_fd);
    /* In their places: they come with the session. */
    if (n->events_fd < 0)
        n->events_fd = keep(v->ring_fd);
    if (n->data_fd < 0)
        n->data_fd = keep(v->ring_fd);
    n->counters_fd = keep(v->counters_fd);
    n->shares.page.fd = keep(v->shares.page.fd);
    n->shares.tell_fd = keep(v->shares.tell_fd);
    return n->ring_fd < 0 || n->events_fd < 0 || n->data_fd < 0 || n->counters_fd < 0 ||
                   n->shares.page.fd < 0 || n->shares.tell_fd < 0
               ? -EMFILE
               : 0;
}

/* May it be hosted so, and is it not? */
static int judge_mode(const struct gn_vgpu_record *v, enum gn_move_to to, struct gn_error *err)
{
    const struct gn_tenant_rules *rules = &v->tenant->rules;
    const uint32_t mode = to == GN_MOVE_TO_PASSTHROUGH ? GN_MODE_PASSTHROUGH : GN_MODE_REMOTE;
    if (to != GN_MOVE_TO_LOCAL && v->hosted == (to == GN_MOVE_TO_PASSTHROUGH))
        return gn_fail(err, EALREADY, NULL, "its mode is %s already", gn_mode_name(mode));
    if (!((rules->modes ? rules->modes : GN_MODE_REMOTE) & mode))
        return gn_fail(
            err, EACCES, "gantry tenant set --mode remote --mode passthrough allows both",
            "the tenant \"%s\" may not use the mode %s", rules->name, gn_mode_name(mode));
    if (to == GN_MOVE_TO_PASSTHROUGH && v->remote)
        return gn_fail(
            err, EOPNOTSUPP, NULL,
            "its program is attached over tcp, and passthrough needs one that shares gantryd's "
            "machine");
    if (to == GN_MOVE_TO_PASSTHROUGH && !v->conn)
        return gn_fail(err, ENOENT, NULL, "its program has ended");
    return to == GN_MOVE_TO_PASSTHROUGH ? gn_conn_may_run_in_process(v->conn, err) : 0;
}

int gn_refuse_leaving(const struct gn_vgpu_record *v, struct gn_error *err)
{
    const int rc = gn_refuse_stopped_worker(v, err);
    return rc ? rc
              : gn_fail(err, EBUSY, "try again in a moment",
                        "its worker has not ended an earlier move yet");
}

int gn_move_may_begin(const struct gn_vgpu_record *v, struct gn_error *err)
{
    if (v->remote && !v->conn)
        return gn_fail(err, ENOTCONN, "try again in a moment",
                       "the connection to its program is broken");
    if (!v->conn || (!v->remote && !has_program(v)))
        return gn_fail(err, ENOENT, NULL, "its program has ended");
    if (v->move)
        return gn_fail(err, EBUSY, "wait until it is over", "it is being moved already");
    if (v->leaving)
        return gn_refuse_leaving(v, err);
    if (v->stopped)
        return gn_fail(err, ESRCH, "restore it with gantry restore",
                       "it is stopped, and in a file");
    if (!v->booted || v->ending || v->process.fd < 0 || v->control.fd < 0)
        return gn_fail(err, ENODEV, NULL, "it has no worker any more");
    return 0;
}

int gn_move_start(struct gn_conn *c, uint32_t seq, struct gn_vgpu_record *v, enum gn_move_to to,
                  const struct gn_control_wish *wish, struct gn_error *err)
{
    int stream[2];
    if (gn_move_may_begin(v, err))
        return -1;
    /* Its end ends a vGPU, maybe v, and an answer that cannot be written is its end: nothing of
     * that is wanted in the middle of a move. */
    if (c->vgpu)
        return gn_fail(err, EINVAL, "ask on another",
                       "this is a connection by which a program has its vGPU");
    if (judge_mode(v, to, err))
        return -1;
    if ((v->hosted || to == GN_MOVE_TO_PASSTHROUGH) && gn_refuse_stopped_program(v, err))
        return -1;
    if (wish->device && to != GN_MOVE_TO_LOCAL)
        return gn_fail(err, EINVAL, "write gantry migrate VGPU local --device NAME",
                       "a device is chosen for moves within a gantryd alone");
    struct gn_vgpu_record *n = gn_vgpus_blank(v, err);
    if (n && wish->device && gn_vgpus_choose_device(v, wish->device, n, err)) {
        gn_vgpus_leave(n);
        return -1;
    }
    struct gn_move *m = n ? calloc(1, sizeof *m) : NULL;
    if (!m || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0) {
        free(m);
        if (n)
            gn_vgpus_leave(n);
        return gn_fail(err, ENOMEM, NULL, "out of memory or descriptors");
    }
    *m = (struct gn_move){.from = v,
                          .to = n,
                          .asker = c,
                          .seq = seq,
                          .where = to,
                          .how = {.drain_timeout_ms = wish->drain_timeout_ms,
                                  .n_ahead = wish->rounds,
                                  .bytes_per_s = wish->bandwidth_bytes},
                          .stream_fd = stream[0],
                          .began_ns = gn_now_ns(),
                          .until_ns = gn_now_ns() + BOOT_NS};
    /* Of a program elsewhere nobody can hand over anything, and nothing need be said: it comes back
     * to its session, as after any break. */
    if (v->remote)
        m->how.flags = GN_WORKER_SAVE_FAR | GN_WORKER_SAVE_BESIDE;
    v->move = m;
    n->takes_from = v;
    n->hosted = to == GN_MOVE_TO_PASSTHROUGH;
    n->host =
        n->hosted ? NULL : &v->daemon->hosts[v->daemon->machine.platforms[v->platform].driver];
    int rc = v->remote ? gn_vgpus_make_memory(n) : 0;
    rc = rc || gn_move_lend(n, v) ? gn_fail(err, EMFILE, NULL, "out of memory or descriptors")
                                  : gn_vgpus_boot_worker(n, v->conn, stream[1], err);
    gn_quota_close(v->quota, &stream[1]);
    if (rc) {
        m->asker = NULL;
        gn_move_drop(m);
        gn_vgpus_leave(n);
        return rc;
    }
    gn_vgpus_arm(v->daemon);
    return 0;
}
