/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SERVE_H
#define GN_VGPU_SERVE_H

#include "link/frame.h"
#include "link/worker_control.h"
#include "vgpu/core/vgpu_core.h"

/*
 * The steps of serve.c: for the session and for tests, which run them one by one in a process that
 * goes on.
 */

/* Everything but the threads; v->migration is set. 0 or -errno, after a line in the log. */
int gn_vgpu_open(struct gn_vgpu *v, const struct gn_vgpu_boot *boot,
                 const struct gn_vgpu_session_ops *session, const struct gn_vgpu_api *api);

/* Reads from gantryd and the program until one of them is gone; arg is the vGPU. Then it ends the
 * session: in a worker the process exits. */
void *gn_vgpu_control_thread(void *arg);
/* The vGPU is away, and its helpers have nothing to do: waits until they have ended. */
void gn_helpers_end(struct gn_vgpu *v);

/* The vGPU has ended: no thread waits for gantryd any more. Any thread. */
void gn_vgpu_end_waits(struct gn_vgpu *v);
/* Serves a request whose class is known, answers and ends it. */
void gn_vgpu_answer(struct gn_vgpu *v, struct gn_request *r);

/* Readers of the vGPU's two sockets. One thread. */
struct gn_vgpu_control {
    struct gn_worker_control control;
    struct gn_frame_reader session;
    bool paused; /* the session's socket is not read */
};

void gn_vgpu_control_init(struct gn_vgpu_control *channels, const struct gn_vgpu_boot *boot);
/* Handles the frames that have come. 0, or -errno when the vGPU is to end; a fault of the program
 * is in the log. */
int gn_vgpu_dispatch_control(struct gn_vgpu *v, struct gn_vgpu_control *channels);

#endif
