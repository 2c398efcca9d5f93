/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries migrations on: turns the frames and ends of workers, programs and askers into inputs of
 * the transaction (transaction.c), and carries out the actions that all kinds share. It is the
 * owner of the records under way. gantryd's thread; it never waits.
 */
#include "daemon/migrate/migration.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/process_stat.h"
#include "daemon/tenants/memory.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/worker.h"
#include "shm/session_layout.h"

/* At this rate memory is sent ahead of the stop, at least, unless the asker wants less. */
#define SLOWEST_BYTES_PER_S UINT64_C(50000000)

static const struct gn_record_owner_ops owner_ops, late_ops;
static struct gn_record_owner late_owner = {&late_ops};

static struct gn_migration *of(const struct gn_record_owner *o)
{
    return gn_container_of(o, struct gn_migration, owner);
}

/* The record that the program's vGPU has. */
static struct gn_vgpu_record *vgpu_of(const struct gn_migration *m)
{
    return m->from ? m->from : m->to;
}

struct gn_migration *gn_migration_of(const struct gn_vgpu_record *v)
{
    const struct gn_record_owner *o = v->owned_by;
    return o && o->ops == &owner_ops && vgpu_of(of(o)) == v ? of(o) : NULL;
}

/* ---- begin and end */

static void set_owner(struct gn_vgpu_record *v, struct gn_record_owner *o)
{
    v->owned_by = o;
    gn_placed_memory_owned(v);
}

void gn_migration_begin(struct gn_migration *m, enum gn_transaction_kind kind)
{
    m->owner.ops = &owner_ops;
    m->stream_fd = -1;
    m->began_ns = gn_now_ns();
    (void)gn_quota_hold(m->quota);
    gn_transaction_begin(&m->tx, kind, (uint64_t)m->how.drain_timeout_ms * 1000000u, m->began_ns);
    if (m->from)
        set_owner(m->from, &m->owner);
    if (m->to)
        set_owner(m->to, &m->owner);
    gn_list_append(&m->daemon->migrations, &m->link);
    gn_vgpus_arm(m->daemon);
}

struct gn_migration *gn_migration_new(enum gn_transaction_kind kind,
                                      const struct gn_migration_ops *ops,
                                      struct gn_vgpu_record *from, struct gn_conn *asker,
                                      const struct gn_worker_save *how, struct gn_error *err)
{
    struct gn_migration *m = calloc(1, sizeof *m);
    if (!m) {
        gn_fail(err, ENOMEM, NULL, "out of memory");
        return NULL;
    }
    *m = (struct gn_migration){.ops = ops,
                               .daemon = from->daemon,
                               .quota = asker->quota, /* the stream may be its descriptor */
                               .from = from,
                               .asker = asker,
                               .seq = asker->request_seq,
                               .how = *how};
    if (ops->makes_worker && !(m->to = gn_vgpus_blank(from, err))) {
        free(m);
        return NULL;
    }
    gn_migration_begin(m, kind);
    return m;
}

static void bury(struct gn_corpse *corpse)
{
    struct gn_migration *m = gn_container_of(corpse, struct gn_migration, corpse);
    gn_quota_put(m->quota);
    free(m);
}

/* The records are their own again. Late words of their workers are still to be expected. */
static void detach(struct gn_migration *m)
{
    const bool has_come = !m->from && m->tx.state == GN_TX_COMMITTED;
    if (m->from && m->from->owned_by == &m->owner)
        set_owner(m->from, m->source_busy ? &late_owner : NULL);
    if (m->to)
        set_owner(m->to, has_come ? NULL : &late_owner);
    if (!m->from && m->to && !has_come)
        gn_vgpus_release_id(m->to); /* so that it may be tried again at once */
    gn_list_remove(&m->link);
    gn_quota_close(m->quota, &m->stream_fd);
    explicit_bzero(m->how.key, sizeof m->how.key);
    gn_loop_bury(&m->daemon->loop, &m->corpse, bury);
}

