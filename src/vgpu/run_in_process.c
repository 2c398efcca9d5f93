/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a vGPU in its program, as run.c runs one in a worker: loads it when a worker has it, and
 * starts its threads. Called on the program's thread that first needs a device, or on a thread that
 * takes the vGPU over; returns once this process has the vGPU, or has not got it.
 */
#include "base/descriptor.h"
#include "vgpu/core/serve.h"
#include "vgpu/migrate/transfer.h"
#include "vgpu/run.h"

#include <errno.h>

/*
 * Loads the vGPU from a worker, and waits until gantryd commits or aborts. 0: this process owns the
 * vGPU.
 */
static int take_over(struct gn_vgpu *v, int rc)
{
    struct gn_gate *g = &v->gate;
    rc = gn_vgpu_receive(v, rc);
    pthread_mutex_lock(&g->lock);
    while (!rc && gn_gate_is_closed(g) && !gn_lost_is(&v->lost))
        pthread_cond_wait(&g->wake, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return rc ? rc : gn_lost_is(&v->lost) ? -ECANCELED : 0;
}

int gn_vgpu_start_in_process(struct gn_vgpu *v, struct gn_vgpu_boot *boot,
                             const struct gn_vgpu_api *api)
{
    const bool loads = boot->load_fd >= 0;
    v->lease.wake_fd = -1;
    v->migration = &gn_vgpu_migration;
    int rc = loads ? gn_vgpu_receive_handover(&gn_vgpu_session_in_process, boot) : 0;
    if (!rc)
        rc = gn_vgpu_open(v, boot, &gn_vgpu_session_in_process, api);
    if (rc) {
        gn_fd_close(v->lease.wake_fd);
        return rc < 0 ? rc : -EMFILE;
    }
    if (loads)
        gn_vgpu_begin_load(v);
    v->listens = true;
    v->came = loads;
    rc = gn_devices_start(v);
    if (!rc)
        rc = gn_vgpu_start_thread(v, gn_vgpu_control_thread, v, &v->control);
    if (!rc)
        rc = gn_vgpu_start_thread(v, gn_vgpu_keeper_thread, v, NULL);
    if (loads) {
        rc = take_over(v, rc);
        gn_fd_close(boot->load_fd);
    }
    if (rc)
        v->session->end(v);
    return rc;
}
