/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU from its worker to a new one of this gantryd; docs/moves.md. gantryd starts the
 * destination and has the source save into a socket between the two, first while the program runs.
 * gantryd decides: when the source has written everything and stands still, and the destination has
 * loaded everything, the destination may go on, and the source ends. Until then the source goes on
 * whenever anything fails. Called by control commands, on gantryd's thread; it never waits.
 */
#include "daemon/migrate/migration.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "control/control.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/tenants/memory.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/worker.h"

const char *const gn_migrate_names[GN_MIGRATE_TO_N] = {[GN_MIGRATE_TO_LOCAL] = "local",
                                                       [GN_MIGRATE_TO_REMOTE] = "remote",
                                                       [GN_MIGRATE_TO_PASSTHROUGH] = "passthrough"};

/* By the clocks of two processes, which may say anything. */
static uint64_t since(uint64_t before_ns, uint64_t ns)
{
    return ns > before_ns ? ns - before_ns : 0;
}

char *gn_migration_figures(const struct gn_migration *m, const char *to)
{
    const uint64_t now_ns = gn_now_ns();
    const uint64_t last_ns = m->in.done_ns > m->out.done_ns ? m->in.done_ns : m->out.done_ns;
    return gn_control_move_reply(
        &(struct gn_control_move){.id = m->from->id,
                                  .to = to,
                                  .downtime_ns = now_ns - m->out.began_ns,
                                  .precopy_ns = m->out.ahead_ns,
                                  .hold_ns = m->out.hold_ns,
                                  .boot_ns = m->boot_ns,
                                  .drain_ns = m->out.quiet_ns - m->out.began_ns,
                                  .save_ns = m->out.done_ns - m->out.quiet_ns,
                                  .load_ns = m->load_ns,
                                  .stand_ns = since(m->out.began_ns, m->out.stood_ns),
                                  .driver_ns = since(m->out.stood_ns, m->out.drained_ns),
                                  .ends_ns = since(m->out.drained_ns, m->out.quiet_ns),
                                  .tables_ns = since(m->out.quiet_ns, m->out.reported_ns),
                                  .contents_ns = since(m->out.reported_ns, m->out.done_ns),
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

static char *reply(const struct gn_migration *m)
{
    return gn_migration_figures(m, gn_migrate_names[m->where]);
}

static void commit(struct gn_migration *m)
{
    struct gn_vgpu_record *v = m->from;
    struct gn_error err;
    GN_FAULT("daemon-before-commit");
    if (gn_migration_exchange(m, &err)) {
        (void)gn_migration_input(m, GN_TX_ON_FAILED, &err);
        return;
    }
    GN_FAULT("daemon-program-told");
    gn_vgpus_notify_worker(v, GN_WORKER_GO, 0, NULL, 0);
    GN_FAULT("daemon-committed");
    v->driver_stays |= m->out.driver_stays != 0; /* as long as the program lives */
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: moved to %s %d, stopped for %llu us", v->id,
                 v->serving->name, (int)v->worker_pid,
                 (unsigned long long)(gn_now_ns() - m->out.began_ns) / 1000);
    (void)gn_migration_input(m, GN_TX_ON_DONE, NULL);
}

static const struct gn_migration_action actions[] = {{GN_TX_DO_COMMIT, commit}, {0}};
static const struct gn_migration_ops ops = {.what = "move",
                                            .makes_worker = true,
                                            .failure = "the vGPU was not moved",
                                            .outcome = "the vGPU goes on where it was",
                                            .actions = actions,
                                            .reply = reply};

/* Whether v may be served so, and is not. */
static int judge_mode(const struct gn_vgpu_record *v, enum gn_migrate_to to,
                      const struct gn_serving_process_ops *serving, struct gn_error *err)
{
    const struct gn_tenant_rules *rules = &v->tenant->rules;
    if (to != GN_MIGRATE_TO_LOCAL && v->serving == serving)
        return gn_fail(err, EALREADY, NULL, "its mode is %s already", gn_mode_name(serving->mode));
    if (!((rules->modes ? rules->modes : GN_MODE_REMOTE) & serving->mode))
        return gn_fail(
            err, EACCES, "gantry tenant set --mode remote --mode passthrough allows both",
            "the tenant \"%s\" may not use the mode %s", rules->name, gn_mode_name(serving->mode));
    return to == GN_MIGRATE_TO_PASSTHROUGH ? v->session_ops->judge_in_process(v, err) : 0;
}

int gn_migrate_local(struct gn_conn *c, struct gn_vgpu_record *v, enum gn_migrate_to to,
                     const struct gn_control_wish *wish, struct gn_error *err)
{
    const bool into = to == GN_MIGRATE_TO_PASSTHROUGH;
    const struct gn_serving_process_ops *serving =
        gn_serving_in_mode(into ? GN_MODE_PASSTHROUGH : GN_MODE_REMOTE);
    const struct gn_worker_save how = {.drain_timeout_ms = wish->drain_timeout_ms,
                                       .n_ahead = wish->rounds,
                                       .bytes_per_s = wish->bandwidth_bytes,
                                       .route = v->session_ops->route_here};
    int stream[2];
    if (gn_migration_may_begin(v, err))
        return -1;
    /* An answer that cannot be written ends the asker's connection, and with it maybe v. */
    if (c->vgpu)
        return gn_fail(err, EINVAL, "ask on another",
                       "this is a connection by which a program has its vGPU");
    if (judge_mode(v, to, serving, err) ||
        ((v->serving->may_be_suspended || serving->may_be_suspended) &&
         gn_refuse_stopped_program(v, err)))
        return -1;
    if (wish->device && to != GN_MIGRATE_TO_LOCAL)
        return gn_fail(err, EINVAL, "write gantry migrate VGPU local --device NAME",
                       "a device is chosen for moves within a gantryd alone");
    struct gn_migration *m =
        gn_migration_new(into ? GN_TX_IN_PROCESS : GN_TX_LOCAL, &ops, v, c, &how, err);
    if (!m)
        return -ENOMEM;
    int rc = wish->device ? gn_vgpus_choose_device(v, wish->device, m->to, err) : 0;
    if (!rc) {
        gn_memory_lend(v, m->to);
        rc = gn_memory_judge_migration(v, m->to, err);
    }
    if (!rc && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0)
        rc = gn_fail(err, EMFILE, NULL, "out of memory or descriptors");
    if (rc) {
        gn_migration_cancel(m);
        return rc;
    }
    m->stream_fd = stream[0];
    m->where = to;
    m->to->serving = serving;
    rc = gn_migration_boot(m, stream[1], err);
    gn_quota_close(v->quota, &stream[1]);
    return rc;
}