void gn_migration_cancel(struct gn_migration *m)
{
    if (gn_transaction_is_over(m->tx.state))
        return;
    m->tx.state = GN_TX_ENDED;
    detach(m);
    if (m->to)
        gn_vgpus_leave(m->to);
}

/* ---- actions */

void gn_migration_answer(struct gn_migration *m, char *text)
{
    struct gn_conn *c = m->asker;
    m->asker = NULL; /* a connection that breaks over the answer asks for nothing any more */
    if (c && text && !m->answered)
        gn_conn_reply(c, m->seq, text);
    free(text);
}

static const char *why_left(const struct gn_vgpu_record *v)
{
    struct pollfd worker = {.fd = v->process.fd, .events = POLLIN};
    if (v->return_by_ns)
        return "its program has not come back";
    const bool worker_ended =
        v->process.fd < 0 || poll(&worker, 1, 0) == 1 || gn_process_is_ending(v->worker_pid);
    return worker_ended && v->session_ops->is_program_running(v)
               ? "its worker has ended; the vGPU is lost"
               : "its program has ended";
}

static void report(struct gn_migration *m)
{
    gn_migration_answer(m, m->ops->reply(m));
}

static void excuse(struct gn_migration *m)
{
    const struct gn_vgpu_record *v = m->from;
    struct gn_error why;
    const bool lost = m->tx.kind != GN_TX_RESTORE && v->process.fd < 0;
    if (m->tx.state == GN_TX_ENDED) {
        gn_migration_answer(m, gn_control_error("it was given up", why_left(v), NULL));
        return;
    }
    gn_fail(&why, EREMOTEIO, m->why.fix, "%s; %s", m->why.what,
            lost ? "the vGPU is lost" : m->ops->outcome);
    gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: %s: %s", v->id, m->ops->failure, why.what);
    gn_migration_answer(m,
                        gn_control_error(m->ops->failure, why.what, why.fix[0] ? why.fix : NULL));
}

/* Ahead of the stop each round may send everything, and programs are built. */
static uint64_t ahead_ns(const struct gn_migration *m)
{
    const uint64_t least = m->how.bytes_per_s && m->how.bytes_per_s < SLOWEST_BYTES_PER_S
                               ? m->how.bytes_per_s
                               : SLOWEST_BYTES_PER_S;
    const double s = 60.0 + (double)m->from->lease.leased_bytes / (double)least * 1.5;
    const double ns = m->how.n_ahead * (s + m->how.drain_timeout_ms / 1e3) * 1e9;
    return ns < 1e18 ? (uint64_t)ns : UINT64_C(1000000000000000000);
}

int gn_migration_save(struct gn_migration *m, struct gn_error *err)
{
    GN_FAULT("daemon-before-save");
    if (gn_vgpus_push(m->from, GN_WORKER_SAVE, 0, &m->how, sizeof m->how, m->stream_fd))
        return gn_fail(err, EPIPE, NULL, "its worker cannot be reached");
    m->source_busy = true;
    m->boot_ns = gn_now_ns() - m->began_ns;
    gn_quota_close(m->quota, &m->stream_fd);
    return 0;
}

static void ask_save(struct gn_migration *m)
{
    struct gn_error err;
    if (gn_migration_save(m, &err))
        (void)gn_migration_input(m, GN_TX_ON_FAILED, &err);
}

static void resume(struct gn_migration *m)
{
    if (m->from->process.fd < 0)
        gn_vgpus_lost(m->from); /* it died while it was not known how the vGPU goes on */
    else
        gn_vgpus_notify_worker(m->from, GN_WORKER_RESUME, 0, NULL, 0);
}

static void dismiss(struct gn_migration *m)
{
    if (m->to)
        gn_vgpus_leave(m->to);
}

static const struct gn_migration_action shared_actions[] = {
    {GN_TX_DO_SAVE, ask_save}, {GN_TX_DO_RESUME, resume},   {GN_TX_DO_REPORT, report},
    {GN_TX_DO_EXCUSE, excuse}, {GN_TX_DO_DISMISS, dismiss}, {0}};

