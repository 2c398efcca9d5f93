/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_TEMPLATE_H
#define GN_DAEMON_VGPU_TEMPLATE_H

#include "daemon/daemon.h"

/*
 * Drivers' template processes, from which workers are forked. gantryd's thread. A template that
 * does not answer for as long as a start may take is set aside: its workers go on, another
 * template takes its place, and it is killed when its last worker has ended.
 */
struct gn_template {
    struct gn_daemon *daemon;
    uint32_t driver;
    pid_t pid;            /* 0: not running */
    uint64_t heard_ns;    /* its last word, or its start */
    struct gn_list aside; /* those before it */
    struct gn_source socket;
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;
};

int gn_templates_init(struct gn_daemon *d);
void gn_templates_fini(struct gn_daemon *d);
/* Asks for v's worker, which gets the messages that lie in worker_fd. From then on v is spawning.
 */
int gn_template_spawn(struct gn_vgpu_record *v, struct gn_error *err);
/* After SIGCHLD. */
void gn_templates_reap(struct gn_daemon *d);
/* Whether pid is a template. */
bool gn_templates_include(const struct gn_daemon *d, pid_t pid);
/* When the template must have answered for a vGPU that is being started. 0: it waits for no
 * template. */
uint64_t gn_template_deadline(const struct gn_vgpu_record *v);
void gn_templates_expire(struct gn_daemon *d, uint64_t now_ns);
/* Its worker's process has ended. A template that was set aside does not say how. */
void gn_templates_worker_ended(struct gn_vgpu_record *v);

#endif
