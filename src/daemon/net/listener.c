/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening Unix socket of gantryd. It is bound under a temporary name, so that no program
 * connects before gantryd is ready, then renamed into place. A lock on the directory keeps two
 * gantryds that start at the same time from replacing each other's socket. Called by sockets.c and
 * tenant_sockets.c on gantryd's thread, at start and when tenants change; waits at most LOCK_NS for
 * the lock. Never accepts connections. Also notifies the service manager.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/net/listener.h"
#include "link/address.h"

#define BACKLOG                                                                                    \
    1024 /* Connections that may wait to be accepted: a new one waits for all earlier ones. */
#define TEMPORARY     ".gantryd-"
#define LOCK_NS       UINT64_C(2000000000)
#define LOCK_PAUSE_NS 5000000

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The socket's name relative to dir_fd. */
static const char *own_name(const struct gn_listener *l)
{
    return l->path + l->name_at;
}

/* Uses the directory's descriptor in place of its path: a temporary name may be longer than the
 * final one, and the path has to fit in sun_path. */
static socklen_t address_in(int dir_fd, const char *name, struct sockaddr_un *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
    return sizeof *ret;
}

/* Whether a process listens there: 0 means yes, ECONNREFUSED and ENOENT mean no, otherwise the
 * errno of connect(). */
static int probe_listener(int dir_fd, const char *name)
{
    struct sockaddr_un at;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    socklen_t n = address_in(dir_fd, name, &at);
    int rc = connect(fd, (struct sockaddr *)&at, n) < 0 ? errno : 0;
    close(fd);
    return rc;
}