static void carry_out(struct gn_migration *m, const struct gn_migration_action *list,
                      uint32_t action)
{
    while (list->action && list->action != action)
        list++;
    if (list->action)
        list->carry_out(m);
}

int gn_migration_input(struct gn_migration *m, enum gn_transaction_input input,
                       const struct gn_error *err)
{
    uint32_t actions;
    if (input == GN_TX_ON_UP && m->from)
        m->tx.ahead_ns = ahead_ns(m);
    if (!gn_transaction_step(&m->tx, input, gn_now_ns(), &actions))
        return -EPROTO;
    if (gn_transaction_is_over(m->tx.state))
        detach(m);
    else
        gn_vgpus_arm(m->daemon);
    if (err)
        m->why = *err;
    for (; actions; actions &= actions - 1) {
        carry_out(m, shared_actions, actions & -actions);
        carry_out(m, m->ops->actions, actions & -actions);
    }
    return 0;
}

int gn_migration_exchange(struct gn_migration *m, struct gn_error *err)
{
    return gn_vgpus_swap_workers(m->from, m->to)
               ? gn_fail(err, EBUSY, "try again", "its worker does not read what gantryd says")
               : 0;
}

/* ---- frames of workers */

bool gn_migration_parse_report(const struct gn_frame *f, int n_fds, struct gn_worker_moved *ret)
{
    return f->n_fds <= n_fds && gn_frame_payload(f, ret, sizeof *ret) &&
           gn_frame_string_ok(ret->what, sizeof ret->what) &&
           gn_frame_string_ok(ret->fix, sizeof ret->fix) && ret->error <= 0 &&
           ret->error >= -INT32_MAX;
}

static const struct gn_error *reason_of(const struct gn_worker_moved *report, struct gn_error *ret)
{
    gn_fail(ret, -report->error, report->fix[0] ? report->fix : NULL, "%s", report->what);
    return ret;
}

static int destination_said(struct gn_migration *m, const struct gn_vgpu_record *n,
                            const struct gn_frame *f)
{
    struct gn_worker_moved report;
    struct gn_link_error refusal;
    struct gn_error err;
    if (f->op == GN_LINK_ERROR && m->from && (!n->driver_up || n->serving->may_refuse_late) &&
        gn_frame_payload(f, &refusal, sizeof refusal) &&
        gn_frame_string_ok(refusal.what, sizeof refusal.what) &&
        gn_frame_string_ok(refusal.fix, sizeof refusal.fix)) {
        gn_fail(&err, ENODEV, refusal.fix[0] ? refusal.fix : NULL, "%s", refusal.what);
        return gn_migration_input(m, GN_TX_ON_NO_DRIVER, &err) ? -EPROTO : 1;
    }
    if (f->op != GN_WORKER_LOADED)
        return 0;
    if (!gn_migration_parse_report(f, 0, &report))
        return -EPROTO;
    m->in = report;
    m->load_ns = report.done_ns - report.began_ns;
    return gn_migration_input(m, report.error ? GN_TX_ON_LOAD_FAILED : GN_TX_ON_LOADED,
                              reason_of(report.error ? &report : &m->out, &err))
               ? -EPROTO
               : 1;
}

static int source_said(struct gn_migration *m, struct gn_vgpu_record *v, const struct gn_frame *f)
{
    const bool with_session = m->tx.kind == GN_TX_STOP;
    struct gn_worker_moved report;
    struct gn_error err;
    if (f->op == GN_WORKER_STOPS && f->n_payload == 0 && f->n_fds == 0)
        return gn_migration_input(m, GN_TX_ON_STOPS, NULL) ? -EPROTO : 1;
    if (f->op != GN_WORKER_SAVED)
        return 0;
    if (!m->source_busy || !gn_migration_parse_report(f, with_session, &report))
        return -EPROTO;
    m->source_busy = false;
    m->out = report;
    if (with_session && !report.error) {
        v->session_fd = f->n_fds ? gn_frame_take_fd(&v->reader, 0) : -1;
        m->session_lost = f->lost_fds;
    }
    /* A source with a broken stream knows no more than that. The destination has the reason. */
    const bool broken = report.error == -EPIPE || report.error == -ECONNRESET;
    const bool not_its_own = m->tx.state == GN_TX_DEST_FAILED && (broken || !report.error);
    return gn_migration_input(m,
                              !report.error ? GN_TX_ON_SAVED
                              : broken      ? GN_TX_ON_SAVE_BROKEN
                                            : GN_TX_ON_SAVE_FAILED,
                              reason_of(not_its_own ? &m->in : &report, &err))
               ? -EPROTO
               : 1;
}

