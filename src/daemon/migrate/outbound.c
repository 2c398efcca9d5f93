/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU to another gantryd, seen from the one that it leaves; docs/moves.md. What goes over is the
 * worker's to write, into a socket whose other end the other gantryd has; that one is not spoken to
 * from here. The program is told where to go, and says how it went. When the worker has written
 * everything the program alone decides: it may, once it is told so, and until it has said which way
 * this worker neither goes on nor ends. gantryd's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/migrate/transaction.h"

#define CLAIM_NS                                                                                   \
    UINT64_C(                                                                                      \
        30000000000) /* for the program to come to the other one, and a worker to be up there */
#define LEAVE_NS                                                                                   \
    UINT64_C(90000000000) /* for it to say where it goes on: it waits a minute for the other one   \
                             itself */
#define NO_END_NS (UINT64_MAX / 2)

static bool is_tcp(const char *address)
{
    return strncmp(address, "tcp:", 4) == 0;
}

static int read_where(const struct gn_vgpu_record *v, const struct gn_control_wish *wish,
                      struct gn_link_move *ret, struct gn_error *err)
{
    memset(ret, 0, sizeof *ret);
    if (!wish->ticket || !gn_control_parse_hex(wish->ticket, ret->ticket, sizeof ret->ticket))
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request brings no ticket of the gantryd at \"%.100s\"", wish->to);
    if (strlen(wish->to) >= sizeof ret->address)
        return gn_fail(err, ENAMETOOLONG, NULL, "the address is too long");
    memcpy(ret->address, wish->to, strlen(wish->to));
    /* Whether it is on that machine the program knows. */
    if (v->remote && is_tcp(wish->to) && wish->near && strlen(wish->near) < sizeof ret->near &&
        wish->kernel && gn_control_parse_hex(wish->kernel, ret->kernel, sizeof ret->kernel))
        memcpy(ret->near, wish->near, strlen(wish->near));
    if (is_tcp(wish->to) &&
        (!wish->name || !gn_control_parse_hex(wish->name, ret->name, sizeof ret->name)))
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request brings no name of the gantryd at \"%.100s\"", wish->to);
    return 0;
}

/* A link over tcp stays one. */
static int judge_address(const struct gn_vgpu_record *v, const char *to, struct gn_error *err)
{
    if (v->remote && !is_tcp(to))
        return gn_fail(
            err, EOPNOTSUPP, "name tcp:HOST:PORT of another gantryd",
            "its program is attached over tcp, and cannot reach a socket of this machine");
    return 0;
}

/* Where the old worker writes to. */
static bool is_stream_for(bool tcp, int fd)
{
    int kind = 0, domain = 0;
    socklen_t n = sizeof kind;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &n) == 0 && kind == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
           (tcp ? domain == AF_INET || domain == AF_INET6 : domain == AF_UNIX);
}

int gn_outbound_may_begin(const struct gn_vgpu_record *v, struct gn_error *err)
{
    int rc = gn_move_may_begin(v, err);
    if (!rc && v->hosted)
        rc = gn_fail(err, EOPNOTSUPP, "gantry mode VGPU remote, and try again",
                     "it lives in its program, which cannot be moved from there yet");
    return rc ? rc : gn_refuse_stopped_program(v, err);
}

