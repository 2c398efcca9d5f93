/* SPDX-License-Identifier: Apache-2.0 */
/* A host is a driver's template process, from which its workers are forked. */
#include "daemon/hosts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/spawn.h"

/* Requests that a template has not read yet: it forks in milliseconds, so this many waiting is a template
 * that hangs. */
#define MAX_QUEUED_BYTES (1u << 20)
#define END_MS           5000 /* for one that was killed */

static void stop(struct gn_host *h)
{
    if (h->socket.fd < 0)
        return;
    gn_loop_close(&h->daemon->loop, &h->socket);
    gn_frame_reader_fini(&h->reader);
    gn_frame_writer_fini(&h->writer);
    kill(h->pid, SIGKILL); /* reaped after its SIGCHLD; its workers are told by the kernel */
}

static void lost(struct gn_host *h, const char *why)
{
    if (!h->daemon->stopping)
        gn_log(GN_LOG_ERROR, "the template of %s %s; its workers end with it", h->daemon->machine.drivers[h->driver].library, why);
    stop(h);
    gn_list_for_each(v, &h->daemon->vgpus, struct gn_vgpu_record, link) if (v->host == h) gn_vgpus_host_lost(v);
}

/* False when the template said what it cannot say. */
static bool take(struct gn_host *h, const struct gn_frame *f)
{
    struct gn_worker_spawned s;
    struct gn_worker_ended e;
    struct gn_link_error refusal;
    struct gn_vgpu_record *v = gn_vgpus_find(h->daemon, f->seq);
    if (f->op == GN_WORKER_ENDED && gn_frame_payload(f, &e, sizeof e)) {
        gn_list_for_each(w, &h->daemon->vgpus, struct gn_vgpu_record, link) if (w->host == h && !w->reaped && w->inner_pid == (pid_t)e.pid)
        {
            gn_vgpus_ended(w, e.status);
            break;
        }
        return true;
    }
    if (!v || v->host != h || !v->spawning)
        return false;
    if (f->op == GN_WORKER_SPAWNED && gn_frame_payload(f, &s, sizeof s) && f->n_fds == 1) {
        gn_vgpus_spawned(v, (pid_t)s.pid, gn_frame_take_fd(&h->reader, 0));
        return true;
    }
    if (f->op == GN_LINK_ERROR && gn_frame_payload(f, &refusal, sizeof refusal) && gn_frame_string_ok(refusal.what, sizeof refusal.what)) {
        struct gn_error err;
        gn_fail(&err, EAGAIN, NULL, "%s", refusal.what);
        gn_vgpus_spawn_failed(v, &err);
        return true;
    }
    return false;
}

static void ready(struct gn_source *s, uint32_t events)
{
    struct gn_host *h = gn_container_of(s, struct gn_host, socket);
    struct gn_frame f;
    int rc = 0;
    if (events & EPOLLOUT)
        rc = gn_frame_flush(&h->writer);
    while (rc >= 0 && (rc = gn_frame_read(&h->reader, &f)) == 1) {
        if (!take(h, &f)) {
            lost(h, "broke its protocol");
            return;
        }
        if (h->socket.fd < 0)
            return;
    }
    if (rc < 0) {
        lost(h, "ended");
        return;
    }
    gn_loop_change(&h->daemon->loop, s, EPOLLIN | (gn_frame_writer_pending(&h->writer) ? EPOLLOUT : 0));
}

static int start(struct gn_host *h, struct gn_error *err)
{
    const struct gn_machine *m = &h->daemon->machine;
    const struct gn_probe_driver *d = &m->drivers[h->driver];
    char walls[2] = {(char)('0' + h->daemon->walls.mode), 0};
    char *const argv[] = {
        (char[]){"gantry-worker"}, (char[]){"--template"}, (char *)(uintptr_t)d->api, (char *)(uintptr_t)d->library, walls, NULL};
    /* One that was killed and is not reaped yet is not waited for: gn_hosts_reap takes whatever has ended. */
    int rc = gn_worker_spawn(m->worker, argv, h->daemon->walls.mode, &h->socket.fd, &h->pid, err);
    if (rc)
        return rc;
    gn_frame_reader_init(&h->reader, h->socket.fd);
    gn_frame_writer_init(&h->writer, h->socket.fd, MAX_QUEUED_BYTES); /* of what waits there each vGPU has a copy: it may be closed */
    rc = gn_loop_add(&h->daemon->loop, &h->socket, EPOLLIN, ready);
    if (rc) {
        stop(h);
        return gn_fail(err, -rc, NULL, "cannot watch a template: %s", strerror(-rc));
    }
    return 0;
}

int gn_host_spawn(struct gn_host *h, uint32_t vgpu_id, int control_fd, struct gn_error *err)
{
    int rc;
    if (h->socket.fd < 0 && (rc = start(h, err)))
        return rc;
    rc = gn_frame_push(&h->writer, GN_WORKER_SPAWN, 0, vgpu_id, NULL, 0, &control_fd, 1);
    if (rc)
        return gn_fail(err, -rc, NULL, "cannot ask for a worker: %s", strerror(-rc));
    if (gn_frame_writer_pending(&h->writer))
        gn_loop_change(&h->daemon->loop, &h->socket, EPOLLIN | EPOLLOUT);
    return 0;
}

int gn_hosts_init(struct gn_daemon *d)
{
    d->hosts = calloc(d->machine.n_drivers, sizeof *d->hosts);
    if (!d->hosts)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
        d->hosts[i].daemon = d;
        d->hosts[i].driver = i;
        d->hosts[i].socket.fd = -1;
    }
    /* Started now, so that the first program does not wait for the loading of a library. */
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        struct gn_host *h = &d->hosts[d->machine.platforms[i].driver];
        struct gn_error err;
        if (h->socket.fd < 0 && start(h, &err))
            gn_log(GN_LOG_WARN, "%s, trying again at the first attach", err.what);
    }
    return 0;
}

void gn_hosts_reap(struct gn_daemon *d)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
            struct gn_host *h = &d->hosts[i];
            if (h->pid != pid)
                continue;
            h->pid = 0;
            if (h->socket.fd >= 0)
                lost(h, "ended");
        }
    }
}

/* One that hangs in its driver, where not even SIGKILL reaches it, is left to the system. */
static void wait_for(pid_t pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (end.fd >= 0) {
        (void)poll(&end, 1, END_MS);
        close(end.fd);
    }
    (void)waitpid(pid, NULL, WNOHANG);
}

void gn_hosts_fini(struct gn_daemon *d)
{
    for (uint32_t i = 0; d->hosts && i < d->machine.n_drivers; i++) {
        stop(&d->hosts[i]);
        if (d->hosts[i].pid)
            wait_for(d->hosts[i].pid);
    }
    free(d->hosts);
    d->hosts = NULL;
}
