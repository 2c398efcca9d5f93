/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's start, from its fork to its vGPU: receives the boot message from gantryd, takes over
 * the program's stdout and stderr, raises the walls and brings the driver up. Main thread of a new
 * worker; the first code that calls the vendor's library.
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
#include "vgpu/boot.h"
#include "worker/worker.h"

/* The driver prints to the program's stdout and stderr. Log lines go to gantryd through a pipe;
 * gantryd's own stderr is closed here. */
static int put_on_stdio(struct gn_boot *b)
{
    gn_log_to(b->fds[GN_WORKER_BOOT_LOG]);
    if (dup2(b->fds[GN_WORKER_BOOT_STDOUT], STDOUT_FILENO) < 0 ||
        dup2(b->fds[GN_WORKER_BOOT_STDERR], STDERR_FILENO) < 0)
        return -errno;
    close(b->fds[GN_WORKER_BOOT_STDOUT]);
    close(b->fds[GN_WORKER_BOOT_STDERR]);
    return 0;
}

static int bring_up(const struct gn_worker_start *start, const struct gn_boot *b,
                    struct gn_vgpu_boot *v, struct gn_error *err)
{
    void *library = start->library;
    int rc = library ? 0 : start->backend->open_library(start->path, &library, err);
    if (rc == 0)
        rc = start->backend->bring_up(library, b->wire.platform, b->devices, b->wire.n_devices,
                                      &v->platform, err);
    return rc;
}

/* From here on the process counts as hostile: it may run the program's kernels. */
static int raise_walls(const struct gn_worker_start *start, const struct gn_boot *b,
                       struct gn_error *err)
{
    struct gn_wall_plan plan = {
        .mode = (enum gn_wall_mode)b->wall.mode,
        .change_user = b->wall.change_user,
        .uid = b->wall.uid,
        .gid = b->wall.gid,
        .n_groups = b->wall.n_groups,
        .cache = b->wall.cache[0] ? b->wall.cache : NULL,
        .layered = b->wall.layered,
        .library = start->path,
        .config_paths = start->backend->info->config_paths,
        .cache_variables = start->backend->info->cache_variables,
        .data_bytes = b->wall.data_bytes,
        /* For a program on another machine the worker creates the session's memory itself. */
        .shares = !b->wall.data_bytes || b->wire.remote};
    struct gn_wall_report report;
    _Static_assert(sizeof plan.groups == sizeof b->wall.groups,
                   "groups go over the wire as they are");
    memcpy(plan.groups, b->wall.groups, sizeof plan.groups);
    return gn_wall_raise(&plan, &report, err);
}

static void become_worker(const struct gn_worker_start *start)
{
    /* The template ends with gantryd, and this worker with the template. */
    gn_wall_follow(&start->forker);
    if (chdir("/") < 0)
        _exit(1);
    /* A kernel may print to a pipe without a reader, which must not end the vGPU. */
    signal(SIGPIPE, SIG_IGN);
}

_Noreturn void gn_worker_run(const struct gn_worker_start *start)
{
    struct gn_boot b;
    struct gn_vgpu_boot v = {.control_fd = start->control_fd};
    struct gn_error err = {{0}, {0}};
    struct gn_wall_group group;
    char name[16];

    become_worker(start);
    int rc = gn_boot_receive(start->control_fd, &b);
    if (rc == 0 && b.wall.mode > GN_WALL_REQUIRED)
        rc = -EPROTO;
    if (rc == -EMFILE)
        gn_worker_refuse(start->control_fd, 0, rc,
                         (gn_fail(&err, EMFILE, NULL, "a worker has no descriptors left"), &err));
    if (rc < 0)
        _exit(rc == -EPIPE ? 0 : 1);
    GN_FAULT("worker-boot-received");
    /* Before the walls are up. Without TLS no data connection is made, and that failure is reported
     * then. */
    if (b.wire.remote == GN_WORKER_REMOTE_TLS || b.wire.load_tls)
        (void)gn_tls_load(NULL);
    snprintf(name, sizeof name, "gn-%08x", b.wire.vgpu_id);
    prctl(PR_SET_NAME, name);
    size_t n_title = strlen(start->title);
    memset(start->title, 0, n_title);
    snprintf(start->title, n_title + 1, "%08x", b.wire.vgpu_id);

    rc = gn_boot_map(&b, &v, &err);
    if (rc == 0 && (rc = put_on_stdio(&b)) < 0)
        gn_fail(&err, -rc, NULL, "a worker cannot take its program's stdout: %s", strerror(-rc));
    gn_wall_group_make(&group, rc == 0 ? b.wall.group : "", b.wall.group_bytes);
    if (rc == 0)
        rc = raise_walls(start, &b, &err);
    if (rc == 0)
        gn_wall_group_start(&group);
    if (rc == 0)
        rc = bring_up(start, &b, &v, &err);
    gn_wall_group_wait(&group);
    if (rc) {
        gn_worker_refuse(start->control_fd, 0, rc, &err);
        _exit(1);
    }
    GN_FAULT("worker-driver-up");
    if (gn_frame_send(start->control_fd, -1, GN_WORKER_BOOTED, 0, 0, NULL, 0, NULL, 0) < 0)
        _exit(0);

    GN_FAULT("worker-booted");
    int status = gn_vgpu_serve(&v);
    /* Not exit(): some drivers crash in their exit handlers, and the kernel frees everything. */
    fflush(NULL);
    _exit(status);
}
