/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_WORKER_H
#define GN_DAEMON_VGPU_WORKER_H

#include "daemon/vgpu/vgpu_record.h"

/* Messages to a vGPU's worker, and its end (worker.c). gantryd's thread. */

/* Kills it. In passthrough that ends the program. */
void gn_vgpus_kill(struct gn_vgpu_record *v);
/*
 * A message to its worker could not be sent, -errno. A program in passthrough that has closed its
 * end has let go of its vGPU and goes on: its socket's end is heard next. Any other worker is
 * killed.
 */
void gn_vgpus_unreachable(struct gn_vgpu_record *v, int rc);
/* Sends its worker a frame, with a descriptor that stays the caller's, or none (-1). 0 or -errno:
 * -EPIPE, -ENOMEM, or -ENOBUFS of a worker that does not read. */
int gn_vgpus_push(struct gn_vgpu_record *v, uint16_t op, uint32_t seq, const void *payload,
                  size_t n, int fd);
/* Tells its worker. Lost when there is none; a worker that does not read is killed. */
void gn_vgpus_notify_worker(struct gn_vgpu_record *v, uint16_t op, uint32_t seq,
                            const void *payload, size_t n);
/* The record with the session that the worker is to serve: v, or another one (owner.h). */
const struct gn_vgpu_record *gn_vgpus_session_of(const struct gn_vgpu_record *v);
/* The process of the program whose session the worker is to serve. False: the program is gone, on
 * another machine, or not known. */
bool gn_vgpus_program(const struct gn_vgpu_record *v, struct gn_awaited_process *ret);
/* It has commands that are not complete, by its worker's word. */
bool gn_vgpus_is_busy(const struct gn_vgpu_record *v);

#endif
