/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries the placement's orders to workers and their records. Called by gantryd's loop, on its
 * thread.
 */
#include "daemon/schedule/placement_orders.h"

#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/tenants/placed_memory.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"

static void end_overdue(struct gn_vgpu_record *v)
{
    gn_quota_log(v->quota, GN_LOG_WARN,
                 "vgpu=%08x: \"%s\" does not give device memory back that others wait for, and is "
                 "ended",
                 v->id, v->program);
    gn_vgpus_note_fault(v);
    gn_vgpus_kill(v);
}

void gn_placement_orders(struct gn_source *placed, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(placed, struct gn_daemon, placed);
    struct gn_placement_order order;
    uint64_t ignored;
    (void)events;
    (void)!read(placed->fd, &ignored, sizeof ignored);
    while (gn_placement_next(d->scheduler, &order)) {
        struct gn_vgpu_record *v = gn_container_of(order.of, struct gn_vgpu_record, placement);
        const struct gn_worker_reside reside = {.bytes = order.bytes,
                                                .keeps_copies = order.keeps_copies};
        switch (order.kind) {
        case GN_PLACEMENT_RESIDE:
            gn_debug("vgpu=%08x is told to have at most %lld MiB on its device, with%s copies",
                     v->id, (long long)order.bytes >> 20, order.keeps_copies ? "" : "out");
            gn_vgpus_notify_worker(v, GN_WORKER_RESIDE, order.number, &reside, sizeof reside);
            break;
        case GN_PLACEMENT_DISCARD:
            gn_debug("vgpu=%08x is told to discard copies in host memory", v->id);
            gn_vgpus_notify_worker(v, GN_WORKER_DISCARD, 0, NULL, 0);
            break;
        case GN_PLACEMENT_ROOM:
            gn_placed_memory_release(v);
            break;
        case GN_PLACEMENT_OVERDUE:
            end_overdue(v);
            break;
        }
    }
}
