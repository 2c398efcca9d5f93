/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace of the worker's own. In it /tmp and /dev/shm are empty, bounded, and gone with the
 * worker, however it ends; /proc shows its own processes alone; its tenant's cache lies in /tmp, so that the
 * folders above the cache need not be open to the worker's user.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wall/parts.h"

#define SHM_AT      "/tmp/shm"
#define MAX_BYTES   "512m"
#define MAX_ENTRIES "65536"

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

/* The folder of a driver's library that lies where temporary files do, and so would be hidden. -1: it does
 * not. */
static int open_hidden_library(const struct gn_wall_plan *plan, char *ret_folder)
{
    if (!plan->library || !realpath(plan->library, ret_folder) || strncmp(ret_folder, "/tmp/", 5) != 0)
        return -1;
    *strrchr(ret_folder, '/') = 0;
    return strlen(ret_folder) > 5 ? open(ret_folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int show_again(int fd, char *folder)
{
    for (char *slash = folder + 5; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
            return -errno;
    }
    return mkdir(folder, 0755) < 0 && errno != EEXIST ? -errno : bind_fd(fd, folder);
}

static int fill(const struct gn_wall_plan *plan, int cache, int library, char *folder)
{
    char options[128];
    snprintf(options, sizeof options, "mode=0711,size=" MAX_BYTES ",nr_inodes=" MAX_ENTRIES ",uid=%u,gid=%u",
             plan->change_user ? plan->uid : geteuid(), plan->change_user ? plan->gid : getegid());
    if (mount("gantry", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    int rc = 0;
    if (cache >= 0 && (rc = make_folder(GN_WALL_CACHE_AT, plan)) == 0)
        rc = bind_fd(cache, GN_WALL_CACHE_AT);
    if (rc == 0 && library >= 0)
        rc = show_again(library, folder);
    if (rc == 0 && (rc = make_folder(SHM_AT, plan)) == 0)
        /* A machine without /dev/shm has none that could be shared. */
        (void)mount(SHM_AT, "/dev/shm", NULL, MS_BIND, NULL);
    if (rc)
        (void)umount2("/tmp", MNT_DETACH);
    return rc;
}

int gn_wall_scratch(const struct gn_wall_plan *plan)
{
    char folder[PATH_MAX];
    int cache = -1, library, rc = 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    /* Opened in this namespace, to be bound in it, and before what may lie above them is covered. */
    if (plan->cache && (cache = open(plan->cache, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return -errno;
    library = open_hidden_library(plan, folder);
    rc = fill(plan, cache, library, folder);
    /* Refused where part of the machine's own is covered, as in containers: then Landlock alone hides the
     * rest. */
    if (rc == 0 && getpid() == 1)
        (void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    if (cache >= 0)
        close(cache);
    if (library >= 0)
        close(library);
    return rc;
}
