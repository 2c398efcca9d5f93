/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays a stream between a worker without TLS and a peer that requires TLS. One thread copies
 * bytes in both directions until either end closes or gn_shuttle_stop() is called.
 */
#include "client/shuttle.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/tcp.h"
#include "link/tls.h"

#define ROOM_BYTES (64u << 10)
/* Long: the remote worker is started only when the program has arrived. */
#define HANDSHAKE_NS UINT64_C(120000000000)

struct way {
    size_t at, n; /* bytes[at..at+n) wait to be sent */
    unsigned char bytes[ROOM_BYTES];
};

struct gn_shuttle {
    pthread_t thread;
    struct gn_tls_psk key;
    struct gn_tcp tcp;
    int inside;
    struct way in, out; /* in: from TLS to the local worker; out: the opposite direction */
};

/*
 * Each copies as much as it can without blocking, in one direction. 0: nothing more can be copied
 * now; -errno: this direction is closed.
 */
static int move_in(struct gn_shuttle *s)
{
    struct way *w = &s->in;
    for (;;) {
        struct iovec iov = {w->bytes, sizeof w->bytes};
        const ssize_t n = w->n
                              ? send(s->inside, w->bytes + w->at, w->n, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : gn_tcp_recv(&s->tcp, &iov, 1);
        if (w->n && n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n < 0)
            return n == -EAGAIN ? 0 : (int)n;
        w->at = w->n ? w->at + (size_t)n : 0;
        w->n = w->n ? w->n - (size_t)n : (size_t)n;
    }
}

static int move_out(struct gn_shuttle *s)
{
    struct way *w = &s->out;
    for (;;) {
        struct iovec iov = {w->bytes + w->at, w->n};
        const ssize_t n = w->n ? gn_tcp_send(&s->tcp, &iov, 1)
                               : recv(s->inside, w->bytes, sizeof w->bytes, MSG_DONTWAIT);
        if (w->n && n < 0)
            return n == -EAGAIN ? 0 : (int)n;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            (void)gn_tcp_unsent(&s->tcp);
            return 0;
        }
        if (n <= 0)
            return n ? -errno : -EPIPE;
        w->at = w->n ? w->at + (size_t)n : 0;
        w->n = w->n ? w->n - (size_t)n : (size_t)n;
    }
}

static void *shuttle(void *arg)
{
    struct gn_shuttle *s = arg;
    const struct gn_tls_config config = {.psk = &s->key};
    /* The local worker sees a closed stream, and the rejecting end reports the reason. */
    struct gn_error ignored;
    const bool secure =
        !gn_tls_connect(&config, s->tcp.fd, gn_now_ns() + HANDSHAKE_NS, &s->tcp.tls, &ignored);
    while (secure && !move_in(s) && !move_out(s)) {
        struct pollfd p[2] = {
            {.fd = s->inside, .events = (short)((s->out.n ? 0 : POLLIN) | (s->in.n ? POLLOUT : 0))},
            {.fd = s->tcp.fd,
             .events = (short)((s->in.n ? 0 : POLLIN) |
                               (s->out.n || gn_tcp_unsent(&s->tcp) ? POLLOUT : 0))}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
    }
    /* Readers and writers at both ends see the stream close. */
    shutdown(s->inside, SHUT_RDWR);
    shutdown(s->tcp.fd, SHUT_RDWR);
    return NULL;
}

int gn_shuttle_start(int *fd, const struct gn_tls_psk *key, struct gn_shuttle **ret,
                     struct gn_error *err)
{
    struct gn_shuttle *s = calloc(1, sizeof *s);
    int ends[2];
    if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        free(s);
        return gn_fail(err, ENOMEM, NULL, "out of memory or descriptors");
    }
    s->key = *key;
    s->tcp = (struct gn_tcp){*fd, NULL};
    s->inside = ends[0];
    *fd = ends[1];
    const int rc = pthread_create(&s->thread, NULL, shuttle, s);
    if (rc) {
        gn_tcp_close(&s->tcp);
        close(s->inside);
        explicit_bzero(s, sizeof *s);
        free(s);
        return gn_fail(err, rc, NULL, "cannot start a thread: %s", strerror(rc));
    }
    *ret = s;
    return 0;
}

void gn_shuttle_stop(struct gn_shuttle *s)
{
    if (!s)
        return;
    shutdown(s->inside, SHUT_RDWR);
    shutdown(s->tcp.fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    gn_tcp_close(&s->tcp);
    close(s->inside);
    explicit_bzero(s, sizeof *s);
    free(s);
}
