/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory cgroups of workers. A starting worker makes its own and enters it; gantryd names the
 * folder, raises the limit and removes the group (daemon/memory_groups.c). Making, entering and
 * removing wait for the kernel's cgroup lock, which any entry on the machine holds for up to tens
 * of milliseconds. Writing a limit does not; gantryd's loop never does more than that.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "wall/wall.h"

#define STACK_BYTES (256u << 10)

int gn_wall_group_write(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return -ENAMETOOLONG;
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

int gn_wall_group_bound(const char *folder, uint64_t most_bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)most_bytes);
    int rc = gn_wall_group_write(folder, "memory.max", text);
    if (rc != -ENOENT) {
        (void)gn_wall_group_write(folder, "memory.swap.max", text);
        return rc;
    }
    /*
     * Version 1. The limit on memory and swap together must never be below the limit on memory. So
     * it is written first when both rise, and last when there was none. Kernels without swap
     * accounting lack the file.
     */
    (void)gn_wall_group_write(folder, "memory.memsw.limit_in_bytes", text);
    rc = gn_wall_group_write(folder, "memory.limit_in_bytes", text);
    (void)gn_wall_group_write(folder, "memory.memsw.limit_in_bytes", text);
    return rc;
}

/* ---- in the worker */

static void log_missing_group(const char *folder, int rc)
{
    gn_log(GN_LOG_WARN, "a worker runs without a memory cgroup: %s: %s", folder, strerror(-rc));
}

void gn_wall_group_make(struct gn_wall_group *g, const char *folder, uint64_t most_bytes)
{
    char path[PATH_MAX];
    *g = (struct gn_wall_group){.fd = -1};
    if (!*folder)
        return;
    int rc = mkdir(folder, 0755) < 0 ? -errno : 0;
    if (rc == 0 && most_bytes)
        rc = gn_wall_group_bound(folder, most_bytes);
    if (rc == 0 && (size_t)snprintf(path, sizeof path, "%s/cgroup.procs", folder) >= sizeof path)
        rc = -ENAMETOOLONG;
    if (rc == 0 && (g->fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
        rc = -errno;
    if (rc)
        log_missing_group(folder, rc);
}

static void *enter(void *arg)
{
    const struct gn_wall_group *g = arg;
    if (write(g->fd, "0", 1) < 0) /* 0 means the calling process, with all its threads. */
        log_missing_group("cgroup.procs", -errno);
    return NULL;
}

void gn_wall_group_start(struct gn_wall_group *g)
{
    if (g->fd < 0)
        return;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    g->started = pthread_create(&g->thread, &attr, enter, g) == 0;
    pthread_attr_destroy(&attr);
    if (!g->started)
        enter(g);
}

void gn_wall_group_wait(struct gn_wall_group *g)
{
    if (g->started)
        pthread_join(g->thread, NULL);
    if (g->fd >= 0)
        close(g->fd);
    *g = (struct gn_wall_group){.fd = -1};
}
