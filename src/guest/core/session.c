/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's life from its attach on (guest/attach.c): its watcher, loss, and fork. Called by
 * the program's threads; each session has a watcher thread, which sleeps in epoll on the sockets of
 * the worker and of gantryd. When either hangs up, it declares the loss, which wakes every waiting
 * thread. A forked child drops the inherited sessions and opens its own; the parent's are not
 * affected. Never waits for an answer of the worker's.
 */
#include "guest/session/session_ops.h"

#include "base/descriptor.h"
#include "base/fault.h"
#include "base/list.h"
#include "base/thread.h"
#include "guest/core/loss.h"
#include "guest/core/process_end.h"
#include "guest/core/report.h"

#include "link/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SEND_TIMEOUT_MS 5000
#define ROOM_LOOK_MS    10
#define N_LOOKED_AT     3
#define MAX_SESSIONS    64u

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct gn_session *open[MAX_SESSIONS]; /* lock */
    uint32_t n;
} sessions = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
    gn_process_before_fork();
    pthread_mutex_lock(&sessions.lock);
    gn_handles_before_fork();
    gn_fd_before_fork(); /* a thread closes descriptors with sessions.lock held */
}

static void after_fork_parent(void)
{
    gn_fd_after_fork();
    gn_handles_after_fork();
    pthread_mutex_unlock(&sessions.lock);
    gn_process_after_fork();
}

/*
 * The child has none of the parent's threads and, by MADV_DONTFORK, none of its shared memory, only
 * the descriptors. State that those threads were using (a TLS connection, a reader's buffer) may be
 * inconsistent and is not touched.
 */
static void after_fork_child(void)
{
    gn_fd_after_fork();
    for (uint32_t i = 0; i < sessions.n; i++) {
        struct gn_session *s = sessions.open[i];
        /*
         * If the program has closed all descriptors, those without an inode may be the program's
         * own now.
         */
        const bool cut_off = s->link && !gn_fd_is_ours(gn_link_poll_fd(s->link));
        if (s->link)
            gn_link_forked(s->link);
        if (s->to)
            gn_link_forked(s->to);
        if (!cut_off) {
            gn_fd_close(s->turn_fd);
            gn_fd_close(s->epoll_fd);
        }
        const struct gn_session_ops *ops = gn_session_ops(s);
        if (ops->forked)
            ops->forked(s, cut_off);
        gn_fd_close(s->socket);
        gn_fd_close(s->ring_segment.fd);
        gn_fd_close(s->event_segment.fd);
    }
    sessions.n = 0;
    atomic_fetch_add_explicit(&gn_epoch, 1, memory_order_relaxed);
    gn_handles_after_fork();
    pthread_mutex_unlock(&sessions.lock);
    gn_process_after_fork_child();
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void gn_session_declare_lost(struct gn_session *s)
{
    gn_lost_declare(&s->lost);
    if (atomic_exchange_explicit(&s->loss_told, true, memory_order_acq_rel))
        return;
    pthread_mutex_lock(&s->events_lock);
    uint32_t n = s->n_events;
    pthread_mutex_unlock(&s->events_lock);
    gn_event_fail_all(s->events, n, s->api->result_lost);
    s->api->on_frame(s, 0, NULL, 0);
}

void gn_session_note_cut_off(struct gn_session *s)
{
    static const char why[] =
        "the program has closed descriptors that it had not opened, and Gantry's connections with "
        "them";
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&s->lost_why, &none, why))
        gn_report("%s (closefrom?): its vGPU is lost, and calls for it fail", why);
}

static void forget_locked(struct gn_session *s)
{
    for (uint32_t i = 0; i < sessions.n; i++)
        if (sessions.open[i] == s)
            sessions.open[i--] = sessions.open[--sessions.n];
}

/* The watcher may sleep for ever, since its descriptors are gone. */
void gn_session_cut_off(struct gn_session *s)
{
    gn_session_note_cut_off(s);
    gn_session_declare_lost(s);
    pthread_mutex_lock(&sessions.lock);
    forget_locked(s);
    pthread_mutex_unlock(&sessions.lock);
}

static bool is_cut_off(const struct gn_session *s)
{
    return atomic_load_explicit(&s->lost_why, memory_order_acquire) != NULL;
}

