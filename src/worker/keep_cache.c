/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the new files of a user's layered kernel cache to the disk, for the user's next workers. A
 * separate process, started by gantryd: copying may take long, and reads files that hostile workers
 * wrote. It runs with gantryd's rights, since root owns the folder that it writes, and does nothing
 * else. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "wall/layers.h"
#include "worker/cache_tree.h"
#include "worker/worker.h"

#define NICENESS        10
#define MOST_SECONDS    60 /* then the process ends, and drivers compile the rest again */
#define SETTLED_SECONDS 2
#define FILE_PART       4u /* the largest file may take this part of the bound */

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void copy(const char *at, int kept, uint64_t most_bytes, bool all)
{
    char path[4096];
    struct stat st;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int from =
        (size_t)snprintf(path, sizeof path, "%s/" GN_WALL_LAYERS_UPPER, at) < sizeof path
            ? open_folder(path)
            : -1;
    if (from < 0 || fstat(kept, &st) < 0) {
        if (from >= 0)
            close(from);
        return;
    }
    struct gn_cache_copy rules = {
        .uid = st.st_uid,
        .gid = st.st_gid,
        .largest_bytes = most_bytes / FILE_PART,
        .most_bytes = most_bytes,
        .older_than = {.tv_sec = all ? 0 : now.tv_sec - SETTLED_SECONDS, .tv_nsec = now.tv_nsec}};
    const int rc = gn_cache_copy(from, kept, &rules);
    if (rc)
        gn_log(GN_LOG_WARN, "not all of a kernel cache is kept on the disk: %s", strerror(-rc));
    close(from);
    gn_cache_trim(kept, most_bytes);
}

int gn_worker_keep_cache(const char *mode, const char *at, const char *kept_path,
                         const char *most_mib)
{
    const bool closes = strcmp(mode, "close") == 0;
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    alarm(MOST_SECONDS);
    const int kept = open_folder(kept_path);
    if (kept < 0)
        gn_log(GN_LOG_WARN, "cannot keep a kernel cache in %s: %s", kept_path, strerror(errno));
    else
        copy(at, kept, strtoull(most_mib, NULL, 10) << 20, closes);
    if (kept >= 0)
        close(kept);
    if (closes) {
        gn_wall_layers_unmount(at);
        (void)rmdir(at);
    }
    return 0;
}

int gn_worker_sweep_caches(const char *root, const char *days)
{
    const int fd = open_folder(root);
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    alarm(MOST_SECONDS);
    if (fd < 0)
        return 0;
    const uint32_t n = gn_cache_sweep(fd, time(NULL) - (time_t)strtoull(days, NULL, 10) * 86400);
    if (n)
        gn_log(GN_LOG_INFO, "%u kernel caches that nobody has used for %s days are removed", n,
               days);
    close(fd);
    return 0;
}
