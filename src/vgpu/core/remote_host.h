/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_REMOTE_HOST_H
#define GN_VGPU_REMOTE_HOST_H

#include "vgpu/core/vgpu_core.h"

/*
 * A vGPU whose program is on another machine: its session's memory is this process's own, and what the program would see there
 * is sent to it as records (link/record.h). The thread that serves the request ring elsewhere serves the connection here.
 */
struct gn_remote_host;

/* Before the vGPU's threads start; sets v->remote. */
int gn_remote_host_start(struct gn_vgpu *v);
/* Serves until the program has said goodbye, or has not come back in time, or the vGPU ends. The calling thread. */
void gn_remote_host_loop(struct gn_remote_host *h);
/* A data connection, taken. Never waits. The control thread. */
void gn_remote_host_link(struct gn_remote_host *h, int fd);

/* What the program is told; any thread, none of them waits. */
void gn_remote_host_reply(struct gn_remote_host *h, uint32_t token, int32_t result, const void *payload, size_t n);
/* The same with outputs that lie in the data area. */
void gn_remote_host_answer(struct gn_remote_host *h, const struct gn_request *r, uint32_t token, const void *payload, size_t n);
void gn_remote_host_event(struct gn_remote_host *h, uint32_t index, enum gn_event_phase phase);
void gn_remote_host_event_end(struct gn_remote_host *h, uint32_t index, int32_t error, const struct gn_event_times *times,
                              const struct gn_command *c);
int gn_remote_host_frame(struct gn_remote_host *h, uint16_t op, uint32_t seq, const void *payload, size_t n);

#endif
