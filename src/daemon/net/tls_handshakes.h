/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_TLS_HANDSHAKES_H
#define GN_DAEMON_NET_TLS_HANDSHAKES_H

#include "base/error.h"
#include "link/tcp.h"
#include "link/tls.h"

/*
 * TLS handshakes of tcp connections, on a thread of their own: each takes milliseconds of processor
 * time, too long for gantryd's event loop. Certificate and key are loaded once, and again when
 * their files change. The thread has a low priority, and serves addresses in turns.
 *
 * Call all functions on the event loop's thread; none blocks, except that gn_handshakes_stop()
 * joins the thread.
 */
struct gn_handshakes;
struct gn_handshake;

enum gn_handshake_news {
    GN_HANDSHAKE_WANTS_KEY, /* call gn_handshake_set_key next */
    GN_HANDSHAKE_DONE,      /* call gn_handshake_finish next */
    GN_HANDSHAKE_REFUSED,   /* call gn_handshake_abort next */
};

/* news_fd: an eventfd of the caller's, written to when gn_handshakes_next() has something. The
 * strings of config stay the caller's and must stay valid. 0, or -errno and sets err, also for
 * errors in the files. */
int gn_handshakes_start(const struct gn_tls_config *config, int news_fd, struct gn_handshakes **ret,
                        struct gn_error *err);
/* Ends all handshakes: none of them may be used any more. NULL: ignored. */
void gn_handshakes_stop(struct gn_handshakes *all);

/* Takes fd. `owner` is returned with the news. NULL: no memory, and fd is closed. */
struct gn_handshake *gn_handshake_begin(struct gn_handshakes *all, int fd, uint64_t address,
                                        void *owner);
/* The next handshake that has news, its owner, and the processor time it has used so far. NULL:
 * none. */
struct gn_handshake *gn_handshakes_next(struct gn_handshakes *all, enum gn_handshake_news *ret,
                                        void **ret_owner, uint64_t *ret_cost_ns);
/* wanted_key: the identity of the key that the client uses. give_key: that key; NULL: there is
 * none. */
const unsigned char *gn_handshake_wanted_key(const struct gn_handshake *h);
void gn_handshake_set_key(struct gn_handshake *h, const struct gn_tls_psk *psk);
/* Why the handshake was refused. */
const char *gn_handshake_why(const struct gn_handshake *h);
/* Passes the connection to the caller and frees the handshake. */
void gn_handshake_finish(struct gn_handshake *h, struct gn_tcp *ret);
/* Ends the handshake in any state; its connection is closed soon. The handshake must not be used
 * any more. */
void gn_handshake_abort(struct gn_handshake *h);

#endif
