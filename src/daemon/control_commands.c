/* SPDX-License-Identifier: Apache-2.0 */
/* The commands among the control requests (control/control.h): they change gantryd, a tenant or a
 * vGPU. connections.c calls gn_daemon_answer() for every control request, on gantryd's thread;
 * commands that take time answer later. A command checks the rights of its connection first. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/control.h"
#include "daemon/tenants/admission.h"
#include "daemon/migrate/checkpoint.h"
#include "daemon/migrate/inbound.h"
#include "daemon/migrate/outbound.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/net/transport.h"
#include "daemon/schedule/placement.h"
#include "daemon/tenants/tenant_change.h"
#include "daemon/control_viewer.h"
#include "daemon/control_commands.h"
#include "daemon/migrate/migration.h"
#include "daemon/vgpu/lifecycle.h"

/* ---- rights: an operator may do everything, an owner only the operations in the tenant's rules */

/* Whether the peer may use this kind of command on any vGPU: operators, and peers in a tenant that
 * gives its owners the right. */
static int judge_right(const struct gn_viewer *w, uint32_t right, struct gn_error *err)
{
    const struct gn_tenant *t = w->c->tenant;
    return w->c->role == GN_ROLE_CONTROL || (t && (t->rules.owner & right))
               ? 0
               : gn_control_refuse_role(err);
}

static int judge_owner(const struct gn_viewer *w, const struct gn_vgpu_record *v,
                       struct gn_error *err)
{
    return w->c->role == GN_ROLE_CONTROL || gn_owner_is(&v->owner, w->c, v->tenant)
               ? 0
               : gn_fail(err, EPERM, "gantry ls lists those of this tenant",
                         "only the owner of vGPU %08x and operators may do that", v->id);
}

/* Finds the vGPU of a command and checks that the peer may use the command on it. */
static int find_for(const struct gn_viewer *w, uint32_t right, const char *text,
                    struct gn_vgpu_record **ret, struct gn_error *err)
{
    int rc = judge_right(w, right, err);
    if (rc == 0)
        rc = gn_viewer_find_vgpu(w, text, ret, err);
    return rc ? rc : judge_owner(w, *ret, err);
}

/* ---- changes by operators are logged with the user that made them */

static void log_change(const struct gn_viewer *w, const char *what, const char *quoted)
{
    char user[GN_CONN_USER_BYTES];
    gn_log(GN_LOG_WARN, "%s%s%s, by %s", what, quoted ? " " : "", quoted ? quoted : "",
           gn_conn_name_user(w->c, user));
}

static int set_policy(void *ctx, const char *name, struct gn_error *err)
{
    const struct gn_viewer *w = ctx;
    const struct gn_sched_policy *policy;
    int rc = gn_policy_parse(name, &policy, err);
    if (!rc && !policy && gn_placement_is_on(w->d->scheduler))
        rc = gn_fail(err, EBUSY, "choose a policy, or start gantryd without --oversubscribe",
                     "vGPUs take turns while they have more memory than the devices");
    if (rc)
        return rc;
    const bool same = policy ? w->d->takes_turns && policy == gn_scheduler_policy(w->d->scheduler)
                             : !w->d->takes_turns;
    /* A vGPU that started without scheduling continues without: its worker waits for no grants. */
    w->d->takes_turns = policy != NULL;
    if (policy)
        gn_scheduler_set_policy(w->d->scheduler, policy);
    if (!same)
        log_change(w, "the policy is", name);
    gn_tracing_note(w->d, GN_TRACE_POLICY, 0, name);
    return 0;
}

static int set_place(void *ctx, const char *name, struct gn_error *err)
{
    const struct gn_viewer *w = ctx;
    const struct gn_place_policy *policy, *before = gn_placement_policy(w->d->scheduler);
    int rc = gn_place_policy_parse(name, &policy, err);
    if (rc)
        return rc;
    if (!before)
        return gn_fail(err, ENOTSUP, "start gantryd with --oversubscribe",
                       "no device's memory is placed");
    gn_placement_set_policy(w->d->scheduler, policy);
    if (policy != before)
        log_change(w, "the placement policy is", name);
    return 0;
}

static int trace(void *ctx, enum gn_control_tracing what, const char *vgpu,
                 struct gn_control_trace *ret,
                 void (*each)(void *arg, const struct gn_trace_event *), void *arg,
                 struct gn_error *err)
{
    const struct gn_viewer *w = ctx;
    return gn_tracing_do(w->d, w->c, what, vgpu, ret, each, arg, err);
}

static int drain(void *ctx, bool on, struct gn_control_drain *ret, struct gn_error *err)
{
    const struct gn_viewer *w = ctx;
    struct gn_daemon *d = w->d;
    (void)err;
    if (d->draining != on)
        log_change(w,
                   on ? "no new programs are accepted: this gantryd is draining"
                      : "new programs are accepted again",
                   NULL);
    d->draining = on;
    if (on)
        gn_inbound_refuse_all(d);
    *ret = (struct gn_control_drain){.draining = on};
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link) ret->n_coming +=
        v->conn && v->state == GN_RECORD_PENDING && !v->ending;
    return 0;
}

