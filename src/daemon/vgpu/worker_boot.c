/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message to a vGPU's worker, or to the program that hosts the vGPU; and the start of a
 * worker that is to take over from another one. Called by create.c and the owners of records, on
 * gantryd's thread; it never waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/tenants/placed_memory.h"
#include "daemon/net/transport.h"
#include "daemon/vgpu/device_choice.h"
#include "daemon/vgpu/record_session.h"
#include "daemon/vgpu/vgpu_internal.h"
#include "daemon/vgpu/create.h"
#include "daemon/vgpu/lifecycle.h"
#include "daemon/vgpu/worker.h"
#include "shm/counters.h"

int gn_vgpus_send_boot(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                       const int *stdio)
{
    const struct gn_platform_record *p = &v->daemon->machine.platforms[v->platform];
    const struct gn_vgpu_record *of = gn_vgpus_session_of(v);
    struct {
        struct gn_worker_boot head;
        unsigned char rest[GN_WORKER_MAX_DEVICES * sizeof(struct gn_worker_boot_device) +
                           sizeof(struct gn_worker_boot_wall)];
    } b;
    struct gn_worker_boot_wall wall;
    size_t n = 0;
    int null = -1, log = -1, rc;
    memset(&b, 0, sizeof b);
    b.head = (struct gn_worker_boot){.vgpu_id = v->id,
                                     .platform = p->index_in_driver,
                                     .n_devices = gn_vgpus_n_devices(v),
                                     .weight = v->weight,
                                     .ring_bytes = v->ring_bytes,
                                     .events_bytes = v->events_bytes,
                                     .data_bytes = v->data_bytes,
                                     .counters_bytes = GN_COUNTERS_BYTES,
                                     .takes_turns = v->takes_turns,
                                     .ring_at = v->ring_at,
                                     .evicts = gn_placed_memory_evicts(v),
                                     .placed = v->placement.n != 0,
                                     .memory_limit_bytes = gn_holder_limit(&v->lease)};
    of->session_ops->fill_boot(of, &b.head);
    if (v->owned_by && v->owned_by->ops->boot)
        v->owned_by->ops->boot(v->owned_by, v, &b.head);
    gn_frame_string_set(b.head.program, sizeof b.head.program, v->program);
    gn_frame_string_set(b.head.tenant, sizeof b.head.tenant, v->tenant->rules.name);
    for (uint32_t k = 0; k < gn_vgpus_n_devices(v); k++) {
        const uint32_t i = v->order[k];
        struct gn_worker_boot_device device = {.index = p->devices[i].facts.index,
                                               .present_as = p->devices[i].shown_as,
                                               .rank = v->ranks[i]};
        memcpy(b.rest + n, &device, sizeof device);
        n += sizeof device;
    }
    gn_walls_of(&v->daemon->walls, p, program ? program->transport->user_socket(program) : -1,
                &wall);
    if (v->serving->confine)
        v->serving->confine(v, program, &wall);
    memcpy(b.rest + n, &wall, sizeof wall);
    n += sizeof wall;
    if ((stdio[0] < 0 || stdio[1] < 0) && (null = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
        return -errno;
    rc = gn_worker_log_open(&v->log, &v->daemon->loop, &log);
    if (rc) {
        gn_vgpus_close_own(&null);
        return rc;
    }
    /* A worker that is to take over maps what the source maps. Where events and data come
     * with the session, the ring's descriptor fills their places: each place needs one. */
    int fds[GN_WORKER_BOOT_FDS] = {
        [GN_WORKER_BOOT_SESSION] = session_fd,
        [GN_WORKER_BOOT_RING] = of->ring_fd,
        [GN_WORKER_BOOT_EVENTS] = v->events_fd >= 0 ? v->events_fd : of->ring_fd,
        [GN_WORKER_BOOT_DATA] = v->data_fd >= 0 ? v->data_fd : of->ring_fd,
        [GN_WORKER_BOOT_COUNTERS] = of->counters_fd,
        [GN_WORKER_BOOT_GRANTS] = of->shares.page.fd,
        [GN_WORKER_BOOT_GRANT_EVENT] = of->shares.tell_fd,
        [GN_WORKER_BOOT_STDOUT] = stdio[0] >= 0 ? stdio[0] : null,
        [GN_WORKER_BOOT_STDERR] = stdio[1] >= 0 ? stdio[1] : null,
        [GN_WORKER_BOOT_LOG] = log,
    };
    rc = gn_frame_push(&v->writer, GN_WORKER_BOOT, 0, 0, &b, sizeof b.head + n, fds,
                       GN_WORKER_BOOT_FDS);
    gn_vgpus_close_own(&null);
    gn_vgpus_close_own(&log);
    return rc;
}

void gn_vgpus_reclaim(struct gn_vgpu_record *v)
{
    struct gn_frame_reader reader;
    struct gn_frame f;
    gn_frame_reader_init(&reader, v->worker_fd);
    reader.sink = &v->quota->sink;
    while (gn_frame_read(&reader, &f) == 1)
        continue;
    gn_frame_reader_fini(&reader);
}

int gn_vgpus_boot_worker(struct gn_vgpu_record *v, const struct gn_conn *program, int session_fd,
                         struct gn_error *err)
{
    static const int no_stdio[2] = {-1, -1};
    int rc = v->id ? 0 : gn_vgpus_make_id(v->daemon, &v->id);
    if (rc == 0)
        rc = gn_vgpus_make_control(v);
    if (rc == 0)
        rc = gn_vgpus_send_boot(v, program, session_fd, no_stdio);
    return rc ? gn_fail(err, -rc, NULL, "cannot make a worker: %s", strerror(-rc))
              : v->serving->start(v, err);
}
