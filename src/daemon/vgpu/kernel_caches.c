/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/vgpu/kernel_caches.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/spawn.h"
#include "daemon/vgpu/lifecycle.h"
#include "wall/layers.h"

#define LINGER_NS    UINT64_C(1000000000) /* so long an unused layer stays for the next program */
#define SWEEP_NS     UINT64_C(86400000000000)
#define LOG_EVERY_NS UINT64_C(10000000000)
#define MOST_KEEPERS 2u
#define END_NS       UINT64_C(5000000000)
#define RUN          ".run" /* in the folder of all caches: where layers are mounted */

struct gn_cache {
    struct gn_corpse corpse;
    struct gn_list link;
    struct gn_daemon *daemon;
    char name[GN_LINK_TENANT_BYTES + 16];
    uint32_t n_workers;
    bool layered;
    enum { OPEN, CLOSING } state; /* CLOSING: in layers, and no new worker gets it */
    uint32_t generation;
    uint64_t close_at_ns; /* 0: it is in use */
    bool keep;            /* a keeper has to copy new kernels to the disk */
    int lock_fd;
    struct gn_source keeper; /* fd -1: none is running */
    pid_t keeper_pid;
};

void gn_caches_init(struct gn_caches *all, bool can_mount)
{
    memset(all, 0, sizeof *all);
    gn_list_init(&all->all);
    all->sweeper.fd = -1;
    all->layered = can_mount && gn_wall_own_mounts() == 0;
}

static const char *root_of(const struct gn_daemon *d)
{
    return d->walls.cache;
}

static bool path_of(const struct gn_cache *c, const char *rest, char *ret, size_t n)
{
    return (size_t)snprintf(ret, n, "%s/" RUN "/%s.%u%s", root_of(c->daemon), c->name,
                            c->generation, rest) < n;
}

static void bury(struct gn_corpse *corpse)
{
    free(gn_container_of(corpse, struct gn_cache, corpse));
}

static void forget(struct gn_cache *c)
{
    if (c->lock_fd >= 0)
        close(c->lock_fd);
    gn_list_remove(&c->link);
    gn_loop_bury(&c->daemon->loop, &c->corpse, bury);
}

/* As a rule its keeper has unmounted it: freeing much memory takes a while. */
static void end(struct gn_cache *c)
{
    char at[PATH_MAX];
    if (path_of(c, "", at, sizeof at) && access(at, F_OK) == 0) {
        gn_wall_layers_unmount(at);
        (void)rmdir(at);
    }
    forget(c);
}

/* ---- keepers */

static void start_keepers(struct gn_daemon *d);

static void keeper_ended(struct gn_source *keeper, uint32_t events)
{
    struct gn_cache *c = gn_container_of(keeper, struct gn_cache, keeper);
    struct gn_daemon *d = c->daemon;
    (void)events;
    gn_loop_close(&d->loop, keeper);
    d->caches.n_keepers--;
    if (c->state == CLOSING && !c->keep)
        end(c);
    start_keepers(d);
}

/* Reaped only at its end, so that no other process gets its number. */
static int start_keeper(struct gn_cache *c)
{
    struct gn_daemon *d = c->daemon;
    struct gn_error err;
    char at[PATH_MAX], kept[PATH_MAX];
    char *const argv[] = {(char[]){"gantry-worker"},
                          (char[]){"--keep-cache"},
                          c->state == CLOSING ? (char[]){"close"} : (char[]){"keep"},
                          at,
                          kept,
                          (char[]){GN_CACHE_KEPT_MIB},
                          NULL};
    c->keep = false;
    if (!path_of(c, "", at, sizeof at) ||
        (size_t)snprintf(kept, sizeof kept, "%s/%s.kept/files", root_of(d), c->name) >= sizeof kept)
        return -ENAMETOOLONG;
    int rc =
        gn_worker_spawn(d->machine.worker, argv, GN_WALL_NONE, &c->keeper.fd, &c->keeper_pid, &err);
    if (rc == 0 && (rc = gn_loop_add(&d->loop, &c->keeper, EPOLLIN, keeper_ended)))
        gn_loop_close(&d->loop, &c->keeper);
    if (rc) {
        gn_log(GN_LOG_WARN, "a kernel cache is not kept on the disk: %s", strerror(-rc));
        return rc;
    }
    d->caches.n_keepers++;
    return 0;
}

static void sweeper_ended(struct gn_source *sweeper, uint32_t events)
{
    struct gn_daemon *d = gn_container_of(sweeper, struct gn_daemon, caches.sweeper);
    (void)events;
    gn_loop_close(&d->loop, sweeper);
}

