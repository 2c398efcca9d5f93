/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_SCHEDULE_LATE_HOLDERS_H
#define GN_DAEMON_SCHEDULE_LATE_HOLDERS_H

#include "daemon/loop.h"

/* late_holders.c: the scheduler waits for vGPUs that hold a device. gantryd's thread. */
void gn_late_holders(struct gn_source *late, uint32_t events);

#endif
