/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of a session over tcp, and its watcher thread: it reads when no other thread does,
 * sends records that others have left, answers include requests of builds, and reconnects when the
 * connection breaks. It alone makes and closes connections, and it never waits for room to send,
 * since no other thread would reconnect.
 */
#include "guest/core/loss.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp_internal.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define OPEN_NS        UINT64_C(10000000000)
#define TRY_NS         UINT64_C(1000000000) /* one attempt to reconnect */
#define TRY_PAUSE_MS   20
#define MAX_DATA_BYTES (UINT64_C(1) << 32)
#define FILE_PIECE     16384u
#define LEASE_MOST_NS  UINT64_C(50000000) /* no record lies unread for longer */

/* ---- connections */

static int connect_data(struct gn_session_tcp *r, uint64_t deadline_ns, struct gn_error *err)
{
    struct gn_stream_hello hello;
    struct gn_tcp tcp;
    uint64_t trip_ns = 0;
    /* Not link_lock: its holder may wait for room, which may come only with the new connection. */
    pthread_mutex_lock(&r->dialling);
    int rc = gn_link_data(r->s->link, r->in.received, deadline_ns, &tcp, &hello, &trip_ns, err);
    pthread_mutex_unlock(&r->dialling);
    if (rc)
        return rc;
    r->tcp = tcp;
    gn_in_connect(&r->in, &r->tcp);
    atomic_store_explicit(&r->clock_ahead, hello.now_ns, memory_order_relaxed);
    atomic_store_explicit(&r->trip_ns, trip_ns, memory_order_relaxed);
    gn_out_owe_ack(&r->out, r->in.received, r->in.small);
    rc = gn_out_connect(&r->out, &r->tcp, hello.received);
    if (rc) {
        gn_tcp_close(&r->tcp);
        return gn_fail(err, -rc, NULL, "the worker has lost its place in the session");
    }
    return 0;
}

int gn_session_tcp_make_memory(struct gn_attached *a)
{
    struct gn_segment ring, events, data;
    if (a->data_bytes > MAX_DATA_BYTES)
        return -EPROTO;
    int rc = gn_session_create("gantry-ring", &ring);
    if (!rc) {
        a->ring_fd = ring.fd;
        a->ring_bytes = ring.bytes;
        rc = gn_segment_create("gantry-events", GN_EVENT_TABLE_BYTES, &events);
    }
    if (!rc) {
        a->events_fd = events.fd;
        a->events_bytes = events.bytes;
        rc = gn_segment_create("gantry-data", a->data_bytes, &data);
    }
    if (!rc) {
        a->data_fd = data.fd;
        a->data_bytes = data.bytes;
    }
    return rc;
}

static int watch_fd(struct gn_session_tcp *r, int fd, uint32_t events, int op)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    return epoll_ctl(r->epoll_fd, op, fd, &e) < 0 ? -errno : 0;
}

