/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_WORKER_PROCESS_H
#define GN_DAEMON_VGPU_WORKER_PROCESS_H

#include "daemon/vgpu/vgpu_record.h"

/* Workers as processes (worker_process.c). gantryd's thread. */
struct gn_conn;
struct gn_worker_boot_wall;

/* The template's answers: there is a worker; there is none; how the worker ended, as from waitpid,
 * before or after its pidfd says so; and the template is gone, and answers nothing any more. */
void gn_vgpus_spawned(struct gn_vgpu_record *v, pid_t pid, int pidfd);
void gn_vgpus_spawn_failed(struct gn_vgpu_record *v, const struct gn_error *err);
void gn_vgpus_ended(struct gn_vgpu_record *v, int status);
void gn_vgpus_template_lost(struct gn_vgpu_record *v);

/* Fill in the worker's kernel cache and memory cgroup. */
void gn_vgpus_acquire_cache(struct gn_vgpu_record *v, const struct gn_conn *program,
                            struct gn_worker_boot_wall *wall);
void gn_vgpus_name_group(struct gn_vgpu_record *v, struct gn_worker_boot_wall *wall);
/* When the worker must have started its driver; 0: there is no such deadline. */
uint64_t gn_vgpus_boot_deadline(const struct gn_vgpu_record *v);
/* The worker has not started its driver in time. */
void gn_vgpus_give_up_start(struct gn_vgpu_record *v);

#endif
