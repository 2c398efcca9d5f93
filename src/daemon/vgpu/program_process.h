/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_PROGRAM_PROCESS_H
#define GN_DAEMON_VGPU_PROGRAM_PROCESS_H

#include "daemon/daemon.h"

/* vGPUs that live in their programs. When they are to be watched next, 0: there is none; and
 * watches them, if it is time. */
uint64_t gn_passthrough_deadline(struct gn_daemon *d, uint64_t now_ns);
void gn_passthrough_watch(struct gn_daemon *d, uint64_t now_ns);

#endif
