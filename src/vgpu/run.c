/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU in a worker, from the boot message to its end: chooses the session, loads the vGPU when
 * another worker or a checkpoint has it, starts the threads, and serves on the calling thread.
 */
#include "base/log.h"
#include "vgpu/core/serve.h"
#include "vgpu/migrate/transfer.h"
#include "vgpu/run.h"

int gn_vgpu_run(struct gn_vgpu *v, const struct gn_vgpu_boot *boot, const struct gn_vgpu_api *api)
{
    static struct gn_vgpu_boot handed;
    const struct gn_vgpu_session_ops *session =
        boot->remote ? &gn_vgpu_session_tcp : &gn_vgpu_session_shm;
    const bool loads = boot->load_fd >= 0 || boot->file_fd >= 0;
    v->migration = &gn_vgpu_migration;
    if (loads) {
        handed = *boot;
        boot = &handed;
        if (gn_vgpu_receive_handover(session, &handed))
            return 0; /* the source resumes, and has said why */
    }
    if (gn_vgpu_open(v, boot, session, api))
        return 1;
    if (loads)
        gn_vgpu_begin_load(v);
    v->listens = true;
    if (gn_devices_start(v) || gn_vgpu_start_thread(v, gn_vgpu_control_thread, v, NULL)) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x cannot start its threads: no memory or too many threads",
               boot->id);
        return 1;
    }
    if (loads && gn_vgpu_receive(v, 0))
        return 1;
    session->serve(v);
    return atomic_load_explicit(&v->fault, memory_order_relaxed) ? 1 : 0;
}
