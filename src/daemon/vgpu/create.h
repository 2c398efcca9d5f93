/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_CREATE_H
#define GN_DAEMON_VGPU_CREATE_H

#include "daemon/vgpu/vgpu_record.h"

/* New vGPU records (create.c), and their workers (worker_boot.c). gantryd's thread. Each `int` is 0
 * or -errno. */

/* Makes a vGPU for the program of c. The attach is answered later; after a failure there is no
 * vGPU. */
int gn_vgpus_start(struct gn_conn *c, struct gn_tenant *tenant, uint32_t seq,
                   const struct gn_link_attach *a, const int *stdio, struct gn_error *err);
/* A record for a worker that is to take the place of this one's. NULL: no memory, and a sentence.
 */
struct gn_vgpu_record *gn_vgpus_blank(const struct gn_vgpu_record *like, struct gn_error *err);
/* A record of a vGPU that has no worker yet, for the program of c, with these devices (0: all that
 * its tenant may use). id: as an operator announced it, used if it is free; 0: a new one. Takes
 * ring_fd. */
struct gn_vgpu_record *gn_vgpus_make_without_worker(struct gn_conn *c, struct gn_tenant *tenant,
                                                    uint32_t id, const struct gn_link_wait *w,
                                                    uint64_t devices, const uint8_t *order,
                                                    int ring_fd, struct gn_error *err);
/* A record of a vGPU that is in a file, for the program of c, which waits for it. Takes ring_fd. */
struct gn_vgpu_record *gn_vgpus_make_stopped(struct gn_conn *c, struct gn_tenant *tenant,
                                             const struct gn_link_wait *w, int ring_fd,
                                             struct gn_error *err);
/* Makes events and data area of a session with a program that shares no memory. */
int gn_vgpus_make_memory(struct gn_vgpu_record *v);
/* The vGPU lives elsewhere, and its worker here is only waited for: another one may have its id. */
void gn_vgpus_release_id(struct gn_vgpu_record *v);
/* A worker for this record: makes its control socket and boot message. ring_fd, counters_fd and the
 * grants' descriptors are in the record with its session (owner.h). The worker runs as the user of
 * `program`, a connection. */
int gn_vgpus_boot_worker(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                         struct gn_error *err);

#endif
