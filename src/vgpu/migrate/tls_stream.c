/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream through TLS, between two workers. The reader and the writer each have one thread for it,
 * which may block here.
 */
#include "vgpu/migrate/tls_stream.h"

#include "base/clock.h"
#include "base/iov.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define MOST_IOVS 64

static int wait_ready(struct gn_tls_stream *f, short what, struct gn_error *err)
{
    struct pollfd p = {.fd = f->tcp.fd, .events = what};
    const uint64_t until_ns = gn_now_ns() + (uint64_t)f->stall_ms * 1000000u;
    for (;;) {
        const uint64_t now_ns = gn_now_ns();
        const int left_ms = !f->stall_ms         ? -1
                            : now_ns >= until_ns ? 0
                                                 : (int)((until_ns - now_ns + 999999) / 1000000);
        const int n = poll(&p, 1, left_ms);
        if (n > 0)
            return 0;
        if (n == 0)
            return gn_fail(err, ETIMEDOUT,
                           "look whether the other side and the network between are alive",
                           "the stream has not moved for %u ms", f->stall_ms);
        if (errno != EINTR)
            return gn_fail(err, errno, NULL, "cannot wait for the stream's other end: %s",
                           strerror(errno));
    }
}

static int tls_write(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_tls_stream *f = ctx;
    int rc = 0;
    for (gn_iov_advance(&iov, &n, 0); !rc && (n || gn_tcp_unsent(&f->tcp));) {
        const ssize_t sent = n ? gn_tcp_send(&f->tcp, iov, n < MOST_IOVS ? n : MOST_IOVS) : -EAGAIN;
        if (sent > 0) {
            f->n_bytes += (uint64_t)sent;
            gn_iov_advance(&iov, &n, (size_t)sent);
        } else if (sent == -EAGAIN) {
            rc = wait_ready(f, POLLOUT, err);
        } else {
            rc =
                gn_fail(err, (int)-sent, NULL, "cannot write the stream: %s", strerror((int)-sent));
        }
    }
    return rc;
}

static int tls_read(void *ctx, struct iovec *iov, int n, struct gn_error *err)
{
    struct gn_tls_stream *f = ctx;
    int rc = 0;
    for (gn_iov_advance(&iov, &n, 0); !rc && n;) {
        const ssize_t got = gn_tcp_recv(&f->tcp, iov, n < MOST_IOVS ? n : MOST_IOVS);
        if (got > 0) {
            f->n_bytes += (uint64_t)got;
            gn_iov_advance(&iov, &n, (size_t)got);
        } else if (got == -EAGAIN) {
            rc = wait_ready(f, POLLIN, err);
        } else if (got == -EPIPE) {
            return -ENODATA;
        } else {
            rc = gn_fail(err, (int)-got, NULL, "cannot read the stream: %s", strerror((int)-got));
        }
    }
    return rc;
}

struct gn_stream_sink gn_tls_stream_sink(struct gn_tls_stream *f)
{
    return (struct gn_stream_sink){tls_write, f};
}

struct gn_stream_source gn_tls_stream_source(struct gn_tls_stream *f)
{
    return (struct gn_stream_source){tls_read, f};
}
