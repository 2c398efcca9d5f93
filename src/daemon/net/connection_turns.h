/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_CONNECTION_TURNS_H
#define GN_DAEMON_NET_CONNECTION_TURNS_H

#include "daemon/daemon.h"

/*
 * Frames that cost time, one after the other: between two looks at its sockets the loop serves some
 * greetings, and one frame of another kind (an attach, a segment, a request), users by turns. So a
 * greeting waits for one such frame at most, however many are there. A connection is not read while
 * a frame of it waits. Two kinds wait for more than their turn: a user has GN_TURNS_STARTING
 * programs whose vGPUs are being made at a time, and GN_TURNS_REQUESTS control requests at once,
 * then one in GN_TURNS_REQUEST_NS. Requests of those that may do everything are not counted.
 * gantryd's thread.
 */
#define GN_TURNS_GREETINGS  16u
#define GN_TURNS_STARTING   16u
#define GN_TURNS_REQUESTS   40u
#define GN_TURNS_REQUEST_NS UINT64_C(50000000)

/* 0 or -errno. */
int gn_turns_init(struct gn_daemon *d);
/* After the last connection, before the loop's end. */
void gn_turns_fini(struct gn_daemon *d);
/* The connection's frame waits to be served by gn_conn_serve(). */
void gn_turns_add(struct gn_conn *c);
/* The connection is gone. */
void gn_turns_remove(struct gn_conn *c);

#endif
