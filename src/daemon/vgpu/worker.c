/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages to a vGPU's worker, and kills it. It calls no code on life cycles, so that life
 * cycles may call its callers. gantryd's thread; it never waits.
 */
#include "daemon/vgpu/worker.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/vgpu/record_session.h"
#include "shm/counters.h"

void gn_vgpus_kill(struct gn_vgpu_record *v)
{
    v->kill_at_ns = 0;
    if (v->process.fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, v->process.fd, SIGKILL, NULL, 0);
}

void gn_vgpus_unreachable(struct gn_vgpu_record *v, int rc)
{
    v->serving->unreachable(v, rc);
}

int gn_vgpus_push(struct gn_vgpu_record *v, uint16_t op, uint32_t seq, const void *payload,
                  size_t n, int fd)
{
    const int rc = gn_frame_push(&v->writer, op, 0, seq, payload, n, &fd, fd >= 0);
    if (!rc && gn_frame_writer_pending(&v->writer))
        gn_loop_change(&v->daemon->loop, &v->control, EPOLLIN | EPOLLOUT);
    return rc;
}

void gn_vgpus_notify_worker(struct gn_vgpu_record *v, uint16_t op, uint32_t seq,
                            const void *payload, size_t n)
{
    const int rc = v->control.fd < 0 ? 0 : gn_vgpus_push(v, op, seq, payload, n, -1);
    if (rc)
        gn_vgpus_unreachable(v, rc);
}

bool gn_vgpus_is_busy(const struct gn_vgpu_record *v)
{
    uint64_t pending = 0;
    /* Read, not mapped: nothing that a worker does to its segment can hurt here. */
    return pread(v->counters_fd, &pending, sizeof pending, offsetof(struct gn_counters, pending)) ==
               sizeof pending &&
           pending;
}

const struct gn_vgpu_record *gn_vgpus_session_of(const struct gn_vgpu_record *v)
{
    struct gn_record_owner *o = v->owned_by;
    const struct gn_vgpu_record *other = o && o->ops->session_of ? o->ops->session_of(o, v) : NULL;
    return other ? other : v;
}

bool gn_vgpus_program(const struct gn_vgpu_record *v, struct gn_awaited_process *ret)
{
    const struct gn_conn *c = gn_vgpus_session_of(v)->conn;
    if (!c || c->pid <= 0 || c->process.fd < 0)
        return false;
    *ret =
        (struct gn_awaited_process){.pid = c->pid, .pidfd = c->process.fd, .program = v->program};
    return true;
}
