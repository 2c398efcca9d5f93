/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_TEMPLATE_H
#define GN_DAEMON_VGPU_TEMPLATE_H

#include "daemon/daemon.h"

/*
 * Drivers' template processes, from which workers are forked. gantryd's thread. One that does not
 * answer for as long as a start may take is set aside: its workers go on, since they live without
 * it, another takes its place, and it is killed when the last of them has ended.
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
/* Asks for v's worker, which gets what lies in worker_fd. From then on it is spawning. */
int gn_template_spawn(struct gn_vgpu_record *v, struct gn_error *err);
/* After SIGCHLD. */
void gn_templates_reap(struct gn_daemon *d);
/* Whether it is a template of these. */
bool gn_templates_include(const struct gn_daemon *d, pid_t pid);
/* Of a vGPU that is being started: when its template has had long enough. 0: its template is not
 * what it waits for. */
uint64_t gn_template_deadline(const struct gn_vgpu_record *v);
void gn_templates_expire(struct gn_daemon *d, uint64_t now_ns);
/* Its worker's process has ended: of a template that was set aside nobody says how. */
void gn_templates_worker_ended(struct gn_vgpu_record *v);

#endif
