/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_PASSTHROUGH_H
#define GN_DAEMON_VGPU_PASSTHROUGH_H

#include "daemon/daemon.h"

/* vGPUs that live in their programs. When they are to be looked at next, 0: there is none; and the
 * look, if it is time. */
uint64_t gn_passthrough_deadline(struct gn_daemon *d, uint64_t now_ns);
void gn_passthrough_watch(struct gn_daemon *d, uint64_t now_ns);
/* Has the program host it: gives it the worker's end of the control socket. As the answer to its
 * attach, or, of one that a worker has (`from`; v stands for the new host), unasked. */
void gn_passthrough_ask(struct gn_vgpu_record *v, const struct gn_vgpu_record *from);

#endif