static int on_frame(struct gn_record_owner *o, struct gn_vgpu_record *v, const struct gn_frame *f)
{
    return v == of(o)->to ? destination_said(of(o), v, f) : source_said(of(o), v, f);
}

static void on_up(struct gn_record_owner *o, struct gn_vgpu_record *n)
{
    (void)n;
    (void)gn_migration_input(of(o), GN_TX_ON_UP, NULL);
}

/* ---- ends */

static bool on_death(struct gn_record_owner *o, struct gn_vgpu_record *v)
{
    struct gn_migration *m = of(o);
    struct gn_error err;
    if (v == m->to) {
        gn_memory_leave(v);
        gn_memory_settle(v->daemon);
        if (m->in.error)
            reason_of(&m->in, &err);
        else
            gn_fail(&err, EPIPE, "see gantryd's log",
                    "the new worker ended before it had taken over");
        (void)gn_migration_input(m, GN_TX_ON_DEST_DIED, &err);
        if (!gn_transaction_is_over(m->tx.state)) { /* the source's message is still to come */
            m->to = NULL;
            set_owner(v, &late_owner);
            gn_vgpus_leave(v);
        }
        return true;
    }
    const bool has_all = gn_transaction_has_all(&m->tx);
    if (v->session_ops->has_program(v))
        gn_fail(&err, EPIPE, "see gantryd's log",
                "the vGPU's own worker ended before all of it was saved");
    else
        gn_fail(&err, EPIPE, NULL, "its program has ended");
    if (gn_record_is_stopped(v))
        gn_vgpus_worker_over(v);
    (void)gn_migration_input(m, GN_TX_ON_SOURCE_DIED, &err);
    return has_all;
}

static void on_left(struct gn_record_owner *o, struct gn_vgpu_record *v)
{
    struct gn_migration *m = of(o);
    struct gn_error err;
    if (v == vgpu_of(m)) {
        (void)gn_migration_input(m, GN_TX_ON_PROGRAM_GONE, NULL);
        return;
    }
    m->to = NULL; /* it is on its way out already */
    set_owner(v, &late_owner);
    gn_fail(&err, EPIPE, "see gantryd's log", "the new worker could not be started");
    (void)gn_migration_input(m, GN_TX_ON_DEST_DIED, &err);
}

static void on_link(struct gn_record_owner *o, struct gn_vgpu_record *v, bool is_back)
{
    struct gn_error err;
    (void)v;
    gn_fail(&err, ENOTCONN, "try again", "the connection to its program broke");
    (void)gn_migration_input(of(o), is_back ? GN_TX_ON_LINK_BACK : GN_TX_ON_LINK_BROKEN, &err);
}

static struct gn_migration *first_asked_by(struct gn_daemon *d, const struct gn_conn *c)
{
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        if (m->asker == c)
            return m;
    }
    return NULL;
}

void gn_migrations_forget(struct gn_daemon *d, const struct gn_conn *c)
{
    struct gn_migration *m;
    struct gn_error err;
    gn_fail(&err, ECANCELED, NULL, "the command that asked for it has ended");
    while ((m = first_asked_by(d, c))) {
        m->asker = NULL;
        (void)gn_migration_input(m, GN_TX_ON_ASKER_GONE, &err);
    }
}

/* ---- other questions to an owner */

