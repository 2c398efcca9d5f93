/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_CROWD_H
#define GN_DAEMON_CROWD_H

#include "daemon/daemon.h"

/* What connections may take together. gantryd's thread. */

/* Before one more is taken: closes one where there are too many. False: all of them have vGPUs. */
bool gn_crowd_make_room(struct gn_daemon *d);
/* Closes the one that is worth least; false when there is none without a vGPU. */
bool gn_crowd_evict(struct gn_daemon *d);
/* After one is gone for good: a crowd's memory is given back. */
void gn_crowd_gone(struct gn_daemon *d);
/* After its request or its queue has changed. May close it, or another. */
void gn_crowd_account(struct gn_conn *c);

#endif