int gn_session_tcp_new(struct gn_session *s, struct gn_session_tcp **ret)
{
    struct gn_session_tcp *r = aligned_alloc(64, gn_align_up(sizeof *r, 64));
    if (!r)
        return -ENOMEM;
    memset(r, 0, sizeof *r);
    r->hook = gn_session_tcp_hook;
    r->s = s;
    r->tcp = (struct gn_tcp)GN_TCP_NONE;
    pthread_mutex_init(&r->landings_lock, NULL);
    pthread_cond_init(&r->landings_wake, NULL);
    pthread_mutex_init(&r->wants_lock, NULL);
    pthread_mutex_init(&r->dialling, NULL);
    gn_list_init(&r->wants);
    for (uint32_t i = 0; i < MAX_LANDINGS; i++)
        r->landings[i].segment = GN_NO_BLOCK;
    r->epoll_fd = gn_fd_epoll();
    r->wake_fd = gn_fd_event(EFD_NONBLOCK);
    r->flush_fd = gn_fd_timer(CLOCK_MONOTONIC, TFD_NONBLOCK);
    r->lease_fd = gn_fd_timer(CLOCK_MONOTONIC, TFD_NONBLOCK);
    r->nudge_fd = gn_fd_event(EFD_NONBLOCK);
    int rc =
        r->epoll_fd < 0 || r->wake_fd < 0 || r->flush_fd < 0 || r->lease_fd < 0 || r->nudge_fd < 0
            ? -EMFILE
            : 0;
    if (!rc)
        rc = gn_out_init(&r->out);
    if (!rc)
        rc = gn_in_init(&r->in, &gn_session_tcp_in_ops, r);
    if (!rc)
        rc = watch_fd(r, r->wake_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (!rc)
        rc = watch_fd(r, r->flush_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (!rc)
        rc = watch_fd(r, r->lease_fd, EPOLLIN, EPOLL_CTL_ADD);
    if (rc)
        gn_session_tcp_forked(
            r); /* allocated memory is leaked, as are the mappings of a session that failed */
    else
        *ret = r;
    return rc;
}

void gn_session_tcp_free(struct gn_session_tcp *r)
{
    gn_session_tcp_forked(r);
    gn_out_fini(&r->out);
    gn_in_fini(&r->in);
    if (atomic_load_explicit(&r->turned, memory_order_relaxed))
        r->s->turned = r; /* threads that waited by its hook may still look at it */
    else
        free(r);
}

int gn_session_tcp_open(struct gn_session *s, const struct gn_attached *a, struct gn_error *err)
{
    struct gn_session_tcp *r;
    int rc = gn_session_tcp_new(s, &r);
    if (rc)
        return rc;
    r->grace_ns = (uint64_t)a->grace_ms * 1000000u;
    rc = connect_data(r, gn_now_ns() + OPEN_NS, err);
    if (rc) {
        gn_session_tcp_forked(r);
        return rc;
    }
    atomic_store_explicit(&s->lost.hook, &r->hook, memory_order_release);
    atomic_store_explicit(&s->tcp, r, memory_order_release);
    return 0;
}

pthread_mutex_t *gn_session_tcp_link_lock(struct gn_session_tcp *r)
{
    return &r->dialling;
}

void gn_session_tcp_go_over(struct gn_session_tcp *r)
{
    atomic_store_explicit(&r->gone_over, true, memory_order_seq_cst);
    gn_session_tcp_broke(r);
}

void gn_session_tcp_end_shared(struct gn_session_tcp *r)
{
    atomic_store_explicit(&r->gone_home, true, memory_order_seq_cst);
    (void)gn_fd_signal(r->wake_fd);
}

void gn_session_tcp_bye(struct gn_session_tcp *r)
{
    if (pthread_mutex_trylock(&r->dialling))
        return;
    atomic_store_explicit(&r->leaving, true, memory_order_seq_cst);
    if (r->s->link)
        gn_link_bye(r->s->link);
    pthread_mutex_unlock(&r->dialling);
}

void gn_session_tcp_forked(struct gn_session_tcp *r)
{
    int *const fds[] = {&r->tcp.fd,   &r->epoll_fd, &r->wake_fd,
                        &r->flush_fd, &r->lease_fd, &r->nudge_fd};
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++) {
        const int fd = *fds[i];
        *fds[i] = -1; /* first: a child that is forked between finds none */
        gn_fd_close(fd);
    }
}

/* ---- the watcher */

/* Sends one record of an answer. -EAGAIN: there is no room now. */
static int answer_once(struct gn_session_tcp *r, struct want *w, bool *ret_done)
{
    struct {
        struct gn_session_file file;
        char bytes[FILE_PIECE];
    } m;
    struct gn_stream_record record = {0, GN_RECORD_FRAME, GN_SESSION_FILE_MORE, w->seq};
    size_t head = w->begun ? 0 : sizeof m.file;
    if (!w->begun && w->fd < 0) {
        gn_folders_look(r->s, w->payload, w->n, &w->file, &w->fd);
        if (w->fd >= 0 && w->file.bytes > GN_SESSION_FILE_MOST)
            w->file = (struct gn_session_file){.error = EFBIG};
        else if (w->fd >= 0)
            w->file.zero = GN_SESSION_HAS_CONTENTS;
    }
    uint64_t left = w->file.zero ? w->file.bytes - w->at : 0;
    size_t n = left < FILE_PIECE ? (size_t)left : FILE_PIECE;
    memset(m.bytes, 0, n);
    /* A file that has become shorter meanwhile ends with zeros. */
    if (n && pread(w->fd, m.bytes, n, (off_t)w->at) < 0)
        memset(m.bytes, 0, n);
    m.file = w->file;
    record.part = w->begun ? GN_SESSION_FILE_MORE : GN_SESSION_FILE;
    record.bytes = (uint32_t)(head + n);
    int rc = gn_out_append(&r->out, &record, w->begun ? (void *)m.bytes : (void *)&m);
    if (rc)
        return rc;
    w->begun = true;
    w->at += n;
    *ret_done = n == left;
    return 0;
}

static void drop_want(struct want *w)
{
    if (w->fd >= 0)
        gn_fd_close(w->fd);
    free(w);
}

static void answer_wants(struct gn_session_tcp *r)
{
    for (;;) {
        bool done = false;
        if (!r->answering) {
            pthread_mutex_lock(&r->wants_lock);
            if (!gn_list_empty(&r->wants)) {
                r->answering = gn_list_first(&r->wants, struct want, link);
                gn_list_remove(&r->answering->link);
                r->n_wants--;
            }
            pthread_mutex_unlock(&r->wants_lock);
            if (!r->answering)
                return;
        }
        /* Before the try: an acknowledgement after it sees that an answer waits. */
        atomic_store_explicit(&r->answers_waiting, true, memory_order_seq_cst);
        int rc = answer_once(r, r->answering, &done);
        if (rc == -EAGAIN)
            return;
        atomic_store_explicit(&r->answers_waiting, false, memory_order_seq_cst);
        gn_session_tcp_flush(r);
        if (rc || done) {
            drop_want(r->answering);
            r->answering = NULL;
        }
    }
}

/* The session has ended, or another process answers, or this process is ending. */
static bool is_final(int rc)
{
    return rc == -ENODEV || rc == -EPROTO || rc == -ESHUTDOWN;
}

/* Reconnects. False: the session is lost. */
static bool come_back(struct gn_session_tcp *r)
{
    struct gn_error err;
    while (!gn_session_tcp_acquire_role(r)) {
        /* The reading thread sees `broken` as soon as its poll returns. */
        gn_tcp_shutdown(&r->tcp);
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    gn_out_disconnect(&r->out);
    gn_tcp_close(&r->tcp);
    gn_in_connect(&r->in, &r->tcp);
    gn_session_tcp_dropped(r);
    const bool goes_over = atomic_exchange_explicit(&r->gone_over, false, memory_order_seq_cst);
    /*
     * All records of the old worker have been received; the new worker receives those that the old
     * one has not.
     */
    if (goes_over)
        r->in.received = r->in.small = 0;
    int rc = -EPIPE;
    uint64_t deadline = gn_now_ns() + r->grace_ns;
    for (uint64_t now = gn_now_ns(); rc && !is_final(rc) && now < deadline; now = gn_now_ns()) {
        if (atomic_load_explicit(&r->stopped, memory_order_acquire)) {
            gn_session_tcp_await_restored(r);
            now = gn_now_ns();
            deadline = now + r->grace_ns;
        }
        if (gn_session_tcp_is_over(r))
            break;
        rc = connect_data(r, now + TRY_NS < deadline ? now + TRY_NS : deadline, &err);
        /* The thread may have heard just now that the vGPU is in a checkpoint. */
        if (rc && is_final(rc) && atomic_load_explicit(&r->stopped, memory_order_acquire))
            rc = -EAGAIN;
        if (rc && !is_final(rc))
            poll(NULL, 0, TRY_PAUSE_MS);
    }
    if (!rc)
        atomic_store_explicit(&r->broken, false, memory_order_seq_cst);
    if (goes_over) {
        pthread_mutex_lock(&r->dialling);
        gn_link_send_left(r->s->link);
        pthread_mutex_unlock(&r->dialling);
    }
    gn_session_tcp_leave_role(r);
    if (!rc)
        gn_session_tcp_wake_all(r);
    /*
     * In a session that shared its memory before, waiting threads may not look at the connection.
     */
    if (!rc)
        gn_session_tcp_flush(r);
    return !rc;
}

static void lose(struct gn_session_tcp *r)
{
    gn_out_stop(&r->out);
    gn_tcp_shutdown(&r->tcp);
    /*
     * No thread reads any more: `broken` is set, and stays so. The program's memory is not touched
     * from here on.
     */
    while (!gn_session_tcp_acquire_role(r)) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    gn_session_tcp_dropped(r);
    gn_session_tcp_leave_role(r);
    gn_session_declare_lost(r->s);
    gn_session_tcp_wake_all(r);
}

/* Once all threads that entered before have seen the loss. */
static void close_lost(struct gn_session_tcp *r)
{
    const struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load_explicit(&r->n_inside, memory_order_seq_cst) ||
           atomic_load_explicit(&r->n_hooked, memory_order_seq_cst))
        nanosleep(&pause, NULL);
    gn_session_tcp_forked(r);
}

static void *lose_cut_off(void *arg)
{
    struct gn_session_tcp *r = arg;
    lose(r);
    gn_session_close_lost(r->s);
    return NULL;
}

void gn_session_tcp_cut_off(struct gn_session_tcp *r)
{
    if (atomic_exchange_explicit(&r->cut_off, true, memory_order_seq_cst))
        return;
    atomic_store_explicit(&r->broken, true, memory_order_seq_cst);
    gn_session_note_cut_off(r->s);
    if (gn_thread_start(GN_THREAD_PREFIX "lost", lose_cut_off, r, NULL))
        gn_session_declare_lost(r->s);
}

void gn_session_tcp_look_at_descriptors(struct gn_session_tcp *r)
{
    if (pthread_mutex_trylock(&r->dialling))
        return;
    const bool gone = atomic_load_explicit(&r->gone_home, memory_order_seq_cst);
    const int fd = gone || !r->s->link ? -1 : gn_link_poll_fd(r->s->link);
    const bool cut_off = fd >= 0 && !gn_fd_is_ours(fd);
    pthread_mutex_unlock(&r->dialling);
    if (cut_off)
        gn_session_tcp_cut_off(r);
}

/*
 * May the watcher read again? While threads take turns at reading the timer is set here: after a
 * long sleep, setting it takes a thread some ten microseconds, which would lie between the answer
 * it waited for and its next call.
 */
static bool lease_is_over(struct gn_session_tcp *r, uint32_t *seen_turns)
{
    const uint64_t two_trips_ns = 2 * atomic_load_explicit(&r->trip_ns, memory_order_relaxed);
    const uint32_t turns = atomic_load_explicit(&r->n_turns, memory_order_relaxed);
    const bool in_use =
        turns != *seen_turns && atomic_load_explicit(&r->role, memory_order_seq_cst);
    *seen_turns = turns;
    if (in_use && two_trips_ns < LEASE_MOST_NS) {
        gn_session_tcp_arm(r->lease_fd,
                           two_trips_ns < GN_REMOTE_LEASE_NS ? GN_REMOTE_LEASE_NS : two_trips_ns);
        return false;
    }
    /* Before the look at the role: a thread that gives it back later sets the timer again. */
    atomic_store_explicit(&r->lease_armed, false, memory_order_seq_cst);
    return !atomic_load_explicit(&r->role, memory_order_seq_cst);
}

/* False: gantryd is gone. Its unrequested messages are about migrations. */
static bool hear_gantryd(struct gn_session_tcp *r, uint32_t events)
{
    if (pthread_mutex_trylock(&r->dialling)) {
        (void)poll(NULL, 0, 1); /* the holder is nearly done */
        return true;
    }
    const bool ours = !atomic_load_explicit(&r->gone_home, memory_order_seq_cst);
    const int rc = ours ? gn_link_dispatch(r->s->link) : 0;
    pthread_mutex_unlock(&r->dialling);
    return !ours || (rc == 0 && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)));
}

