/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_TLS_HANDSHAKES_H
#define GN_DAEMON_NET_TLS_HANDSHAKES_H

#include "base/error.h"
#include "link/tcp.h"
#include "link/tls.h"

/*
 * TLS handshakes with strangers, on a thread of their own: one takes milliseconds of a processor,
 * which gantryd's loop has not. Certificate and key are read once, and anew when their files
 * change. The thread gives way to programs, and serves addresses by turns.
 *
 * All functions are for the loop's thread; none blocks.
 */
struct gn_handshakes;
struct gn_handshake;

enum gn_handshake_news {
    GN_HANDSHAKE_WANTS_KEY, /* gn_handshake_give_key is next */
    GN_HANDSHAKE_DONE,      /* gn_handshake_finish is next */
    GN_HANDSHAKE_REFUSED,   /* gn_handshake_give_up is next */
};

/* news_fd, an eventfd of the caller's, is told that gn_handshakes_next has something. config's
 * texts stay the caller's, and stay. 0, or -errno and a sentence: also what is wrong with the
 * files. */
int gn_handshakes_start(const struct gn_tls_config *config, int news_fd, struct gn_handshakes **ret,
                        struct gn_error *err);
/* Those under way end; nothing of them may be used any more. NULL is fine. */
void gn_handshakes_stop(struct gn_handshakes *all);

/* Takes fd. `owner` comes back with the news. NULL: no memory, and fd is closed. */
struct gn_handshake *gn_handshake_begin(struct gn_handshakes *all, int fd, uint64_t address,
                                        void *owner);
/* The next that has something to tell, its owner, and the processor time that it has cost so far.
 */
struct gn_handshake *gn_handshakes_next(struct gn_handshakes *all, enum gn_handshake_news *ret,
                                        void **ret_owner, uint64_t *ret_cost_ns);
/* The name of the key that it wants; and the key. NULL: there is none of this name. */
const unsigned char *gn_handshake_wanted_key(const struct gn_handshake *h);
void gn_handshake_give_key(struct gn_handshake *h, const struct gn_tls_psk *psk);
/* Why it was refused. */
const char *gn_handshake_why(const struct gn_handshake *h);
/* The connection is the caller's from now on, and the handshake is no more. */
void gn_handshake_finish(struct gn_handshake *h, struct gn_tcp *ret);
/* It is not wanted any more, whatever it is doing: its connection is closed soon. */
void gn_handshake_give_up(struct gn_handshake *h);

#endif
