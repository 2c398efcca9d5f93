/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_PROGRAM_WATCH_H
#define GN_DAEMON_NET_PROGRAM_WATCH_H

#include "daemon/daemon.h"

/* The program's death is its connection's end. */
void gn_conn_watch_program(struct gn_conn *c);
/* Whether a watched program may have its vGPU in its own process, where gantryd kills it for what
 * it does. 0 or -EOPNOTSUPP. */
int gn_conn_may_run_in_process(const struct gn_conn *c, struct gn_error *err);

#endif
