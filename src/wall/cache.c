/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the folder of a kernel cache without layers. The worker that will use the cache calls it,
 * on its main thread, before it changes its user. gantryd's loop never opens a folder of a user,
 * because a file system of that user's own could block it; here only that user's worker blocks.
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

/*
 * Makes the open folder the user's own, mode 0700. It changes the descriptor and never a name: the
 * user could put another file, or a link to one, under any name in its own folder. -EPERM: the
 * folder belongs to a third user.
 */
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

/*
 * Locks a file while the worker lives, which marks its cache as in use. No descriptor of a folder
 * stays open, because the worker could reach other folders through it.
 */
static void lock_cache(int root, const char *name)
{
    char lock[NAME_MAX + 1];
    if ((size_t)snprintf(lock, sizeof lock, "%s.lock", name) >= sizeof lock)
        return;
    const int fd = openat(root, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* stays open */
    if (fd >= 0)
        (void)flock(fd, LOCK_SH | LOCK_NB);
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
        (void)futimens(fd, NULL); /* records the last use */
        lock_cache(root, name);
    }
    if (fd >= 0)
        close(fd);
    close(root);
    return rc;
}
