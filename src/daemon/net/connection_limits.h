/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_CONNECTION_LIMITS_H
#define GN_DAEMON_NET_CONNECTION_LIMITS_H

#include "daemon/daemon.h"

/*
 * What connections and vGPUs take of gantryd together: descriptors and memory. Whoever has a vGPU
 * keeps it. When something runs short, the user that holds most of it with connections that have
 * none loses one of them: the oldest that has not greeted, else the oldest. A part of the
 * descriptors is kept free of all that, for what comes with a message and for gantryd's own work.
 * Half of that part is open to operators' connections. A connection gives way to connections of its
 * own role and of higher ones alone. gantryd's thread.
 */
#define GN_CROWD_UNGREETED 256u /* connections of one user that have not greeted */
#define GN_CROWD_VGPU_FDS                                                                          \
    11u /* of a vGPU, its program's connection and its kernel cache, at most, for long */

/* Before anybody connects: what gantryd itself has open. */
void gn_conn_limits_init(struct gn_daemon *d);
/* Before so many descriptors more are taken in this role: makes room for them. False: there is
 * none; never for operators. */
bool gn_conn_limits_make_room(struct gn_daemon *d, enum gn_role role, uint32_t n_fds);
/* Closes a connection of the lowest role, at most of this one; false when there is none without a
 * vGPU. */
bool gn_conn_limits_evict(struct gn_daemon *d, enum gn_role role);
/* A new connection, and one that has greeted or is about to close. */
void gn_conn_limits_add(struct gn_conn *c);
void gn_conn_limits_greeted(struct gn_conn *c);
/* After one is gone for good: a crowd's memory is given back. */
void gn_conn_limits_closed(struct gn_daemon *d);
/* After what it holds has changed. May close it, or another. */
void gn_conn_limits_account(struct gn_conn *c);

/* May the tenant have one more vGPU, for the program at c's end, and are there descriptors for it?
 * 0 or -errno, and a line in the log. */
int gn_conn_limits_admit_vgpu(struct gn_conn *c, struct gn_tenant *t, struct gn_error *err);

/* The figures of "status" that are its own. */
struct gn_control_status;
void gn_conn_limits_describe(const struct gn_daemon *d, struct gn_control_status *ret);

#endif
