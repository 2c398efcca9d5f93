/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers' template processes, from which workers are forked (template.h). A template that dies is
 * started again by the next request; one that hangs is set aside. gantryd's thread; it never
 * waits.
 */
#include "daemon/vgpu/template.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/vgpu/spawn.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker_process.h"

/* Requests that a template has not read yet. It forks in milliseconds, so with this many waiting it
 * hangs. */
#define MAX_QUEUED_BYTES (1u << 20)
#define END_MS           5000 /* for a template that was killed */

struct aside {
    struct gn_list link;
    pid_t pid;
    int socket_fd; /* kept open: its end would end the template and the template's workers */
};

static void stop(struct gn_template *h)
{
    if (h->socket.fd < 0)
        return;
    gn_loop_close(&h->daemon->loop, &h->socket);
    gn_frame_reader_fini(&h->reader);
    gn_frame_writer_fini(&h->writer);
    kill(h->pid, SIGKILL); /* reaped after its SIGCHLD; the kernel signals its workers */
}

/* The template that forks its worker now; another one may have forked the worker that it has. */
static struct gn_template *template_of(const struct gn_vgpu_record *v)
{
    const struct gn_daemon *d = v->daemon;
    return &d->hosts[d->machine.platforms[v->platform].driver];
}

static const char *library_of(const struct gn_template *h)
{
    return h->daemon->machine.drivers[h->driver].library;
}

static void forget_workers_of(struct gn_daemon *d, pid_t template)
{
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link) if (v->template_pid == template)
        gn_vgpus_template_lost(v);
}

static void lost(struct gn_template *h, pid_t pid, const char *why)
{
    if (!h->daemon->stopping)
        gn_log(GN_LOG_ERROR, "the template of %s %s; its workers end with it", library_of(h), why);
    stop(h);
    forget_workers_of(h->daemon, pid);
}

/* False: the template broke the protocol. */
static bool take(struct gn_template *h, const struct gn_frame *f)
{
    struct gn_worker_spawned s;
    struct gn_worker_ended e;
    struct gn_link_error refusal;
    struct gn_vgpu_record *v = gn_vgpus_find(h->daemon, f->seq);
    if (f->op == GN_WORKER_ENDED && gn_frame_payload(f, &e, sizeof e)) {
        gn_list_for_each(w, &h->daemon->vgpus, struct gn_vgpu_record,
                         link) if (w->template_pid == h->pid && !w->reaped &&
                                   w->inner_pid == (pid_t)e.pid)
        {
            gn_vgpus_ended(w, e.status);
            break;
        }
        return true;
    }
    if (!v || v->template_pid != h->pid || !v->spawning)
        return false;
    if (f->op == GN_WORKER_SPAWNED && gn_frame_payload(f, &s, sizeof s) && f->n_fds == 1) {
        gn_vgpus_spawned(v, (pid_t)s.pid, gn_frame_take_fd(&h->reader, 0));
        return true;
    }
    if (f->op == GN_WORKER_SPAWNED && f->lost_fds) {
        struct gn_error err;
        gn_conn_no_room(&err);
        gn_vgpus_spawn_failed(v, &err); /* the worker has lost its control socket, and ends */
        return true;
    }
    if (f->op == GN_LINK_ERROR && gn_frame_payload(f, &refusal, sizeof refusal) &&
        gn_frame_string_ok(refusal.what, sizeof refusal.what)) {
        struct gn_error err;
        gn_fail(&err, EAGAIN, NULL, "%s", refusal.what);
        gn_vgpus_spawn_failed(v, &err);
        return true;
    }
    return false;
}

static void ready(struct gn_source *s, uint32_t events)
{
    struct gn_template *h = gn_container_of(s, struct gn_template, socket);
    struct gn_frame f;
    int rc = 0;
    if (events & EPOLLOUT)
        rc = gn_frame_flush(&h->writer);
    while (rc >= 0 && (rc = gn_frame_read(&h->reader, &f)) == 1) {
        if (!take(h, &f)) {
            lost(h, h->pid, "broke its protocol");
            return;
        }
        h->heard_ns = gn_now_ns();
        if (h->socket.fd < 0)
            return;
    }
    if (rc < 0) {
        lost(h, h->pid, "ended");
        return;
    }
    gn_loop_change(&h->daemon->loop, s,
                   EPOLLIN | (gn_frame_writer_pending(&h->writer) ? EPOLLOUT : 0));
}

