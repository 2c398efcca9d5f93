/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_TLS_SHUTTLE_H
#define GN_DAEMON_NET_TLS_SHUTTLE_H

#include "daemon/daemon.h"
#include "link/tcp.h"
#include "link/tls.h"

/*
 * A control connection over TLS. Its decrypted bytes go through a socket pair, so that the rest of
 * gantryd sees a connection like any other. Control traffic is small; data connections never use
 * this.
 *
 * Takes *tcp, with its handshake done, also on failure; it is in the list `all` until it ends. 0 or
 * -errno. *ret: the connection; NULL: it is closed already.
 */
int gn_tls_shuttle_start(struct gn_daemon *d, struct gn_list *all, struct gn_tcp *tcp,
                         const struct gn_session_tcp_peer *peer, struct gn_conn **ret);
/* Ends all shuttles of the list. Call after their connections are closed. Sends the rest as far as
 * the network accepts it at once. */
void gn_tls_shuttles_stop(struct gn_list *all);

#endif
