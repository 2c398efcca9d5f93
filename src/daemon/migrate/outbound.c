/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU to another gantryd, on the side of the gantryd that it leaves; docs/moves.md. The source
 * writes into a socket to the other gantryd; the two gantryds do not speak with each other. The
 * program is told where to go and decides: once the source has written everything, and until the
 * program has decided, this side neither goes on nor ends. Called by control commands and with the
 * program's frames, on gantryd's thread; it never waits.
 */
#include "daemon/migrate/outbound.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/migrate/migration.h"
#include "daemon/tenants/memory.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/record_session.h"

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
    /* The program knows whether it is on that machine. */
    if (v->session_ops->may_become_shm && wish->near && strlen(wish->near) < sizeof ret->near &&
        wish->kernel && gn_control_parse_hex(wish->kernel, ret->kernel, sizeof ret->kernel))
        memcpy(ret->near, wish->near, strlen(wish->near));
    if (is_tcp(wish->to) &&
        (!wish->name || !gn_control_parse_hex(wish->name, ret->name, sizeof ret->name)))
        return gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                       "the request brings no name of the gantryd at \"%.100s\"", wish->to);
    return 0;
}

/* Whether the source can write to it. */
static bool is_stream_for(bool tcp, int fd)
{
    int kind = 0, domain = 0;
    socklen_t n = sizeof kind;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &n) == 0 && kind == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
           (tcp ? domain == AF_INET || domain == AF_INET6 : domain == AF_UNIX);
}

/* Tells the program that it may go on at the destination. */
static void offer(struct gn_migration *m)
{
    GN_FAULT("daemon-before-leave");
    gn_conn_send(m->from->conn, GN_LINK_LEAVE, m->number, NULL, 0, NULL, 0);
    GN_FAULT("daemon-leave-told");
}

/* Only the program knows where it goes on, and may say so at any time. */
static void advise(struct gn_migration *m)
{
    struct gn_error err;
    gn_fail(&err, ETIMEDOUT, "look with gantry ls at both gantryds when its program goes on",
            "the program of %08x does not say where it goes on (it may be stopped); until it does, "
            "the vGPU waits at both",
            m->from->id);
    gn_quota_log(m->from->quota, GN_LOG_WARN, "vgpu=%08x: %s", m->from->id, err.what);
    gn_migration_answer(
        m, gn_control_error("it is not known yet whether the vGPU was moved", err.what, err.fix));
}

static void stay(struct gn_migration *m)
{
    struct gn_link_error e = {.code = ECANCELED};
    struct gn_conn *c = m->from->conn;
    if (!c || c->socket.fd < 0)
        return;
    gn_frame_string_set(e.what, sizeof e.what, m->why.what);
    gn_frame_string_set(e.fix, sizeof e.fix, m->why.fix);
    gn_conn_queue(c, GN_LINK_STAY, m->number, &e, sizeof e);
}

/* The program has gone. Its record here is only left to wait for the worker's end. */
static void release(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_conn *c = v->conn;
    if (!c)
        return;
    c->vgpu = NULL;
    gn_record_set_state(v, GN_RECORD_RELEASED);
    gn_vgpus_release_id(v); /* the vGPU may come back before this worker is dead */
    gn_vgpus_leave(v);
    /* A thread of the program may sleep in poll on its end of this, which keeps it from hanging
     * up. */
    gn_conn_close(c);
}

static const struct gn_migration_action actions[] = {{GN_TX_DO_OFFER, offer},
                                                     {GN_TX_DO_ADVISE, advise},
                                                     {GN_TX_DO_STAY, stay},
                                                     {GN_TX_DO_RELEASE, release},
                                                     {0}};

static char *reply(const struct gn_migration *m)
{
    return gn_migration_figures(m, m->address);
}

static const struct gn_migration_ops ops = {.what = "move",
                                            .failure = "the vGPU was not moved",
                                            .outcome = "the vGPU goes on where it was",
                                            .actions = actions,
                                            .reply = reply};

/* ---- commands */

int gn_outbound_may_begin(const struct gn_vgpu_record *v, struct gn_error *err)
{
    int rc = gn_migration_may_begin(v, err);
    if (!rc)
        rc = gn_serving_permits(v->serving, GN_SERVING_MOVE_AWAY, err);
    return rc ? rc : gn_refuse_stopped_program(v, err);
}

