/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_CONNECTION_TURNS_H
#define GN_DAEMON_NET_CONNECTION_TURNS_H

#include "daemon/daemon.h"

/*
 * Queues frames that cost time, so that no user delays the others. Between two calls of
 * epoll_wait() the loop serves up to GN_TURNS_GREETINGS greetings and one other frame (an attach, a
 * segment, a control request), round robin over users. So a greeting waits for at most one such
 * frame, no matter how many are queued. A connection is not read while one of its frames is queued.
 *
 * Two kinds have a further limit for each user: GN_TURNS_STARTING vGPUs may be starting at a time,
 * and after a burst of GN_TURNS_REQUESTS control requests one is served every GN_TURNS_REQUEST_NS.
 * Operators' requests are not limited. gantryd's thread only.
 */
#define GN_TURNS_GREETINGS  16u
#define GN_TURNS_STARTING   16u
#define GN_TURNS_REQUESTS   40u
#define GN_TURNS_REQUEST_NS UINT64_C(50000000)

/* Returns 0 or -errno. */
int gn_turns_init(struct gn_daemon *d);
/* Call after the last connection is closed and before the loop ends. */
void gn_turns_fini(struct gn_daemon *d);
/* Queues the connection's frame for gn_conn_serve(). */
void gn_turns_add(struct gn_conn *c);
/* Removes the connection's frame from the queue. Harmless if none is queued. */
void gn_turns_remove(struct gn_conn *c);

#endif
