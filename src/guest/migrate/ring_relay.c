/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose vGPU shared its memory and has gone to another machine (docs/moves.md). Its
 * threads notice nothing: they put messages into the ring and wait at the same slots and words. The
 * relay, a thread of this process, reads the ring in the worker's place, and sends the messages
 * over tcp with the bytes that they name; the watcher enters the records that come back. Only
 * buffers' homes are not shared any more: no thread may be using one without a message when the
 * vGPU goes, and from then on all buffers are transferred. That stays so when the vGPU comes back
 * to this machine, where a worker reads the ring again and the relay ends.
 */
#include "guest/core/loss.h"
#include "guest/migrate/follow_migration.h"
#include "guest/migrate/ring_relay.h"
#include "guest/session/session_ops.h"
#include "guest/session/session_tcp.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define HOME_NS  UINT64_C(3000000000) /* for a map or copy that waits for earlier commands */
#define PAUSE_NS 1000000

/* ---- before */

/* Has it addresses that the vGPU has, too? */
static bool has_window(struct gn_session *s)
{
    pthread_mutex_lock(&s->link_lock);
    const bool used = s->area.window_used != 0;
    pthread_mutex_unlock(&s->link_lock);
    return used;
}

/* Waits until is_done. 0; -ECANCELED: m is called off; -EBUSY with the sentence `busy`. */
static int await(struct gn_session *s, bool (*is_done)(struct gn_session *s),
                 const struct gn_moving *m, const char *fix, const char *busy, struct gn_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t until_ns = gn_now_ns() + HOME_NS;
    while (!is_done(s)) {
        if (gn_moving_is_off(m))
            return -ECANCELED;
        if (gn_now_ns() >= until_ns)
            return gn_fail(err, EBUSY, fix, "%s", busy);
        nanosleep(&pause, NULL);
    }
    return 0;
}

static bool are_homes_empty(struct gn_session *s)
{
    s->api->settle(s);
    return !atomic_load_explicit(&s->n_at_home, memory_order_seq_cst);
}

static bool is_sent(struct gn_session *s)
{
    return gn_session_tcp_is_empty(gn_session_tcp_of(s));
}

int gn_relay_prepare(struct gn_session *s, const struct gn_moving *m, struct gn_session_tcp **ret,
                     struct gn_error *err)
{
    if (!gn_session_ops(s)->may_relay)
        return gn_fail(err, EOPNOTSUPP, "gantry mode VGPU remote, and try again",
                       "the vGPU lives in its program");
    int rc = gn_session_tcp_new(s, ret);
    if (rc)
        return gn_fail(err, -rc, NULL,
                       "the program has no memory or descriptors left for a connection");
    atomic_store_explicit(&s->homes_shut, true, memory_order_seq_cst);
    rc = await(s, are_homes_empty, m, "try again when what these wait for has ended",
               "the program is mapping or copying buffers that lie in memory that it shares with "
               "its vGPU",
               err);
    if (!rc && has_window(s))
        rc = gn_fail(
            err, EOPNOTSUPP, NULL,
            "it has used shared virtual memory, whose addresses cannot be had on another machine");
    if (rc)
        gn_relay_call_off(s, *ret);
    return rc;
}

void gn_relay_call_off(struct gn_session *s, struct gn_session_tcp *r)
{
    atomic_store_explicit(&s->homes_shut, atomic_load_explicit(&s->was_far, memory_order_relaxed),
                          memory_order_seq_cst);
    gn_session_tcp_free(r);
}

void gn_relay_begin(struct gn_session *s, struct gn_session_tcp *r, uint32_t grace_ms)
{
    gn_session_tcp_begin(r, grace_ms);
    atomic_store_explicit(&s->tcp, r, memory_order_release);
    atomic_store_explicit(&s->ops, &gn_session_relay, memory_order_release);
}

/* ---- after */

/* Sends a message with the data that it names. -EPROTO: that data does not exist. */
static int pass(struct gn_session *s, struct gn_session_tcp *r, const unsigned char *bytes,
                uint32_t n_bytes)
{
    struct gn_passed passed[GN_MAX_PASSED];
    struct gn_msg msg;
    struct gn_area_ref ref;
    uint64_t n_brought = 0;
    uint32_t n = 0;
    if (n_bytes < sizeof msg)
        return -EPROTO;
    memcpy(&msg, bytes, sizeof msg);
    for (const uint16_t *at = s->api->inputs(msg.op); *at; at++) {
        struct gn_span span;
        if (*at + sizeof span > n_bytes || n + 1 >= GN_MAX_PASSED)
            return -EPROTO;
        memcpy(&span, bytes + *at, sizeof span);
        /* Its block is used again as soon as this message has been taken, when nobody waits for its
         * answer. */
        if (span.segment != GN_SPAN_NULL && span.segment != GN_SPAN_INLINE && span.bytes)
            passed[n++] = (struct gn_passed){
                {span.segment, 0, span.offset}, span.bytes, msg.reply == GN_NO_REPLY};
    }
    if (s->api->brings(bytes, n_bytes, &ref, &n_brought) && ref.segment != GN_SPAN_NULL) {
        if (!n_brought)
            n_brought = gn_area_rest_of_block(&s->area, &ref);
        if (n_brought)
            passed[n++] = (struct gn_passed){ref, n_brought, false};
    }
    return gn_session_tcp_pass(r, (const void *)bytes, n_bytes, passed, n);
}

