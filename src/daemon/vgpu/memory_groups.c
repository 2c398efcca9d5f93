/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory cgroups of workers (memory_groups.h). Before and after gantryd's loop, on its main
 * thread: finds gantryd's cgroup, makes the group of all workers, and removes it. On the loop:
 * names workers' groups and raises their bounds, which never waits. On a thread of its own:
 * removes workers' groups.
 */
#include "daemon/vgpu/memory_groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "wall/wall.h"

#define PREFIX      "gantry-"
#define MAIN        "gantry-main" /* gantryd's, version 2: it has no groups in it */
#define STACK_BYTES (256u << 10)
#define AGAIN_NS    100000000u /* before the next try to remove groups that still have processes */

static bool read_file(const char *folder, const char *name, char *ret, size_t n)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, ret, n - 1);
    if (fd >= 0)
        close(fd);
    ret[got < 0 ? 0 : got] = 0;
    return got >= 0;
}

static bool has_word(const char *words, const char *word, const char *separators)
{
    const size_t n = strlen(word);
    for (const char *at = words; *at;) {
        const size_t m = strcspn(at, separators);
        if (m == n && strncmp(at, word, n) == 0)
            return true;
        at += m + (at[m] != 0);
    }
    return false;
}

static const char *limit_name(const struct gn_memory_groups *g)
{
    return g->v2 ? "memory.max" : "memory.limit_in_bytes";
}

/* ---- where gantryd is */

static bool fits(int n, const struct gn_memory_groups *g)
{
    return n >= 0 && (size_t)n < sizeof g->own;
}

/* Lines of /proc/self/cgroup: NUMBER:CONTROLLERS:PATH; version 2's has number 0 and no
 * controllers. */
static bool find_own(struct gn_memory_groups *g, const char *self, const char *mounts)
{
    char line[PATH_MAX + 128], second[PATH_MAX + 128] = "";
    FILE *f = fopen(self, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        controllers++;
        path[strcspn(path, "\n")] = 0;
        if (!*controllers)
            memcpy(second, path, strlen(path) + 1);
        else if (has_word(controllers, "memory", ","))
            found = fits(snprintf(g->own, sizeof g->own, "%s/memory%s", mounts, path), g);
    }
    if (f)
        fclose(f);
    if (!found && second[0]) {
        g->v2 = true;
        found = fits(snprintf(g->own, sizeof g->own, "%s%s", mounts, second), g);
    }
    return found;
}

static bool is_delegated(const char *folder)
{
    static const char *const names[] = {"user.delegate", "trusted.delegate"};
    char controllers[512], value = 0;
    if (!read_file(folder, "cgroup.controllers", controllers, sizeof controllers) ||
        !has_word(controllers, "memory", " \n"))
        return false;
    for (size_t i = 0; i < GN_ARRAY_SIZE(names); i++)
        if (getxattr(folder, names[i], &value, 1) == 1 && value == '1')
            return true;
    return false;
}

/* Version 2: gantryd moves into a group below its own, which may then have groups with bounds. */
static int step_down(const struct gn_memory_groups *g)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/" MAIN, g->own);
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return -errno;
    int rc = gn_wall_group_write(folder, "cgroup.procs", "0\n");
    return rc ? rc : gn_wall_group_write(g->own, "cgroup.subtree_control", "+memory\n");
}

static void step_up(const struct gn_memory_groups *g)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/" MAIN, g->own);
    (void)gn_wall_group_write(g->own, "cgroup.subtree_control", "-memory\n");
    (void)gn_wall_group_write(g->own, "cgroup.procs", "0\n");
    (void)rmdir(folder);
}

/* A group that has processes cannot be removed. */
static void remove_with_workers(const char *root)
{
    DIR *dir = opendir(root);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    if (dir)
        closedir(dir);
    (void)rmdir(root);
}

/* Groups of gantryds that were killed. */
static void remove_old(const char *own)
{
    char path[PATH_MAX];
    DIR *dir = opendir(own);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const char *number = e->d_name + strlen(PREFIX);
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0 || !*number ||
            number[strspn(number, "0123456789")])
            continue;
        const pid_t pid = (pid_t)strtol(number, NULL, 10);
        if (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH))
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", own, e->d_name) < sizeof path)
            remove_with_workers(path);
    }
    if (dir)
        closedir(dir);
}

/* False: it is no memory cgroup, or its bound cannot be read. */
static bool find_most(const struct gn_memory_groups *g, uint64_t *ret)
{
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char text[32];
    if (!read_file(g->own, limit_name(g), text, sizeof text))
        return false;
    const uint64_t own = strtoull(text, NULL, 10); /* "max" is 0 */
    const uint64_t all = own && own < machine ? own : machine;
    *ret = all - all / 16;
    return true;
}

static int make_root(struct gn_memory_groups *g, uint64_t most_bytes)
{
    char text[32];
    snprintf(g->root, sizeof g->root, "%s/" PREFIX "%d", g->own, (int)getpid());
    if (mkdir(g->root, 0755) < 0)
        return -errno;
    int rc = g->v2 ? gn_wall_group_write(g->root, "cgroup.subtree_control", "+memory\n") : 0;
    if (!g->v2) {
        /* The default of current kernels. */
        (void)gn_wall_group_write(g->root, "memory.use_hierarchy", "1\n");
        /* A worker at its bound has to end, not to hang. */
        (void)gn_wall_group_write(g->root, "memory.oom_control", "0\n");
    }
    /* A bound on memory alone: all workers share the machine's swap. */
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)most_bytes);
    (void)gn_wall_group_write(g->root, limit_name(g), text);
    if (rc)
        (void)rmdir(g->root);
    return rc;
}

