/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_ADMISSION_H
#define GN_DAEMON_TENANTS_ADMISSION_H

#include "daemon/daemon.h"

/* Which tenants a connection's peer may use, and what counts against a peer. gantryd's thread. */

#define GN_CONN_USER_BYTES 80
/* The user of this machine or, over tcp, the address at the other end, for people, in ret, which is
 * returned. */
const char *gn_conn_name_user(const struct gn_conn *c, char ret[static GN_CONN_USER_BYTES]);

/*
 * The tenant of this name, when the connection's peer may use it; else NULL, a sentence, and a line
 * in the log.
 * "": `default` if that admits the peer, else the only tenant that admits its user or groups.
 */
struct gn_tenant *gn_admit(struct gn_conn *c, const char *name, int *ret_code,
                           struct gn_error *err);
/* Is anybody admitted now? 0, or -ESHUTDOWN and a sentence, of a gantryd that is being emptied. */
int gn_admit_anybody(const struct gn_daemon *d, struct gn_error *err);
/* A refused peer is in the log, unless too many were. */
void gn_admit_refused(struct gn_conn *c, bool wrong_token, const struct gn_error *err);

#endif