struct gn_relay {
    struct gn_ring_consumer ring;
    /* moving_lock */
    uint32_t stands; /* the number of the migration for which it stands; 0: it does not */
    bool ends;       /* the relay is not needed any more */
};

/* True: a worker reads the ring from now on. */
static bool stand(struct gn_session *s, struct gn_session_tcp *r, struct gn_relay *relay)
{
    pthread_mutex_lock(&s->moving_lock);
    const uint32_t number = s->relay_pause;
    pthread_mutex_unlock(&s->moving_lock);
    if (!number)
        return false;
    gn_ring_release(&relay->ring);
    gn_session_tcp_send_paused(r, number);
    pthread_mutex_lock(&s->moving_lock);
    relay->stands = number;
    gn_session_moving_wake_locked(s);
    while (s->relay_pause == number && !relay->ends)
        pthread_cond_wait(&s->moving_wake, &s->moving_lock);
    relay->stands = 0;
    const bool ends = relay->ends;
    pthread_mutex_unlock(&s->moving_lock);
    return ends;
}

void *gn_relay_run(void *session)
{
    struct gn_session *s = session;
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    const struct gn_waiter waiter = {gn_spin_policy_default(), &s->lost};
    unsigned char bytes[GN_RING_MAX_BYTES];
    struct gn_relay relay = {.ends = false};
    bool ends = false;
    int rc = gn_ring_consumer_init(&relay.ring, s->view.requests, GN_SESSION_REQUEST_SLOTS,
                                   gn_ring_stopped_at(&s->requests), waiter);
    pthread_mutex_lock(&s->moving_lock);
    s->relay = &relay;
    pthread_mutex_unlock(&s->moving_lock);
    while (!rc && !(ends = stand(s, r, &relay))) {
        const int n = gn_ring_try_receive(&relay.ring, bytes);
        if (n == -EAGAIN) {
            gn_ring_release(&relay.ring);
            gn_session_tcp_flush(r);
            rc = gn_ring_wait(&relay.ring);
        } else {
            rc = n < 0 ? n : pass(s, r, bytes, (uint32_t)n);
        }
    }
    pthread_mutex_lock(&s->moving_lock);
    if (s->relay == &relay)
        s->relay = NULL; /* else the vGPU has left this machine again */
    pthread_mutex_unlock(&s->moving_lock);
    /* The old worker has written into the ring, or the vGPU is lost anyhow. */
    if (!ends)
        gn_session_declare_lost(s);
    return NULL;
}

/* ---- back */

int gn_relay_turn(struct gn_session *s, const struct gn_moving *m, struct gn_error *err)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    if (!gn_session_tcp_has_turned(r) && gn_session_ops(s)->data) {
        const int rc = gn_thread_start(GN_THREAD_PREFIX "relay", gn_relay_run, s, NULL);
        if (rc)
            return gn_fail(err, -rc, NULL, "the program can start no thread: %s", strerror(-rc));
        atomic_store_explicit(&s->homes_shut, true, memory_order_seq_cst);
        gn_session_tcp_turn(r);
    }
    const int rc =
        await(s, is_sent, m, NULL, "the program is in the middle of what it transfers", err);
    /* Not before: a thread that has begun to send directly ends so. */
    if (!rc)
        atomic_store_explicit(&s->ops, &gn_session_relay, memory_order_release);
    return rc;
}

bool gn_relay_pause(struct gn_session *s, uint32_t number, uint64_t *ret_at)
{
    pthread_mutex_lock(&s->moving_lock);
    s->relay_pause = number;
    const bool stands = s->relay && s->relay->stands == number;
    if (stands)
        *ret_at = s->relay->ring.head;
    else if (s->relay)
        gn_ring_nudge(&s->relay->ring);
    pthread_mutex_unlock(&s->moving_lock);
    return stands;
}

/* The relay need not stand any more: it goes on, or ends. */
static void resume(struct gn_session *s, bool ends)
{
    pthread_mutex_lock(&s->moving_lock);
    if (s->relay && ends)
        s->relay->ends = true;
    s->relay_pause = 0;
    pthread_cond_broadcast(&s->moving_wake);
    pthread_mutex_unlock(&s->moving_lock);
}

void gn_relay_go_on(struct gn_session *s)
{
    resume(s, false);
}

void gn_relay_end(struct gn_session *s)
{
    struct gn_session_tcp *r = gn_session_tcp_of(s);
    /* Before `ops`: gn_session_await_home looks at both. */
    atomic_store_explicit(&s->was_far, true, memory_order_release);
    atomic_store_explicit(&s->ops, &gn_session_shm, memory_order_release);
    atomic_store_explicit(&s->tcp, NULL, memory_order_release);
    resume(s, true);
    gn_session_tcp_end_shared(r);
}
