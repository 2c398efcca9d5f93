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
 * A connected byte stream to another machine, plain or TLS. Non-blocking. One thread at a time may
 * send while another receives; TLS locks its shared state itself. Raises no signal.
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

/* Returns the bytes accepted (> 0), -EAGAIN, or another -errno: the connection is lost. */
ssize_t gn_tcp_send(struct gn_tcp *t, const struct iovec *iov, int n);
/*
 * The same, for use when more data follows at once: a partial segment may wait for it (MSG_MORE).
 */
ssize_t gn_tcp_send_more(struct gn_tcp *t, const struct iovec *iov, int n);
/* Returns the bytes received (> 0), -EAGAIN, -EPIPE when the peer hung up, or another -errno. */
ssize_t gn_tcp_recv(struct gn_tcp *t, const struct iovec *iov, int n);
/* Whether received bytes are buffered in TLS, so that poll(2) does not report them. */
bool gn_tcp_has_more(struct gn_tcp *t);
/* Whether bytes accepted by gn_tcp_send are buffered in TLS. Tries to send them first. */
bool gn_tcp_unsent(struct gn_tcp *t);
/* Shuts down both directions and wakes threads that poll; the descriptor stays open. */
void gn_tcp_shutdown(struct gn_tcp *t);
/* Sends nothing, so a forked child may close its copy of the parent's connection. */
void gn_tcp_close(struct gn_tcp *t);

/*
 * Transfers exactly n bytes, waiting until the deadline (CLOCK_MONOTONIC). 0, -ETIMEDOUT or another
 * -errno.
 */
int gn_tcp_send_all(struct gn_tcp *t, const void *bytes, size_t n, uint64_t deadline_ns);
int gn_tcp_recv_all(struct gn_tcp *t, void *bytes, size_t n, uint64_t deadline_ns);

/*
 * Connects, waiting until the deadline. Returns a descriptor prepared by gn_tcp_set_up, or -errno.
 */
int gn_tcp_dial(const struct gn_address *a, uint64_t deadline_ns, struct gn_error *err);
/* Returns a listening socket or -errno; *ret_port is its port, also if a->port is 0 (any). */
int gn_tcp_listen(const struct gn_address *a, uint16_t *ret_port, struct gn_error *err);
/*
 * Prepares a connected socket for a session: no delay of small writes; a peer that is silent for 11
 * seconds, or acknowledges nothing for 12, is gone; a bound on unsent bytes; no pacing if both ends
 * are on this machine.
 */
void gn_tcp_set_up(int fd);
/*
 * Replaces the 12 seconds by `ms`, for a peer that works between reads. gn_tcp_set_up restores
 * them.
 */
void gn_tcp_set_patience(int fd, unsigned ms);

#endif
