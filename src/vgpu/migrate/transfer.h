/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TRANSFER_H
#define GN_VGPU_MIGRATE_TRANSFER_H

#include "vgpu/core/vgpu_core.h"

/*
 * Migrates a vGPU from one worker to another: both ends (docs/moves.md). The source hands over the
 * program's session (the socket, the segments) and writes the vGPU after it: as much as possible
 * while the program runs, then the rest. The destination creates the vGPU as the stream arrives,
 * and gets the ring position last. gantryd decides which of the two continues; each waits for that
 * decision behind its closed gate.
 *
 * A checkpoint is the same with a file, but without a handover of the session. The session stays
 * with the program. If the vGPU stops, gantryd gets the worker's end of the session socket for the
 * program, which passes the whole session to the worker that later loads the file.
 */
struct gn_worker_save;

/*
 * The source. Takes ownership of fd. Reports STOPS, and answers SAVED, from a thread of its own.
 * Called on the control thread.
 */
void gn_vgpu_migrate_outbound(struct gn_vgpu *v, int fd, const struct gn_worker_save *how);
/* gantryd's RESUME: the migration was aborted. Called on the control thread. */
void gn_vgpu_resume(struct gn_vgpu *v);

/*
 * The destination calls these in this order. Receives the data before the stream; waits for it.
 * Returns 0 or -errno.
 */
int gn_vgpu_receive_handover(struct gn_vgpu_boot *boot);
/* Closes the gate; called before there are other threads. */
void gn_vgpu_begin_load(struct gn_vgpu *v);
/* Loads, and answers LOADED. Returns 0 or -errno. */
int gn_vgpu_receive(struct gn_vgpu *v);
/*
 * Instead of gn_vgpu_receive, if its threads cannot be started: reports the reason before any
 * connection closes.
 */
void gn_vgpu_load_failed(struct gn_vgpu *v, int rc);
/* gantryd's GO. Called on the control thread. */
void gn_vgpu_resume_as_owner(struct gn_vgpu *v);

#endif
