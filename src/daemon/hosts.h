/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_HOSTS_H
#define GN_DAEMON_HOSTS_H

#include "daemon/daemon.h"

/* Drivers' template processes, from which workers are forked. gantryd's thread. */
struct gn_host {
    struct gn_daemon *daemon;
    uint32_t driver;
    pid_t pid; /* 0: not running */
    struct gn_source socket;
    struct gn_frame_reader reader;
    struct gn_frame_writer writer;
};

int gn_hosts_init(struct gn_daemon *d);
void gn_hosts_fini(struct gn_daemon *d);
int gn_host_spawn(struct gn_host *h, uint32_t vgpu_id, int control_fd, struct gn_error *err);
/* After SIGCHLD. */
void gn_hosts_reap(struct gn_daemon *d);

#endif
