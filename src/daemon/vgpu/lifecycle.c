/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a vGPU as gantryd sees it, once its record is made (create.c) and a worker asked
 * for: the program gets its session when the worker is up, and then gantryd waits for ends. Only
 * the worker's pidfd says that the worker is dead; a worker's frames are checked like a program's.
 * Called by connections, by the code on processes (worker_process.c, program_process.c) and by
 * owners of records (owner.h), on gantryd's thread; it never waits.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/vgpu/program_process.h"
#include "daemon/vgpu/template.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/schedule/shares.h"
#include "daemon/tenants/memory.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"
#include "shm/counters.h"

#define GRACE_NS         UINT64_C(1000000000) /* for a worker to end by itself */
#define MAX_QUEUED_BYTES (1u << 20)
#define FRAMES_A_TURN    16

struct gn_vgpu_record *gn_vgpus_find(struct gn_daemon *d, uint32_t id)
{
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link) if (v->id == id) return v;
    return NULL;
}

static void bury(struct gn_corpse *corpse)
{
    struct gn_vgpu_record *v = gn_container_of(corpse, struct gn_vgpu_record, corpse);
    bool last = gn_list_empty(&v->daemon->vgpus);
    gn_quota_put(v->quota);
    free(v);
    /* After many vGPUs their memory goes back to the system. */
    if (last)
        (void)malloc_trim(0);
}

/* Closes descriptors that only the start needs. */
static void drop_memory(struct gn_vgpu_record *v)
{
    gn_quota_close(v->quota, &v->events_fd);
    gn_quota_close(v->quota, &v->data_fd);
}

static void drop_program_side(struct gn_vgpu_record *v)
{
    gn_quota_close(v->quota, &v->session_fd);
    drop_memory(v);
}

/* The start is over, well or not: another vGPU of the user may start. */
static void end_start(struct gn_vgpu_record *v)
{
    v->quota->n_starting -= v->starting;
    v->starting = false;
}

static void close_control(struct gn_vgpu_record *v)
{
    if (v->control.fd < 0)
        return;
    int fd = gn_loop_release(&v->daemon->loop, &v->control);
    gn_quota_close(v->quota, &fd);
    gn_frame_reader_fini(&v->reader);
    gn_frame_writer_fini(&v->writer);
}

void gn_vgpus_cut_off(struct gn_vgpu_record *v)
{
    close_control(v);
    gn_vgpus_kill(v);
}

static uint64_t start_deadline(const struct gn_vgpu_record *v)
{
    return v->serving->start_deadline ? v->serving->start_deadline(v) : 0;
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns && (!b_ns || a_ns < b_ns) ? a_ns : b_ns;
}

static void set_grace(struct gn_daemon *d, uint64_t at_ns)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                                 .tv_nsec = (long)(at_ns % 1000000000u)}};
    d->grace_at_ns = at_ns;
    (void)timerfd_settime(d->grace.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void gn_vgpus_arm(struct gn_daemon *d)
{
    uint64_t first = earlier(d->owners->first(d), gn_passthrough_deadline(d, gn_now_ns()));
    first = earlier(gn_caches_deadline(d), first);
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        first = earlier(v->ending ? v->kill_at_ns : 0, first);
        first = earlier(v->return_by_ns, first);
        first = earlier(gn_template_deadline(v), first);
        first = earlier(start_deadline(v), first);
    }
    set_grace(d, first);
}

void gn_vgpus_arm_by(struct gn_daemon *d, uint64_t at_ns)
{
    if (at_ns && (!d->grace_at_ns || at_ns < d->grace_at_ns))
        set_grace(d, at_ns);
}

/* Once: the record's end calls it again. */
static void leave_scheduler(struct gn_vgpu_record *v)
{
    if (!v->shares.joined)
        return;
    gn_shares_leave(v);
    gn_scheduler_leave(v->daemon->scheduler, &v->shares);
    gn_tracing_end(v->daemon, v);
}

/* Releases resources of a worker that has ended. */
static void release_worker_resources(struct gn_vgpu_record *v)
{
    gn_cache_release(v->daemon, v->cache);
    v->cache = NULL;
    gn_memory_group_remove(&v->daemon->walls.memory_groups, &v->group);
}