static int migrate(void *ctx, const struct gn_control_wish *wish, struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    struct gn_vgpu_record *v;
    const bool away = strncmp(wish->to, "unix:", 5) == 0 || strncmp(wish->to, "tcp:", 4) == 0;
    enum gn_migrate_to to = 0;
    while (to < GN_MIGRATE_TO_N && strcmp(wish->to, gn_migrate_names[to]) != 0)
        to++;
    int rc = find_for(w,
                      away                        ? 0
                      : to == GN_MIGRATE_TO_LOCAL ? GN_RIGHT_MIGRATE
                                                  : GN_RIGHT_MODE,
                      wish->vgpu, &v, err);
    if (rc)
        return rc;
    if (away)
        return gn_migrate_outbound(w->c, v, wish, err);
    if (to == GN_MIGRATE_TO_N)
        return gn_fail(err, EOPNOTSUPP,
                       "write local, or unix:PATH or tcp:HOST:PORT of another gantryd",
                       "this gantryd moves no vGPU to \"%.100s\"", wish->to);
    return gn_migrate_local(w->c, v, to, wish, err);
}

static int kill_vgpu(void *ctx, const char *vgpu, const char *reason, uint32_t *ret_id,
                     struct gn_error *err)
{
    const struct gn_viewer *w = ctx;
    struct gn_vgpu_record *v;
    char why[128], line[512];
    int rc = find_for(w, GN_RIGHT_KILL, vgpu, &v, err);
    if (rc == 0)
        rc = gn_vgpus_end(v, err);
    if (rc)
        return rc;
    gn_frame_string_set(why, sizeof why, reason);
    const bool by_operator = w->c->role == GN_ROLE_CONTROL;
    snprintf(line, sizeof line, "vgpu=%08x: \"%s\" (%d) of the tenant \"%s\" is ended by %s%s%s",
             v->id, v->program, (int)v->program_pid, v->tenant->rules.name,
             by_operator ? "an operator" : "its owner", why[0] ? ": " : "", why);
    if (by_operator)
        gn_log(GN_LOG_WARN, "%s", line);
    else
        gn_quota_log(w->c->quota, GN_LOG_WARN, "%s", line);
    *ret_id = v->id;
    return 0;
}

static int receive(void *ctx, const struct gn_control_about *what, struct gn_control_receipt *ret,
                   struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    return w->c->role == GN_ROLE_CONTROL || w->c->transport->may_announce(w->c, what->tenant)
               ? gn_inbound_announce(w->c, what, ret, err)
               : gn_control_refuse_role(err);
}

static int checkpoint(void *ctx, const struct gn_control_wish *wish, struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    struct gn_vgpu_record *v;
    int rc = find_for(w, GN_RIGHT_CHECKPOINT, wish->vgpu, &v, err);
    if (rc)
        return rc;
    return gn_checkpoint_start(w->c, v, wish->stop, wish->drain_timeout_ms, err);
}

static int keep_checkpoint(void *ctx, struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    return gn_checkpoint_confirm(w->c, err);
}

static int restore(void *ctx, const struct gn_control_restore *wish, bool *ret_absent,
                   struct gn_error *err)
{
    struct gn_viewer *w = ctx;
    int rc = judge_right(w, GN_RIGHT_RESTORE, err);
    if (rc)
        return rc;
    const struct gn_vgpu_record *v = gn_restore_awaits(w->d, wish, err);
    if (v && (rc = judge_owner(w, v, err)))
        return rc;
    if (!v && w->c->role != GN_ROLE_CONTROL) {
        /* The answer tells no more than that, so that nobody finds out about vGPUs of others. */
        *ret_absent = true;
        return gn_fail(
            err, ESRCH,
            "restore it at the gantryd where its program waits, or start the program anew",
            "no program waits for vGPU %08x: it has ended, or waits at another gantryd", wish->id);
    }
    return gn_restore_start(w->c, wish, ret_absent, err);
}

static int change_tenant(void *ctx, const struct gn_control_change *change, struct gn_error *err)
{
    static const char *const what[] = {[GN_CONTROL_ADD] = "added the tenant",
                                       [GN_CONTROL_SET] = "changed the tenant",
                                       [GN_CONTROL_REMOVE] = "removed the tenant"};
    struct gn_viewer *w = ctx;
    int rc = gn_tenant_change(w->d, change, &w->wait_for, err);
    if (rc == 0)
        log_change(w, what[change->what], change->name);
    return rc;
}

static const struct gn_control_commands commands = {.set_policy = set_policy,
                                                    .set_place = set_place,
                                                    .trace = trace,
                                                    .change = change_tenant,
                                                    .drain = drain,
                                                    .migrate = migrate,
                                                    .kill = kill_vgpu,
                                                    .receive = receive,
                                                    .checkpoint = checkpoint,
                                                    .keep = keep_checkpoint,
                                                    .restore = restore};

char *gn_daemon_answer(struct gn_daemon *d, struct gn_conn *c, const char *request, size_t n,
                       struct gn_tenant **ret_wait_for)
{
    struct gn_viewer w = {.d = d, .c = c};
    const struct gn_control_source source = {
        .ctx = &w, .queries = &gn_daemon_queries, .commands = &commands};
    char *reply = gn_control_handle(&source, c->role, request, n);
    *ret_wait_for = w.wait_for;
    return reply;
}