static void sweep_if_due(struct gn_daemon *d)
{
    struct gn_caches *all = &d->caches;
    const uint64_t now = gn_now_ns();
    struct gn_error err;
    char *const argv[] = {(char[]){"gantry-worker"}, (char[]){"--sweep-caches"},
                          (char *)(uintptr_t)root_of(d), (char[]){GN_CACHE_UNUSED_DAYS}, NULL};
    if (all->sweeper.fd >= 0 || (all->swept_ns && now - all->swept_ns < SWEEP_NS))
        return;
    all->swept_ns = now;
    if (gn_worker_spawn(d->machine.worker, argv, GN_WALL_NONE, &all->sweeper.fd, &all->sweeper_pid,
                        &err) == 0 &&
        gn_loop_add(&d->loop, &all->sweeper, EPOLLIN, sweeper_ended))
        gn_loop_close(&d->loop, &all->sweeper);
}

static void start_keepers(struct gn_daemon *d)
{
    gn_list_for_each(c, &d->caches.all, struct gn_cache, link)
    {
        if (d->caches.n_keepers >= MOST_KEEPERS)
            return;
        if (c->keep && c->keeper.fd < 0 && start_keeper(c) && c->state == CLOSING)
            end(c);
    }
}

bool gn_caches_know(const struct gn_daemon *d, pid_t pid)
{
    if (d->caches.sweeper.fd >= 0 && d->caches.sweeper_pid == pid)
        return true;
    gn_list_for_each(c, (struct gn_list *)(uintptr_t)&d->caches.all, struct gn_cache, link)
    {
        if (c->keeper.fd >= 0 && c->keeper_pid == pid)
            return true;
    }
    return false;
}

/* ---- layers */

/* 0, or -errno: all that is in it has to be gantryd's user's alone. */
static int make_own_folder(int at, const char *name, mode_t mode, int *ret_fd)
{
    struct stat st;
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return -errno;
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
        close(fd);
        return -EPERM;
    }
    *ret_fd = fd;
    return 0;
}

static int make_kept(int kept, uid_t uid, gid_t gid)
{
    struct stat st;
    if (mkdirat(kept, "files", 0700) < 0 && errno != EEXIST)
        return -errno;
    /* Its folder is gantryd's: no other user can have put anything there. */
    const int fd = openat(kept, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_uid != uid && fchown(fd, uid, gid) < 0)) {
        const int rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    return fd;
}

/* Layers are mounted in a memory file system of gantryd's own, so that nothing of them outlives
 * gantryd. */
