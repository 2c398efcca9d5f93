/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the boot message and maps the vGPU's segments, for workers and for programs in
 * passthrough. Called by the thread that starts the vGPU, before it has other threads. Never calls
 * the driver.
 */
#include "vgpu/boot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/descriptor.h"
#include "link/frame.h"
#include "shm/grant.h"
#include "shm/segment.h"
#include "vgpu/migrate/route.h"

static int decode_boot(struct gn_frame_reader *reader, const struct gn_frame *f, struct gn_boot *b)
{
    if (f->op == GN_WORKER_BOOT && f->lost_fds)
        return -EMFILE;
    if (f->op != GN_WORKER_BOOT || f->n_payload < sizeof b->wire || f->n_fds != GN_WORKER_BOOT_FDS)
        return -EPROTO;
    memcpy(&b->wire, f->payload, sizeof b->wire);
    if (b->wire.n_devices == 0 || b->wire.n_devices > GN_WORKER_MAX_DEVICES ||
        f->n_payload != sizeof b->wire + b->wire.n_devices * sizeof(struct gn_worker_boot_device) +
                            sizeof b->wall ||
        !gn_frame_string_ok(b->wire.program, sizeof b->wire.program) ||
        !gn_frame_string_ok(b->wire.tenant, sizeof b->wire.tenant))
        return -EPROTO;
    for (uint32_t i = 0; i < b->wire.n_devices; i++) {
        struct gn_worker_boot_device d;
        memcpy(&d, (const char *)f->payload + sizeof b->wire + i * sizeof d, sizeof d);
        b->devices[i] = (struct gn_device_choice){.index = d.index, .present_as = d.present_as};
        b->ranks[i] = d.rank;
    }
    memcpy(&b->wall, (const char *)f->payload + f->n_payload - sizeof b->wall, sizeof b->wall);
    if (b->wall.n_groups > GN_WORKER_MAX_GROUPS ||
        !gn_frame_string_ok(b->wall.cache, sizeof b->wall.cache) ||
        !gn_frame_string_ok(b->wall.group, sizeof b->wall.group))
        return -EPROTO;
    for (int i = 0; i < GN_WORKER_BOOT_FDS; i++)
        b->fds[i] = gn_frame_take_fd(reader, i);
    return 0;
}

int gn_boot_receive(int control_fd, struct gn_boot *ret)
{
    struct gn_frame_reader reader;
    struct gn_frame f;
    for (int i = 0; i < GN_WORKER_BOOT_FDS; i++)
        ret->fds[i] = -1;
    gn_frame_reader_init(&reader, control_fd);
    int rc = gn_frame_wait(&reader, -1, &f);
    if (rc >= 0)
        rc = decode_boot(&reader, &f, ret);
    gn_frame_reader_fini(&reader);
    return rc;
}

void gn_boot_close(struct gn_boot *b, int which)
{
    gn_fd_close(b->fds[which]);
    b->fds[which] = -1;
}

void gn_boot_fini(struct gn_boot *b)
{
    for (int i = 0; i < GN_WORKER_BOOT_FDS; i++)
        gn_boot_close(b, i);
}

static int take_fd(struct gn_boot *b, int which)
{
    const int fd = b->fds[which];
    b->fds[which] = -1;
    return fd;
}

static int map_segments(struct gn_boot *b, struct gn_vgpu_boot *v, struct gn_error *err)
{
    const struct {
        int which;
        uint64_t bytes;
        struct gn_segment *to;
    } all[] = {
        {GN_WORKER_BOOT_RING, b->wire.ring_bytes, &v->ring},
        {GN_WORKER_BOOT_EVENTS, b->wire.events_bytes, &v->events},
        {GN_WORKER_BOOT_DATA, b->wire.data_bytes, &v->data},
        {GN_WORKER_BOOT_COUNTERS, b->wire.counters_bytes, &v->counters},
        {GN_WORKER_BOOT_GRANTS, GN_GRANT_BYTES, &v->grants},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        /* A vGPU that is taken over gets these from its present owner, */
        if (b->wire.loads && !b->wire.remote &&
            (all[i].to == &v->events || all[i].to == &v->data)) {
            /* Unless the descriptor is a checkpoint file or a socket, which was taken above. */
            gn_boot_close(b, all[i].which);
            continue;
        }
        int rc = gn_segment_adopt(b->fds[all[i].which], all[i].bytes, all[i].to);
        if (rc == 0)
            b->fds[all[i].which] = -1;
        if (rc == 0 && all[i].to->bytes != all[i].bytes)
            rc = -EINVAL;
        if (rc)
            return gn_fail(err, -rc, NULL, "cannot map the vGPU's memory: %s", strerror(-rc));
    }
    return 0;
}

int gn_boot_map(struct gn_boot *b, struct gn_vgpu_boot *v, struct gn_error *err)
{
    v->route = gn_route(b->wire.route);
    if (!v->route)
        return gn_fail(err, EPROTO, NULL, "gantryd named a route that does not exist");
    v->id = b->wire.vgpu_id;
    v->program = b->wire.program;
    v->tenant = b->wire.tenant;
    v->weight = b->wire.weight;
    v->ranks = b->ranks;
    v->memory_limit_bytes = b->wire.memory_limit_bytes;
    v->session_fd = b->wire.loads ? -1 : take_fd(b, GN_WORKER_BOOT_SESSION);
    const bool file = b->wire.loads == GN_WORKER_LOADS_FILE;
    v->load_fd =
        b->wire.loads && !(file && b->wire.remote) ? take_fd(b, GN_WORKER_BOOT_SESSION) : -1;
    v->file_fd =
        file ? take_fd(b, b->wire.remote ? GN_WORKER_BOOT_SESSION : GN_WORKER_BOOT_DATA) : -1;
    v->contents_fd = v->route->session_from_program ? take_fd(b, GN_WORKER_BOOT_DATA) : -1;
    v->load_secure = b->wire.load_tls != 0;
    v->ring_at = b->wire.ring_at;
    v->tell_fd = take_fd(b, GN_WORKER_BOOT_GRANT_EVENT);
    v->takes_turns = b->wire.takes_turns != 0;
    v->evicts = b->wire.evicts != 0;
    v->placed = b->wire.placed != 0;
    v->remote = b->wire.remote != 0;
    v->tls = b->wire.remote == GN_WORKER_REMOTE_TLS;
    v->grace_ms = b->wire.grace_ms;
    memcpy(v->session, b->wire.session, sizeof v->session);
    memcpy(v->key, b->wire.key, sizeof v->key);
    memcpy(v->load_name, b->wire.load_name, sizeof v->load_name);
    memcpy(v->load_key, b->wire.load_key, sizeof v->load_key);
    return map_segments(b, v, err);
}

void gn_vgpu_boot_fini(struct gn_vgpu_boot *v)
{
    const int fds[] = {v->session_fd, v->control_fd, v->tell_fd,
                       v->load_fd,    v->file_fd,    v->contents_fd};
    struct gn_segment *const segments[] = {&v->ring, &v->events, &v->data, &v->counters,
                                           &v->grants};
    for (size_t i = 0; i < GN_ARRAY_SIZE(fds); i++)
        gn_fd_close(fds[i]);
    for (size_t i = 0; i < GN_ARRAY_SIZE(segments); i++)
        gn_segment_fini(segments[i]);
    for (uint32_t i = 0; i < v->n_more; i++)
        gn_segment_fini(&v->more[i]);
    free(v->more);
}
