/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks and sources on descriptors and connections. Called on the one thread of a writer or reader.
 * Every wait ends: on progress, or after the agreed time without progress.
 */
#include "base/clock.h"
#include "base/iov.h"
#include "stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNKNOWN, SOCKET, PLAIN_FILE, OTHER };

/* Detects the type of descriptor, once. A blocking pipe would wait beyond the time limit. */
static void detect_kind(struct gn_stream_fd *f)
{
    struct stat st;
    if (f->kind != UNKNOWN)
        return;
    f->kind = OTHER;
    if (fstat(f->fd, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode))
        f->kind = SOCKET;
    else if (S_ISREG(st.st_mode))
        f->kind = PLAIN_FILE;
    else {
        int flags = fcntl(f->fd, F_GETFL);
        if (flags >= 0 && !(flags & O_NONBLOCK))
            fcntl(f->fd, F_SETFL, flags | O_NONBLOCK);
    }
}

static int await_events(int fd, short events, uint32_t stall_ms, struct gn_error *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    uint64_t until_ns = gn_now_ns() + (uint64_t)stall_ms * 1000000;
    for (;;) {
        uint64_t now_ns = gn_now_ns();
        int left_ms = !stall_ms            ? -1
                      : now_ns >= until_ns ? 0
                                           : (int)((until_ns - now_ns + 999999) / 1000000);
        int n = poll(&p, 1, left_ms);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gn_fail(err, errno, NULL, "cannot wait for the stream's other end: %s",
                           strerror(errno));
        if (n == 0)
            return gn_fail(err, ETIMEDOUT,
                           "look whether the other side and the network between are alive",
                           "the stream has not moved for %u ms", stall_ms);
        return 0;
    }
}

static int at_most(int n)
{
    return n < 1024 ? n : 1024; /* IOV_MAX */
}

/* Bytes written, 0: nothing is buffered, or -errno. */
static ssize_t write_some(struct gn_stream_fd *f, struct iovec *iov, int n)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    if (f->send)
        return f->send(f->ctx, iov, n);
    const ssize_t done =
        f->kind == SOCKET ? sendmsg(f->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) : writev(f->fd, iov, n);
    return done < 0 ? -errno : done ? done : -EIO;
}

/* Bytes read, 0: the end, or -errno. */
static ssize_t read_some(struct gn_stream_fd *f, struct iovec *iov, int n)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    if (f->recv)
        return f->recv(f->ctx, iov, n);
    const ssize_t done =
        f->kind == SOCKET ? recvmsg(f->fd, &m, MSG_DONTWAIT) : readv(f->fd, iov, n);
    return done < 0 ? -errno : done;
}

static int fd_write(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_stream_fd *f = ctx;
    int rc = 0;
    detect_kind(f);
    for (gn_iov_advance(&iov, &n, 0); rc == 0 && (n || f->send);) {
        const ssize_t done = write_some(f, iov, at_most(n));
        if (done > 0) {
            f->n_bytes += (uint64_t)done;
            gn_iov_advance(&iov, &n, (size_t)done);
        } else if (done == 0) {
            break;
        } else if (done == -EAGAIN) {
            rc = await_events(f->fd, POLLOUT, f->stall_ms, err);
        } else if (done != -EINTR) {
            const int code = (int)-done;
            return gn_fail(err, code,
                           code == ENOSPC || code == EDQUOT ? "make room, or write elsewhere"
                                                            : NULL,
                           "cannot write the stream: %s", strerror(code));
        }
    }
    return rc;
}

static int fd_read(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_stream_fd *f = ctx;
    int rc = 0;
    detect_kind(f);
    for (gn_iov_advance(&iov, &n, 0); rc == 0 && n;) {
        const ssize_t done = read_some(f, iov, at_most(n));
        if (done > 0) {
            f->n_bytes += (uint64_t)done;
            gn_iov_advance(&iov, &n, (size_t)done);
        } else if (done == 0 || done == -ECONNRESET) {
            /* Reset: the writer's process has ended, and had not read all that was sent to it. */
            return -ENODATA;
        } else if (done == -EAGAIN) {
            rc = await_events(f->fd, POLLIN, f->stall_ms, err);
        } else if (done != -EINTR) {
            return gn_fail(err, (int)-done, NULL, "cannot read the stream: %s",
                           strerror((int)-done));
        }
    }
    return rc;
}

struct gn_stream_sink gn_stream_sink_of_fd(struct gn_stream_fd *fd)
{
    return (struct gn_stream_sink){fd_write, fd};
}

struct gn_stream_source gn_stream_source_of_fd(struct gn_stream_fd *fd)
{
    return (struct gn_stream_source){fd_read, fd};
}
