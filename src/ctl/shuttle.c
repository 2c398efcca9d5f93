/* SPDX-License-Identifier: Apache-2.0 */
/* Between a worker that knows no TLS and one that is reached by it: a thread that passes on what
 * either says, until either ends or it is stopped. */
#include "ctl/shuttle.h"

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
#define HANDSHAKE_NS                                                                               \
    UINT64_C(120000000000) /* the worker there is started only when the program has come */

struct way {
    size_t at, n; /* what waits */
    unsigned char bytes[ROOM_BYTES];
};

struct gn_shuttle {
    pthread_t thread;
    struct gn_tls_psk key;
    struct gn_tcp tcp;
    int inside;
    struct way in, out; /* in: to the worker here */
};

/* Each moves what it can: 0; or -errno: this way is over. */
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
    struct gn_error
        ignored; /* who waits here hears that nothing comes, and who refused has said why */
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
    /* Who reads or writes at the other ends hears of it. */
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
