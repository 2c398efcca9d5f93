/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_TCP_H
#define GN_LINK_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"
#include "link/address.h"

/*
 * A connected byte stream to another machine: plain, or with TLS in it. Non-blocking. One thread at
 * a time sends and one receives; with TLS the two share what they need by themselves. No signal is
 * raised.
 */
struct gn_tls;

struct gn_tcp {
    int fd;             /* owned; -1: none */
    struct gn_tls *tls; /* owned; NULL: plain */
};
#define GN_TCP_NONE                                                                                \
    {                                                                                              \
        -1, 0                                                                                      \
    }

/* Bytes taken (> 0), -EAGAIN, or another -errno: the connection is over. */
ssize_t gn_tcp_send(struct gn_tcp *t, const struct iovec *iov, int n);
/* The same when more follows at once: what does not fill a segment may wait for it. */
ssize_t gn_tcp_send_more(struct gn_tcp *t, const struct iovec *iov, int n);
/* Bytes received (> 0), -EAGAIN, -EPIPE when the other side hung up, another -errno. */
ssize_t gn_tcp_recv(struct gn_tcp *t, const struct iovec *iov, int n);
/* Whether bytes are already here that poll(2) does not show. */
bool gn_tcp_has_more(struct gn_tcp *t);
/* Whether bytes that gn_tcp_send took still wait for room in the socket. Sends what it can. */
bool gn_tcp_unsent(struct gn_tcp *t);
/* Ends both directions and wakes who polls; the descriptor stays. */
void gn_tcp_shutdown(struct gn_tcp *t);
/* Sends nothing: a forked child may close its parent's. */
void gn_tcp_close(struct gn_tcp *t);

/* Exactly n bytes, waiting until the deadline (CLOCK_MONOTONIC). 0, -ETIMEDOUT, -errno. */
int gn_tcp_send_all(struct gn_tcp *t, const void *bytes, size_t n, uint64_t deadline_ns);
int gn_tcp_recv_all(struct gn_tcp *t, void *bytes, size_t n, uint64_t deadline_ns);

/* Connects, waiting until the deadline. A descriptor that is set up, or -errno. */
int gn_tcp_dial(const struct gn_address *a, uint64_t deadline_ns, struct gn_error *err);
/* A listening socket; ret_port gets its port (what port 0 became). */
int gn_tcp_listen(const struct gn_address *a, uint16_t *ret_port, struct gn_error *err);
/*
 * For both ends of a session, once it is connected: no delay of small writes, keep-alive (who is
 * silent for 11 seconds, or takes nothing for 12, is gone), a bound on what waits unsent, no pacing
 * where both ends are on this machine.
 */
void gn_tcp_set_up(int fd);
/* Who takes nothing for so long is gone, instead, though it answers: one that has something to do
 * between reads. gn_tcp_set_up takes it back. */
void gn_tcp_set_patience(int fd, unsigned ms);

#endif
