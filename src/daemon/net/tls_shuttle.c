/* SPDX-License-Identifier: Apache-2.0 */
/* Copies bytes between a TLS connection and a socket pair (tls_shuttle.h). Called by listen_tcp.c
 * and by the event loop, on gantryd's thread; never blocks. When either side ends, the bytes
 * received so far are passed on and both sides are closed. */
#include "daemon/net/tls_shuttle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM_BYTES 16384u

struct direction {
    unsigned char bytes[ROOM_BYTES];
    size_t at, n; /* bytes that wait to be sent */
    bool over;    /* no more bytes will arrive */
};

struct shuttle {
    struct gn_corpse corpse;
    struct gn_list link; /* in the list of its listener */
    struct gn_daemon *daemon;
    struct gn_source outside, inside;
    struct gn_tcp tcp;
    struct direction in, out; /* in: towards gantryd */
};

static void free_shuttle(struct gn_corpse *corpse)
{
    free(gn_container_of(corpse, struct shuttle, corpse));
}

static void end_shuttle(struct shuttle *s)
{
    if (s->inside.fd < 0)
        return;
    gn_list_remove(&s->link);
    gn_loop_close(&s->daemon->loop, &s->inside);
    if (s->tcp.tls)
        gn_tls_free(s->tcp.tls);
    gn_loop_close(&s->daemon->loop, &s->outside);
    gn_loop_bury(&s->daemon->loop, &s->corpse, free_shuttle);
}

/* Copies as much as possible. False: this direction is finished and all its bytes are delivered, or
 * it is broken. */
static bool copy_in(struct shuttle *s)
{
    struct direction *w = &s->in;
    for (;;) {
        while (w->n) {
            ssize_t m = send(s->inside.fd, w->bytes + w->at, w->n, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (m < 0 && errno == EINTR)
                continue;
            if (m < 0)
                return errno == EAGAIN;
            w->at += (size_t)m;
            w->n -= (size_t)m;
        }
        if (w->over)
            return false;
        struct iovec iov = {w->bytes, sizeof w->bytes};
        ssize_t got = gn_tcp_recv(&s->tcp, &iov, 1);
        if (got == -EAGAIN)
            return true;
        w->over = got < 0;
        w->at = 0;
        w->n = got > 0 ? (size_t)got : 0;
    }
}

static bool copy_out(struct shuttle *s)
{
    struct direction *w = &s->out;
    for (;;) {
        while (w->n) {
            struct iovec iov = {w->bytes + w->at, w->n};
            ssize_t m = gn_tcp_send(&s->tcp, &iov, 1);
            if (m < 0)
                return m == -EAGAIN;
            w->at += (size_t)m;
            w->n -= (size_t)m;
        }
        if (w->over)
            return gn_tcp_unsent(&s->tcp);
        ssize_t got = recv(s->inside.fd, w->bytes, sizeof w->bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            (void)gn_tcp_unsent(&s->tcp);
            return true;
        }
        w->over = got <= 0;
        w->at = 0;
        w->n = got > 0 ? (size_t)got : 0;
    }
}

static void copy_both(struct shuttle *s)
{
    if (!copy_in(s) || !copy_out(s)) {
        end_shuttle(s);
        return;
    }
    struct gn_loop *loop = &s->daemon->loop;
    gn_loop_change(loop, &s->outside,
                   (s->in.n ? 0 : EPOLLIN) | (s->out.n || gn_tcp_unsent(&s->tcp) ? EPOLLOUT : 0));
    gn_loop_change(loop, &s->inside, (s->out.n ? 0 : EPOLLIN) | (s->in.n ? EPOLLOUT : 0));
}

static void outside_ready(struct gn_source *source, uint32_t events)
{
    (void)events;
    copy_both(gn_container_of(source, struct shuttle, outside));
}

static void inside_ready(struct gn_source *source, uint32_t events)
{
    (void)events;
    copy_both(gn_container_of(source, struct shuttle, inside));
}

int gn_tls_shuttle_start(struct gn_daemon *d, struct gn_list *all, struct gn_tcp *tcp,
                         const struct gn_session_tcp_peer *peer, struct gn_conn **ret)
{
    int ends[2];
    struct shuttle *s = calloc(1, sizeof *s);
    *ret = NULL;
    if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        int rc = s ? -errno : -ENOMEM;
        free(s);
        gn_tcp_close(tcp);
        return rc;
    }
    s->daemon = d;
    s->tcp = *tcp;
    s->outside.fd = tcp->fd;
    s->inside.fd = ends[0];
    gn_list_append(all, &s->link);
    int rc = gn_loop_add(&d->loop, &s->outside, EPOLLIN, outside_ready);
    if (!rc)
        rc = gn_loop_add(&d->loop, &s->inside, EPOLLIN, inside_ready);
    if (rc) {
        close(ends[1]);
        end_shuttle(s);
        return rc;
    }
    *ret = gn_conns_add_tcp(d, ends[1], peer);
    /* The first request may have arrived with the last bytes of the handshake. */
    copy_both(s);
    return 0;
}

void gn_tls_shuttles_stop(struct gn_list *all)
{
    gn_list_for_each(s, all, struct shuttle, link)
    {
        copy_both(s);
        end_shuttle(s);
    }
}
