/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as the process that serves its vGPU: asks it to do so, and watches it. Code in the
 * program enforces its limits, so once a second, while there is such a vGPU, gantryd compares the
 * memory that the program reports with its lease. The scheduler watches grants. gantryd's thread;
 * it never waits.
 */
#include "daemon/vgpu/program_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/worker.h"
#include "shm/counters.h"

#define WATCH_NS UINT64_C(1000000000)

/* Asks the program to serve v, with the worker's end of the control socket: as the answer to its
 * attach, or for the vGPU whose migration v is the destination of. */
static void ask(struct gn_vgpu_record *v, const struct gn_vgpu_record *session)
{
    const struct gn_machine *m = &v->daemon->machine;
    struct gn_link_direct d = {{0}};
    gn_frame_string_set(d.library, sizeof d.library,
                        m->drivers[m->platforms[v->platform].driver].library);
    if (session != v)
        gn_conn_send(session->conn, GN_LINK_HOST, 0, &d, sizeof d, &v->worker_fd, 1);
    else
        gn_conn_send(v->conn, GN_LINK_DIRECT, v->attach_seq, &d, sizeof d, &v->worker_fd, 1);
    gn_quota_close(v->quota, &v->worker_fd);
}

static int start(struct gn_vgpu_record *v, struct gn_error *err)
{
    const struct gn_vgpu_record *session = gn_vgpus_session_of(v);
    const struct gn_conn *c = session->conn;
    v->worker_pid = c->pid;
    const int pidfd = fcntl(c->process.fd, F_DUPFD_CLOEXEC, 0);
    int rc = pidfd < 0 ? -errno : gn_vgpus_watch_process(v, pidfd);
    if (rc < 0) {
        gn_vgpus_close_own(&v->process.fd);
        return gn_fail(err, -rc, NULL, "cannot watch the program: %s", strerror(-rc));
    }
    ask(v, session);
    return 0;
}

static int may_serve(const struct gn_conn *c, struct gn_error *err)
{
    return c->transport->judge_in_process(c, err);
}

/* From now on there is a limit to watch. */
static void attached(struct gn_vgpu_record *v)
{
    gn_vgpus_arm(v->daemon);
}

/* A program that has closed its end has released its vGPU and goes on: its socket's end is heard
 * next. */
static void unreachable(struct gn_vgpu_record *v, int rc)
{
    if (rc != -EPIPE && rc != -ECONNRESET)
        gn_vgpus_kill(v);
}

/* A program that was asked to release its vGPU does not answer; it may be stopped. The end of its
 * sockets tells it. */
static void let_go(struct gn_vgpu_record *v)
{
    gn_quota_log(
        v->quota, GN_LOG_WARN,
        "vgpu=%08x: \"%s\" (%d) has not released its device in time; gantryd goes on without it",
        v->id, v->program, (int)v->program_pid);
    gn_vgpus_gone(v);
}

/* No deadline for the start: the user may suspend or debug the program. No limits that follow the
 * lease: the process also holds other memory. A socket that ends: the program has released its
 * vGPU, or its death is about to be seen. */
const struct gn_serving_process_ops gn_serving_program = {
    .name = "its program",
    .link = "direct",
    .start_failed = "the program could not host its vGPU",
    .mode = GN_MODE_PASSTHROUGH,
    .mode_remedy =
        "use the mode remote, or have gantry tenant set --mode remote --mode passthrough allow it",
    .refusals =
        {
            [GN_SERVING_END] = {"it lives in its program, which would end with it",
                                "end the program, or gantry mode VGPU remote, and try again"},
            [GN_SERVING_CHECKPOINT] =
                {"it lives in its program, which cannot be saved from there yet",
                 "gantry mode VGPU remote, and try again"},
            [GN_SERVING_MOVE_AWAY] =
                {"it lives in its program, which cannot be moved from there yet",
                 "gantry mode VGPU remote, and try again"},
        },
    .may_be_suspended = true,
    .may_refuse_late = true,
    .uses_program_driver = true,
    .may_serve = may_serve,
    .start = start,
    .attached = attached,
    .process = gn_vgpus_program,
    .hung_up = gn_vgpus_gone,
    .unreachable = unreachable,
    .overdue = let_go,
};

/* ---- the watch over leases */

static bool is_watched(const struct gn_vgpu_record *v)
{
    return v->serving == &gn_serving_program && gn_record_is_listed(v) && v->process.fd >= 0 &&
           !v->ending;
}

uint64_t gn_passthrough_deadline(struct gn_daemon *d, uint64_t now_ns)
{
    bool any = false;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link) any |= is_watched(v);
    if (!any)
        d->watch_at_ns = 0;
    else if (!d->watch_at_ns)
        d->watch_at_ns = now_ns + WATCH_NS;
    return d->watch_at_ns;
}

void gn_passthrough_watch(struct gn_daemon *d, uint64_t now_ns)
{
    if (!d->watch_at_ns || d->watch_at_ns > now_ns)
        return;
    d->watch_at_ns = 0;
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        uint64_t used_bytes = 0;
        /* The library takes memory from its lease, which it never believes to be larger than it is
         * here. */
        if (!is_watched(v) ||
            pread(v->counters_fd, &used_bytes, sizeof used_bytes,
                  offsetof(struct gn_counters, memory_bytes)) != sizeof used_bytes ||
            used_bytes <= v->lease.leased_bytes)
            continue;
        gn_quota_log(
            v->quota, GN_LOG_WARN,
            "vgpu=%08x: \"%s\" (%d) uses %llu bytes of device memory and may use %llu, and is "
            "ended",
            v->id, v->program, (int)v->program_pid, (unsigned long long)used_bytes,
            (unsigned long long)v->lease.leased_bytes);
        gn_vgpus_kill(v);
    }
}
