/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp sockets to other machines, optionally with TLS (a module of its own, tls.h). Called by
 * programs, `gantry`, gantryd and workers, on any thread; all state is in the caller's struct
 * gn_tcp. Prints nothing; blocks only in the functions that take a deadline.
 */
#include "link/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "link/tls.h"

/* A peer that does not answer keep-alives, or acknowledges nothing, for about this long is gone. */
#define KEEP_IDLE_S     5
#define KEEP_INTERVAL_S 2
#define KEEP_COUNT      3
#define USER_TIMEOUT_MS 12000
/* Bounds the bulk data in the kernel's send queue, because small records queue behind it. */
#define NOT_SENT_BYTES (256 << 10)
#define BACKLOG        1024
/* A congestion control without pacing that every kernel has and every user may choose. */
#define UNPACED "reno"

static ssize_t send_some(struct gn_tcp *t, const struct iovec *iov, int n, bool more)
{
    if (!gn_fd_is_ours(t->fd))
        return -EBADF;
    if (t->tls)
        return gn_tls_send(t->tls, iov, n, more);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    ssize_t sent;
    do
        sent = sendmsg(t->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -(errno == EWOULDBLOCK ? EAGAIN : errno) : sent;
}

ssize_t gn_tcp_send(struct gn_tcp *t, const struct iovec *iov, int n)
{
    return send_some(t, iov, n, false);
}

ssize_t gn_tcp_send_more(struct gn_tcp *t, const struct iovec *iov, int n)
{
    return send_some(t, iov, n, true);
}

ssize_t gn_tcp_recv(struct gn_tcp *t, const struct iovec *iov, int n)
{
    if (!gn_fd_is_ours(t->fd))
        return -EBADF;
    if (t->tls)
        return gn_tls_recv(t->tls, iov, n);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n};
    ssize_t got;
    do
        got = recvmsg(t->fd, &msg, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -(errno == EWOULDBLOCK ? EAGAIN : errno) : got == 0 ? -EPIPE : got;
}

bool gn_tcp_has_more(struct gn_tcp *t)
{
    return t->tls && gn_tls_has_more(t->tls);
}

bool gn_tcp_unsent(struct gn_tcp *t)
{
    return t->tls && gn_tls_unsent(t->tls);
}

void gn_tcp_shutdown(struct gn_tcp *t)
{
    gn_fd_shutdown(t->fd);
}

void gn_tcp_close(struct gn_tcp *t)
{
    if (t->tls)
        gn_tls_free(t->tls);
    t->tls = NULL;
    if (t->fd >= 0)
        gn_fd_close(t->fd);
    t->fd = -1;
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = gn_now_ns();
        struct pollfd p = {.fd = fd, .events = events};
        int n = now >= deadline_ns ? 0 : poll(&p, 1, (int)((deadline_ns - now + 999999) / 1000000));
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

int gn_tcp_send_all(struct gn_tcp *t, const void *bytes, size_t n, uint64_t deadline_ns)
{
    const char *at = bytes;
    while (n || gn_tcp_unsent(t)) {
        struct iovec iov = {(void *)(uintptr_t)at, n};
        ssize_t sent = n ? gn_tcp_send(t, &iov, 1) : -EAGAIN;
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
            continue;
        }
        int rc = sent == -EAGAIN ? wait_for(t->fd, POLLOUT, deadline_ns) : (int)sent;
        if (rc)
            return rc;
    }
    return 0;
}

int gn_tcp_recv_all(struct gn_tcp *t, void *bytes, size_t n, uint64_t deadline_ns)
{
    char *at = bytes;
    while (n) {
        struct iovec iov = {at, n};
        ssize_t got = gn_tcp_recv(t, &iov, 1);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
            continue;
        }
        int rc = got == -EAGAIN ? wait_for(t->fd, POLLIN, deadline_ns) : (int)got;
        if (rc)
            return rc;
    }
    return 0;
}

