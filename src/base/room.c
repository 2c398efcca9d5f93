/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from the kernel's files how much memory is left. A vGPU calls it before it retains memory
 * contents, on any thread. It never caches the result.
 */
#include "base/room.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *open_text(const char *path)
{
    const int fd = gn_fd_open(path, O_RDONLY);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

static bool number_in(const char *folder, const char *name, uint64_t *ret)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return false;
    FILE *f = open_text(path);
    /* "max" is no number: there is no limit. */
    const bool is = f && fscanf(f, "%" SCNu64, ret) == 1;
    if (f)
        fclose(f);
    return is;
}

static uint64_t available(const char *proc)
{
    char path[PATH_MAX], line[128];
    uint64_t kib = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/meminfo", proc) >= sizeof path)
        return 0;
    FILE *f = open_text(path);
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
        ;
    if (f)
        fclose(f);
    return kib * 1024;
}

/* Returns the least room of the group and all its ancestors. */
static uint64_t left_by_groups(char *group, const size_t root)
{
    uint64_t least = UINT64_MAX, most, now;
    for (;;) {
        if (number_in(group, "memory.max", &most) && number_in(group, "memory.current", &now)) {
            const uint64_t left = most > now ? most - now : 0;
            least = left < least ? left : least;
        }
        char *slash = strrchr(group, '/');
        if (!slash || (size_t)(slash - group) < root)
            return least;
        *slash = 0;
    }
}

uint64_t gn_room_by(const char *proc, const char *groups)
{
    char path[PATH_MAX], line[PATH_MAX], group[2 * PATH_MAX];
    uint64_t room = available(proc);
    if ((size_t)snprintf(path, sizeof path, "%s/self/cgroup", proc) >= sizeof path)
        return room;
    FILE *f = open_text(path);
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::/", 4))
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(group, sizeof group, "%s%s", groups, line[4] ? line + 3 : "");
        const uint64_t left = left_by_groups(group, strlen(groups));
        room = left < room ? left : room;
    }
    if (f)
        fclose(f);
    return room;
}

uint64_t gn_room(void)
{
    return gn_room_by("/proc", "/sys/fs/cgroup");
}
