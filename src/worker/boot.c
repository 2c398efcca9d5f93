/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker between its fork from the template and its vGPU: takes what gantryd gives it, puts on the
 * program's stdout and stderr, brings the driver up. Main thread of a fresh worker; the first to call into
 * the vendor's library.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "link/frame.h"
#include "link/tls.h"
#include "link/worker_wire.h"
#include "shm/grant.h"
#include "shm/segment.h"
#include "vgpu/vgpu.h"
#include "worker/worker.h"

/* Everything that BOOT brought, checked. */
struct boot {
    struct gn_worker_boot wire;
    struct gn_device_choice devices[GN_WORKER_MAX_DEVICES];
    struct gn_worker_boot_wall wall;
    int fds[GN_WORKER_BOOT_FDS];
};

static int receive_boot(struct gn_frame_reader *reader, struct boot *b)
{
    struct gn_frame f;
    int rc = gn_frame_wait(reader, -1, &f);
    if (rc < 0)
        return rc;
    if (f.op != GN_WORKER_BOOT || f.n_payload < sizeof b->wire || f.n_fds != GN_WORKER_BOOT_FDS)
        return -EPROTO;
    memcpy(&b->wire, f.payload, sizeof b->wire);
    if (b->wire.n_devices == 0 || b->wire.n_devices > GN_WORKER_MAX_DEVICES ||
        f.n_payload != sizeof b->wire + b->wire.n_devices * sizeof(struct gn_worker_boot_device) + sizeof b->wall ||
        !gn_frame_string_ok(b->wire.program, sizeof b->wire.program) ||
        !gn_frame_string_ok(b->wire.tenant, sizeof b->wire.tenant))
        return -EPROTO;
    for (uint32_t i = 0; i < b->wire.n_devices; i++) {
        struct gn_worker_boot_device d;
        memcpy(&d, (const char *)f.payload + sizeof b->wire + i * sizeof d, sizeof d);
        b->devices[i] = (struct gn_device_choice){.index = d.index, .present_as = d.present_as};
    }
    memcpy(&b->wall, (const char *)f.payload + f.n_payload - sizeof b->wall, sizeof b->wall);
    if (b->wall.mode > GN_WALL_REQUIRED || b->wall.n_groups > GN_WORKER_MAX_GROUPS ||
        !gn_frame_string_ok(b->wall.cache, sizeof b->wall.cache))
        return -EPROTO;
    for (int i = 0; i < GN_WORKER_BOOT_FDS; i++)
        b->fds[i] = gn_frame_take_fd(reader, i);
    return 0;
}

/* A driver's prints are the program's. Our own lines go to gantryd by a pipe; of gantryd's own stderr nothing
 * stays here. */
static int put_on_stdio(struct boot *b)
{
    gn_log_to(b->fds[GN_WORKER_BOOT_LOG]);
    if (dup2(b->fds[GN_WORKER_BOOT_STDOUT], STDOUT_FILENO) < 0 ||
        dup2(b->fds[GN_WORKER_BOOT_STDERR], STDERR_FILENO) < 0)
        return -errno;
    close(b->fds[GN_WORKER_BOOT_STDOUT]);
    close(b->fds[GN_WORKER_BOOT_STDERR]);
    return 0;
}

static int map_segments(const struct boot *b, struct gn_vgpu_boot *v, struct gn_error *err)
{
    const struct {
        int fd;
        uint64_t bytes;
        struct gn_segment *to;
    } all[] = {
        {b->fds[GN_WORKER_BOOT_RING], b->wire.ring_bytes, &v->ring},
        {b->fds[GN_WORKER_BOOT_EVENTS], b->wire.events_bytes, &v->events},
        {b->fds[GN_WORKER_BOOT_DATA], b->wire.data_bytes, &v->data},
        {b->fds[GN_WORKER_BOOT_COUNTERS], b->wire.counters_bytes, &v->counters},
        {b->fds[GN_WORKER_BOOT_GRANTS], GN_GRANT_BYTES, &v->grants},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        /* Of a vGPU that is taken over these come from who has it. */
        if (b->wire.loads && (all[i].to == &v->events || all[i].to == &v->data)) {
            close(all[i].fd);
            continue;
        }
        int rc = gn_segment_adopt(all[i].fd, all[i].bytes, all[i].to);
        if (rc == 0 && all[i].to->bytes != all[i].bytes)
            rc = -EINVAL;
        if (rc)
            return gn_fail(err, -rc, NULL, "a worker cannot map its vGPU's memory: %s", strerror(-rc));
    }
    return 0;
}