void gn_vgpus_free_if_over(struct gn_vgpu_record *v)
{
    /* A vGPU that is in a file, or saved for another worker, needs no worker, and its program may
     * be coming back. */
    if (v->conn || v->spawning || v->process.fd >= 0 || !v->reaped ||
        (v->return_by_ns && (gn_record_is_stopped(v) || gn_vgpus_saved(v))))
        return;
    bool was_ending = v->kill_at_ns != 0;
    struct gn_daemon *d = v->daemon;
    end_start(v);
    gn_memory_leave(v);
    leave_scheduler(v);
    gn_shares_fini(&v->shares);
    release_worker_resources(v);
    v->tenant->n_vgpus--;
    d->conn_limits.n_vgpus--;
    gn_sockets_resume(&d->sockets);
    close_control(v);
    drop_program_side(v);
    gn_worker_log_close(&v->log);
    gn_vgpus_close_own(
        &v->ring_fd); /* a session's ring is sealed memory, also one that the program has made */
    gn_vgpus_close_own(&v->counters_fd);
    gn_quota_close(v->quota, &v->hand_fd);
    gn_quota_close(v->quota, &v->worker_fd);
    gn_list_remove(&v->link);
    /* Other records were no program's: a destination of a migration, for instance. */
    if (gn_record_is_listed(v))
        gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: gone", v->id);
    gn_loop_bury(&d->loop, &v->corpse, bury);
    if (was_ending)
        gn_vgpus_arm(d);
    if (d->stopping && gn_list_empty(&d->vgpus))
        gn_loop_stop(&d->loop);
}

static bool is_held(const struct gn_vgpu_record *v)
{
    const struct gn_record_owner *o = v->owned_by;
    return o && o->ops->holds && o->ops->holds(o, v);
}

enum gn_record_saved gn_vgpus_saved(const struct gn_vgpu_record *v)
{
    const struct gn_record_owner *o = v->owned_by;
    return o && o->ops->saved ? o->ops->saved(o, v) : GN_RECORD_NOT_SAVED;
}

int gn_vgpus_end(struct gn_vgpu_record *v, struct gn_error *err)
{
    const int rc = gn_serving_permits(v->serving, GN_SERVING_END, err);
    if (rc)
        return rc;
    if (is_held(v))
        return gn_fail(err, EBUSY, "wait until that is over", "it is being moved or saved");
    if (gn_record_is_stopped(v))
        return gn_fail(err, ESRCH, "end the program that waits for it",
                       "it is stopped, and in a file");
    if (v->ending || (v->process.fd < 0 && !v->spawning))
        return gn_fail(err, ENOENT, NULL, "it has ended already");
    gn_vgpus_kill(v);
    return 0;
}

void gn_vgpus_end_worker(struct gn_vgpu_record *v)
{
    if (v->ending || (!v->spawning && v->process.fd < 0))
        return;
    v->ending = true;
    if (v->control.fd >= 0)
        (void)gn_frame_push(&v->writer, GN_WORKER_END, 0, 0, NULL, 0, NULL,
                            0); /* the kill covers a failure */
    v->kill_at_ns = gn_now_ns() + GRACE_NS;
    gn_vgpus_arm(v->daemon);
}

void gn_vgpus_leave(struct gn_vgpu_record *v)
{
    v->conn = NULL;
    if (v->owned_by && v->owned_by->ops->left)
        v->owned_by->ops->left(v->owned_by, v);
    v->return_by_ns = 0;
    gn_holder_ending(&v->lease);
    drop_program_side(v);
    gn_vgpus_end_worker(v);
    gn_vgpus_free_if_over(v);
}

void gn_vgpus_refuse(struct gn_vgpu_record *v, int code, const struct gn_error *err)
{
    struct gn_conn *c = v->conn;
    if (c) {
        c->vgpu = NULL;
        v->conn = NULL;
        gn_conn_refuse(c, v->attach_seq, code, err);
    }
    gn_vgpus_leave(v);
}

void gn_vgpus_grace(struct gn_source *timer, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(timer, struct gn_daemon, grace);
    uint64_t expirations, now = gn_now_ns();
    (void)!read(timer->fd, &expirations, sizeof expirations);
    d->owners->expire(d, now);
    gn_passthrough_watch(d, now);
    gn_caches_expire(d, now);
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record,
                     link) if (v->return_by_ns && v->return_by_ns <= now)
    {
        gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" has not come back", v->id,
                     v->program);
        gn_vgpus_leave(v);
    }
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record,
                     link) if (v->ending && v->kill_at_ns && v->kill_at_ns <= now)
    {
        v->kill_at_ns = 0;
        v->serving->overdue(v);
    }
    gn_templates_expire(d, now);
    gn_list_for_each(v, &d->vgpus, struct gn_vgpu_record, link)
    {
        const uint64_t by_ns = start_deadline(v);
        if (by_ns && by_ns <= now)
            v->serving->start_expired(v);
    }
    gn_vgpus_arm(d);
}

static void leave_books(struct gn_vgpu_record *v)
{
    leave_scheduler(v);
    gn_memory_leave(v);
    gn_memory_settle(v->daemon);
}

