/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SERVE_H
#define GN_VGPU_SERVE_H

#include "link/frame.h"
#include "link/worker_control.h"
#include "vgpu/core/vgpu_core.h"

/*
 * serve.c's steps, for its threads, and for tests that take them one by one in a process that goes
 * on.
 */

/* Everything but the threads. 0 or -errno, after a line in the log. */
int gn_vgpu_open(struct gn_vgpu *v, const struct gn_vgpu_boot *boot, const struct gn_vgpu_api *api);

/* Listens to gantryd and the program; arg is the vGPU. Ends the process, or, of a hosted vGPU,
 * itself. */
void *gn_vgpu_control_thread(void *arg);
/* It is away, and its helpers have nothing to do: waits until they have ended. */
void gn_helpers_end(struct gn_vgpu *v);
/* session_in_process.c: the program or gantryd is gone, or a start has failed. */
void gn_vgpu_end_in_process(struct gn_vgpu *v);
/* session_in_process.c: gn_vgpu_start_in_program for a given API; v is zero. When it fails, but
 * `listens`, some of its threads may be there, and look at v. */
int gn_vgpu_start_in_process(struct gn_vgpu *v, struct gn_vgpu_boot *boot,
                             const struct gn_vgpu_api *api);

/* Serves a request whose class is known, answers and ends it. */
void gn_vgpu_answer(struct gn_vgpu *v, struct gn_request *r);

/* What comes over the vGPU's two sockets. One thread. */
struct gn_vgpu_ears {
    struct gn_worker_control control;
    struct gn_frame_reader session;
    bool deaf; /* to the session */
};

void gn_vgpu_ears_init(struct gn_vgpu_ears *ears, const struct gn_vgpu_boot *boot);
/* Takes what has come. 0, or -errno when the vGPU is to end; after a fault of its program that
 * stands in the log. */
int gn_vgpu_hear(struct gn_vgpu *v, struct gn_vgpu_ears *ears);

#endif
