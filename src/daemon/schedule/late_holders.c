/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends vGPUs that hold a device and do not answer a preemption. Called by the event loop when the
 * scheduler reports such holders, on gantryd's thread. If the user has stopped the worker (SIGSTOP,
 * a debugger), all other programs would wait for as long as that user likes, so the vGPU is ended
 * at once. Otherwise it may be running a long kernel, and has until --kernel-limit.
 *
 * A program in passthrough is not ended because it is stopped: its user may have suspended it, and
 * its tenant is trusted with the device.
 */
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/migrate/stopped_processes.h"
#include "daemon/schedule/late_holders.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"

static void end_vgpu(struct gn_vgpu_record *v, const char *why)
{
    gn_quota_log(v->quota, GN_LOG_WARN, "vgpu=%08x: \"%s\" %s, and is ended", v->id, v->program,
                 why);
    gn_vgpus_note_fault(v);
    gn_vgpus_kill(v);
}

void gn_late_holders(struct gn_source *late, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(late, struct gn_daemon, late);
    uint64_t ignored;
    uint32_t id;
    bool over_limit;
    (void)events;
    (void)!read(late->fd, &ignored, sizeof ignored);
    while ((id = gn_scheduler_next_late(d->scheduler, &over_limit))) {
        struct gn_vgpu_record *v = gn_vgpus_find(d, id);
        if (!v)
            continue;
        if (over_limit)
            end_vgpu(v, "has kept others waiting for the device for longer than --kernel-limit");
        else if (!v->serving->may_be_suspended && gn_refuse_stopped_worker(v, NULL))
            end_vgpu(v, "keeps others waiting for the device while its worker is stopped");
    }
}