static int make_ready(struct gn_caches *all, int root)
{
    char path[64];
    int run;
    if (all->ready)
        return 0;
    int rc = make_own_folder(root, RUN, 0700, &run);
    if (rc)
        return rc;
    snprintf(path, sizeof path, "/proc/self/fd/%d", run);
    if (mount("gantry", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=4m") < 0)
        rc = -errno;
    close(run);
    all->ready = rc == 0;
    return rc;
}

static int mount_layers(struct gn_cache *c, uid_t uid, gid_t gid)
{
    char at[PATH_MAX], name[sizeof c->name + 8], lock[sizeof c->name + 16];
    int root = -1, kept = -1, files = -1;
    if (!path_of(c, "", at, sizeof at))
        return -ENAMETOOLONG;
    snprintf(name, sizeof name, "%s.kept", c->name);
    snprintf(lock, sizeof lock, "%s.lock", name);
    root = gn_walls_open_cache_root(&c->daemon->walls);
    int rc = root < 0 ? root : make_ready(&c->daemon->caches, root);
    if (rc == 0)
        rc = make_own_folder(root, name, 0700, &kept);
    if (rc == 0) {
        (void)futimens(kept, NULL); /* when it was used last */
        c->lock_fd = openat(root, lock, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (c->lock_fd >= 0)
            (void)flock(c->lock_fd, LOCK_SH | LOCK_NB);
        rc = files = make_kept(kept, uid, gid);
    }
    if (rc >= 0)
        rc = mkdir(at, 0700) < 0 ? -errno : 0;
    if (rc == 0 && (rc = gn_wall_layers_mount(at, files, uid, gid, GN_CACHE_LAYER_BYTES,
                                              GN_CACHE_LAYER_ENTRIES)))
        (void)rmdir(at);
    if (files >= 0)
        close(files);
    if (kept >= 0)
        close(kept);
    if (root >= 0)
        close(root);
    return rc;
}

/* ---- for workers */

static struct gn_cache *find(struct gn_daemon *d, const char *name)
{
    gn_list_for_each(c, &d->caches.all, struct gn_cache, link)
    {
        if (c->state == OPEN && strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}

static int make_root(const struct gn_daemon *d)
{
    const int root = gn_walls_open_cache_root(&d->walls);
    if (root >= 0)
        close(root);
    return root < 0 ? root : 0;
}

static void tell(struct gn_caches *all, const char *what, const char *name, int rc)
{
    const uint64_t now = gn_now_ns();
    if (all->reported_ns && now - all->reported_ns < LOG_EVERY_NS)
        return;
    all->reported_ns = now;
    gn_log(GN_LOG_WARN, "the kernel cache %s %s: %s", name, what, strerror(-rc));
}

static struct gn_cache *make(struct gn_daemon *d, const char *name, uid_t uid, gid_t gid)
{
    struct gn_caches *all = &d->caches;
    struct gn_cache *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->daemon = d;
    c->lock_fd = c->keeper.fd = -1;
    c->generation = ++all->generation;
    c->layered = all->layered;
    snprintf(c->name, sizeof c->name, "%s", name);
    gn_list_append(&all->all, &c->link);
    int rc = c->layered ? mount_layers(c, uid, gid) : 0;
    if (rc) {
        /* The file system may not support layers. Then the worker makes a folder on it. */
        tell(all, "cannot be in layers, and is not bounded", name, rc);
        c->layered = false;
    }
    rc = c->layered ? 0 : make_root(d);
    if (rc == 0)
        return c;
    tell(all, "cannot be made, and its programs compile anew", name, rc);
    forget(c);
    return NULL;
}

struct gn_cache *gn_cache_acquire(struct gn_daemon *d, const char *name, uid_t uid, gid_t gid,
                                  bool *ret_layered, char *ret, size_t n)
{
    struct gn_cache *c = root_of(d)[0] ? find(d, name) : NULL;
    ret[0] = 0;
    *ret_layered = false;
    if (!root_of(d)[0] || (!c && !(c = make(d, name, uid, gid))))
        return NULL;
    c->n_workers++;
    c->close_at_ns = 0;
    const bool fits = c->layered ? path_of(c, "/" GN_WALL_LAYERS_ALL, ret, n)
                                 : (size_t)snprintf(ret, n, "%s/%s", root_of(d), name) < n;
    if (!fits)
        ret[0] = 0;
    *ret_layered = c->layered;
    return c;
}

void gn_cache_release(struct gn_daemon *d, struct gn_cache *c)
{
    if (!c || --c->n_workers)
        return;
    if (!c->layered) {
        forget(c);
        sweep_if_due(d);
        return;
    }
    c->close_at_ns = gn_now_ns() + LINGER_NS;
    gn_vgpus_arm(d);
}

void gn_cache_keep(struct gn_daemon *d, struct gn_cache *c)
{
    if (!c || !c->layered)
        return;
    c->keep = true;
    start_keepers(d);
}

/* ---- ends */

static void close_cache(struct gn_cache *c)
{
    c->close_at_ns = 0;
    c->state = CLOSING;
    c->keep = true;
}

uint64_t gn_caches_deadline(const struct gn_daemon *d)
{
    uint64_t first = 0;
    gn_list_for_each(c, (struct gn_list *)(uintptr_t)&d->caches.all, struct gn_cache, link)
    {
        if (c->close_at_ns && (!first || c->close_at_ns < first))
            first = c->close_at_ns;
    }
    return first;
}

void gn_caches_expire(struct gn_daemon *d, uint64_t now_ns)
{
    bool any = false;
    gn_list_for_each(c, &d->caches.all, struct gn_cache, link)
    {
        if (!c->close_at_ns || c->close_at_ns > now_ns)
            continue;
        close_cache(c);
        any = true;
    }
    start_keepers(d);
    if (any)
        sweep_if_due(d);
}

static void wait_for_keepers(struct gn_daemon *d, uint64_t until)
{
    for (uint64_t now; d->caches.n_keepers && (now = gn_now_ns()) < until;) {
        struct pollfd p[MOST_KEEPERS];
        struct gn_cache *of[MOST_KEEPERS];
        nfds_t n = 0;
        gn_list_for_each(c, &d->caches.all, struct gn_cache, link)
        {
            if (c->keeper.fd >= 0 && n < MOST_KEEPERS) {
                p[n] = (struct pollfd){.fd = c->keeper.fd, .events = POLLIN};
                of[n++] = c;
            }
        }
        if (poll(p, n, (int)((until - now) / 1000000u) + 1) < 0 && errno != EINTR)
            return;
        for (nfds_t i = 0; i < n; i++)
            if (p[i].revents)
                keeper_ended(&of[i]->keeper, 0);
    }
}

void gn_caches_fini(struct gn_daemon *d)
{
    gn_list_for_each(c, &d->caches.all, struct gn_cache, link) if (c->layered) close_cache(c);
    if (d->caches.sweeper.fd >= 0)
        kill(d->caches.sweeper_pid, SIGKILL);
    gn_loop_close(&d->loop, &d->caches.sweeper);
    start_keepers(d);
    wait_for_keepers(d, gn_now_ns() + END_NS);
    gn_list_for_each(c, &d->caches.all, struct gn_cache, link)
    {
        if (c->keeper.fd >= 0)
            kill(c->keeper_pid, SIGKILL);
        gn_loop_close(&d->loop, &c->keeper);
        forget(c);
    }
}
