/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which walls this machine has: a child is forked and confined as a worker is, reports,
 * and ends. gantryd and the operator know the answer before the first program attaches. Main
 * thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/frame.h"
#include "link/worker_wire.h"
#include "wall/layers.h"
#include "worker/worker.h"

#define SEND_TIMEOUT_MS 5000

/* In a child of its own; the mounts end with it. */
static int mount_layers(void)
{
    int rc = gn_wall_own_mounts();
    if (rc == 0 && (mount("gantry", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m") < 0 ||
                    mkdir("/tmp/at", 0700) < 0 || mkdir("/tmp/kept", 0700) < 0))
        rc = -errno;
    const int kept = rc ? -1 : open("/tmp/kept", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0)
        rc = kept < 0 ? -errno : gn_wall_layers_mount("/tmp/at", kept, 0, 0, 65536, 16);
    return rc ? 1 : 0;
}

static bool can_mount_layers(enum gn_wall_mode walls)
{
    int status = 1;
    if (geteuid() != 0 || walls == GN_WALL_NONE)
        return false;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(mount_layers());
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int raise_and_tell(int socket, const struct gn_wall_forker *forker, enum gn_wall_mode walls)
{
    /* As for a program of root's: any other user. */
    struct gn_wall_plan plan = {
        .mode = walls, .change_user = geteuid() == 0, .uid = 65534, .gid = 65534};
    struct gn_wall_report report = {0, 0};
    struct gn_error err = {{0}, {0}};
    gn_wall_follow(forker);
    const bool layers = can_mount_layers(walls);
    int rc = gn_wall_raise(&plan, &report, &err);
    struct gn_worker_walls w = {.have = report.have,
                                .landlock_abi = report.landlock_abi,
                                .layers = layers && (report.have & GN_WALL_SCRATCH)};
    if (rc)
        gn_worker_refuse(socket, 0, rc, &err);
    else
        rc = gn_frame_send(socket, SEND_TIMEOUT_MS, GN_WORKER_WALLS, 0, 0, &w, sizeof w, NULL, 0);
    return rc ? 1 : 0;
}

int gn_worker_try_walls(int socket, enum gn_wall_mode walls)
{
    struct gn_wall_forker forker;
    int status;
    if (walls > GN_WALL_REQUIRED || gn_wall_forker_init(&forker, walls))
        return 1;
    pid_t pid = gn_wall_fork(&forker);
    if (pid == 0)
        _exit(raise_and_tell(socket, &forker, walls));
    if (pid < 0)
        return 1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
