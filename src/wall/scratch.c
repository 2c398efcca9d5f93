/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a mount namespace for the worker, on its main thread. In it /tmp and /dev/shm are empty,
 * bounded, and end with the worker; /proc shows the worker's processes only. The tenant's cache is
 * mounted in /tmp, so that the folders above the cache need not be open to the worker's user. If
 * the driver is in /tmp, its prefix is mounted there, read-only. It never changes a mount of the
 * machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "wall/parts.h"

#define SHM_AT      "/tmp/shm"
#define MAX_BYTES   "512m"
#define MAX_ENTRIES "65536"
#define FREE_PART   20u /* A file system with less than this part free is nearly full. */

static int make_folder(const char *path, const struct gn_wall_plan *plan)
{
    if (mkdir(path, 0700) < 0)
        return -errno;
    return plan->change_user && chown(path, plan->uid, plan->gid) < 0 ? -errno : 0;
}

static int bind_fd(int fd, const char *at)
{
    char from[32];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    return mount(from, at, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

/*
 * On a file system that is nearly full, others need the rest: compiled kernels then stay in memory
 * and end with the worker.
 */
static bool is_nearly_full(int fd)
{
    struct statvfs v;
    return fstatvfs(fd, &v) == 0 && (v.f_bavail < v.f_blocks / FREE_PART ||
                                     (v.f_files && v.f_favail < v.f_files / FREE_PART));
}

/*
 * Opens the folder under which layered caches are mounted, two levels above each cache. -1: none.
 */
static int open_all_caches(const struct gn_wall_plan *plan)
{
    char all[PATH_MAX];
    if (!plan->cache || !plan->layered ||
        (size_t)snprintf(all, sizeof all, "%s", plan->cache) >= sizeof all)
        return -1;
    return open(dirname(dirname(all)), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Unmounts the caches of other users, which this worker must neither hold nor see. By descriptor,
 * because the folder may be below a path that is covered by now.
 */
static void unmount_all_caches(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)umount2(path, MNT_DETACH);
}

/* The parts of a driver that are below /tmp, and so would be hidden. */
struct hidden {
    int n;
    struct {
        int fd;
        char path[PATH_MAX];
    } parts[32];
};

static void find_hidden(void *ctx, const char *path, unsigned how)
{
    struct hidden *h = ctx;
    (void)how;
    if (h->n == (int)GN_ARRAY_SIZE(h->parts))
        return;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(h->parts[h->n].path, sizeof h->parts->path, "%s", path);
    h->parts[h->n++].fd = fd;
}

/*
 * Mounted read-only, because other users run it. A part that cannot be mounted is absent, and the
 * driver reports it if it matters.
 */
static void mount_again(int fd, char *path)
{
    struct stat is, shown;
    char from[32];
    if (fstat(fd, &is) < 0)
        return;
    /* it is inside another part */
    if (stat(path, &shown) == 0 && shown.st_dev == is.st_dev && shown.st_ino == is.st_ino)
        return;
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    if (gn_wall_make_place(path, strlen("/tmp"), is.st_mode) == 0)
        (void)gn_wall_show(from, path, false);
}

static int fill(const struct gn_wall_plan *plan, int cache, struct hidden *hidden)
{
    char options[128];
    snprintf(options, sizeof options,
             "mode=0711,size=" MAX_BYTES ",nr_inodes=" MAX_ENTRIES ",uid=%u,gid=%u",
             plan->change_user ? plan->uid : geteuid(), plan->change_user ? plan->gid : getegid());
    if (mount("gantry", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    int rc = 0;
    if (cache >= 0 && (rc = make_folder(GN_WALL_CACHE_AT, plan)) == 0 &&
        (plan->layered || !is_nearly_full(cache)))
        rc = bind_fd(cache, GN_WALL_CACHE_AT);
    if (rc == 0 && (rc = make_folder(SHM_AT, plan)) == 0)
        /* Without /dev/shm, the machine has no shared memory to separate. */
        (void)mount(SHM_AT, "/dev/shm", NULL, MS_BIND, NULL);
    for (int i = 0; rc == 0 && i < hidden->n; i++)
        mount_again(hidden->parts[i].fd, hidden->parts[i].path);
    if (rc)
        (void)umount2("/tmp", MNT_DETACH);
    return rc;
}

int gn_wall_scratch(const struct gn_wall_plan *plan)
{
    struct hidden hidden = {.n = 0};
    int cache = -1, rc = 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    /* Opened in this namespace, in which it is bound, and before anything covers its path. */
    if (plan->cache &&
        (cache = open(plan->cache, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return -errno;
    const int all_caches = open_all_caches(plan);
    gn_wall_temporary_files(plan, find_hidden, &hidden);
    rc = fill(plan, cache, &hidden);
    if (rc == 0 && all_caches >= 0)
        unmount_all_caches(all_caches);
    /*
     * The kernel refuses it where parts of the machine's /proc are covered, as in containers: then
     * Landlock alone hides the rest.
     */
    if (rc == 0 && getpid() == 1)
        (void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    if (all_caches >= 0)
        close(all_caches);
    if (cache >= 0)
        close(cache);
    while (hidden.n)
        close(hidden.parts[--hidden.n].fd);
    return rc;
}