static void on_segment(struct gn_record_owner *o, struct gn_vgpu_record *v,
                       const struct gn_link_segment_made *made, int fd)
{
    const struct gn_migration *m = of(o);
    struct gn_vgpu_record *n = m->to;
    /* A source that was not asked yet hands over all segments that it has. */
    if (v != m->from || m->tx.state == GN_TX_BOOTING || !n || n->control.fd < 0)
        return;
    const int rc = gn_vgpus_push(n, GN_WORKER_SEGMENT, 0, made, sizeof *made, fd);
    if (rc)
        gn_vgpus_unreachable(n, rc); /* the source goes on */
}

static struct gn_vgpu_record *session_of(struct gn_record_owner *o, const struct gn_vgpu_record *v)
{
    return v == of(o)->to ? of(o)->from : NULL;
}

static void on_boot(struct gn_record_owner *o, const struct gn_vgpu_record *v,
                    struct gn_worker_boot *boot)
{
    const struct gn_migration *m = of(o);
    (void)v;
    boot->loads = m->tx.kind == GN_TX_RESTORE ? GN_WORKER_LOADS_FILE : GN_WORKER_LOADS_WORKER;
    boot->route = m->how.route;
    boot->load_tls = (m->how.flags & GN_WORKER_SAVE_TLS) != 0;
    if (boot->load_tls) {
        memcpy(boot->load_name, m->how.name, sizeof boot->load_name);
        memcpy(boot->load_key, m->how.key, sizeof boot->load_key);
    }
}

static enum gn_record_saved saved(const struct gn_record_owner *o, const struct gn_vgpu_record *v)
{
    const struct gn_migration *m = of(o);
    if (v != m->from || !gn_transaction_has_all(&m->tx))
        return GN_RECORD_NOT_SAVED;
    return m->tx.kind == GN_TX_OUTBOUND ? GN_RECORD_SAVED_ELSEWHERE : GN_RECORD_SAVED_HERE;
}

static bool holds(const struct gn_record_owner *o, const struct gn_vgpu_record *v)
{
    return v == of(o)->from;
}

static const struct gn_record_owner_ops owner_ops = {.up = on_up,
                                                     .acknowledged = on_frame,
                                                     .died = on_death,
                                                     .left = on_left,
                                                     .link = on_link,
                                                     .segment = on_segment,
                                                     .session_of = session_of,
                                                     .boot = on_boot,
                                                     .saved = saved,
                                                     .holds = holds};

/* ---- late words, of workers that do not know yet that it is over */

static int late_frame(struct gn_record_owner *o, struct gn_vgpu_record *v, const struct gn_frame *f)
{
    struct gn_transaction over = {.kind = GN_TX_LOCAL, .state = GN_TX_ABORTED};
    struct gn_worker_moved report;
    enum gn_transaction_input input;
    uint32_t actions;
    (void)o;
    if (f->op == GN_WORKER_STOPS && !f->n_payload)
        input = GN_TX_ON_STOPS;
    else if (f->op == GN_WORKER_SAVED && gn_migration_parse_report(f, 1, &report))
        input = report.error ? GN_TX_ON_SAVE_FAILED : GN_TX_ON_SAVED;
    else if (f->op == GN_WORKER_LOADED && v->ending)
        input = GN_TX_ON_LOADED;
    else if (f->op == GN_LINK_ERROR && v->ending && v->serving->may_refuse_late)
        input = GN_TX_ON_NO_DRIVER;
    else
        return 0;
    if (!gn_transaction_step(&over, input, 0, &actions))
        return -EPROTO;
    if (f->op == GN_WORKER_SAVED)
        set_owner(v, NULL);
    if (actions & GN_TX_DO_RESUME)
        gn_vgpus_notify_worker(v, GN_WORKER_RESUME, 0, NULL, 0);
    return 1;
}

static const struct gn_record_owner_ops late_ops = {.acknowledged = late_frame};

/* ---- deadlines */

static uint64_t next_look(const struct gn_migration *m)
{
    const uint64_t look_ns = gn_migration_next_look(m);
    return look_ns < m->tx.until_ns ? look_ns : m->tx.until_ns;
}

