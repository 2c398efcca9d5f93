/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_WORKER_PROCESS_H
#define GN_DAEMON_VGPU_WORKER_PROCESS_H

#include "daemon/vgpu/vgpu_record.h"

/* Workers as processes (worker_process.c). gantryd's thread. */

/* The template's answers: there is a worker; there is none; how the worker ended, as from waitpid,
 * before or after its pidfd says so; and the template is gone, and answers nothing any more. */
void gn_vgpus_spawned(struct gn_vgpu_record *v, pid_t pid, int pidfd);
void gn_vgpus_spawn_failed(struct gn_vgpu_record *v, const struct gn_error *err);
void gn_vgpus_ended(struct gn_vgpu_record *v, int status);
void gn_vgpus_template_lost(struct gn_vgpu_record *v);

#endif