void gn_memory_groups_init(struct gn_memory_groups *g, const char *self, const char *mounts)
{
    uint64_t most_bytes;
    memset(g, 0, sizeof *g);
    if (!find_own(g, self, mounts) || !find_most(g, &most_bytes) ||
        (g->v2 && !is_delegated(g->own)))
        return;
    remove_old(g->own);
    int rc = g->v2 ? step_down(g) : 0;
    if (rc == 0)
        rc = make_root(g, most_bytes);
    if (rc) {
        gn_debug("there are no memory cgroups in %s: %s", g->own, strerror(-rc));
        if (g->v2)
            step_up(g);
        return;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    g->have = true;
}

/* Workers without a process namespace end a moment after their template. */
static void remove_all(const struct gn_memory_groups *g)
{
    for (int i = 0; i < 100; i++) {
        remove_with_workers(g->root);
        if (access(g->root, F_OK) < 0)
            return;
        usleep(10000);
    }
}

void gn_memory_groups_fini(struct gn_memory_groups *g)
{
    if (!g->have)
        return;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->more);
    pthread_mutex_unlock(&g->lock);
    if (g->runs)
        pthread_join(g->thread, NULL);
    remove_all(g);
    if (g->v2)
        step_up(g);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->more);
    free(g->gone);
    *g = (struct gn_memory_groups){.have = false};
}

/* ---- workers */

static bool folder_of(const struct gn_memory_groups *g, uint32_t number, char *ret, size_t n)
{
    return g->have && number && (size_t)snprintf(ret, n, "%s/%u", g->root, number) < n;
}

struct gn_memory_group gn_memory_group_name(struct gn_memory_groups *g, uint64_t most_bytes,
                                            char *ret, size_t n)
{
    struct gn_memory_group group = {g->last + 1, most_bytes};
    if (!folder_of(g, group.number, ret, n)) {
        ret[0] = 0;
        return (struct gn_memory_group){0, 0};
    }
    g->last++;
    return group;
}

void gn_memory_group_raise(const struct gn_memory_groups *g, struct gn_memory_group *group,
                           uint64_t most_bytes)
{
    char folder[PATH_MAX];
    if (!group->most_bytes || most_bytes <= group->most_bytes ||
        !folder_of(g, group->number, folder, sizeof folder))
        return;
    if (gn_wall_group_bound(folder, most_bytes) == 0)
        group->most_bytes = most_bytes;
}

bool gn_memory_group_overflowed(const struct gn_memory_groups *g,
                                const struct gn_memory_group *group)
{
    char folder[PATH_MAX], text[512];
    if (!folder_of(g, group->number, folder, sizeof folder) ||
        !read_file(folder, g->v2 ? "memory.events" : "memory.oom_control", text, sizeof text))
        return false;
    const char *at = strstr(text, "oom_kill ");
    return at && strtoul(at + strlen("oom_kill "), NULL, 10) > 0;
}

/* ---- the thread that removes groups */

static bool add_locked(struct gn_memory_groups *g, uint32_t number)
{
    if (g->n_gone == g->room) {
        const size_t room = g->room ? 2 * g->room : 64;
        uint32_t *gone = realloc(g->gone, room * sizeof *gone);
        if (!gone)
            return false;
        g->gone = gone;
        g->room = room;
    }
    g->gone[g->n_gone++] = number;
    return true;
}

/* Removes n groups, and leaves those in the list that still have processes, which are ending. */
static size_t remove_some(const struct gn_memory_groups *g, uint32_t *numbers, size_t n)
{
    char folder[PATH_MAX];
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (folder_of(g, numbers[i], folder, sizeof folder) && rmdir(folder) < 0 && errno == EBUSY)
            numbers[left++] = numbers[i];
    return left;
}

static void wait_locked(struct gn_memory_groups *g, bool again)
{
    if (!again) {
        pthread_cond_wait(&g->more, &g->lock);
        return;
    }
    const uint64_t ns = gn_now_ns() + AGAIN_NS;
    const struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u),
                                   .tv_nsec = (long)(ns % 1000000000u)};
    (void)pthread_cond_timedwait(&g->more, &g->lock, &until);
}

static void *run(void *groups)
{
    struct gn_memory_groups *g = groups;
    bool again = false;
    pthread_mutex_lock(&g->lock);
    while (!g->over) {
        uint32_t *numbers = g->gone;
        size_t n = g->n_gone;
        if (n == 0 || again) {
            wait_locked(g, again);
            again = false;
            continue;
        }
        g->gone = NULL;
        g->n_gone = g->room = 0;
        pthread_mutex_unlock(&g->lock);
        n = remove_some(g, numbers, n);
        pthread_mutex_lock(&g->lock);
        for (size_t i = 0; i < n; i++)
            (void)add_locked(
                g, numbers[i]); /* a group that is forgotten is removed at gantryd's end */
        free(numbers);
        again = n > 0;
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static bool start_thread(struct gn_memory_groups *g)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&g->thread, &attr, run, g) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void gn_memory_group_remove(struct gn_memory_groups *g, struct gn_memory_group *group)
{
    if (g->have && group->number) {
        pthread_mutex_lock(&g->lock);
        (void)add_locked(g, group->number);
        pthread_cond_signal(&g->more);
        pthread_mutex_unlock(&g->lock);
        if (!g->runs)
            g->runs = start_thread(g);
    }
    *group = (struct gn_memory_group){0, 0};
}