static void set(int fd, int level, int option, int value)
{
    /* Failure is harmless: the link is slower, or its loss is noticed later. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool is_on_this_machine(int fd)
{
    union name here = {{0}}, there = {{0}};
    socklen_t n = sizeof here, m = sizeof there;
    if (getsockname(fd, &here.any, &n) < 0 || getpeername(fd, &there.any, &m) < 0 ||
        here.any.sa_family != there.any.sa_family)
        return false;
    if (here.any.sa_family == AF_INET6)
        return !memcmp(&here.v6.sin6_addr, &there.v6.sin6_addr, sizeof here.v6.sin6_addr);
    return here.any.sa_family == AF_INET && here.v4.sin_addr.s_addr == there.v4.sin_addr.s_addr;
}

void gn_tcp_set_up(int fd)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOT_SENT_BYTES);
    /*
     * Both ends on one machine: nothing is congested, and a congestion control that paces (BBR)
     * sets a timer per segment. In a virtual machine each timer is an exit, which took a quarter of
     * the sender's time, and pacing limited throughput to the measured rate.
     */
    if (is_on_this_machine(fd))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, UNPACED, sizeof UNPACED - 1);
}

void gn_tcp_set_patience(int fd, unsigned ms)
{
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)ms);
}

static int resolve(const struct gn_address *a, int flags, struct addrinfo **ret,
                   struct gn_error *err)
{
    char port[8];
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    snprintf(port, sizeof port, "%u", a->port);
    int rc = getaddrinfo(a->host, port, &hints, ret);
    if (rc)
        return gn_fail(err, EHOSTUNREACH, "correct the address", "cannot find %s: %s", a->host,
                       rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    return 0;
}

static int dial_one(const struct addrinfo *to, uint64_t deadline_ns)
{
    int fd = gn_fd_socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0), code = 0;
    socklen_t n = sizeof code;
    if (fd < 0)
        return -errno;
    int rc = connect(fd, to->ai_addr, to->ai_addrlen) < 0 ? -errno : 0;
    if (rc == -EINPROGRESS) {
        rc = wait_for(fd, POLLOUT, deadline_ns);
        if (rc == 0 && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0 || code))
            rc = code ? -code : -errno;
    }
    if (rc) {
        gn_fd_close(fd);
        return rc;
    }
    gn_tcp_set_up(fd);
    return fd;
}

int gn_tcp_dial(const struct gn_address *a, uint64_t deadline_ns, struct gn_error *err)
{
    struct addrinfo *all;
    int rc = resolve(a, 0, &all, err), fd = -EHOSTUNREACH;
    if (rc)
        return rc;
    for (const struct addrinfo *to = all; to && fd < 0; to = to->ai_next)
        fd = dial_one(to, deadline_ns);
    freeaddrinfo(all);
    if (fd == -ECONNREFUSED)
        return gn_fail(err, ECONNREFUSED,
                       "start gantryd there with --listen, or correct --connect or GANTRY_CONNECT",
                       "no gantryd listens at tcp:%s:%u", a->host, a->port);
    return fd >= 0 ? fd
                   : gn_fail(err, -fd, NULL, "cannot connect to tcp:%s:%u: %s", a->host, a->port,
                             strerror(-fd));
}

int gn_tcp_listen(const struct gn_address *a, uint16_t *ret_port, struct gn_error *err)
{
    struct addrinfo *at;
    union name bound;
    socklen_t n = sizeof bound;
    int rc = resolve(a, AI_PASSIVE, &at, err);
    if (rc)
        return rc;
    int fd = gn_fd_socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        /* Allows the port of a gantryd that has just ended. */
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        rc = bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0 ||
             getsockname(fd, &bound.any, &n) < 0;
    }
    int code = fd < 0 || rc ? errno : 0;
    freeaddrinfo(at);
    if (code) {
        if (fd >= 0)
            gn_fd_close(fd);
        return gn_fail(err, code, "choose another address or port",
                       "cannot listen at tcp:%s:%u: %s", a->host, a->port, strerror(code));
    }
    *ret_port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
    return fd;
}