int gn_outbound_start(struct gn_conn *c, uint32_t seq, struct gn_vgpu_record *v,
                      const struct gn_control_wish *wish, struct gn_error *err)
{
    struct gn_link_move what;
    int rc = gn_outbound_may_begin(v, err);
    if (!rc)
        rc = judge_address(v, wish->to, err);
    if (!rc)
        rc = read_where(v, wish, &what, err);
    struct gn_move *m = rc ? NULL : calloc(1, sizeof *m);
    int fd = -1;
    if (!rc)
        rc = m ? gn_move_set_file(c, &fd, err) : gn_fail(err, ENOMEM, NULL, "out of memory");
    /* A worker that was started without TLS has somebody in between who speaks it. */
    if (!rc && !is_stream_for(is_tcp(wish->to) && (v->remote || !wish->secure), fd))
        rc = gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                     "what the vGPU is to go through is no socket of the kind that its way is");
    if (rc) {
        gn_quota_close(c->quota, &fd);
        free(m);
        return rc;
    }
    *m = (struct gn_move){.what = GN_MOVE_AWAY,
                          .from = v,
                          .asker = c,
                          .seq = seq,
                          .how = {.drain_timeout_ms = wish->drain_timeout_ms,
                                  .n_ahead = wish->rounds,
                                  .bytes_per_s = wish->bandwidth_bytes},
                          .stream_fd = fd,
                          .began_ns = gn_now_ns(),
                          .until_ns = gn_now_ns() + CLAIM_NS};
    /* No other gantryd's that the program remembers. */
    while (!m->number)
        if (getrandom(&m->number, sizeof m->number, 0) != sizeof m->number)
            m->number = (uint32_t)gn_now_ns();
    memcpy(m->address, what.address, sizeof m->address);
    m->how.mark = m->number;
    if (is_tcp(wish->to)) {
        what.secure = v->remote ? v->secure : wish->secure;
        m->how.flags = GN_WORKER_SAVE_FAR | (v->remote && v->secure ? GN_WORKER_SAVE_TLS : 0);
        memcpy(m->how.key, what.ticket, sizeof m->how.key);
        memcpy(m->how.name, what.name, sizeof m->how.name);
    }
    v->move = m;
    gn_cache_keep(v->daemon,
                  v->cache); /* the other gantryd may be this machine's, and compile the same */
    gn_vgpus_arm(v->daemon);
    GN_FAULT("daemon-before-move-told");
    const bool near = v->conn && v->conn->hears_near && what.near[0];
    gn_conn_send(v->conn, GN_LINK_MOVE, m->number, &what,
                 near ? sizeof what : GN_LINK_MOVE_PLAIN_BYTES, NULL,
                 0); /* gone meanwhile: gn_move_left */
    explicit_bzero(&what, sizeof what);
    return 0;
}

void gn_outbound_saved(struct gn_move *m)
{
    GN_FAULT("daemon-before-leave");
    m->until_ns = gn_now_ns() + LEAVE_NS;
    gn_vgpus_arm(m->from->daemon);
    gn_conn_send(m->from->conn, GN_LINK_LEAVE, m->number, NULL, 0, NULL, 0);
    GN_FAULT("daemon-leave-told");
}

/* It alone knows where it goes on, and may say so at any time: nothing is decided for it. */
void gn_outbound_unanswered(struct gn_move *m)
{
    struct gn_error err;
    m->until_ns = gn_now_ns() + NO_END_NS;
    gn_fail(&err, ETIMEDOUT, "look with gantry ls at both gantryds when its program goes on",
            "the program of %08x does not say where it goes on (it may be stopped); until it does, "
            "the vGPU waits at both",
            m->from->id);
    gn_quota_log(m->from->quota, GN_LOG_WARN, "vgpu=%08x: %s", m->from->id, err.what);
    gn_move_answer(
        m, gn_control_error("it is not known yet whether the vGPU was moved", err.what, err.fix));
}

void gn_outbound_unsettled(struct gn_vgpu_record *v, bool returned)
{
    struct gn_move *m = v->move && v->move->what == GN_MOVE_AWAY ? v->move : NULL;
    struct gn_error err;
    /* Once all is written it may have gone over: who comes back has not. */
    if (!m || m->saved != returned)
        return;
    gn_fail(&err, ENOTCONN, "try again", "the connection to its program broke");
    gn_move_give_up(m, &err);
}

void gn_outbound_aborted(struct gn_vgpu_record *v, uint32_t number, const struct gn_error *err)
{
    struct gn_link_error e = {.code = ECANCELED};
    struct gn_conn *c = v->conn;
    if (!c || c->socket.fd < 0)
        return;
    gn_frame_string_set(e.what, sizeof e.what, err->what);
    gn_frame_string_set(e.fix, sizeof e.fix, err->fix);
    /* Not sent at once: if that ended the connection, it would end v, which is in hand. */
    (void)gn_frame_push(&c->writer, GN_LINK_STAY, 0, number, &e, sizeof e, NULL, 0);
    gn_loop_change(&c->daemon->loop, &c->socket, EPOLLIN | EPOLLOUT);
}