static int start(struct gn_template *h, struct gn_error *err)
{
    const struct gn_machine *m = &h->daemon->machine;
    const struct gn_probe_driver *d = &m->drivers[h->driver];
    char walls[2] = {(char)('0' + h->daemon->walls.mode), 0};
    char *const argv[] = {(char[]){"gantry-worker"},
                          (char[]){"--template"},
                          (char *)(uintptr_t)d->api,
                          (char *)(uintptr_t)d->library,
                          walls,
                          NULL};
    /* A template that was killed is not waited for here: gn_templates_reap() reaps it. */
    int rc = gn_worker_spawn(m->worker, argv, h->daemon->walls.mode, &h->socket.fd, &h->pid, err);
    if (rc)
        return rc;
    h->heard_ns = gn_now_ns();
    gn_frame_reader_init(&h->reader, h->socket.fd);
    gn_frame_writer_init(&h->writer, h->socket.fd,
                         MAX_QUEUED_BYTES); /* each vGPU has its own copy of the descriptors in it:
                                               they may be closed */
    rc = gn_loop_add(&h->daemon->loop, &h->socket, EPOLLIN, ready);
    if (rc) {
        stop(h);
        return gn_fail(err, -rc, NULL, "cannot watch a template: %s", strerror(-rc));
    }
    return 0;
}

int gn_template_spawn(struct gn_vgpu_record *v, struct gn_error *err)
{
    struct gn_template *h = template_of(v);
    int rc;
    if (h->socket.fd < 0 && (rc = start(h, err)))
        return rc;
    rc = gn_frame_push(&h->writer, GN_WORKER_SPAWN, 0, v->id, NULL, 0, &v->worker_fd, 1);
    if (rc)
        return gn_fail(err, -rc, NULL, "cannot ask for a worker: %s", strerror(-rc));
    if (gn_frame_writer_pending(&h->writer))
        gn_loop_change(&h->daemon->loop, &h->socket, EPOLLIN | EPOLLOUT);
    v->spawning = true;
    v->template_pid = h->pid;
    v->asked_ns = gn_now_ns();
    gn_vgpus_arm_by(h->daemon, gn_template_deadline(v));
    return 0;
}

/* ---- templates that hang */

static void drop(struct aside *a)
{
    close(a->socket_fd);
    gn_list_remove(&a->link);
    free(a);
}

static void end_if_over(const struct gn_daemon *d, struct aside *a)
{
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record,
                     link) if (v->template_pid == a->pid && !v->reaped) return;
    kill(a->pid, SIGKILL); /* gn_templates_reap() reaps it */
    drop(a);
}

static struct aside *find_aside(const struct gn_daemon *d, pid_t pid)
{
    for (uint32_t i = 0; d->hosts && i < d->machine.n_drivers; i++)
        gn_list_for_each(a, &d->hosts[i].aside, struct aside, link) if (a->pid == pid) return a;
    return NULL;
}

static void set_aside(struct gn_template *h)
{
    struct gn_daemon *d = h->daemon;
    const pid_t pid = h->pid;
    struct gn_error err;
    struct aside *a = calloc(1, sizeof *a);
    if (!a) {
        lost(h, pid, "does not answer");
        return;
    }
    gn_log(GN_LOG_ERROR,
           "the template of %s has not answered for %u s; another takes its place, and its workers "
           "go on",
           library_of(h), d->start_limit_ms / 1000);
    *a = (struct aside){.pid = pid, .socket_fd = gn_loop_release(&d->loop, &h->socket)};
    gn_list_append(&h->aside, &a->link);
    gn_frame_reader_fini(&h->reader);
    gn_frame_writer_fini(&h->writer);
    h->pid = 0;
    gn_fail(&err, ETIMEDOUT, "try again; gantryd's log says which driver",
            "the driver's template process does not answer");
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        if (v->template_pid != pid)
            continue;
        if (v->spawning) {
            gn_vgpus_reclaim(v);
            gn_vgpus_spawn_failed(v, &err);
        } else if (v->process.fd < 0 && !v->reaped) {
            gn_templates_worker_ended(v);
            gn_vgpus_free_if_over(v);
        }
    }
    if (h->socket.fd < 0 && start(h, &err)) /* a refusal may have caused the kill */
        gn_log(GN_LOG_WARN, "%s, trying again at the next attach", err.what);
    if (find_aside(d, pid))
        end_if_over(d, a);
}

