/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATTACH frames: a program asks for a vGPU. Called by connections.c for each frame, on gantryd's
 * thread. Checks the frame and the tenant's rules, then starts the worker (create.c), which answers
 * the program later. An attach waits here when programs of the same user have recently caused too
 * many faults in this tenant (fault_throttle.h). Nothing here blocks: waiting attaches are in a
 * list with a timer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/tenants/admission.h"
#include "daemon/daemon.h"
#include "daemon/net/attach.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/create.h"

#define LOG_EVERY_NS UINT64_C(10000000000)

struct gn_late_attach {
    struct gn_list link;
    struct gn_conn *conn;
    struct gn_fault_user *user;
    uint32_t seq;
    struct gn_link_attach wish;
    int stdio[2]; /* stdout and stderr of the program; -1: none */
};

static void close_both(struct gn_quota *q, int *stdio)
{
    for (int i = 0; i < 2; i++)
        gn_quota_close(q, &stdio[i]);
}

/* The caller still owns the descriptors in stdio. */
static void start_vgpu(struct gn_conn *c, uint32_t seq, const struct gn_link_attach *a,
                       const int *stdio)
{
    struct gn_error err;
    int rc = 0;
    struct gn_tenant *tenant = NULL;
    if (c->vgpu)
        rc = gn_fail(&err, EBUSY, NULL, "this connection has a vGPU already");
    else if (c->control_only)
        rc = gn_fail(&err, EINVAL, NULL, "this connection is for control requests only");
    else if (c->claims)
        rc = gn_fail(&err, EINVAL, NULL,
                     "this connection is for a vGPU that comes from another gantryd");
    else if (!c->tenant && !a->tenant[0])
        rc = gn_fail(&err, EACCES, NULL, "the tenant of this connection was removed");
    else if ((rc = gn_admit_anybody(c->daemon, &err)))
        gn_admit_refused(c, false, &err);
    else /* The rules may have changed since the greeting, so the tenant is checked again. */
        tenant = gn_admit(c, a->tenant[0] ? a->tenant : c->tenant->rules.name, &rc, &err);
    if (tenant && a->mode == GN_LINK_MODE_PASSTHROUGH)
        c->transport->watch_program(c);
    if (tenant)
        rc = gn_vgpus_start(c, tenant, seq, a, stdio, &err);
    if (rc)
        gn_conn_refuse(c, seq, rc, &err);
    else
        c->transport->watch_program(c);
}

/* ---- attaches that wait */

static uint64_t start_time(const struct gn_daemon *d, const struct gn_late_attach *l, uint64_t now)
{
    return gn_fault_throttle_next_start(l->user, d->breach_pause_ns, now);
}

static void arm_timer(struct gn_daemon *d, uint64_t now)
{
    uint64_t next = 0;
    gn_list_for_each(l, &d->late_attaches, struct gn_late_attach, link)
    {
        const uint64_t at = start_time(d, l, now);
        if (!next || at < next)
            next = at;
    }
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(next / 1000000000u),
                                                 .tv_nsec = (long)(next % 1000000000u)}};
    (void)timerfd_settime(d->attach_timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void drop_attach(struct gn_late_attach *l)
{
    l->conn->late = NULL;
    l->user->n_waiting--;
    gn_list_remove(&l->link);
    close_both(l->conn->quota, l->stdio);
    free(l);
}

void gn_attach_forget(struct gn_conn *c)
{
    if (c->late)
        drop_attach(c->late);
}

static struct gn_late_attach *find_due(struct gn_daemon *d, uint64_t now)
{
    gn_list_for_each(l, &d->late_attaches, struct gn_late_attach, link)
    {
        if (start_time(d, l, now) <= now)
            return l;
    }
    return NULL;
}

void gn_attaches_timer(struct gn_source *timer, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(timer, struct gn_daemon, attach_timer);
    const uint64_t now = gn_now_ns();
    uint64_t expirations;
    struct gn_late_attach *l;
    (void)events;
    (void)!read(timer->fd, &expirations, sizeof expirations);
    /* The search starts over each time: a start may close any connection, which also frees its
     * waiting attach. */
    while ((l = find_due(d, now))) {
        struct gn_late_attach it = *l;
        l->stdio[0] = l->stdio[1] = -1;
        gn_fault_throttle_start(l->user, now);
        drop_attach(l);
        start_vgpu(it.conn, it.seq, &it.wish, it.stdio);
        close_both(it.conn->quota,
                   /* start_vgpu() may have closed the connection; its memory stays valid until the
                    * end of this loop iteration. */
                   it.stdio);
    }
    arm_timer(d, now);
}

/* The tenant in which faults are counted. Looked up by name without a permission check:
 * start_vgpu() refuses a user without access at once. */
static struct gn_tenant *tenant_of(const struct gn_conn *c, const struct gn_link_attach *a)
{
    return a->tenant[0] ? gn_tenants_find(&c->daemon->tenants, a->tenant) : c->tenant;
}

/* Returns false when the attach need not wait, or when there is no memory to let it wait. */
static bool delay_attach(struct gn_conn *c, uint32_t seq, const struct gn_link_attach *a,
                         const int *stdio)
{
    struct gn_daemon *d = c->daemon;
    struct gn_tenant *t = tenant_of(c, a);
    const uint64_t now = gn_now_ns();
    char name[GN_CONN_USER_BYTES];
    if (!t || c->vgpu || c->control_only || c->claims)
        return false;
    struct gn_fault_user *user =
        gn_fault_throttle_find(&d->breaches, t->rules.name, c->quota->source, now);
    if (!user)
        return false;
    /* An attach also waits behind earlier waiting attaches of the same user. */
    const bool waits =
        user->n_waiting || gn_fault_throttle_next_start(user, d->breach_pause_ns, now) > now;
    struct gn_late_attach *l = waits ? malloc(sizeof *l) : NULL;
    if (!l) {
        gn_fault_throttle_start(user, now);
        return false;
    }
    *l = (struct gn_late_attach){
        .conn = c, .user = user, .seq = seq, .wish = *a, .stdio = {stdio[0], stdio[1]}};
    c->late = l;
    user->n_waiting++;
    gn_list_append(&d->late_attaches, &l->link);
    if (now - t->late_told_ns >= LOG_EVERY_NS) {
        t->late_told_ns = now;
        gn_log(GN_LOG_WARN,
               "the programs of %s caused many faults in the tenant \"%s\": they may start one "
               "vGPU every %u ms until the faults stop",
               gn_conn_name_user(c, name), t->rules.name,
               (unsigned)(d->breach_pause_ns / 1000000u));
    }
    arm_timer(d, now);
    return true;
}

bool gn_attach_frame(struct gn_conn *c, const struct gn_frame *f)
{
    struct gn_link_attach a;
    int stdio[2] = {-1, -1};
    if (c->late || !gn_frame_payload(f, &a, sizeof a) || a.mode > GN_LINK_MODE_PASSTHROUGH ||
        (a.stdio & ~c->transport->output_flags) || f->n_fds != __builtin_popcount(a.stdio) ||
        !gn_frame_string_ok(a.tenant, sizeof a.tenant))
        return false;
    int next = 0;
    if (a.stdio & GN_LINK_HAS_STDOUT)
        stdio[0] = gn_frame_take_fd(&c->reader, next++);
    if (a.stdio & GN_LINK_HAS_STDERR)
        stdio[1] = gn_frame_take_fd(&c->reader, next++);
    if (delay_attach(c, f->seq, &a, stdio))
        return true;
    start_vgpu(c, f->seq, &a, stdio);
    close_both(c->quota, stdio);
    return true;
}
