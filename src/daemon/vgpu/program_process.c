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
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/worker.h"
#include "shm/counters.h"

#define WATCH_NS UINT64_C(1000000000)

void gn_passthrough_ask(struct gn_vgpu_record *v, const struct gn_vgpu_record *from)
{
    const struct gn_machine *m = &v->daemon->machine;
    struct gn_link_direct d = {{0}};
    gn_frame_string_set(d.library, sizeof d.library,
                        m->drivers[m->platforms[v->platform].driver].library);
    if (from)
        gn_conn_send(from->conn, GN_LINK_HOST, 0, &d, sizeof d, &v->worker_fd, 1);
    else
        gn_conn_send(v->conn, GN_LINK_DIRECT, v->attach_seq, &d, sizeof d, &v->worker_fd, 1);
    gn_quota_close(v->quota, &v->worker_fd);
}

int gn_vgpus_watch_program(struct gn_vgpu_record *v, const struct gn_conn *c, struct gn_error *err)
{
    v->worker_pid = c->pid;
    const int pidfd = fcntl(c->process.fd, F_DUPFD_CLOEXEC, 0);
    int rc = pidfd < 0 ? -errno : gn_vgpus_watch_process(v, pidfd);
    if (rc < 0)
        gn_vgpus_close_own(&v->process.fd);
    return rc < 0 ? gn_fail(err, -rc, NULL, "cannot watch the program: %s", strerror(-rc)) : 0;
}

/* A program in passthrough that was asked to release its vGPU does not answer; it may be stopped.
 * The end of its sockets tells it. */
void gn_vgpus_let_go(struct gn_vgpu_record *v)
{
    gn_quota_log(
        v->quota, GN_LOG_WARN,
        "vgpu=%08x: \"%s\" (%d) has not released its device in time; gantryd goes on without it",
        v->id, v->program, (int)v->program_pid);
    gn_vgpus_gone(v);
}

static bool is_watched(const struct gn_vgpu_record *v)
{
    return v->hosted && v->booted && v->process.fd >= 0 && !v->ending;
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
