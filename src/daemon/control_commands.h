/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CONTROL_COMMANDS_H
#define GN_DAEMON_CONTROL_COMMANDS_H

#include <stddef.h>

/* The reply to a control request, malloc'd; NULL: no memory. "": it comes later. *ret_wait_for: the
 * reply tells of a change that this tenant's workers have still to follow. gantryd's thread. */
struct gn_conn;
struct gn_daemon;
struct gn_tenant;
char *gn_daemon_answer(struct gn_daemon *d, struct gn_conn *c, const char *request, size_t n,
                       struct gn_tenant **ret_wait_for);

#endif
