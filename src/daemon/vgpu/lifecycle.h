/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_LIFECYCLE_H
#define GN_DAEMON_VGPU_LIFECYCLE_H

#include "daemon/vgpu/vgpu_record.h"

/* The life of a vGPU, seen from outside its worker (lifecycle.c). gantryd's thread. */

struct gn_vgpu_record *gn_vgpus_find(struct gn_daemon *d, uint32_t id);
/* As `gantry ls` shows it: whether it moves, is stopped or lost, or has work. */
const char *gn_vgpus_shown_state(const struct gn_vgpu_record *v);
/* Ends it by a command, as when its worker is lost. 0 or -errno: -ENOENT: it has ended already. */
int gn_vgpus_end(struct gn_vgpu_record *v, struct gn_error *err);
/* The program is gone: the vGPU ends, its worker within the grace. */
void gn_vgpus_leave(struct gn_vgpu_record *v);
/* Asks the worker to end, and kills it when it does not. */
void gn_vgpus_end_worker(struct gn_vgpu_record *v);
/* A stopped vGPU's worker is dead: its resources are free. */
void gn_vgpus_worker_over(struct gn_vgpu_record *v);
/* The worker is dead, and no other one takes over. */
void gn_vgpus_lost(struct gn_vgpu_record *v);
/* Its program has done something that counts against its user (fault_throttle.h). */
void gn_vgpus_note_fault(const struct gn_vgpu_record *v);

/* Makes v's worker n's, and n's v's. 0, or -EBUSY and nothing has changed. */
int gn_vgpus_swap_workers(struct gn_vgpu_record *v, struct gn_vgpu_record *n);

/* Sets the timer to the first of the deadlines. */
void gn_vgpus_arm(struct gn_daemon *d);
/* The same when there is only one deadline more. 0: there is none. */
void gn_vgpus_arm_by(struct gn_daemon *d, uint64_t at_ns);
void gn_vgpus_grace(struct gn_source *timer, uint32_t events);

#endif
