/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream through TLS, between two workers. The reader and the writer each have one thread for it,
 * which may block here.
 */
#include "vgpu/migrate/tls_stream.h"

#include "base/iov.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define MOST_IOVS 64

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
            rc = gn_stream_wait(f->tcp.fd, POLLOUT, f->stall_ms, err);
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
            rc = gn_stream_wait(f->tcp.fd, POLLIN, f->stall_ms, err);
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
