/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts and unmounts layered folders. gantryd's cache thread calls it, and the process that saves
 * new files. It never copies a file.
 */
#include "wall/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int gn_wall_own_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        return -errno;
    /* Later mounts of the machine appear here as well, but not the reverse. */
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? -errno : 0;
}

static int make_owned(int folder, const char *name, uid_t uid, gid_t gid)
{
    if (mkdirat(folder, name, 0700) < 0)
        return -errno;
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int rc = fchown(fd, uid, gid) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

/* By descriptors, because a comma or a colon in a path would be parsed as part of the options. */
static int mount_both(int at_fd, int new_fd, int kept_fd)
{
    char options[128], target[64];
    const int upper = openat(new_fd, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int work = openat(new_fd, "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = upper < 0 || work < 0 ? -errno : 0;
    snprintf(options, sizeof options,
             "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d",
             kept_fd, upper, work);
    snprintf(target, sizeof target, "/proc/self/fd/%d/" GN_WALL_LAYERS_ALL, at_fd);
    if (rc == 0 && mount("gantry", target, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        rc = -errno;
    if (upper >= 0)
        close(upper);
    if (work >= 0)
        close(work);
    return rc;
}

static int mount_all(const char *at, int at_fd, int kept_fd, uid_t uid, gid_t gid, uint64_t bytes,
                     uint32_t entries)
{
    char options[96], target[PATH_MAX];
    if ((size_t)snprintf(target, sizeof target, "%s/" GN_WALL_LAYERS_NEW, at) >= sizeof target)
        return -ENAMETOOLONG;
    snprintf(options, sizeof options, "mode=0700,size=%llu,nr_inodes=%u", (unsigned long long)bytes,
             entries);
    if (mkdirat(at_fd, GN_WALL_LAYERS_ALL, 0700) < 0 ||
        mkdirat(at_fd, GN_WALL_LAYERS_NEW, 0700) < 0 ||
        mount("gantry", target, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    const int new_fd = openat(at_fd, GN_WALL_LAYERS_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = new_fd < 0 ? -errno : make_owned(new_fd, "upper", uid, gid);
    if (rc == 0)
        rc = make_owned(new_fd, "work", 0, 0);
    if (rc == 0)
        rc = mount_both(at_fd, new_fd, kept_fd);
    if (new_fd >= 0)
        close(new_fd);
    return rc;
}

int gn_wall_layers_mount(const char *at, int kept_fd, uid_t uid, gid_t gid, uint64_t bytes,
                         uint32_t entries)
{
    const int at_fd = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = at_fd < 0 ? -errno : mount_all(at, at_fd, kept_fd, uid, gid, bytes, entries);
    if (rc)
        gn_wall_layers_unmount(at);
    if (at_fd >= 0)
        close(at_fd);
    return rc;
}

void gn_wall_layers_unmount(const char *at)
{
    static const char *const parts[] = {GN_WALL_LAYERS_ALL, GN_WALL_LAYERS_NEW};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", at, parts[i]) >= sizeof path)
            continue;
        (void)umount2(path, MNT_DETACH);
        (void)rmdir(path);
    }
}