int gn_migrate_outbound(struct gn_conn *c, struct gn_vgpu_record *v,
                        const struct gn_control_wish *wish, struct gn_error *err)
{
    struct gn_worker_save how = {.drain_timeout_ms = wish->drain_timeout_ms,
                                 .n_ahead = wish->rounds,
                                 .bytes_per_s = wish->bandwidth_bytes};
    struct gn_outbound_route route;
    struct gn_link_move what;
    int fd = -1, rc = gn_outbound_may_begin(v, err);
    if (!rc)
        rc = v->session_ops->plan_outbound(v, is_tcp(wish->to), wish->secure, &route, err);
    if (!rc)
        rc = read_where(v, wish, &what, err);
    if (!rc)
        rc = gn_migration_set_file(c, &fd, err);
    if (!rc && !is_stream_for(route.source_by_tcp, fd))
        rc = gn_fail(err, EINVAL, "use a gantry of gantryd's version",
                     "the descriptor for the vGPU's contents is no socket of the right kind");
    struct gn_migration *m = rc ? NULL : gn_migration_new(GN_TX_OUTBOUND, &ops, v, c, &how, err);
    if (!m) {
        gn_quota_close(c->quota, &fd);
        return rc ? rc : -ENOMEM;
    }
    m->stream_fd = fd;
    /* A number that no other gantryd has given the program. */
    while (!m->number)
        if (getrandom(&m->number, sizeof m->number, 0) != sizeof m->number)
            m->number = (uint32_t)gn_now_ns();
    memcpy(m->address, what.address, sizeof m->address);
    m->how.mark = m->number;
    what.secure = route.secure;
    m->how.route = route.route;
    if (route.secure && route.source_by_tcp) {
        m->how.flags = GN_WORKER_SAVE_TLS;
        memcpy(m->how.key, what.ticket, sizeof m->how.key);
        memcpy(m->how.name, what.name, sizeof m->how.name);
    }
    /* The other gantryd may be of this machine, and compile the same kernels. */
    gn_cache_keep(v->daemon, v->cache);
    GN_FAULT("daemon-before-move-told");
    const bool near = v->conn->hears_near && what.near[0];
    gn_conn_send(v->conn, GN_LINK_MOVE, m->number, &what,
                 near ? sizeof what : GN_LINK_MOVE_PLAIN_BYTES, NULL, 0);
    explicit_bzero(&what, sizeof what);
    return 0;
}

/* ---- the program's frames */

static bool goes_on(struct gn_migration *m, const struct gn_link_ready *r)
{
    GN_FAULT("daemon-left");
    if (m->tx.state == GN_TX_SAVED)
        gn_quota_log(m->from->quota, GN_LOG_INFO,
                     "vgpu=%08x: moved to the gantryd at %s, stopped for %llu us", m->from->id,
                     m->address, (unsigned long long)(gn_now_ns() - m->out.began_ns) / 1000);
    m->boot_ns = r->boot_ns;
    m->load_ns = r->load_ns;
    return gn_migration_input(m, GN_TX_ON_GOES_ON, NULL) == 0;
}

/* The program also reports the failures of the destination. */
static bool stays(struct gn_migration *m, const struct gn_link_error *e)
{
    struct gn_error err;
    gn_fail(&err, EREMOTEIO, e->fix[0] ? e->fix : NULL, "%s", e->what);
    if (!m->in.error) { /* the first reason counts */
        m->in.error = -EREMOTEIO;
        gn_frame_string_set(m->in.what, sizeof m->in.what, e->what);
        gn_frame_string_set(m->in.fix, sizeof m->in.fix, e->fix);
    }
    return gn_migration_input(m, GN_TX_ON_LOAD_FAILED, &err) == 0;
}

bool gn_outbound_frame(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_vgpu_record *v = c->vgpu;
    struct gn_migration *m = v ? gn_migration_of(v) : NULL;
    const bool near = f->op == GN_LINK_COMES_NEAR;
    struct gn_link_error e;
    struct gn_link_ready r;
    if (m && (m->tx.kind != GN_TX_OUTBOUND || m->number != f->seq))
        m = NULL; /* it is over already; the program does not know yet */
    switch (f->op) {
    case GN_LINK_COMES:
    case GN_LINK_COMES_NEAR:
        if (f->n_payload || !v || (near && !v->session_ops->may_become_shm))
            return false;
        if (m && near)
            m->how.route = GN_ROUTE_TCP_TO_SHM;
        return !m || gn_migration_input(m, GN_TX_ON_UP, NULL) == 0;
    case GN_LINK_STAY:
        return gn_frame_payload(f, &e, sizeof e) && gn_frame_string_ok(e.what, sizeof e.what) &&
               gn_frame_string_ok(e.fix, sizeof e.fix) && (!m || stays(m, &e));
    default:
        return m && gn_frame_payload(f, &r, sizeof r) && goes_on(m, &r);
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
                                     .need_bytes = gn_memory_used(v),
                                     .limit_bytes = v->lease.limit_bytes};
    v->session_ops->describe(v, ret);
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
