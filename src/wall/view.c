/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the kernel has no Landlock: a root of the worker's own, in which there is nothing but what a driver
 * may need, read-only, and the worker's temporary folders. Made in the worker's mount namespace, after those.
 * It is as tight as Landlock as long as the worker holds no descriptor of a folder outside, and it is given
 * none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wall/parts.h"

#define ROOT     "/tmp/root"
#define OLD_ROOT ROOT "/.old"

/* The folders above path[0 .. n). */
static int make_parents(char *path)
{
    for (char *slash = path + sizeof ROOT; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        int rc = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        if (rc) {
            *slash = '/';
            return rc;
        }
    }
    return 0;
}

static int make_place(const char *path, const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* What the mount forbids already stays forbidden: in a user namespace it must. */
static unsigned long kept_flags(const char *at)
{
    static const struct {
        unsigned long is, flag;
    } map[] = {
        {ST_NODEV, MS_NODEV}, {ST_NOEXEC, MS_NOEXEC}, {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME}, {ST_RELATIME, MS_RELATIME}};
    struct statvfs v;
    unsigned long flags = 0;
    if (statvfs(at, &v) == 0)
        for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
            flags |= v.f_flag & map[i].is ? map[i].flag : 0;
    return flags;
}

static int show(const char *path, const char *at, bool writable)
{
    if (mount(path, at, NULL, MS_BIND, NULL) < 0)
        return -errno;
    return mount(NULL, at, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | (writable ? 0 : MS_RDONLY) | kept_flags(at), NULL) < 0 ? -errno : 0;
}

/* One entry of the driver's files. What cannot be shown is not there: the driver says if it minds. */
static void add(void *ctx, const char *path, unsigned how)
{
    char at[PATH_MAX], target[PATH_MAX];
    struct stat st;
    (void)ctx;
    if (strncmp(path, "/proc", 5) == 0 || strncmp(path, "/tmp/", 5) == 0 || lstat(path, &st) < 0 ||
        (size_t)snprintf(at, sizeof at, ROOT "%s", path) >= sizeof at || make_parents(at) < 0)
        return;
    /* A device is written on a read-only mount, too. */
    if (S_ISCHR(st.st_mode) && !(how & GN_WALL_DEVICE) && strcmp(path, "/dev/zero") == 0)
        return;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        (void)!symlink(target, at);
        return;
    }
    /* Other mounts below it (a /usr/local of its own) are shown only as far as the folders beneath them. */
    if (make_place(at, &st) == 0 && show(path, at, how & GN_WALL_DEVICE) < 0)
        (void)umount2(at, MNT_DETACH);
}

/* Its own processes' alone, or nothing. */
static int add_processes(void)
{
    char self[16];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    if (n != 1 || self[0] != '1' || getpid() != 1)
        return 0;
    if (mkdir(ROOT "/proc", 0755) < 0)
        return -errno;
    /* Not to be written: a worker could make itself the last to go when memory runs out. */
    return show("/proc", ROOT "/proc", false);
}

static int add_own(bool cache)
{
    if (mkdir(ROOT "/tmp", 0711) < 0 || mount("/tmp", ROOT "/tmp", NULL, MS_BIND, NULL) < 0)
        return -errno;
    if (cache && mount(GN_WALL_CACHE_AT, ROOT GN_WALL_CACHE_AT, NULL, MS_BIND, NULL) < 0)
        return -errno;
    if ((mkdir(ROOT "/dev", 0755) < 0 && errno != EEXIST) || (mkdir(ROOT "/dev/shm", 0755) < 0 && errno != EEXIST))
        return -errno;
    return mount("/tmp/shm", ROOT "/dev/shm", NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

int gn_wall_view(const struct gn_wall_plan *plan)
{
    int rc;
    if (mkdir(ROOT, 0755) < 0 || mount("gantry", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0)
        return -errno;
    gn_wall_driver_files(plan, add, NULL);
    rc = add_own(plan->cache != NULL);
    if (rc == 0)
        rc = add_processes();
    if (rc == 0 && (mkdir(OLD_ROOT, 0700) < 0 || syscall(SYS_pivot_root, ROOT, OLD_ROOT) < 0))
        rc = -errno;
    if (rc) {
        (void)umount2(ROOT, MNT_DETACH);
        return rc;
    }
    /* From here on there is no way back. */
    if (chdir("/") < 0 || umount2("/.old", MNT_DETACH) < 0 || rmdir("/.old") < 0 ||
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        _exit(1);
    return 0;
}
