/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the folder of a kernel cache that is kept on disk without layers. The worker that will
 * use it calls this before it changes to its user. gantryd itself never opens a folder of a user's:
 * a file system of that user's could block gantryd's event loop, but here it blocks only that
 * user's worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wall/parts.h"

/* Makes the open folder the user's own, with mode 0700. Works on the descriptor and never on the
 * name: in a folder of its own, the user could put another file or a link under any name. -EPERM:
 * the folder belongs to a third user. */
static int own_folder(int fd, uid_t uid, gid_t gid)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != uid && st.st_uid != geteuid())
        return -EPERM;
    if (st.st_uid != uid && fchown(fd, uid, gid) < 0)
        return -errno;
    return (st.st_mode & 0777) != 0700 && fchmod(fd, 0700) < 0 ? -errno : 0;
}

/* Locks a file for the life of the worker, which marks the cache as in use. No descriptor of a
 * folder stays open, since the worker could reach other files through it. */
static void lock_cache(int root, const char *name)
{
    char lock[NAME_MAX + 1];
    if ((size_t)snprintf(lock, sizeof lock, "%s.lock", name) >= sizeof lock)
        return;
    const int fd = openat(root, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)flock(fd, LOCK_SH | LOCK_NB); /* stays open on purpose */
}

int gn_wall_make_cache(const struct gn_wall_plan *plan)
{
    char path[PATH_MAX];
    const uid_t uid = plan->change_user ? plan->uid : geteuid();
    char *slash = (size_t)snprintf(path, sizeof path, "%s", plan->cache) < sizeof path
                      ? strrchr(path, '/')
                      : NULL;
    if (!slash || slash == path)
        return -EINVAL;
    *slash = 0;
    const char *name = slash + 1;
    const int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    int rc = mkdirat(root, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    const int fd = rc ? -1 : openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (rc == 0)
        rc = fd < 0 ? -errno : own_folder(fd, uid, plan->change_user ? plan->gid : (gid_t)-1);
    if (rc == 0) {
        (void)futimens(fd, NULL); /* records when it was last used */
        lock_cache(root, name);
    }
    if (fd >= 0)
        close(fd);
    close(root);
    return rc;
}
