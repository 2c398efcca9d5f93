/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of single tenants (sockets.h), each in a folder of its own that a container can
 * mount. These folders lie in a folder that only gantryd's user can enter: the mount is the
 * credential, and user ids inside the container do not matter. The folder of the program socket may
 * belong to another user, so everything in it is opened without following links and used only if
 * gantryd's user owns it. Called by sockets.c and by changes of tenants, on gantryd's thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/net/listener.h"

#define FOLDER      "tenants"
#define SOCKET_NAME "gantry.sock"

/* Opens the folder `name` in dir_fd, creating it if needed, and sets its mode. Fails with -EPERM if
 * another user owns it. Returns a descriptor or -errno. */
static int open_own_folder(int dir_fd, const char *name, mode_t mode)
{
    struct stat st;
    if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0       ? -errno
             : st.st_uid != geteuid() ? -EPERM
             : fchmod(fd, mode) < 0   ? -errno
                                      : 0;
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

/* Opens the folder of all tenants, beside the program socket. make: creates it if needed. Returns a
 * descriptor or -errno. */
static int open_tenants(const struct gn_daemon *d, bool make)
{
    const int dir_fd = d->sockets.of[GN_ROLE_PROGRAM].at.dir_fd;
    if (dir_fd < 0)
        return -ENOENT;
    if (make)
        return open_own_folder(dir_fd, FOLDER, 0700);
    int fd = openat(dir_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Removes the folder of a former tenant (name NULL: none) and the folder of all tenants, if they
 * are empty. */
static void remove_folders(const struct gn_daemon *d, int tenants, const char *name)
{
    if (name)
        (void)unlinkat(tenants, name, AT_REMOVEDIR);
    (void)unlinkat(d->sockets.of[GN_ROLE_PROGRAM].at.dir_fd, FOLDER, AT_REMOVEDIR);
}

/* Writes the path of a tenant's socket. *ret_name_at: offset of the part relative to the folder of
 * all tenants. */
static int path_of(const struct gn_daemon *d, const char *tenant, char *ret, size_t n,
                   size_t *ret_name_at)
{
    const char *program = gn_sockets_path(&d->sockets), *slash = strrchr(program, '/');
    const int n_folder = slash ? (int)(slash - program) + 1 : 0;
    *ret_name_at = (size_t)n_folder + sizeof FOLDER;
    return (size_t)snprintf(ret, n, "%.*s" FOLDER "/%s/" SOCKET_NAME, n_folder, program, tenant) < n
               ? 0
               : -ENAMETOOLONG;
}

static void free_socket(struct gn_corpse *corpse)
{
    free(gn_container_of(corpse, struct gn_socket, corpse));
}

static void close_socket(struct gn_socket *s)
{
    struct gn_daemon *d = s->daemon;
    gn_listener_remove(&s->at);
    if (s->source.fd >= 0)
        (void)gn_loop_release(&d->loop, &s->source);
    /* Connections in the backlog may hold descriptors with a close() that blocks. */
    if (s->at.fd >= 0)
        gn_quotas_close(&d->quotas, s->at.fd);
    gn_loop_bury(&d->loop, &s->corpse, free_socket);
}

int gn_tenant_socket_open(struct gn_daemon *d, struct gn_tenant *t, struct gn_error *err)
{
    char path[sizeof((struct gn_listener *)0)->path];
    size_t name_at;
    int tenants = -1, folder = -1;
    struct gn_socket *s = calloc(1, sizeof *s);
    if (!s)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    *s = (struct gn_socket){.daemon = d,
                            .source = {.fd = -1},
                            .at = GN_LISTENER_NONE,
                            .role = GN_ROLE_PROGRAM,
                            .tenant = t};
    int rc = path_of(d, t->rules.name, path, sizeof path, &name_at);
    if (rc == 0)
        rc = tenants = open_tenants(d, true);
    if (rc >= 0)
        rc = folder = open_own_folder(tenants, t->rules.name, 0755);
    if (folder >= 0)
        close(folder);
    if (rc < 0) {
        if (tenants >= 0)
            close(tenants);
        gn_fail(err, -rc,
                rc == -EPERM ? "remove that folder, or give gantryd another --socket" : NULL,
                "cannot make the folder of %s: %s", path,
                rc == -EPERM ? "it is another user's" : strerror(-rc));
    } else {
        rc = gn_listener_open_at(&s->at, tenants, path, name_at, err);
        if (rc == 0)
            rc = gn_listener_set_access(&s->at, 0666, (gid_t)-1, err);
        s->source.fd = rc ? -1 : s->at.fd;
        if (rc == 0 && (rc = gn_loop_add(&d->loop, &s->source, EPOLLIN, gn_conns_accept)))
            gn_fail(err, -rc, NULL, "cannot listen at %s: %s", path, strerror(-rc));
        if (rc == 0)
            rc = gn_listener_publish(&s->at, err);
    }
    if (rc)
        close_socket(s);
    else
        t->socket = s;
    return rc;
}

void gn_tenant_socket_close(struct gn_tenant *t)
{
    struct gn_socket *s = t->socket;
    if (!s)
        return;
    struct gn_daemon *d = s->daemon;
    t->socket = NULL;
    gn_list_for_each(c, &d->conns, struct gn_conn, link)
    {
        if (c->bound_to == t)
            c->bound_to = NULL;
    }
    close_socket(s);
    int tenants = open_tenants(d, false);
    if (tenants < 0)
        return;
    remove_folders(d, tenants, t->rules.name);
    close(tenants);
}

/* Removes the sockets of tenants without one. If another gantryd uses this folder, its sockets
 * answer and stay. */
static void remove_stale_sockets(const struct gn_daemon *d)
{
    int fd = open_tenants(d, false);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(dir));) {
        const struct gn_tenant *t = gn_tenants_find(&d->tenants, e->d_name);
        int folder = e->d_name[0] == '.' || (t && t->rules.socket)
                         ? -1
                         : openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        gn_listener_sweep(folder, SOCKET_NAME);
        close(folder);
        (void)unlinkat(fd, e->d_name, AT_REMOVEDIR);
    }
    remove_folders(d, fd, NULL);
    closedir(dir);
}

int gn_tenant_sockets_open(struct gn_daemon *d, struct gn_error *err)
{
    int rc = 0;
    remove_stale_sockets(d);
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link)
    {
        if (rc == 0 && t->rules.socket)
            rc = gn_tenant_socket_open(d, t, err);
    }
    return rc;
}

void gn_tenant_sockets_resume(struct gn_daemon *d)
{
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link)
    {
        if (t->socket)
            gn_socket_resume(t->socket);
    }
}

void gn_tenant_sockets_end(struct gn_daemon *d)
{
    if (!d->tenants.all.next)
        return;
    gn_list_for_each(t, &d->tenants.all, struct gn_tenant, link)
    {
        if (t->socket)
            close_socket(t->socket);
        t->socket = NULL;
    }
}