/* Returns 0 when nothing exists at the path, or a socket without a listener. */
static int check_free(const struct gn_listener *l, struct gn_error *err)
{
    const char *path = l->path;
    struct stat st;
    if (fstatat(l->dir_fd, own_name(l), &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT
                   ? 0
                   : gn_fail(err, errno, NULL, "cannot look at %s: %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return gn_fail(err, EEXIST, "choose another path", "%s exists and is no socket", path);
    int rc = probe_listener(l->dir_fd, own_name(l));
    if (rc == ECONNREFUSED || rc == ENOENT)
        return 0;
    if (rc == 0 || rc == EAGAIN)
        return gn_fail(err, EADDRINUSE, "stop it, or give another --socket",
                       "a gantryd already listens at %s", path);
    return gn_fail(err, rc, "choose another path",
                   "cannot tell whether a gantryd listens at %s: %s", path, strerror(rc));
}

static int open_directory(struct gn_listener *l, bool make_dir, struct gn_error *err)
{
    char dir[sizeof l->path];
    const size_t n = l->name_at;
    if (n == 0)
        snprintf(dir, sizeof dir, ".");
    else
        snprintf(dir, sizeof dir, "%.*s", (int)n, l->path);
    if (make_dir && mkdir(dir, geteuid() == 0 ? 0755 : 0700) == 0)
        l->made_dir = true;
    l->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir_fd < 0)
        return gn_fail(err, errno, "give another --socket", "cannot use the directory %s: %s", dir,
                       strerror(errno));
    return 0;
}

/* Removes temporary sockets that gantryds left behind when they were killed during their start. */
static void remove_stale_sockets(int dir_fd)
{
    char own[sizeof TEMPORARY + 16];
    const size_t n_own = (size_t)snprintf(own, sizeof own, TEMPORARY "%d-", (int)getpid());
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (strncmp(e->d_name, TEMPORARY, sizeof TEMPORARY - 1) == 0 &&
            strncmp(e->d_name, own, n_own) != 0 &&
            fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
            probe_listener(dir_fd, e->d_name) == ECONNREFUSED)
            (void)unlinkat(dir_fd, e->d_name, 0);
    }
    closedir(dir);
}

static unsigned n_bound; /* counts the sockets of this process, so that each gets its own name */

/* Call with the directory locked: remove_stale_sockets() of another gantryd must not see a socket
 * that is bound but does not listen yet. */
static int bind_temporary(struct gn_listener *l, struct gn_error *err)
{
    struct sockaddr_un at;
    struct stat st;
    remove_stale_sockets(l->dir_fd);
    snprintf(l->temporary, sizeof l->temporary, TEMPORARY "%d-%u", (int)getpid(), ++n_bound);
    socklen_t n = address_in(l->dir_fd, l->temporary, &at);
    mode_t mask = umask(0177);
    int rc = bind(l->fd, (struct sockaddr *)&at, n) < 0 ? errno : 0;
    umask(mask);
    if (rc) {
        l->temporary[0] = 0;
        return gn_fail(err, rc, "give another --socket", "cannot make a socket beside %s: %s",
                       l->path, strerror(rc));
    }
    if (fstatat(l->dir_fd, l->temporary, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        listen(l->fd, BACKLOG) < 0)
        return gn_fail(err, errno, NULL, "cannot listen beside %s: %s", l->path, strerror(errno));
    l->inode = st.st_ino;
    return 0;
}

/* A gantryd holds the lock only while it starts. Another process may hold it forever, so the wait
 * has an end. */
static int lock_directory(const struct gn_listener *l, struct gn_error *err)
{
    const uint64_t until = gn_now_ns() + LOCK_NS;
    int rc;
    while ((rc = flock(l->dir_fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0) == EWOULDBLOCK &&
           gn_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    if (rc == EWOULDBLOCK)
        return gn_fail(err, rc,
                       "end the process that holds it (lsof shows it), or give another --socket",
                       "another process has locked the directory of %s", l->path);
    return rc ? gn_fail(err, rc, NULL, "cannot lock the directory of %s: %s", l->path, strerror(rc))
              : 0;
}

static int set_path(struct gn_listener *l, const char *path, size_t name_at, struct gn_error *err)
{
    const size_t n = strlen(path);
    if (n > GN_ADDRESS_MAX_PATH)
        return gn_fail(err, ENAMETOOLONG, "use a shorter path",
                       "the socket path %s is too long: at most %d bytes fit", path,
                       GN_ADDRESS_MAX_PATH);
    memcpy(l->path, path, n + 1);
    l->name_at = name_at;
    return 0;
}

/* Needs dir_fd and the path. */
static int bind_and_listen(struct gn_listener *l, struct gn_error *err)
{
    int rc = check_free(l, err);
    if (rc)
        return rc;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return gn_fail(err, errno, NULL, "cannot make a socket: %s", strerror(errno));
    if ((rc = lock_directory(l, err)))
        return rc;
    rc = bind_temporary(l, err);
    flock(l->dir_fd, LOCK_UN);
    return rc;
}

int gn_listener_open(struct gn_listener *l, const char *path, bool make_dir, struct gn_error *err)
{
    int rc = set_path(l, path, (size_t)(name_of(path) - path), err);
    if (!rc && !*own_name(l))
        rc = gn_fail(err, EINVAL, "name a file in it", "the socket path %s is a directory", path);
    if (!rc)
        rc = open_directory(l, make_dir, err);
    return rc ? rc : bind_and_listen(l, err);
}

int gn_listener_open_at(struct gn_listener *l, int dir_fd, const char *path, size_t name_at,
                        struct gn_error *err)
{
    int rc = set_path(l, path, name_at, err);
    if (rc) {
        close(dir_fd);
        return rc;
    }
    l->dir_fd = dir_fd;
    return bind_and_listen(l, err);
}

int gn_listener_publish(struct gn_listener *l, struct gn_error *err)
{
    int rc = lock_directory(l, err);
    if (rc)
        return rc;
    rc = check_free(l, err);
    if (rc == 0 && renameat(l->dir_fd, l->temporary, l->dir_fd, own_name(l)) < 0)
        rc = gn_fail(err, errno, NULL, "cannot make the socket %s: %s", l->path, strerror(errno));
    flock(l->dir_fd, LOCK_UN);
    if (rc == 0) {
        l->published = true;
        l->temporary[0] = 0;
    }
    return rc;
}

/* Opens the socket's file; -errno, -ESTALE when another file has its name. A descriptor is needed
 * because the folder may belong to a user that replaces the socket by a link to any file. */
static int open_socket_file(const struct gn_listener *l)
{
    struct stat st;
    int fd = openat(l->dir_fd, l->published ? own_name(l) : l->temporary,
                    O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == l->inode)
        return fd;
    close(fd);
    return -ESTALE;
}

int gn_listener_set_access(struct gn_listener *l, mode_t mode, gid_t group, struct gn_error *err)
{
    char path[32];
    if (l->dir_fd < 0)
        return 0;
    int fd = open_socket_file(l), rc = fd < 0 ? fd : 0;
    /* The group is set first, so that the previous group never has the new mode. fchmod() does not
     * accept an O_PATH descriptor. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rc == 0 && group != (gid_t)-1 && fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) < 0)
        rc = -errno;
    if (rc == 0 && chmod(path, mode) < 0)
        rc = -errno;
    if (fd >= 0)
        close(fd);
    if (rc == -ESTALE)
        return gn_fail(err, ESTALE, "restart gantryd", "another file has replaced the socket %s",
                       l->path);
    return rc ? gn_fail(err, -rc, NULL, "cannot set permissions of the socket %s: %s", l->path,
                        strerror(-rc))
              : 0;
}

void gn_listener_sweep(int dir_fd, const char *name)
{
    if (probe_listener(dir_fd, name) == ECONNREFUSED)
        (void)unlinkat(dir_fd, name, 0);
}

void gn_listener_remove(struct gn_listener *l)
{
    struct stat st;
    if (l->dir_fd < 0)
        return;
    if (l->temporary[0])
        (void)unlinkat(l->dir_fd, l->temporary, 0);
    if (l->published && fstatat(l->dir_fd, own_name(l), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_ino == l->inode)
        (void)unlinkat(l->dir_fd, own_name(l), 0);
    close(l->dir_fd);
    l->dir_fd = -1;
    if (l->made_dir) {
        char dir[sizeof l->path];
        snprintf(dir, sizeof dir, "%.*s", (int)l->name_at, l->path);
        (void)rmdir(dir); /* fails, as it should, when the directory is not empty */
    }
}

void gn_notify_ready(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path)
        return;
    size_t n = strlen(path);
    memcpy(to.sun_path, path, n);
    if (to.sun_path[0] == '@')
        to.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* If this fails, the manager reports that gantryd did not start. */
    (void)sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}
