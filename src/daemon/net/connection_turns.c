/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the frame that is served next (connection_turns.h). The event loop calls it after each
 * epoll_wait(), on gantryd's thread. It reads no socket: connections.c does, and queues the frame
 * here. */
#include "daemon/net/connection_turns.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

static const struct gn_bucket_bounds requests = {GN_TURNS_REQUESTS, GN_TURNS_REQUEST_NS};

static enum gn_turn kind_of(const struct gn_conn *c)
{
    switch (c->frame.op) {
    case GN_LINK_HELLO:
        return GN_TURN_GREETING;
    case GN_LINK_ATTACH:
        return GN_TURN_ATTACH;
    case GN_LINK_CONTROL:
        return c->frame.flags & GN_FRAME_MORE || c->role == GN_ROLE_CONTROL ? GN_TURN_FRAME
                                                                            : GN_TURN_REQUEST;
    default:
        return GN_TURN_FRAME;
    }
}

/* Users wait in two queues: one for greetings, one for all other frames. */
static bool is_greeting(enum gn_turn kind)
{
    return kind == GN_TURN_GREETING;
}

static bool is_queued(const struct gn_quota *q, bool greeting)
{
    for (int kind = 0; kind < GN_TURNS; kind++)
        if (is_greeting(kind) == greeting && !gn_list_empty(&q->waiting[kind]))
            return true;
    return false;
}

/* Whether a frame of this kind may be served now. If not, and only time is missing, *ret_at_ns is
 * the time from which it may. */
static bool may_be_served(struct gn_quota *q, enum gn_turn kind, uint64_t now_ns,
                          uint64_t *ret_at_ns)
{
    if (kind == GN_TURN_ATTACH)
        return q->n_starting < GN_TURNS_STARTING;
    if (kind != GN_TURN_REQUEST || gn_bucket_spend(&q->requests, &requests, now_ns))
        return true;
    *ret_at_ns = gn_bucket_ready_at(&q->requests, &requests, now_ns);
    return false;
}

static struct gn_conn *find_servable(struct gn_quota *q, bool greeting, uint64_t now_ns,
                                     uint64_t *ret_at_ns)
{
    for (int kind = 0; kind < GN_TURNS; kind++)
        if (is_greeting(kind) == greeting && !gn_list_empty(&q->waiting[kind]) &&
            may_be_served(q, kind, now_ns, ret_at_ns))
            return gn_list_first(&q->waiting[kind], struct gn_conn, turn);
    return NULL;
}

static void arm_timer(struct gn_daemon *d, uint64_t at_ns)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000u),
                                                 .tv_nsec = (long)(at_ns % 1000000000u)}};
    (void)timerfd_settime(d->turns.timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Serves one frame of the first user in the queue that has one which may be served. False: there is
 * none. */
static bool serve_one(struct gn_daemon *d, bool greeting, uint64_t now_ns)
{
    uint64_t first_ns = 0;
    gn_list_for_each(q, &d->turns.lines[greeting], struct gn_quota, turn[greeting])
    {
        uint64_t at_ns = 0;
        struct gn_conn *c = find_servable(q, greeting, now_ns, &at_ns);
        if (!c) {
            first_ns = at_ns && (!first_ns || at_ns < first_ns) ? at_ns : first_ns;
            continue;
        }
        gn_turns_remove(c);
        if (is_queued(q, greeting)) { /* the user goes to the end of the queue */
            gn_list_remove(&q->turn[greeting]);
            gn_list_append(&d->turns.lines[greeting], &q->turn[greeting]);
        }
        gn_conn_serve(c);
        return true;
    }
    if (first_ns)
        arm_timer(d, first_ns);
    return false;
}

/* Returns true when more frames may be ready: the loop then does not sleep. */
static bool serve_round(struct gn_loop *loop)
{
    struct gn_daemon *d = gn_container_of(loop, struct gn_daemon, loop);
    const uint64_t now_ns = gn_now_ns();
    bool more = !gn_list_empty(&d->turns.lines[true]);
    for (unsigned i = 0; i < GN_TURNS_GREETINGS && more; i++)
        more = serve_one(d, true, now_ns);
    return (!gn_list_empty(&d->turns.lines[false]) && serve_one(d, false, now_ns)) || more;
}

static void timer_expired(struct gn_source *timer, uint32_t events)
{
    uint64_t expirations;
    (void)events;
    /* the loop calls serve_round() after this event */
    (void)!read(timer->fd, &expirations, sizeof expirations);
}

void gn_turns_add(struct gn_conn *c)
{
    struct gn_quota *q = c->quota;
    const enum gn_turn kind = kind_of(c);
    const bool greeting = is_greeting(kind);
    if (!is_queued(q, greeting))
        gn_list_append(&c->daemon->turns.lines[greeting], &q->turn[greeting]);
    gn_list_append(&q->waiting[kind], &c->turn);
    c->waits = true;
}

void gn_turns_remove(struct gn_conn *c)
{
    const bool greeting = is_greeting(kind_of(c));
    if (!c->waits)
        return;
    c->waits = false;
    gn_list_remove(&c->turn);
    if (!is_queued(c->quota, greeting))
        gn_list_remove(&c->quota->turn[greeting]);
}

int gn_turns_init(struct gn_daemon *d)
{
    gn_list_init(&d->turns.lines[false]);
    gn_list_init(&d->turns.lines[true]);
    d->turns.timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (d->turns.timer.fd < 0)
        return -errno;
    d->loop.after = serve_round;
    return gn_loop_add(&d->loop, &d->turns.timer, EPOLLIN, timer_expired);
}

void gn_turns_fini(struct gn_daemon *d)
{
    d->loop.after = NULL;
    gn_loop_close(&d->loop, &d->turns.timer);
}
