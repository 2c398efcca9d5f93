/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_LISTEN_TCP_H
#define GN_DAEMON_NET_LISTEN_TCP_H

#include "daemon/config.h"
#include "daemon/daemon.h"

/*
 * gantryd's tcp port. Its connections are of two kinds: control connections, which go on as those
 * of the Unix socket do, and data connections, which name their session and are handed to its
 * worker. One thread, gantryd's; whoever takes his time to say what he wants keeps nobody waiting,
 * and not for ever.
 */
struct gn_tcp_listener;

/*
 * Binds; connections are taken from here on. Without credentials only `insecure` makes it listen.
 * control: at listen-control, for operators, whose certificates are from the authority and named in
 * operator-subject.
 */
int gn_tcp_listener_start(struct gn_daemon *d, const struct gn_config *config, bool control,
                          struct gn_tcp_listener **ret, struct gn_error *err);
/* What it is reached by. */
void gn_tcp_listener_address(const struct gn_tcp_listener *l, char *ret, size_t n);
/* Those that came by it are closed already. */
void gn_tcp_listener_stop(struct gn_tcp_listener *l);
/* The greeting of one that came by a port was admitted, or it ends without that. Nothing happens to
 * others. */
void gn_tcp_listener_admit(struct gn_conn *c);
void gn_tcp_listener_refuse(struct gn_conn *c);

#endif
