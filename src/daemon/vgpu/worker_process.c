/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU's worker as a process of its own: the walls that bound it, its start and the limit for
 * that, and its end, as its template reports it. Called by templates, by lifecycle.c and by
 * worker_boot.c, on gantryd's thread; it never waits.
 */
#include "daemon/vgpu/worker_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/transport.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/orphans.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/template.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/worker.h"

/* Names the cache of the worker's kernels. A program that was admitted by its user, as the kernel
 * names it, has that user's cache, in all tenants. A program that was admitted by a token, a
 * certificate or a tenant's socket, which say nothing of users, has its tenant's, by the user that
 * the worker runs as. */
static void acquire_cache(struct gn_vgpu_record *v, const struct gn_conn *program,
                          struct gn_worker_boot_wall *wall)
{
    struct gn_daemon *d = v->daemon;
    const uid_t uid = wall->change_user ? wall->uid : geteuid();
    const gid_t gid = wall->change_user ? wall->gid : getegid();
    char name[GN_LINK_TENANT_BYTES + 16];
    if (program && program->transport->is_admitted_by_user(program))
        snprintf(name, sizeof name, "@%u", (unsigned)program->uid);
    else
        snprintf(name, sizeof name, "%s@%u", v->tenant->rules.name, (unsigned)uid);
    gn_cache_release(d, v->cache);
    bool layered;
    v->cache = gn_cache_acquire(d, name, uid, gid, &layered, wall->cache, sizeof wall->cache);
    wall->layered = layered;
}

