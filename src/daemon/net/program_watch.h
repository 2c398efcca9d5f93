/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_NET_PROGRAM_WATCH_H
#define GN_DAEMON_NET_PROGRAM_WATCH_H

#include "daemon/daemon.h"

/* Of connections by Unix sockets; other code calls them through c->transport. */

/* Closes the connection when its program dies. */
void gn_conn_watch_program(struct gn_conn *c);
/* Whether a watched program may run its vGPU in its own process. That needs a pidfd that the kernel
 * vouches for, since gantryd kills that process for its faults. 0 or -EOPNOTSUPP. */
int gn_conn_may_run_in_process(const struct gn_conn *c, struct gn_error *err);

#endif