uint64_t gn_template_deadline(const struct gn_vgpu_record *v)
{
    if (!v->spawning)
        return 0;
    const uint64_t heard_ns = template_of(v)->heard_ns;
    return (v->asked_ns > heard_ns ? v->asked_ns : heard_ns) +
           v->daemon->start_limit_ms * UINT64_C(1000000);
}

void gn_templates_expire(struct gn_daemon *d, uint64_t now_ns)
{
    for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
        struct gn_template *h = &d->hosts[i];
        bool hangs = false;
        gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link) hangs |=
            template_of(v) == h && v->spawning && gn_template_deadline(v) <= now_ns;
        if (hangs)
            set_aside(h);
    }
}

void gn_templates_worker_ended(struct gn_vgpu_record *v)
{
    struct aside *a = v->reaped ? NULL : find_aside(v->daemon, v->template_pid);
    if (!a)
        return;
    v->reaped = true;
    if (!v->ending)
        gn_quota_log(v->quota, GN_LOG_WARN,
                     "vgpu=%08x: its worker %d ended; its template does not report how", v->id,
                     (int)v->worker_pid);
    end_if_over(v->daemon, a);
}

bool gn_templates_include(const struct gn_daemon *d, pid_t pid)
{
    for (uint32_t i = 0; i < d->machine.n_drivers; i++)
        if (d->hosts[i].pid == pid)
            return true;
    return find_aside(d, pid) != NULL;
}

int gn_templates_init(struct gn_daemon *d)
{
    d->hosts = calloc(d->machine.n_drivers, sizeof *d->hosts);
    if (!d->hosts)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
        d->hosts[i].daemon = d;
        d->hosts[i].driver = i;
        d->hosts[i].socket.fd = -1;
        gn_list_init(&d->hosts[i].aside);
    }
    /* Started now, so that the first program does not wait for a library to load. */
    for (uint32_t i = 0; i < d->machine.n_platforms; i++) {
        struct gn_template *h = &d->hosts[d->machine.platforms[i].driver];
        struct gn_error err;
        if (h->socket.fd < 0 && start(h, &err))
            gn_log(GN_LOG_WARN, "%s, trying again at the first attach", err.what);
    }
    return 0;
}

void gn_templates_reap(struct gn_daemon *d)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < d->machine.n_drivers; i++) {
            struct gn_template *h = &d->hosts[i];
            if (h->pid != pid)
                continue;
            h->pid = 0;
            if (h->socket.fd >= 0)
                lost(h, pid, "ended");
        }
        struct aside *a = find_aside(d, pid);
        if (a) {
            drop(a);
            forget_workers_of(d, pid);
        }
    }
}

/* A template that hangs in its driver, out of reach of SIGKILL, is left to init. */
static void wait_for(pid_t pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (end.fd >= 0) {
        (void)poll(&end, 1, END_MS);
        close(end.fd);
    }
    (void)waitpid(pid, NULL, WNOHANG);
}

void gn_templates_fini(struct gn_daemon *d)
{
    for (uint32_t i = 0; d->hosts && i < d->machine.n_drivers; i++) {
        stop(&d->hosts[i]);
        if (d->hosts[i].pid)
            wait_for(d->hosts[i].pid);
        gn_list_for_each(a, &d->hosts[i].aside, struct aside, link)
        {
            const pid_t pid = a->pid;
            kill(pid, SIGKILL);
            drop(a);
            wait_for(pid);
        }
    }
    free(d->hosts);
    d->hosts = NULL;
}
