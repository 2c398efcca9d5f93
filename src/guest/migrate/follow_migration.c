/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's part in a migration to another gantryd (docs/moves.md): a thread of its own
 * connects there, shows the ticket, and waits until everything is loaded there and the source
 * stands still. Then it decides, by one message, and the session's link is the new one. Before that
 * nothing of the session is touched: if anything fails, the source is told, and resumes. Threads
 * that call or wait notice nothing; a thread that needs a segment of memory meanwhile gets it from
 * the old gantryd and passes it to the new one (area.c). When the vGPU leaves this machine, this
 * thread then relays the messages of the ring (ring_relay.c); when it comes to this machine, the
 * new worker reads the ring again.
 */
#include "guest/migrate/follow_migration.h"
#include "guest/migrate/ring_relay.h"
#include "guest/migrate/stopped.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "base/thread.h"
#include "link/worker_hand.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define CLAIM_NS UINT64_C(120000000000) /* a driver may take long to start */
#define AHEAD_NS                                                                                   \
    UINT64_C(1000000000000000)         /* the source has a limit of its own, and reports it        \
                                        */
#define READY_NS UINT64_C(70000000000) /* once everything has been written */

struct gn_moving {
    struct gn_session *s;
    struct gn_link *to; /* to the other gantryd; NULL: it was not reached */
    uint32_t number;
    int wake; /* an eventfd: a field under moving_lock has changed */
    struct gn_link_move what;
    struct gn_link_claimed claimed;
    struct gn_link_ready ready;
    bool is_claimed, is_ready; /* have been received */
    bool tcp;                  /* the other gantryd is reached over tcp */
    bool near; /* the vGPU is on another machine, and the other gantryd on this: the vGPU is to
                  share memory again */
    int hand, session; /* near: the socket that hands the session to the new worker, and this end of
                          the session's new socket; -1 */
    bool handed;       /* near: the relay stands, and the worker knows the position */
    struct gn_session_tcp
        *turns; /* the vGPU shares memory still: the connection for when it does not any more */
};

/*
 * moving_lock. Has the source sent everything? Over tcp the worker's messages come by another
 * connection than gantryd's.
 */
static bool has_heard_all(const struct gn_moving *m)
{
    const struct gn_session *s = m->s;
    return s->move_notes[GN_NOTE_LEAVE] == m->number &&
           (gn_session_shares_memory(m->s) || s->move_notes[GN_NOTE_QUIESCED] == m->number);
}

bool gn_moving_is_off(const struct gn_moving *m)
{
    struct gn_session *s = m->s;
    pthread_mutex_lock(&s->moving_lock);
    const bool off =
        s->move_notes[GN_NOTE_OFF] == m->number || (s->move_deserted && !has_heard_all(m));
    pthread_mutex_unlock(&s->moving_lock);
    return off;
}

static bool may_leave(const struct gn_moving *m)
{
    struct gn_session *s = m->s;
    pthread_mutex_lock(&s->moving_lock);
    const bool may = has_heard_all(m) && s->move_notes[GN_NOTE_OFF] != m->number;
    pthread_mutex_unlock(&s->moving_lock);
    return may;
}

/*
 * The lock of the link. Over tcp the watcher uses the link without link_lock, whose holder may wait
 * for records that the watcher reads.
 */
static pthread_mutex_t *lock_of_link(struct gn_session *s)
{
    return gn_session_ops(s)->link_lock(s);
}

/* Locks all fields that the end of the migration changes: near, also the list of segments. */
static void lock_link(struct gn_moving *m)
{
    if (m->near)
        pthread_mutex_lock(&m->s->link_lock);
    pthread_mutex_lock(lock_of_link(m->s));
}

static void unlock_link(struct gn_moving *m, pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    if (m->near)
        pthread_mutex_unlock(&m->s->link_lock);
}

/*
 * Reads the other gantryd's messages, each kind once. 0, or -errno with a sentence: the migration
 * fails.
 */
