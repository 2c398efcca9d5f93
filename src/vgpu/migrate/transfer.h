/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_TRANSFER_H
#define GN_VGPU_MIGRATE_TRANSFER_H

#include "vgpu/core/vgpu_core.h"

/*
 * Moves a vGPU from one worker to another: both ends (docs/moves.md). The source hands over the
 * program's parts (the session's socket, the segments) and writes the vGPU behind them, as much as
 * possible while the program runs, then the rest. The destination makes the vGPU as it comes, and
 * gets the position in the ring last. gantryd decides which of them continues, and each waits for
 * that behind its closed gate.
 *
 * A checkpoint is the same with a file, except that no worker receives the session. The session
 * stays with the program; or, when the vGPU stops, gantryd gets the worker's end of its socket for
 * the program, which hands everything to the worker that loads the file later.
 */
struct gn_worker_save;

/*
 * The vGPU's part in migrations. gantryd's orders: at the source, SAVE starts to save on a thread
 * of its own, which sends STOPS, and SAVED as the answer; RESUME: the migration failed. At the
 * destination, GO.
 */
extern const struct gn_vgpu_migration_ops gn_vgpu_migration;

/*
 * The destination calls these functions in this order. This one waits for the parts before the
 * stream. Returns 0 or -errno.
 */
int gn_vgpu_receive_handover(const struct gn_vgpu_session_ops *session, struct gn_vgpu_boot *boot);
/* Closes the gate; called before there are other threads. */
void gn_vgpu_begin_load(struct gn_vgpu *v);
/*
 * Loads, and answers LOADED. rc: of starting the threads; if it is not 0, the answer has the
 * reason, before the connection closes. Returns 0 or -errno.
 */
int gn_vgpu_receive(struct gn_vgpu *v, int rc);

#endif
