/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_VGPU_INTERNAL_H
#define GN_DAEMON_VGPU_VGPU_INTERNAL_H

#include <unistd.h>

#include "daemon/daemon.h"

/* What lifecycle.c, create.c and worker_boot.c, and nobody else, know of vGPUs. gantryd's thread.
 * Each `int` is 0 or -errno. */

/* Only what no other process has chosen (closer.h). */
static inline void gn_vgpus_close_own(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* lifecycle.c: ends the record, and frees it after this turn of the loop, once nobody is left who
 * could name it; else does nothing. */
void gn_vgpus_free_if_over(struct gn_vgpu_record *v);
/* Makes the control socket, hears from now on what the worker says, and leaves the worker's end in
 * worker_fd. */
int gn_vgpus_make_control(struct gn_vgpu_record *v);

/* Is all that its worker had saved, so that the worker is not needed any more? */
enum gn_record_saved gn_vgpus_saved(const struct gn_vgpu_record *v);

/* create.c: an id that no vGPU has. */
int gn_vgpus_make_id(struct gn_daemon *d, uint32_t *ret);
/* Gives it its part in each of its devices. */
int gn_vgpus_join_shares(struct gn_vgpu_record *v);

/*
 * worker_boot.c: tells the worker, or the program that hosts the vGPU, what is its. Its user
 * becomes that of the program's connection (NULL, or one over tcp: nobody known); stdio: stdout and
 * stderr, -1 each where there is none. All descriptors stay the caller's.
 */
int gn_vgpus_send_boot(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                       const int *stdio);
/* Lets go of what it was told, as long as it has not been read: there is no worker. */
void gn_vgpus_reclaim(struct gn_vgpu_record *v);

#endif