static int hear(struct gn_moving *m, struct gn_error *err)
{
    int rc;
    while ((rc = gn_link_claim_accepted(m->to, &m->claimed, &m->ready, err)) > 0) {
        bool *heard = rc == GN_LINK_CLAIMED ? &m->is_claimed : &m->is_ready;
        if (*heard)
            return gn_fail(err, EPROTO, "see what its log says",
                           "the other gantryd says the same twice");
        *heard = true;
    }
    return rc;
}

/* Waits for a message or a change. 0, -ECANCELED: called off; -errno. */
static int wait_for_more(struct gn_moving *m, uint64_t until_ns, struct gn_error *err)
{
    struct pollfd p[2] = {{.fd = gn_link_poll_fd(m->to), .events = POLLIN},
                          {.fd = m->wake, .events = POLLIN}};
    const uint64_t now = gn_now_ns();
    if (gn_moving_is_off(m))
        return -ECANCELED;
    if (now >= until_ns)
        return gn_fail(err, ETIMEDOUT, "see whether it is stuck",
                       "the other gantryd took too long");
    const uint64_t rest_ms = (until_ns - now) / 1000000u + 1;
    if (poll(p, 2, rest_ms < 60000 ? (int)rest_ms : 60000) > 0 && p[1].revents)
        gn_fd_drain(m->wake);
    return gn_moving_is_off(m) ? -ECANCELED : 0;
}

/* Shows the ticket. */
static int show(struct gn_moving *m, int hand, uint32_t *ret_segments, struct gn_error *err)
{
    struct gn_session *s = m->s;
    struct gn_link_claim claim = {.vgpu_id = s->vgpu_id};
    pthread_mutex_t *lock = lock_of_link(s);
    memcpy(claim.ticket, m->what.ticket, sizeof claim.ticket);
    lock_link(m);
    claim.n_segments = *ret_segments = m->tcp && !m->near ? 0 : s->area.n_segments - 1;
    int rc = gn_link_claim(m->to, &claim, s->ring_segment.fd, hand, err);
    if (!rc)
        s->to = m->to; /* later segments are passed on */
    unlock_link(m, lock);
    explicit_bzero(&claim, sizeof claim);
    return rc;
}

/*
 * By the other gantryd's socket; its worker gets the session from here. -errno: that gantryd is not
 * on this machine.
 */
static int show_near(struct gn_moving *m, struct gn_error *err)
{
    uint32_t n_segments;
    int hand[2] = {-1, -1}, session[2] = {-1, -1};
    int rc = gn_link_connect_near(&m->what, &m->to, err);
    if (!rc && (rc = gn_relay_turn(m->s, m, err))) {
        gn_link_close(m->to);
        m->to = NULL;
    }
    if (rc)
        return rc;
    if (gn_fd_pair(AF_UNIX, SOCK_STREAM, hand) < 0 || gn_fd_pair(AF_UNIX, SOCK_STREAM, session) < 0)
        rc = gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    m->near = true;
    m->hand = hand[0];
    m->session = session[0];
    if (!rc)
        rc = show(m, hand[1], &n_segments, err);
    if (!rc && (rc = gn_session_hand_over(m->s, m->hand, session[1], n_segments + 1)))
        gn_fail(err, -rc, NULL, "the other gantryd's worker does not take the session");
    gn_fd_close(hand[1]);
    gn_fd_close(session[1]);
    return rc;
}

static int show_there(struct gn_moving *m, struct gn_error *err)
{
    uint32_t ignored;
    int rc = gn_session_shares_memory(m->s) ? -EHOSTUNREACH : show_near(m, err);
    if (!rc || m->near)
        return rc;
    rc = gn_link_connect_claim(m->s->link, &m->what, &m->to, err);
    return rc ? rc : show(m, -1, &ignored, err);
}

static int claim(struct gn_moving *m, struct gn_error *err)
{
    GN_FAULT("program-move-told");
    int rc = show_there(m, err);
    const uint64_t until_ns = gn_now_ns() + CLAIM_NS;
    while (!rc && !m->is_claimed) {
        rc = hear(m, err);
        if (!rc && !m->is_claimed)
            rc = wait_for_more(m, until_ns, err);
    }
    return rc;
}

