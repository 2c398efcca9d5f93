/* SPDX-License-Identifier: Apache-2.0 */
/* When which kernel cache is looked through; the looking is gantry-worker --trim's (src/worker/trim.c). gantryd's main thread. */
#include "daemon/caches.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/spawn.h"

static void next(struct gn_caches *c);

static bool nobody_uses(const struct gn_caches *c)
{
    gn_list_for_each(cache, &c->all, struct gn_cache, link) if (cache->n_workers) return false;
    return true;
}

static void arm(struct gn_caches *c)
{
    const struct itimerspec when = {.it_value.tv_sec = nobody_uses(c) ? 0 : GN_CACHES_EVERY_S};
    (void)timerfd_settime(c->timer.fd, 0, &when, NULL);
}

static void forget(struct gn_cache *cache)
{
    gn_list_remove(&cache->link);
    free(cache);
}

/* The trimmer says nothing: its socket's end is its own. */
static void trimmer_ended(struct gn_source *s, uint32_t events)
{
    struct gn_caches *c = gn_container_of(s, struct gn_caches, trimmer);
    (void)events;
    gn_loop_close(c->loop, s);
    next(c);
}

static bool start(struct gn_caches *c, const struct gn_cache *cache)
{
    struct gn_error err;
    char limit[24], uid[16] = "", gid[16] = "";
    snprintf(limit, sizeof limit, "%" PRIu64, c->limit_bytes);
    if (cache->change_user) {
        snprintf(uid, sizeof uid, "%u", cache->uid);
        snprintf(gid, sizeof gid, "%u", cache->gid);
    }
    char *const argv[] = {(char[]){"gantry-worker"}, (char[]){"--trim"}, (char *)(uintptr_t)cache->folder, limit, uid, gid, NULL};
    int rc = gn_worker_spawn(c->worker, argv, GN_WALL_NONE, &c->trimmer.fd, &c->pid, &err);
    if (rc) {
        gn_log(GN_LOG_WARN, "kernel caches are not looked through: %s", err.what);
        c->trimmer.fd = -1;
        return false;
    }
    rc = gn_loop_add(c->loop, &c->trimmer, EPOLLIN, trimmer_ended);
    if (rc) {
        close(c->trimmer.fd);
        c->trimmer.fd = -1;
    }
    return rc == 0;
}

/* One at a time, so that many tenants who fill theirs cost the others one process. */
static void next(struct gn_caches *c)
{
    struct gn_cache *first = NULL;
    if (c->trimmer.fd >= 0 || c->pid)
        return;
    gn_list_for_each(cache, &c->all, struct gn_cache, link) if (!first && cache->due) first = cache;
    if (!first)
        return;
    first->due = false;
    (void)start(c, first);
    /* To the end of the list, so that every folder has its turn. */
    gn_list_remove(&first->link);
    gn_list_append(&c->all, &first->link);
    if (!first->n_workers)
        forget(first);
}

/* Has the file system lost enough since the last look that somebody may be filling his folder? Programs that do nothing then cost
 * nothing but this. */
static bool is_worth_it(struct gn_caches *c)
{
    struct statvfs fs;
    if (gn_list_empty(&c->all) || statvfs(gn_list_first(&c->all, struct gn_cache, link)->folder, &fs) < 0)
        return false;
    const uint64_t now = (uint64_t)fs.f_bfree * fs.f_frsize;
    if (c->free_bytes && now + c->limit_bytes / 64 > c->free_bytes) {
        if (now > c->free_bytes)
            c->free_bytes = now; /* others have made room; it is not his to fill */
        return false;
    }
    c->free_bytes = now;
    return true;
}

static void look(struct gn_source *timer, uint32_t events)
{
    struct gn_caches *c = gn_container_of(timer, struct gn_caches, timer);
    uint64_t n;
    (void)events;
    (void)!read(timer->fd, &n, sizeof n);
    if (is_worth_it(c))
        gn_list_for_each(cache, &c->all, struct gn_cache, link) cache->due = true;
    next(c);
    arm(c);
}

int gn_caches_init(struct gn_caches *c, struct gn_loop *loop, const char *worker, uint64_t limit_bytes)
{
    *c = (struct gn_caches){.loop = loop, .worker = worker, .limit_bytes = limit_bytes, .trimmer.fd = -1};
    gn_list_init(&c->all);
    c->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return c->timer.fd < 0 ? -errno : gn_loop_add(loop, &c->timer, EPOLLIN, look);
}

void gn_caches_fini(struct gn_caches *c)
{
    if (!c->loop)
        return;
    if (c->trimmer.fd >= 0)
        gn_loop_close(c->loop, &c->trimmer);
    if (c->pid) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (c->timer.fd >= 0)
        gn_loop_close(c->loop, &c->timer);
    gn_list_for_each(cache, &c->all, struct gn_cache, link) forget(cache);
}

struct gn_cache *gn_caches_enter(struct gn_caches *c, const char *folder, bool change_user, uid_t uid, gid_t gid)
{
    struct gn_cache *found = NULL;
    if (!c->limit_bytes || !*folder)
        return NULL;
    gn_list_for_each(cache, &c->all, struct gn_cache, link) if (strcmp(cache->folder, folder) == 0) found = cache;
    if (!found) {
        const size_t n = strlen(folder) + 1;
        found = calloc(1, sizeof *found + n);
        if (!found)
            return NULL;
        memcpy(found->folder, folder, n);
        found->change_user = change_user;
        found->uid = uid;
        found->gid = gid;
        gn_list_init(&found->link);
        gn_list_append(&c->all, &found->link);
    }
    /* Looked through already, or about to be, and used again. */
    const bool first = nobody_uses(c);
    found->n_workers++;
    if (first)
        arm(c);
    return found;
}

void gn_caches_leave(struct gn_caches *c, struct gn_cache *cache)
{
    if (!cache)
        return;
    if (--cache->n_workers)
        return;
    cache->due = is_worth_it(c);
    if (!cache->due)
        forget(cache);
    if (nobody_uses(c))
        arm(c);
    next(c);
}

void gn_caches_reaped(struct gn_caches *c, pid_t pid)
{
    if (!c->pid || pid != c->pid)
        return;
    c->pid = 0;
    next(c);
}