/* Where the device's memory is the host's, a copy of evicted memory may stay beside it. */
static uint64_t host_bytes(const struct gn_vgpu_record *v)
{
    uint64_t bytes = v->lease.leased_bytes;
    return gn_placed_memory_evicts(v) && !gn_mul_u64(bytes, 2, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t bound_together(const struct gn_vgpu_record *v)
{
    const bool has_area = gn_vgpus_session_of(v)->session_ops->worker_has_area;
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    return gn_walls_bound_together(&v->daemon->walls, p, has_area, gn_holder_limit(&v->lease),
                                   host_bytes(v));
}

static void name_group(struct gn_vgpu_record *v, struct gn_worker_boot_wall *wall)
{
    struct gn_memory_groups *g = &v->daemon->walls.memory_groups;
    gn_memory_group_remove(g, &v->group);
    v->group = gn_memory_group_name(g, bound_together(v), wall->group, sizeof wall->group);
    wall->group_bytes = v->group.most_bytes;
}

static void confine(struct gn_vgpu_record *v, const struct gn_conn *program,
                    struct gn_worker_boot_wall *wall)
{
    acquire_cache(v, program, wall);
    name_group(v, wall);
}

static void follow_lease(struct gn_vgpu_record *v)
{
    struct gn_daemon *d = v->daemon;
    const struct gn_platform_record *p = &d->machine.platforms[v->platform];
    gn_walls_follow_lease(&d->walls, p, v->process.fd, v->worker_pid, host_bytes(v));
    gn_memory_group_raise(&d->walls.memory_groups, &v->group, bound_together(v));
}

static bool process(const struct gn_vgpu_record *v, struct gn_awaited_process *ret)
{
    if (v->worker_pid <= 0 || v->process.fd < 0)
        return false;
    *ret = (struct gn_awaited_process){.pid = v->worker_pid, .pidfd = v->process.fd};
    return true;
}

/* ---- the start */

static uint64_t start_deadline(const struct gn_vgpu_record *v)
{
    if (v->spawning || v->driver_up || v->ending || v->process.fd < 0)
        return 0;
    return v->asked_ns + v->daemon->start_limit_ms * UINT64_C(1000000);
}

static void give_up_start(struct gn_vgpu_record *v)
{
    struct gn_error err;
    const unsigned limit_s = v->daemon->start_limit_ms / 1000;
    gn_quota_log(v->quota, GN_LOG_WARN,
                 "vgpu=%08x: its worker %d has not started its driver within %u s, and is killed",
                 v->id, (int)v->worker_pid, limit_s);
    if (v->conn && !v->owned_by) {
        gn_fail(&err, ETIMEDOUT, "try again; an operator may allow more (--start-limit)",
                "the worker has not started the driver within %u s", limit_s);
        gn_vgpus_refuse(v, ETIMEDOUT, &err);
    }
    gn_vgpus_kill(v); /* an owner of the record hears of the worker's end */
}

/* The template may live in a process namespace of its own, with other process numbers. */
static pid_t pid_here(int pidfd, pid_t there)
{
    char path[32], line[128];
    int pid = there;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Pid: %d", &pid) == 1)
            break;
    if (f)
        fclose(f);
    return pid;
}

void gn_vgpus_spawned(struct gn_vgpu_record *v, pid_t pid, int pidfd)
{
    v->spawning = false;
    v->reaped = false;
    v->asked_ns = gn_now_ns();
    gn_quota_close(v->quota, &v->worker_fd);
    v->inner_pid = pid;
    v->worker_pid = pid_here(pidfd, pid);
    if (gn_vgpus_watch_process(v, pidfd) < 0) {
        gn_vgpus_kill(v);
        gn_vgpus_close_own(&v->process.fd);
        if (v->conn) {
            struct gn_error err;
            gn_vgpus_refuse(v, ENOMEM,
                            (gn_fail(&err, ENOMEM, NULL, "cannot watch a worker"), &err));
            return;
        }
        gn_vgpus_leave(v); /* an owner may wait for this worker */
        return;
    }
    /* The grace ran out, or the worker closed its socket, before its pidfd was known. */
    if ((v->ending && v->kill_at_ns == 0) || v->control.fd < 0) {
        gn_vgpus_kill(v);
    } else {
        gn_vgpus_arm_by(v->daemon, start_deadline(v));
        gn_vgpus_tell_program(v);
    }
}

/* ---- the end */

/* Whether the program has caused this end: gantryd kills no worker with these signals, and a worker
 * that is told to end exits with 0. */
static bool is_breach(int status, int ended_by)
{
    switch (ended_by) {
    case 0:
        return WEXITSTATUS(status) != 0;
    case SIGSYS:
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
        return true;
    default:
        return false;
    }
}

static const char *why_ended(const struct gn_vgpu_record *v, int signal)
{
    if (signal == SIGSYS)
        return ", for a system call that no driver makes";
    if (signal == SIGKILL && gn_memory_group_overflowed(&v->daemon->walls.memory_groups, &v->group))
        return ", because its memory cgroups or the machine had no memory left";
    return "";
}

void gn_vgpus_ended(struct gn_vgpu_record *v, int status)
{
    /* The first process of a namespace says so by its exit status (src/wall/processes.c). */
    const int ended_by = WIFSIGNALED(status)         ? WTERMSIG(status)
                         : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                                     : 0;
    v->reaped = true;
    if (gn_record_is_listed(v) && is_breach(status, ended_by))
        gn_vgpus_note_fault(v);
    gn_worker_log_drain(&v->log); /* the worker's last lines before gantryd's line on its end */
    char lost[GN_LINK_NAME_BYTES + 64] = "";
    /* A program that has left loses nothing; nor does a program with a vGPU that is saved for
     * another worker.
     */
    if (!v->ending && (v->conn || gn_record_is_listed(v)) && !gn_vgpus_saved(v))
        snprintf(lost, sizeof lost, "; \"%s\" (%d) has lost its device", v->program,
                 (int)v->program_pid);
    /* A program that notices the loss may hang up before the template says how the worker ended. */
    const bool killed_here = v->ending && !v->kill_at_ns;
    if (ended_by && !killed_here)
        gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: its worker %d was ended by signal %d%s%s",
                     v->id, (int)v->worker_pid, ended_by, why_ended(v, ended_by), lost);
    else if (!v->ending && WEXITSTATUS(status))
        gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: its worker %d ended with status %d%s",
                     v->id, (int)v->worker_pid, WEXITSTATUS(status), lost);
    gn_vgpus_free_if_over(v);
}

void gn_vgpus_template_lost(struct gn_vgpu_record *v)
{
    struct gn_error err;
    v->reaped = true;
    if (v->spawning)
        gn_vgpus_spawn_failed(v, (gn_fail(&err, EPIPE, "see gantryd's log about the driver",
                                          "the driver's template process ended"),
                                  &err));
    else
        gn_vgpus_free_if_over(v);
}

void gn_vgpus_spawn_failed(struct gn_vgpu_record *v, const struct gn_error *err)
{
    v->spawning = false;
    v->reaped = true;
    gn_vgpus_refuse(v, EAGAIN, err);
}

/* It is ending, dead or unreachable, and must not go on. */
static void unreachable(struct gn_vgpu_record *v, int rc)
{
    (void)rc;
    gn_vgpus_kill(v);
}

static void ended(struct gn_vgpu_record *v)
{
    gn_templates_worker_ended(v);
    gn_orphans_kill(v->daemon);
}

const struct gn_serving_process_ops gn_serving_worker = {
    .name = "worker",
    .start_failed = "the worker died while it started the driver",
    .mode = GN_MODE_REMOTE,
    .confine = confine,
    .start = gn_template_spawn,
    .start_deadline = start_deadline,
    .start_expired = give_up_start,
    .process = process,
    .follow_lease = follow_lease,
    .hung_up = gn_vgpus_cut_off,
    .unreachable = unreachable,
    .overdue = gn_vgpus_kill,
    .ended = ended,
};