/*
 * Near: once the far worker asks for it, the relay stops reading the ring, and the new worker is
 * told the position.
 */
static int stand_still(struct gn_moving *m, struct gn_error *err)
{
    struct gn_session *s = m->s;
    uint64_t ring_at;
    pthread_mutex_lock(&s->moving_lock);
    const bool pause = s->move_notes[GN_NOTE_PAUSE] == m->number;
    pthread_mutex_unlock(&s->moving_lock);
    if (!pause || m->handed || !gn_relay_pause(s, m->number, &ring_at))
        return 0;
    m->handed = true;
    GN_FAULT("program-stands");
    const int rc = gn_worker_hand_position(m->hand, ring_at);
    return rc ? gn_fail(err, -rc, NULL, "the other gantryd's worker does not take the session") : 0;
}

static int wait_until_loaded(struct gn_moving *m, struct gn_error *err)
{
    uint64_t until_ns = gn_now_ns() + AHEAD_NS;
    bool leave = false;
    int rc = 0;
    while (!rc) {
        rc = hear(m, err);
        if (!rc && m->near)
            rc = stand_still(m, err);
        if (!leave && (leave = may_leave(m)))
            until_ns = gn_now_ns() + READY_NS;
        if (rc || (leave && m->is_ready))
            break;
        rc = wait_for_more(m, until_ns, err);
    }
    return rc;
}

/* Tells the source that the program comes to the other gantryd, or why it stays. 0 or -errno. */
static int tell_source(struct gn_moving *m, const struct gn_error *why_stays)
{
    struct gn_session *s = m->s;
    pthread_mutex_lock(lock_of_link(s));
    const int rc = why_stays ? gn_link_send_stays(s->link, m->number, why_stays)
                             : gn_link_send_comes(s->link, m->number, m->near);
    pthread_mutex_unlock(lock_of_link(s));
    return rc;
}

/* Near, and decided. The lock of the link is held. */
static void share_again(struct gn_moving *m)
{
    struct gn_session *s = m->s;
    pthread_mutex_lock(&s->socket_lock);
    /* Keeps the socket's number, unless it has none or the program has closed it. */
    if (s->socket < 0 || gn_fd_replace(m->session, s->socket) < 0) {
        s->socket = m->session;
        m->session = -1;
    }
    pthread_mutex_unlock(&s->socket_lock);
    gn_relay_end(s);
}

/* 0: the vGPU is there. */
static int move(struct gn_moving *m, struct gn_error *err)
{
    struct gn_session *s = m->s;
    int rc = claim(m, err);
    GN_FAULT("program-claimed");
    if (!rc && tell_source(m, NULL))
        rc = -ECANCELED;
    if (!rc)
        rc = wait_until_loaded(m, err);
    if (!m->to)
        return rc;
    GN_FAULT("program-before-go");
    pthread_mutex_t *lock = lock_of_link(s),
                    *new_lock = m->turns ? gn_session_tcp_link_lock(m->turns) : NULL;
    lock_link(m);
    if (new_lock)
        pthread_mutex_lock(new_lock);
    s->to = NULL;
    const uint32_t grace_ms = gn_link_grace_ms(m->to);
    if (rc) {
        gn_link_close(m->to);
    } else if ((rc = gn_link_go_over(s->link, m->to, m->number, &m->claimed, &m->ready))) {
        gn_fail(err, -rc, NULL, "the other gantryd has gone");
    } else {
        s->vgpu_id = m->claimed.vgpu_id;
        s->platform = m->claimed.platform.index;
        memcpy(s->address, m->near ? m->what.near : m->what.address, sizeof s->address);
        if (m->turns)
            gn_relay_begin(s, m->turns, grace_ms);
        if (m->near)
            share_again(m);
        gn_session_ops(s)->link_changed(s);
    }
    GN_FAULT("program-gone-over");
    if (new_lock)
        pthread_mutex_unlock(new_lock);
    unlock_link(m, lock);
    return rc;
}