static uint64_t first_deadline(struct gn_daemon *d)
{
    uint64_t first = 0;
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        if (!first || next_look(m) < first)
            first = next_look(m);
    }
    return first;
}

static void say_late(const struct gn_migration *m, struct gn_error *ret)
{
    if (m->tx.state == GN_TX_NOTIFIED)
        gn_fail(ret, ETIMEDOUT, "try again later", "its program does not say that it waits");
    else if (m->tx.kind == GN_TX_INBOUND)
        gn_fail(ret, ETIMEDOUT, "move it again", "its program has not decided in time");
    else if (m->tx.kind == GN_TX_OUTBOUND && m->tx.state == GN_TX_BOOTING)
        gn_fail(ret, ETIMEDOUT, "look whether the program is stopped, and try again later",
                "its program has not said that the other gantryd takes it in");
    else
        gn_fail(ret, ETIMEDOUT, "try again later", "the workers took too long");
}

/* The first that is due, with the reason. */
static struct gn_migration *find_due(struct gn_daemon *d, uint64_t now_ns, struct gn_error *err)
{
    gn_list_for_each(m, &d->migrations, struct gn_migration, link)
    {
        if (gn_migration_next_look(m) <= now_ns && gn_migration_awaits_stopped(m, now_ns, err))
            return m;
        if (m->tx.until_ns > now_ns)
            continue;
        say_late(m, err);
        return m;
    }
    return NULL;
}

static void expire(struct gn_daemon *d, uint64_t now_ns)
{
    struct gn_migration *m;
    struct gn_error err;
    while ((m = find_due(d, now_ns, &err))) {
        if (m->tx.state == GN_TX_ANNOUNCED)
            gn_log(GN_LOG_WARN, "the ticket of vGPU %08x has run out before its program came",
                   m->number);
        (void)gn_migration_input(m, GN_TX_ON_DEADLINE, &err);
    }
}

const struct gn_owner_deadlines gn_migration_deadlines = {first_deadline, expire};

/* ---- the beginning, for all kinds */

int gn_migration_boot(struct gn_migration *m, int session_fd, struct gn_error *err)
{
    const int rc = m->from->session_ops->make_memory(m->to)
                       ? gn_fail(err, EMFILE, NULL, "out of memory or descriptors")
                       : gn_vgpus_boot_worker(m->to, m->from->conn, session_fd, err);
    if (rc)
        gn_migration_cancel(m);
    return rc;
}

int gn_migration_make_ring(int *ret_fd, struct gn_error *err)
{
    struct gn_segment ring;
    const int rc = gn_session_create("gantry-ring", &ring);
    if (rc)
        return gn_fail(err, -rc, NULL, "cannot make its session: %s", strerror(-rc));
    *ret_fd = ring.fd;
    return 0;
}

int gn_migration_set_file(struct gn_conn *c, int *ret, struct gn_error *err)
{
    if (c->file_fd < 0)
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request came without a file");
    *ret = c->file_fd;
    c->file_fd = -1;
    return 0;
}

int gn_migration_refuse_busy(const struct gn_vgpu_record *v, struct gn_error *err)
{
    if (gn_migration_of(v))
        return gn_fail(err, EBUSY, "wait until it is over", "it is being moved already");
    if (v->owned_by == &late_owner && v->process.fd >= 0)
        return gn_refuse_stopped_worker(v, err)
                   ? -EBUSY
                   : gn_fail(err, EBUSY, "try again in a moment",
                             "its worker has not ended an earlier move yet");
    if (gn_record_is_stopped(v))
        return gn_fail(err, ESRCH, "restore it with gantry restore",
                       "it is stopped, and in a file already");
    return gn_record_is_served(v) ? 0 : gn_fail(err, ENODEV, NULL, "it has no worker any more");
}

int gn_migration_may_begin(const struct gn_vgpu_record *v, struct gn_error *err)
{
    const int rc = v->session_ops->judge_migration(v, err);
    return rc ? rc : gn_migration_refuse_busy(v, err);
}
