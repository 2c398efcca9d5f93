/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_PROGRAM_PROCESS_H
#define GN_DAEMON_VGPU_PROGRAM_PROCESS_H

#include "daemon/daemon.h"

/* vGPUs that live in their programs. When they are to be watched next, 0: there is none; and
 * watches them, if it is time. */
uint64_t gn_passthrough_deadline(struct gn_daemon *d, uint64_t now_ns);
void gn_passthrough_watch(struct gn_daemon *d, uint64_t now_ns);
/* Asks the program to host v, with the worker's end of the control socket: as the answer to its
 * attach, or (`from` is not NULL) for the vGPU of `from`, whose migration v is the destination of.
 */
void gn_passthrough_ask(struct gn_vgpu_record *v, const struct gn_vgpu_record *from);
/* From now on the program at c's end is the worker of v. 0 or -errno. */
int gn_vgpus_watch_program(struct gn_vgpu_record *v, const struct gn_conn *c, struct gn_error *err);
/* The program has not released the vGPU in time. */
void gn_vgpus_let_go(struct gn_vgpu_record *v);

#endif