static void close_all(struct gn_session *s)
{
    int *const fds[] = {&s->socket, &s->epoll_fd, &s->ring_segment.fd, &s->event_segment.fd};
    if (s->link)
        gn_link_close(s->link);
    s->link = NULL;
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++) {
        gn_fd_close(*fds[i]);
        *fds[i] = -1;
    }
    gn_fd_close(atomic_exchange_explicit(&s->turn_fd, -1, memory_order_relaxed));
    gn_area_close(&s->area);
}

/*
 * The memory stays: threads may not have noticed the loss yet, and the program may have buffers
 * mapped. The watcher thread, as its last action.
 */
void gn_session_close_lost(struct gn_session *s)
{
    /* A migration in progress ends here, and a later one sees the loss. */
    (void)s->migration->await_decision(s);
    pthread_mutex_t *lock = gn_session_ops(s)->link_lock(s);
    pthread_mutex_lock(&s->link_lock);
    if (lock != &s->link_lock)
        pthread_mutex_lock(lock);
    pthread_mutex_lock(&s->socket_lock);
    pthread_mutex_lock(&sessions.lock); /* a forked child finds all of them open, or none */
    /* The program has closed them; their numbers may belong to another session now. */
    if (!is_cut_off(s))
        close_all(s);
    forget_locked(s);
    pthread_mutex_unlock(&sessions.lock);
    pthread_mutex_unlock(&s->socket_lock);
    if (lock != &s->link_lock)
        pthread_mutex_unlock(lock);
    pthread_mutex_unlock(&s->link_lock);
    gn_area_discard_unused(s);
}

/*
 * Reads gantryd's messages, unless another thread has a request to gantryd open: then that thread
 * reads them. False: gantryd is gone.
 */
static bool read_gantryd(struct gn_session *s, short events)
{
    const bool hung_up = events & (POLLRDHUP | POLLHUP | POLLERR);
    if (pthread_mutex_trylock(&s->link_lock)) {
        (void)poll(NULL, 0, 1); /* the message stays readable until that thread has run */
        return true;
    }
    /* Also reads the last messages before a hang-up: they may decide a migration. */
    const int r = gn_link_dispatch(s->link);
    pthread_mutex_unlock(&s->link_lock);
    return r == 0 && !hung_up;
}

static bool handle_stop(struct gn_session *s, struct gn_frame_reader *reader,
                        const struct gn_frame *frame)
{
    struct gn_link_stopped stop;
    return gn_frame_payload(frame, &stop, sizeof stop) && frame->n_fds == 1 &&
           s->migration->await_restored(s, &stop, gn_frame_take_fd(reader, 0));
}

void gn_sessions_lock(void)
{
    pthread_mutex_lock(&sessions.lock);
}

void gn_sessions_unlock(void)
{
    pthread_mutex_unlock(&sessions.lock);
}

/*
 * False: the program has closed the descriptors. Their numbers may belong to the program or to
 * another session now.
 */
static bool is_connected(const struct gn_session *s)
{
    return !is_cut_off(s) && s->link && gn_fd_is_ours(s->socket) &&
           gn_fd_is_ours(gn_link_poll_fd(s->link));
}

/* Skips a session that is in use: its user notices the loss itself, or a later call does. */
void gn_session_look(struct gn_session *s)
{
    bool cut_off = false;
    if (gn_session_lost(s) || pthread_mutex_trylock(&s->link_lock))
        return;
    const struct gn_session_ops *ops = gn_session_ops(s);
    if (!ops->look_at_descriptors && !pthread_mutex_trylock(&s->socket_lock)) {
        cut_off = s->link && !is_connected(s);
        pthread_mutex_unlock(&s->socket_lock);
    }
    pthread_mutex_unlock(&s->link_lock);
    if (ops->look_at_descriptors)
        ops->look_at_descriptors(s);
    else if (cut_off)
        gn_session_cut_off(s);
}

void gn_sessions_look(void)
{
    struct gn_session *all[MAX_SESSIONS];
    uint32_t n;
    pthread_mutex_lock(&sessions.lock);
    memcpy(all, sessions.open, sizeof all);
    n = sessions.n;
    pthread_mutex_unlock(&sessions.lock);
    for (uint32_t i = 0; i < n; i++)
        gn_session_look(all[i]);
}

