/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_ADMISSION_H
#define GN_DAEMON_TENANTS_ADMISSION_H

#include "daemon/daemon.h"

/* Which tenants the peer of a connection may use. gantryd's thread only. */

#define GN_CONN_USER_BYTES 80
/* Writes a name for the peer into ret and returns ret: its user id or, over tcp, its address. */
const char *gn_conn_name_user(const struct gn_conn *c, char ret[static GN_CONN_USER_BYTES]);

/* Returns the tenant of this name if the connection's peer may use it; otherwise NULL, with
 * *ret_code and err set and a line in the log. "" means `default` if that admits the peer,
 * otherwise the only tenant that admits its user or groups. */
struct gn_tenant *gn_admit(struct gn_conn *c, const char *name, int *ret_code,
                           struct gn_error *err);
/* Whether gantryd accepts new programs at all: 0, or -ESHUTDOWN with err set while gantryd is
 * draining. */
int gn_admit_anybody(const struct gn_daemon *d, struct gn_error *err);
/* Logs a refused peer, unless too many refusals of that source were logged recently. */
void gn_admit_refused(struct gn_conn *c, bool wrong_token, const struct gn_error *err);

#endif