/*
 * A message right behind gantryd's answer was read from the socket with it, through TLS, and epoll
 * does not report it.
 */
static void hear_rest(struct gn_session_tcp *r)
{
    pthread_mutex_lock(&r->dialling);
    const int rc = atomic_load_explicit(&r->gone_home, memory_order_seq_cst)
                       ? 0
                       : gn_link_dispatch(r->s->link);
    pthread_mutex_unlock(&r->dialling);
    if (rc)
        gn_session_tcp_broke(r);
}

/* No thread reads or sends any more. */
static void end(struct gn_session_tcp *r)
{
    while (!gn_session_tcp_acquire_role(r)) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    while (atomic_load_explicit(&r->n_hooked, memory_order_seq_cst)) {
        struct timespec pause = {.tv_nsec = 100000};
        nanosleep(&pause, NULL);
    }
    /* The thread that followed the migration may still have the lock. */
    pthread_mutex_lock(&r->dialling);
    pthread_mutex_unlock(&r->dialling);
    gn_out_stop(&r->out);
    gn_tcp_close(&r->tcp);
    if (r->answering)
        drop_want(r->answering);
    gn_list_for_each(w, &r->wants, struct want, link) drop_want(w);
}

/* True: the vGPU shares this process's memory again. False: it is lost. */
static bool watch_until_over(struct gn_session *s, struct gn_session_tcp *r)
{
    int control = gn_link_poll_fd(s->link);
    uint32_t armed = UINT32_MAX, seen_turns = 0;
    bool new_connection = true, reads = true;
    for (;;) {
        struct epoll_event events[8];
        /*
         * Its descriptor numbers may belong to the program now, and an epoll of that must not be
         * waited for.
         */
        if (!new_connection && !gn_fd_is_ours(control))
            gn_session_tcp_cut_off(r);
        if (atomic_load_explicit(&r->cut_off, memory_order_seq_cst))
            return false;
        if (new_connection) {
            control = gn_link_poll_fd(s->link);
            watch_fd(r, control, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
            watch_fd(r, r->tcp.fd, 0, EPOLL_CTL_ADD);
            armed = 0;
            new_connection = false;
            hear_rest(r);
        }
        bool full = atomic_load_explicit(&r->out.blocked, memory_order_seq_cst) &&
                    !atomic_load_explicit(&r->room_watched, memory_order_seq_cst);
        if (atomic_load_explicit(&r->ask_due, memory_order_acquire))
            gn_session_tcp_ask_stopped(r);
        uint32_t wanted = (reads ? EPOLLIN : 0) | (full ? EPOLLOUT : 0);
        if (wanted != armed) {
            watch_fd(r, r->tcp.fd, wanted, EPOLL_CTL_MOD);
            armed = wanted;
        }
        /*
         * Through TLS the last reader may have read more from the socket than it has looked at,
         * which epoll does not report.
         */
        if (reads && gn_tcp_has_more(&r->tcp))
            gn_session_tcp_look(r);
        int n = epoll_wait(r->epoll_fd, events, GN_ARRAY_SIZE(events), -1);
        if (n < 0 && errno != EINTR) {
            gn_session_tcp_cut_off(r);
            return false;
        }
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == r->wake_fd) {
                gn_fd_drain(fd);
            } else if (fd == r->flush_fd) {
                gn_fd_drain(fd);
                atomic_store_explicit(&r->flush_armed, false, memory_order_seq_cst);
                gn_session_tcp_flush(r);
            } else if (fd == r->lease_fd) {
                gn_fd_drain(fd);
                reads = lease_is_over(r, &seen_turns);
            } else if (fd == control) {
                if (!hear_gantryd(r, events[i].events))
                    gn_session_tcp_broke(r);
            } else if (fd == r->tcp.fd) {
                if (events[i].events & EPOLLOUT)
                    gn_session_tcp_flush(r);
                if (events[i].events & (EPOLLERR | EPOLLHUP))
                    gn_session_tcp_broke(r);
                if (!(events[i].events & EPOLLIN))
                    continue;
                /* A waiting thread reads: it sets the timer when it has not read for a while. */
                reads = !atomic_load_explicit(&r->role, memory_order_seq_cst);
                if (reads)
                    gn_session_tcp_look(r);
            }
        }
        if (atomic_load_explicit(&r->gone_home, memory_order_seq_cst))
            return true;
        answer_wants(r);
        if (!atomic_load_explicit(&r->broken, memory_order_acquire))
            continue;
        /* Closing removes them from the epoll set. */
        epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, control, NULL);
        /*
         * A migration in progress is decided first: by the thread that has heard all messages, or
         * it is aborted.
         */
        (void)s->migration->await_decision(s);
        if (atomic_load_explicit(&r->gone_home, memory_order_seq_cst))
            return true;
        if (atomic_load_explicit(&r->cut_off, memory_order_seq_cst))
            return false;
        if (atomic_load_explicit(&r->leaving, memory_order_seq_cst) || !come_back(r))
            break;
        new_connection = reads = true;
    }
    lose(r);
    return false;
}

bool gn_session_tcp_watch(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    if (!r)
        return true;
    if (watch_until_over(s, r)) {
        end(r);
        gn_sessions_lock(); /* bye reads it under the lock */
        gn_session_tcp_free(r);
        gn_sessions_unlock();
        return true;
    }
    if (!atomic_load_explicit(&r->cut_off, memory_order_seq_cst))
        close_lost(r);
    return false;
}