static void check_lost_session(struct gn_lost *lost)
{
    gn_session_look(gn_container_of(lost, struct gn_session, lost));
}

/*
 * Sets up the epoll that the watcher sleeps in. Unlike a poll in progress, it does not keep the
 * sockets open: when the program closes them, the worker and gantryd notice at once. Set up again
 * when a socket was replaced, since a copy of the old one in another process would keep it in the
 * epoll. False: the program has closed a descriptor.
 */
static bool prepare_epoll(struct gn_session *s, uint64_t serials[static N_LOOKED_AT])
{
    const int fds[N_LOOKED_AT] = {s->socket, gn_link_poll_fd(s->link),
                                  atomic_load_explicit(&s->turn_fd, memory_order_acquire)};
    bool same = s->epoll_fd >= 0;
    for (int i = 0; i < N_LOOKED_AT; i++) {
        const uint64_t serial = gn_fd_serial(fds[i]);
        if (fds[i] >= 0 && !serial)
            return false;
        same &= serial == serials[i];
        serials[i] = serial;
    }
    if (is_cut_off(s))
        return false;
    if (same)
        return gn_fd_is_ours(s->epoll_fd);
    gn_fd_close(s->epoll_fd);
    while ((s->epoll_fd = gn_fd_epoll()) < 0)
        (void)poll(NULL, 0, ROOM_LOOK_MS);
    for (int i = 0; i < N_LOOKED_AT; i++) {
        struct epoll_event event = {.events = i == 1 ? EPOLLIN | EPOLLRDHUP : EPOLLIN,
                                    .data.fd = fds[i]};
        if (fds[i] >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
            return false;
    }
    return true;
}

static void init_reader(struct gn_frame_reader *reader, const struct gn_session *s)
{
    gn_frame_reader_init(reader, s->socket);
    reader->keeps_frames = true;
}

static void *watch(void *arg)
{
    struct gn_session *s = arg;
    const struct gn_session_ops *ops = gn_session_ops(s);
    struct gn_frame_reader reader;
    struct gn_frame frame;
    struct epoll_event event;
    uint64_t serials[N_LOOKED_AT] = {0};
    bool went_on = true;
    int r = 0;
    if (ops->watch && !ops->watch(s)) {
        gn_session_close_lost(s);
        return NULL;
    }
    init_reader(&reader, s);
    while (prepare_epoll(s, serials)) {
        const int n = epoll_wait(s->epoll_fd, &event, 1, -1);
        if (n < 0 && errno != EINTR)
            break;
        if (n == 1 && event.data.fd == atomic_load_explicit(&s->turn_fd, memory_order_acquire))
            gn_fd_drain(event.data.fd);
        while (went_on && (r = gn_frame_read(&reader, &frame)) == 1) {
            if (frame.op == GN_SESSION_WANT)
                gn_folders_answer(s, frame.seq, frame.payload, frame.n_payload);
            else if (frame.op == GN_LINK_STOPPED)
                went_on = handle_stop(s, &reader, &frame);
            else
                s->api->on_frame(s, frame.op, frame.payload, frame.n_payload);
        }
        if (r == -EMFILE) {
            /*
             * The frame carries descriptors, and the process has no room for them. It stays in the
             * socket.
             */
            (void)poll(NULL, 0, ROOM_LOOK_MS);
            r = 0;
        }
        /*
         * The worker may have ended because the vGPU is on another machine now. All its messages
         * have been read.
         */
        if (r < 0 && went_on)
            (void)s->migration->await_decision(s);
        ops = gn_session_ops(s);
        if (ops->watch) {
            gn_frame_reader_fini(&reader);
            if (!ops->watch(s)) {
                gn_session_close_lost(s);
                return NULL;
            }
            init_reader(&reader, s); /* a new socket, of the vGPU's worker on this machine */
            r = 0;
            continue;
        }
        if (!went_on || r < 0)
            break;
        /* Polls anew: the vGPU may have been stopped since epoll_wait. */
        struct pollfd p = {.fd = gn_link_poll_fd(s->link), .events = POLLIN | POLLRDHUP};
        if (poll(&p, 1, 0) > 0 && !read_gantryd(s, p.revents) && !s->migration->await_decision(s))
            break;
    }
    gn_frame_reader_fini(&reader);
    if (!is_connected(s))
        gn_session_note_cut_off(s);
    gn_session_declare_lost(s);
    gn_session_close_lost(s);
    return NULL;
}

int gn_session_platforms(struct gn_platform_list *ret)
{
    struct gn_link *link;
    struct gn_error err;
    gn_fd_in_program();
    int r = gn_link_connect(NULL, &link, &err);
    if (r) {
        gn_session_report(&err);
        return r;
    }
    r = gn_link_platforms(link, ret);
    gn_link_close(link);
    return r;
}

/* A number, with an optional unit K, M, G or T. */
static uint64_t env_size(const char *name)
{
    const char *text = getenv(name);
    char *end;
    uint64_t n = text ? strtoull(text, &end, 10) : 0;
    static const char units[] = "KMGT";
    const char *unit = n && *end ? strchr(units, *end) : NULL;
    return unit ? n << (10 * (unit - units + 1)) : n;
}

void gn_session_wishes(uint32_t *ret_weight, uint64_t *ret_memory_bytes)
{
    *ret_weight = (uint32_t)env_size("GANTRY_WEIGHT");
    *ret_memory_bytes = env_size("GANTRY_MEMORY");
}

void gn_session_init(struct gn_session *s, const struct gn_guest_api *api,
                     const struct gn_session_migration_ops *migration,
                     const struct gn_session_ops *ops)
{
    memset(s, 0, sizeof *s);
    pthread_once(&sessions.once, install_fork_handlers);
    gn_fd_in_program();
    s->api = api;
    s->migration = migration;
    atomic_init(&s->ops, ops);
    s->epoch = atomic_load_explicit(&gn_epoch, memory_order_relaxed);
    s->socket = s->epoll_fd = -1;
    gn_lost_init(&s->lost);
    s->lost.slept = check_lost_session;
    s->waiter = (struct gn_waiter){gn_spin_policy_default(), &s->lost};
    pthread_mutex_init(&s->link_lock, NULL);
    pthread_mutex_init(&s->socket_lock, NULL);
    pthread_mutex_init(&s->folders_lock, NULL);
    gn_list_init(&s->folders);
    pthread_mutex_init(&s->ids_lock, NULL);
    pthread_mutex_init(&s->events_lock, NULL);
    pthread_mutex_init(&s->moving_lock, NULL);
    pthread_cond_init(&s->moving_wake, NULL);
    atomic_init(&s->turn_fd, -1);
}

int gn_session_start(struct gn_session *s)
{
    pthread_mutex_lock(&sessions.lock);
    int r = sessions.n == MAX_SESSIONS ? -EMFILE : 0;
    if (!r)
        r = gn_thread_start(GN_THREAD_PREFIX "watch", watch, s, NULL);
    if (!r)
        sessions.open[sessions.n++] = s;
    pthread_mutex_unlock(&sessions.lock);
    return r;
}

/*
 * Tells gantryds on other machines, so that they do not keep a vGPU for a program that has ended.
 */
__attribute__((destructor)) static void disconnect_all(void)
{
    if (pthread_mutex_trylock(&sessions.lock))
        return;
    for (uint32_t i = 0; i < sessions.n; i++) {
        struct gn_session *s = sessions.open[i];
        const struct gn_session_ops *ops = gn_session_ops(s);
        if (ops->bye)
            ops->bye(s);
    }
}

int gn_session_send_fds(struct gn_session *s, uint16_t op, uint32_t number, const int *fds, int n)
{
    int r = 0;
    pthread_mutex_lock(&s->socket_lock);
    for (int i = 0; i < n && !r; i += GN_FRAME_MAX_FDS) {
        int some = n - i < GN_FRAME_MAX_FDS ? n - i : GN_FRAME_MAX_FDS;
        r = gn_frame_send(s->socket, SEND_TIMEOUT_MS, op, 0, number, NULL, 0, fds + i, some);
    }
    const bool cut_off = r == -EBADF && s->socket >= 0;
    pthread_mutex_unlock(&s->socket_lock);
    if (cut_off)
        gn_session_cut_off(s);
    return r;
}
