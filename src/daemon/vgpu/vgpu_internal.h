/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_VGPU_INTERNAL_H
#define GN_DAEMON_VGPU_VGPU_INTERNAL_H

#include <unistd.h>

#include "daemon/daemon.h"

/* Shared by the files of daemon/vgpu alone. gantryd's thread. Each `int` is 0 or -errno. */

/* Only for descriptors that no other process has chosen (closer.h). */
static inline void gn_vgpus_close_own(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* lifecycle.c: ends the record once neither program nor worker is left, and frees it after this
 * turn of the loop; else does nothing. */
void gn_vgpus_free_if_over(struct gn_vgpu_record *v);
/* The program cannot have the vGPU that it asked for: its connection goes on without one. */
void gn_vgpus_refuse(struct gn_vgpu_record *v, int code, const struct gn_error *err);
/* The process that serves the vGPU has ended, or does not serve it any more. */
void gn_vgpus_gone(struct gn_vgpu_record *v);
/* The process must not go on: closes the socket to it, and kills it. */
void gn_vgpus_cut_off(struct gn_vgpu_record *v);
/* Takes the pidfd of the process that serves v, and watches for its end. 0 or -errno. */
int gn_vgpus_watch_process(struct gn_vgpu_record *v, int pidfd);
/* Gives the program its session, once the worker's driver is up and the worker can be watched; the
 * two become known over different sockets, in either order. A vGPU whose program is gone is left
 * out: it would be listed until its end. */
void gn_vgpus_tell_program(struct gn_vgpu_record *v);
/* Makes the control socket, serves the worker's frames from now on, and leaves the worker's end in
 * worker_fd. */
int gn_vgpus_make_control(struct gn_vgpu_record *v);

/* Whether all that its worker had is saved, so that the worker is not needed any more. */
enum gn_record_saved gn_vgpus_saved(const struct gn_vgpu_record *v);

/* create.c: an id that no vGPU has. */
int gn_vgpus_make_id(struct gn_daemon *d, uint32_t *ret);
/* Joins the scheduler, with its part in each of its devices. */
int gn_vgpus_join_shares(struct gn_vgpu_record *v);

/* worker_boot.c: sends the boot message to the worker, or to the program that hosts the vGPU. The
 * worker runs as the user of the program's connection (NULL, or over tcp: the user is unknown).
 * stdio: stdout and stderr, -1 each where there is none. All descriptors stay the caller's. */
int gn_vgpus_send_boot(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                       const int *stdio);
/* Drops the messages in worker_fd that no worker has read. */
void gn_vgpus_reclaim(struct gn_vgpu_record *v);

#endif