void gn_vgpus_lost(struct gn_vgpu_record *v)
{
    leave_books(v);
    if (v->conn)
        gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: lost", v->id);
    gn_vgpus_free_if_over(v);
}

void gn_vgpus_worker_over(struct gn_vgpu_record *v)
{
    const uint64_t limit_bytes = v->lease.limit_bytes;
    release_worker_resources(v);
    v->ending = false;
    v->kill_at_ns = 0;
    gn_vgpus_arm(v->daemon);
    gn_memory_leave(v);
    gn_vgpus_join_memory(v, limit_bytes);
    gn_placement_bind(v->daemon->scheduler, &v->placement, &v->shares, gn_now_ns());
    gn_memory_settle(v->daemon);
}

void gn_vgpus_gone(struct gn_vgpu_record *v)
{
    struct gn_error err;
    gn_loop_close(&v->daemon->loop, &v->process);
    close_control(v);
    if (v->serving->ended)
        v->serving->ended(v);
    if (v->owned_by && v->owned_by->ops->died && v->owned_by->ops->died(v->owned_by, v))
        return;
    if (gn_record_is_stopped(v)) {
        gn_vgpus_worker_over(v);
        return;
    }
    if (v->state == GN_RECORD_PENDING && v->conn) {
        leave_books(v);
        gn_fail(&err, ENODEV, "see gantryd's log", "%s", v->serving->start_failed);
        gn_vgpus_refuse(v, ENODEV, &err);
        return;
    }
    gn_vgpus_lost(v);
}

static void process_died(struct gn_source *s, uint32_t events)
{
    struct gn_vgpu_record *v = gn_container_of(s, struct gn_vgpu_record, process);
    /* The records may have exchanged their workers between the event and now. */
    struct pollfd dead = {.fd = v->process.fd, .events = POLLIN};
    if (v->process.fd < 0 || poll(&dead, 1, 0) < 1)
        return;
    gn_vgpus_gone(v);
}

int gn_vgpus_watch_process(struct gn_vgpu_record *v, int pidfd)
{
    v->process.fd = pidfd;
    return gn_loop_add(&v->daemon->loop, &v->process, EPOLLIN, process_died);
}

void gn_vgpus_tell_program(struct gn_vgpu_record *v)
{
    if (!v->driver_up || v->spawning || v->state != GN_RECORD_PENDING || v->ending ||
        v->process.fd < 0)
        return;
    if (v->owned_by && v->owned_by->ops->up) {
        v->owned_by->ops->up(v->owned_by, v);
        return;
    }
    gn_record_set_state(v, GN_RECORD_ATTACHED);
    end_start(v);
    if (v->serving->attached)
        v->serving->attached(v);
    GN_FAULT("daemon-before-attached");
    gn_quota_log(v->quota, GN_LOG_INFO, "vgpu=%08x: \"%s\" (%d) attached, worker %d", v->id,
                 v->program, (int)v->program_pid, (int)v->worker_pid);
    if (v->conn)
        v->session_ops->send_attached(v);
    v->session_ops->close_program_end(v);
    drop_memory(v);
}

void gn_vgpus_note_fault(const struct gn_vgpu_record *v)
{
    struct gn_daemon *d = v->daemon;
    gn_fault_throttle_note(&d->breaches, v->tenant->rules.name, v->quota->source,
                           d->breach_pause_ns, gn_now_ns());
}

static int owner_frame(struct gn_vgpu_record *v, const struct gn_frame *f)
{
    return v->owned_by ? v->owned_by->ops->acknowledged(v->owned_by, v, f) : 0;
}

static void worker_said(struct gn_source *s, uint32_t events)
{
    struct gn_vgpu_record *v = gn_container_of(s, struct gn_vgpu_record, control);
    struct gn_link_error e;
    struct gn_frame f;
    int rc = events & EPOLLOUT ? gn_frame_flush(&v->writer) : 0;
    /* A few frames at a time: a worker that sends without end must not delay others. */
    for (int i = 0; i < FRAMES_A_TURN && rc >= 0 && (rc = gn_frame_read(&v->reader, &f)) == 1;
         i++) {
        if (f.n_fds && f.op != GN_WORKER_SAVED) {
            rc = -EPROTO;
        } else if (f.op == GN_WORKER_BOOTED && f.n_payload == 0 && !v->driver_up) {
            v->driver_up = true;
            gn_vgpus_tell_program(v);
        } else if ((rc = owner_frame(v, &f)) == 1) {
            return;
        } else if (rc == 0 && (rc = gn_memory_frame(v, &f)) == 1) {
            /* done */
        } else if (rc == 0 && f.op == GN_LINK_ERROR && !v->driver_up && v->conn &&
                   gn_frame_payload(&f, &e, sizeof e) &&
                   gn_frame_string_ok(e.what, sizeof e.what) &&
                   gn_frame_string_ok(e.fix, sizeof e.fix)) {
            struct gn_error err;
            gn_fail(&err, ENODEV, e.fix, "%s", e.what);
            gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: %s", v->id, err.what);
            gn_vgpus_refuse(v, ENODEV, &err);
        } else {
            rc = -EPROTO;
        }
        if (rc == -EPROTO)
            gn_quota_log(v->quota, GN_LOG_WARN,
                         "vgpu=%08x: its worker broke the protocol (message %u) and is killed",
                         v->id, f.op);
        if (v->control.fd < 0)
            return;
    }
    if (rc == -EPROTO)
        gn_vgpus_cut_off(v);
    else if (rc < 0)
        v->serving->hung_up(v);
    if (rc < 0)
        return;
    gn_loop_change(&v->daemon->loop, s,
                   EPOLLIN | (gn_frame_writer_pending(&v->writer) ? EPOLLOUT : 0));
}