static int bring_up(const struct gn_worker_start *start, const struct boot *b, struct gn_vgpu_boot *v,
                    struct gn_error *err)
{
    void *library = start->library;
    int rc = library ? 0 : start->backend->open_library(start->path, &library, err);
    if (rc == 0)
        rc = start->backend->bring_up(library, b->wire.platform, b->devices, b->wire.n_devices, &v->platform,
                                      err);
    return rc;
}

/* From here on this process is taken for its program's accomplice. */
static int raise_walls(const struct gn_worker_start *start, const struct boot *b, struct gn_error *err)
{
    struct gn_wall_plan plan = {.mode = (enum gn_wall_mode)b->wall.mode,
                                .change_user = b->wall.change_user,
                                .uid = b->wall.uid,
                                .gid = b->wall.gid,
                                .n_groups = b->wall.n_groups,
                                .cache = b->wall.cache[0] ? b->wall.cache : NULL,
                                .library = start->path,
                                .data_bytes = b->wall.data_bytes,
                                /* For a program on another machine it makes the session's memory itself. */
                                .shares = !b->wall.data_bytes || b->wire.remote};
    struct gn_wall_report report;
    _Static_assert(sizeof plan.groups == sizeof b->wall.groups, "groups go over the wire as they are");
    memcpy(plan.groups, b->wall.groups, sizeof plan.groups);
    return gn_wall_raise(&plan, &report, err);
}

static void become_worker(const struct gn_worker_start *start)
{
    /* The template dies with gantryd, and this with the template. */
    gn_wall_follow(&start->forker);
    if (chdir("/") < 0)
        _exit(1);
    /* Kernels print to a pipe whose reader may be gone; that must not end the vGPU. */
    signal(SIGPIPE, SIG_IGN);
}

_Noreturn void gn_worker_run(const struct gn_worker_start *start)
{
    struct boot b;
    struct gn_vgpu_boot v = {.control_fd = start->control_fd};
    struct gn_frame_reader reader;
    struct gn_error err = {{0}, {0}};
    char name[16];

    become_worker(start);
    gn_frame_reader_init(&reader, start->control_fd);
    int rc = receive_boot(&reader, &b);
    if (rc < 0)
        _exit(rc == -EPIPE ? 0 : 1);
    gn_frame_reader_fini(&reader);
    GN_FAULT("worker-boot-received");
    /* Before anything is walled off. Without it no data connection comes about, and that is said then. */
    if (b.wire.remote == GN_WORKER_REMOTE_TLS)
        (void)gn_tls_load(NULL);
    snprintf(name, sizeof name, "gn-%08x", b.wire.vgpu_id);
    prctl(PR_SET_NAME, name);
    size_t n_title = strlen(start->title);
    memset(start->title, 0, n_title);
    snprintf(start->title, n_title + 1, "%08x", b.wire.vgpu_id);

    v.id = b.wire.vgpu_id;
    v.program = b.wire.program;
    v.tenant = b.wire.tenant;
    v.weight = b.wire.weight;
    v.memory_limit_bytes = b.wire.memory_limit_bytes;
    v.session_fd = b.wire.loads ? -1 : b.fds[GN_WORKER_BOOT_SESSION];
    v.load_fd = b.wire.loads ? b.fds[GN_WORKER_BOOT_SESSION] : -1;
    v.tell_fd = b.fds[GN_WORKER_BOOT_TELL];
    v.takes_turns = b.wire.takes_turns != 0;
    v.remote = b.wire.remote != 0;
    v.tls = b.wire.remote == GN_WORKER_REMOTE_TLS;
    v.grace_ms = b.wire.grace_ms;
    memcpy(v.session, b.wire.session, sizeof v.session);
    memcpy(v.key, b.wire.key, sizeof v.key);
    rc = map_segments(&b, &v, &err);
    if (rc == 0 && (rc = put_on_stdio(&b)) < 0)
        gn_fail(&err, -rc, NULL, "a worker cannot take its program's stdout: %s", strerror(-rc));
    if (rc == 0)
        rc = raise_walls(start, &b, &err);
    if (rc == 0)
        rc = bring_up(start, &b, &v, &err);
    if (rc) {
        gn_worker_refuse(start->control_fd, 0, rc, &err);
        _exit(1);
    }
    GN_FAULT("worker-driver-up");
    if (gn_frame_send(start->control_fd, -1, GN_WORKER_BOOTED, 0, 0, NULL, 0, NULL, 0) < 0)
        _exit(0);

    GN_FAULT("worker-booted");
    int status = gn_vgpu_serve(&v);
    /* Not exit(): drivers' own clean-up at exit has been seen to crash, and the kernel frees everything
     * anyhow. */
    fflush(NULL);
    _exit(status);
}
