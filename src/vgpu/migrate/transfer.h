/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TRANSFER_H
#define GN_VGPU_MIGRATE_TRANSFER_H

#include "vgpu/core/vgpu_core.h"

/*
 * A vGPU from one worker to another, on one machine: the two ends of it (docs/moves.md). The old
 * worker hands over what is the program's (the session's socket, the segments) and writes the vGPU
 * behind it, as much as can be while the program runs, then what is left; the new one makes it anew
 * as it comes, and gets the place in the ring last. Which of them goes on is gantryd's word, and
 * each waits for it behind its closed gate.
 *
 * A checkpoint is the same with a file, but that nobody takes the session: it stays with the
 * program, or, when the vGPU stops, gantryd gets the worker's end of its socket, for the program,
 * who hands all of it to the worker that loads the file later.
 */
struct gn_worker_save;

/* The old worker. Takes fd. Says STOPS, and answers SAVED, from a thread of its own. The control
 * thread. */
void gn_vgpu_migrate_outbound(struct gn_vgpu *v, int fd, const struct gn_worker_save *how);
/* gantryd's RESUME: nothing has come of it. The control thread. */
void gn_vgpu_resume(struct gn_vgpu *v);

/* The new worker, in this order. Takes what comes before the stream; waits for it. 0 or -errno. */
int gn_vgpu_receive_handover(struct gn_vgpu_boot *boot);
/* Closes the gate before there are threads. */
void gn_vgpu_begin_load(struct gn_vgpu *v);
/* Loads, and answers LOADED. 0 or -errno. */
int gn_vgpu_receive(struct gn_vgpu *v);
/* Instead of it: there are no threads for it. Says why, before anything hangs up. */
void gn_vgpu_load_failed(struct gn_vgpu *v, int rc);
/* gantryd's GO: the control thread. */
void gn_vgpu_resume_as_owner(struct gn_vgpu *v);

#endif
