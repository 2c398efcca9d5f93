/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root for the worker on kernels without Landlock, with only the files that a driver may need,
 * read-only, and the worker's temporary folders. The worker's main thread makes it in the worker's
 * mount namespace, after the temporary folders. It is as tight as Landlock while the worker holds
 * no descriptor of a folder outside, and the worker never gets one.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/parts.h"

#define ROOT     "/tmp/root"
#define OLD_ROOT ROOT "/.old"

/*
 * Adds one of the driver's files. A file that cannot be mounted is absent: the driver reports it if
 * it matters.
 */
static void add_file(void *ctx, const char *path, unsigned how)
{
    char at[PATH_MAX], target[PATH_MAX];
    struct stat st;
    (void)ctx;
    if (strncmp(path, "/proc", 5) == 0 || strncmp(path, "/tmp/", 5) == 0 || lstat(path, &st) < 0 ||
        (size_t)snprintf(at, sizeof at, ROOT "%s", path) >= sizeof at)
        return;
    /* A device is writable even on a read-only mount. */
    if (S_ISCHR(st.st_mode) && !(how & GN_WALL_DEVICE) && strcmp(path, "/dev/zero") == 0)
        return;
    if (gn_wall_make_place(at, strlen(ROOT), st.st_mode))
        return;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        (void)!symlink(target, at);
        return;
    }
    /*
     * Other mounts below this path (such as a separate /usr/local) are not included: only the
     * folders beneath them are visible.
     */
    (void)gn_wall_show(path, at, how & GN_WALL_DEVICE);
}

/*
 * Adds a part of a driver that gn_wall_scratch mounted in the worker's own /tmp: binding /tmp shows
 * only the empty folder.
 */
static void add_temporary_part(void *ctx, const char *path, unsigned how)
{
    char at[PATH_MAX];
    (void)ctx;
    (void)how;
    if (gn_wall_is_temporary(path) && (size_t)snprintf(at, sizeof at, ROOT "%s", path) < sizeof at)
        (void)gn_wall_show(path, at, false);
}

/* Adds /proc if it shows only the worker's processes; otherwise there is none. */
static int add_processes(void)
{
    char self[16];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    if (n != 1 || self[0] != '1' || getpid() != 1)
        return 0;
    if (mkdir(ROOT "/proc", 0755) < 0)
        return -errno;
    /*
     * Read-only: otherwise a worker could make itself the last process to be killed when memory
     * runs out.
     */
    return gn_wall_show("/proc", ROOT "/proc", false);
}

static int add_own(const struct gn_wall_plan *plan)
{
    if (mkdir(ROOT "/tmp", 0711) < 0 || mount("/tmp", ROOT "/tmp", NULL, MS_BIND, NULL) < 0)
        return -errno;
    gn_wall_temporary_files(plan, add_temporary_part, NULL);
    if (plan->cache && mount(GN_WALL_CACHE_AT, ROOT GN_WALL_CACHE_AT, NULL, MS_BIND, NULL) < 0)
        return -errno;
    if ((mkdir(ROOT "/dev", 0755) < 0 && errno != EEXIST) ||
        (mkdir(ROOT "/dev/shm", 0755) < 0 && errno != EEXIST))
        return -errno;
    return mount("/tmp/shm", ROOT "/dev/shm", NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int gn_wall_view(const struct gn_wall_plan *plan)
{
    int rc;
    if (mkdir(ROOT, 0755) < 0 ||
        mount("gantry", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0)
        return -errno;
    gn_wall_driver_files(plan, add_file, NULL);
    rc = add_own(plan);
    if (rc == 0)
        rc = add_processes();
    if (rc == 0 && (mkdir(OLD_ROOT, 0700) < 0 || syscall(SYS_pivot_root, ROOT, OLD_ROOT) < 0))
        rc = -errno;
    if (rc) {
        (void)umount2(ROOT, MNT_DETACH);
        return rc;
    }
    /* The old root is unmounted from here on, so a failure must end the process. */
    if (chdir("/") < 0 || umount2("/.old", MNT_DETACH) < 0 || rmdir("/.old") < 0 ||
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        _exit(1);
    return 0;
}
