/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_LISTEN_TCP_H
#define GN_DAEMON_NET_LISTEN_TCP_H

#include "daemon/config.h"
#include "daemon/daemon.h"

/* gantryd's tcp ports. Two kinds of connection arrive there: control connections, which continue
 * like those of a Unix socket, and data connections, which name their session and are handed to its
 * worker. gantryd's thread only. A slow peer delays no other, and is closed at its deadline. */
struct gn_tcp_listener;

/* Binds the port and starts to accept. Without credentials it fails unless the configuration says
 * `insecure`. control: the port listen-control, for operators: their certificates must come from
 * the authority and be named in operator-subject. Returns 0, or -errno and sets err. */
int gn_tcp_listener_start(struct gn_daemon *d, const struct gn_config *config, bool control,
                          struct gn_tcp_listener **ret, struct gn_error *err);
/* Writes the address that programs connect to. */
void gn_tcp_listener_address(const struct gn_tcp_listener *l, char *ret, size_t n);
/* Call after the connections that it accepted are closed. NULL: ignored. */
void gn_tcp_listener_stop(struct gn_tcp_listener *l);
/* admit: the greeting of a connection was admitted. refuse: the connection ends without that. Both
 * ignore connections that did not come from a tcp port. */
void gn_tcp_listener_admit(struct gn_conn *c);
void gn_tcp_listener_refuse(struct gn_conn *c);

#endif
