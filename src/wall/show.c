/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a file or folder of the machine visible at another place in the worker's mount namespace.
 * scratch.c and view.c call it on the worker's main thread. It never makes a place writable unless
 * the caller asks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "wall/parts.h"

/* Makes the folders above path that are below its first n_root characters. */
static int make_parents(char *path, size_t n_root)
{
    for (char *slash = path + n_root + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        int rc = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        if (rc) {
            *slash = '/';
            return rc;
        }
    }
    return 0;
}

int gn_wall_make_place(char *path, size_t n_root, mode_t mode)
{
    int rc = make_parents(path, n_root);
    if (rc)
        return rc;
    if (S_ISDIR(mode))
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
    if (S_ISLNK(mode))
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* Returns the restrictions of the mount; in a user namespace they must be kept. */
static unsigned long kept_flags(const char *at)
{
    static const struct {
        unsigned long is, flag;
    } map[] = {{ST_NODEV, MS_NODEV},
               {ST_NOEXEC, MS_NOEXEC},
               {ST_NOATIME, MS_NOATIME},
               {ST_NODIRATIME, MS_NODIRATIME},
               {ST_RELATIME, MS_RELATIME}};
    struct statvfs v;
    unsigned long flags = 0;
    if (statvfs(at, &v) == 0)
        for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
            flags |= v.f_flag & map[i].is ? map[i].flag : 0;
    return flags;
}

int gn_wall_show(const char *from, const char *at, bool writable)
{
    int rc = 0;
    if (mount(from, at, NULL, MS_BIND, NULL) < 0)
        return -errno;
    if (mount(NULL, at, NULL,
              MS_REMOUNT | MS_BIND | MS_NOSUID | (writable ? 0 : MS_RDONLY) | kept_flags(at),
              NULL) < 0) {
        rc = -errno;
        (void)umount2(at, MNT_DETACH);
    }
    return rc;
}
