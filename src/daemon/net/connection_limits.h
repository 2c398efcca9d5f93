/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_CONNECTION_LIMITS_H
#define GN_DAEMON_NET_CONNECTION_LIMITS_H

#include "daemon/daemon.h"

/*
 * Limits on the descriptors and the memory that connections and vGPUs use in gantryd. A connection
 * that has a vGPU is never closed for lack of descriptors. When descriptors run short, the user
 * with the most of them in connections without a vGPU loses one connection: the oldest that has not
 * greeted, otherwise the oldest. A reserve of descriptors is kept free for those that arrive with
 * messages and for gantryd's own work; operators' connections may use half of it. A connection can
 * only evict connections of its own role or of a role with fewer rights. gantryd's thread only.
 */
#define GN_CONNECTIONS_UNGREETED 256u /* connections of one user that have not greeted */
/* Descriptors that a vGPU, its program's connection and its kernel cache use in the long run: an
 * upper bound. */
#define GN_CONNECTIONS_VGPU_FDS 11u

/* Counts the descriptors that gantryd itself has open. Call before the first connection. */
void gn_conn_limits_init(struct gn_daemon *d);
/* Makes room for n_fds more descriptors in this role by evicting connections. Returns false when
 * that is not possible; operators always get true. */
bool gn_conn_limits_make_room(struct gn_daemon *d, enum gn_role role, uint32_t n_fds);
/* Closes a connection of the lowest role that has one without a vGPU, up to this role. Returns
 * false when there is none. */
bool gn_conn_limits_evict(struct gn_daemon *d, enum gn_role role);
/* add: a new connection. greeted: the connection has greeted, or is about to close. */
void gn_conn_limits_add(struct gn_conn *c);
void gn_conn_limits_greeted(struct gn_conn *c);
/*
 * Call after a connection is freed: returns memory to the system when many connections have gone.
 */
void gn_conn_limits_closed(struct gn_daemon *d);
/* Call after the descriptors or the memory that c holds have changed. May close c or another
 * connection. */
void gn_conn_limits_account(struct gn_conn *c);

/* Checks that the tenant may have another vGPU, for the program at c's end, and that there are
 * descriptors for it. 0, or -errno with a line in the log. */
int gn_conn_limits_admit_vgpu(struct gn_conn *c, struct gn_tenant *t, struct gn_error *err);

/* Fills in the fields of "status" that this file counts. */
struct gn_control_status;
void gn_conn_limits_describe(const struct gn_daemon *d, struct gn_control_status *ret);

#endif