const char *gn_vgpus_shown_state(const struct gn_vgpu_record *v)
{
    if (is_held(v))
        return "moving";
    if (gn_record_is_stopped(v))
        return "stopped";
    if (v->process.fd < 0 && !v->spawning)
        return "lost";
    return gn_vgpus_is_busy(v) ? "running" : "idle";
}

static void init_writer(struct gn_vgpu_record *v)
{
    gn_frame_writer_init(&v->writer, v->control.fd, MAX_QUEUED_BYTES);
    v->writer.sink = &v->quota->sink;
}

int gn_vgpus_make_control(struct gn_vgpu_record *v)
{
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0)
        return -errno;
    v->control.fd = control[0];
    v->worker_fd = control[1];
    gn_frame_reader_init(&v->reader, v->control.fd);
    v->reader.sink = &v->quota->sink;
    v->reader.max_fds = 1; /* a session's socket, with SAVED */
    init_writer(v);
    return gn_loop_add(&v->daemon->loop, &v->control, EPOLLIN, worker_said);
}

static void swap_sources(struct gn_loop *l, struct gn_source *a, struct gn_source *b)
{
    const struct gn_source was = *a;
    *a = *b;
    *b = was;
    /* epoll has to report each at its new address. */
    a->events = b->events = 0;
    gn_loop_change(l, a, EPOLLIN);
    gn_loop_change(l, b, EPOLLIN);
}

int gn_vgpus_swap_workers(struct gn_vgpu_record *v, struct gn_vgpu_record *n)
{
    struct gn_loop *l = &v->daemon->loop;
    if ((v->control.fd >= 0 && gn_frame_writer_pending(&v->writer)) || n->control.fd < 0 ||
        gn_frame_writer_pending(&n->writer))
        return -EBUSY;
    if (v->control.fd >= 0)
        gn_frame_writer_fini(&v->writer);
    gn_frame_writer_fini(&n->writer);
    swap_sources(l, &v->control, &n->control);
    swap_sources(l, &v->process, &n->process);
    GN_EXCHANGE(v->reader, n->reader);
    init_writer(v);
    if (n->control.fd >= 0)
        init_writer(n);
    GN_EXCHANGE(v->log, n->log);
    GN_EXCHANGE(v->cache, n->cache);
    GN_EXCHANGE(v->group, n->group);
    if (v->log.source.fd >= 0) {
        v->log.source.events = 0;
        gn_loop_change(l, &v->log.source, EPOLLIN);
    }
    if (n->log.source.fd >= 0) {
        n->log.source.events = 0;
        gn_loop_change(l, &n->log.source, EPOLLIN);
    }
    GN_EXCHANGE(v->worker_pid, n->worker_pid);
    GN_EXCHANGE(v->inner_pid, n->inner_pid);
    GN_EXCHANGE(v->reaped, n->reaped);
    GN_EXCHANGE(v->template_pid, n->template_pid);
    GN_EXCHANGE(v->asked_ns, n->asked_ns);
    GN_EXCHANGE(v->serving, n->serving);
    if (memcmp(v->order, n->order, sizeof v->order) != 0) {
        /* Neither worker holds a grant: the source stands still, and the destination has not begun.
         * The grant page stays as it is. */
        gn_scheduler_leave(v->daemon->scheduler, &v->shares);
        GN_EXCHANGE(v->devices, n->devices);
        for (uint32_t i = 0; i < GN_WORKER_MAX_DEVICES; i++)
            GN_EXCHANGE(v->order[i], n->order[i]);
        if (gn_vgpus_join_shares(v))
            gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: no memory left to share out its device",
                         v->id);
    }
    gn_memory_exchange(v, n);
    return 0;
}