static void left(struct gn_move *m, const struct gn_link_ready *r)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_conn *c = v->conn;
    const uint64_t now = gn_now_ns();
    GN_FAULT("daemon-left");
    gn_quota_log(v->quota, GN_LOG_INFO,
                 "vgpu=%08x: moved to the gantryd at %s, stopped for %llu us", v->id, m->address,
                 (unsigned long long)(now - m->out.began_ns) / 1000);
    gn_move_answer(m, gn_move_figures(m, m->address, now, r->boot_ns, r->load_ns));
    gn_move_drop(m);
    c->vgpu = NULL;
    v->booted = false;      /* nobody's any more: its worker is only waited for */
    gn_vgpus_give_up_id(v); /* which may come back before it is dead */
    gn_vgpus_leave(v);
    /* A thread of the program may sleep in poll on what was its end of this, which keeps it from
     * hanging up. */
    gn_conn_close(c);
}

bool gn_outbound_frame(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_vgpu_record *v = c->vgpu;
    struct gn_move *m =
        v && v->move && v->move->what == GN_MOVE_AWAY && v->move->number == f->seq ? v->move : NULL;
    struct gn_link_error e;
    struct gn_link_ready r;
    struct gn_error err;
    switch (f->op) {
    case GN_LINK_COMES:
    case GN_LINK_COMES_NEAR:
        if (f->n_payload || !v || (m && m->asked) || (f->op == GN_LINK_COMES_NEAR && !v->remote))
            return false;
        if (m && f->op == GN_LINK_COMES_NEAR)
            m->how.flags |= GN_WORKER_SAVE_NEAR;
        if (m)
            gn_move_ask_save(m);
        return true;
    case GN_LINK_STAY:
        if (!gn_frame_payload(f, &e, sizeof e) || !gn_frame_string_ok(e.what, sizeof e.what) ||
            !gn_frame_string_ok(e.fix, sizeof e.fix))
            return false;
        if (!m)
            return true; /* it was given up from here already */
        gn_fail(&err, EREMOTEIO, e.fix[0] ? e.fix : NULL, "%s", e.what);
        gn_move_fails_there(m, &err);
        return true;
    default:
        if (!m || !m->saved || !gn_frame_payload(f, &r, sizeof r))
            return false;
        left(m, &r);
        return true;
    }
}

static const char *shown_as(const struct gn_device_record *d)
{
    return gn_kind_name(d->shown_as ? d->shown_as : d->facts.kind);
}

void gn_outbound_describe(const struct gn_vgpu_record *v, struct gn_control_about *ret)
{
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    *ret = (struct gn_control_about){.id = v->id,
                                     .tenant = v->tenant->rules.name,
                                     .program = v->program,
                                     .api = p->api,
                                     .platform = p->name,
                                     .weight = v->weight,
                                     .remote = v->remote,
                                     .secure = v->secure,
                                     .need_bytes = v->lease.leased_bytes,
                                     .limit_bytes = v->lease.limit_bytes};
    for (uint32_t k = 0; k < gn_vgpus_n_devices(v); k++) {
        const uint32_t i = v->order[k];
        const struct gn_probe_device *f = &p->devices[i].facts;
        ret->devices[ret->n_devices++] =
            (struct gn_control_about_device){.name = f->name,
                                             .vendor = f->vendor,
                                             .version = f->version,
                                             .driver_version = f->driver_version,
                                             .shown_as = shown_as(&p->devices[i]),
                                             .memory_bytes = f->memory_bytes,
                                             .max_allocation_bytes = f->max_allocation_bytes,
                                             .local_memory_bytes = f->local_memory_bytes,
                                             .compute_units = f->compute_units};
    }
}