static void *mover(void *arg)
{
    struct gn_moving *m = arg;
    struct gn_session *s = m->s;
    struct gn_error err = {{0}, {0}};
    pthread_mutex_lock(&s->moving_lock);
    while (s->moving)
        pthread_cond_wait(&s->moving_wake, &s->moving_lock);
    s->moving = m;
    pthread_mutex_unlock(&s->moving_lock);
    m->tcp = strncmp(m->what.address, "tcp:", 4) == 0;
    int rc = gn_moving_is_off(m) || gn_session_lost(s) ? -ECANCELED : 0;
    if (!rc && m->tcp && gn_session_shares_memory(s))
        rc = gn_relay_prepare(s, m, &m->turns, &err);
    if (!rc && (rc = move(m, &err)) && m->turns)
        gn_relay_call_off(s, m->turns);
    const bool relays = !rc && m->turns;
    if (rc && m->near)
        gn_relay_go_on(s);
    gn_fd_close(m->hand);
    gn_fd_close(m->session);
    if (rc && rc != -ECANCELED)
        (void)tell_source(m, &err);
    pthread_mutex_lock(&s->moving_lock);
    s->moving = NULL;
    s->n_moves += !rc;
    s->move_deserted = false;
    if (!rc)
        memset(s->move_notes, 0, sizeof s->move_notes); /* another gantryd's numbers follow */
    pthread_cond_broadcast(&s->moving_wake);
    pthread_mutex_unlock(&s->moving_lock);
    gn_fd_close(m->wake);
    explicit_bzero(m, sizeof *m);
    free(m);
    if (relays)
        (void)gn_relay_run(s);
    return NULL;
}

static void begin(struct gn_session *s, uint32_t number, const struct gn_link_move *what)
{
    struct gn_moving *m = calloc(1, sizeof *m);
    struct gn_error err;
    /* LEAVE wakes the watcher before the descriptor is needed, and the watcher finds it then. */
    if (atomic_load_explicit(&s->turn_fd, memory_order_relaxed) < 0)
        atomic_store_explicit(&s->turn_fd, gn_fd_event(EFD_NONBLOCK), memory_order_release);
    const int wake = gn_fd_event(EFD_NONBLOCK);
    if (m)
        *m = (struct gn_moving){
            .s = s, .number = number, .wake = wake, .what = *what, .hand = -1, .session = -1};
    if (m && wake >= 0 && atomic_load_explicit(&s->turn_fd, memory_order_relaxed) >= 0 &&
        !gn_thread_start(GN_THREAD_PREFIX "move", mover, m, NULL))
        return;
    gn_fail(&err, EMFILE, "raise its limits, or move it later",
            "the program has no descriptors, threads or memory left");
    (void)gn_link_send_stays(s->link, number, &err);
    gn_fd_close(wake);
    free(m);
}

void gn_session_moving_wake_locked(struct gn_session *s)
{
    if (s->moving)
        gn_fd_signal(s->moving->wake);
}

static void note(struct gn_session *s, enum gn_migration_note what, uint32_t number)
{
    pthread_mutex_lock(&s->moving_lock);
    s->move_notes[what] = number;
    gn_session_moving_wake_locked(s);
    pthread_mutex_unlock(&s->moving_lock);
}

void gn_session_move_word(void *ctx, uint16_t op, uint32_t number, const struct gn_link_move *what)
{
    if (op == GN_LINK_MOVE)
        begin(ctx, number, what);
    else
        note(ctx, op == GN_LINK_LEAVE ? GN_NOTE_LEAVE : GN_NOTE_OFF, number);
}

static bool await_decision(struct gn_session *s)
{
    pthread_mutex_lock(&s->moving_lock);
    s->move_deserted = s->moving != NULL;
    gn_session_moving_wake_locked(s);
    while (s->moving)
        pthread_cond_wait(&s->moving_wake, &s->moving_lock);
    /* Once for each migration: the new gantryd may have hung up as well. */
    const bool moved = s->n_moves != s->n_moves_seen;
    s->n_moves_seen = s->n_moves;
    pthread_mutex_unlock(&s->moving_lock);
    return moved;
}

const struct gn_session_migration_ops gn_session_migration = {
    .note = note,
    .await_decision = await_decision,
    .await_restored = gn_session_await_restored,
};
