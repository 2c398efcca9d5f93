/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_TLS_SHUTTLE_H
#define GN_DAEMON_NET_TLS_SHUTTLE_H

#include "daemon/daemon.h"
#include "link/tcp.h"
#include "link/tls.h"

/*
 * A control connection with TLS in it: what it carries is passed to and from a socket pair, so that
 * to gantryd it is a connection like any other. Control traffic is small; data connections never
 * come through here.
 *
 * Takes *tcp, whose handshake is done, in any case, and is in the list `all` until it ends. 0 or
 * -errno. *ret: the connection, NULL: it is closed already.
 */
int gn_tls_shuttle_start(struct gn_daemon *d, struct gn_list *all, struct gn_tcp *tcp,
                         const struct gn_session_tcp_peer *peer, struct gn_conn **ret);
/* Ends all of the list, when their connections are closed. What the network takes at once is sent
 * before. */
void gn_tls_shuttles_stop(struct gn_list *all);

#endif
