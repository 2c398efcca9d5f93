/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/PID/stat of a process and of its threads (process_stat.h). Called by program_watch.c,
 * late_holders.c, and the code that starts and moves vGPUs, on any thread of gantryd. Never blocks,
 * since /proc is in the kernel. Never signals a process. */
#include "daemon/process_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int read_stat(int folder, const char *path, struct gn_process_stat *ret)
{
    char text[1024];
    unsigned long long start = 0;
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    const ssize_t n = read(fd, text, sizeof text - 1);
    const int code = errno;
    close(fd);
    if (n < 0)
        return -code;
    text[n] = 0;
    /* The name may contain any character but NUL: its end is the last parenthesis. */
    const char *after_name = strrchr(text, ')');
    if (!after_name ||
        sscanf(after_name,
               ") %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ret->state, &ret->flags, &start) != 3)
        return -EPROTO;
    ret->start_ticks = start;
    return 0;
}

int gn_process_stat_read(pid_t pid, struct gn_process_stat *ret)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_stat(AT_FDCWD, path, ret);
}

bool gn_process_is_ending(pid_t pid)
{
    enum { PF_EXITING = 4 }; /* the kernel's; proc(5) has it in `flags` */
    struct gn_process_stat stat;
    return gn_process_stat_read(pid, &stat) == 0 && (stat.flags & PF_EXITING);
}

uint64_t gn_process_ticks_now(void)
{
    struct timespec now;
    const uint64_t a_second = (uint64_t)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * a_second + (uint64_t)now.tv_nsec * a_second / 1000000000u;
}

int gn_process_user(pid_t pid, uid_t *ret)
{
    char path[32], line[256];
    unsigned uid;
    int rc = -EPROTO;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? -ESRCH : -errno;
    while (rc && fgets(line, sizeof line, f))
        if (sscanf(line, "Uid: %*u %u", &uid) == 1)
            rc = 0;
    fclose(f);
    if (rc == 0)
        *ret = (uid_t)uid;
    return rc;
}

/* The state of the first thread for which `wanted` returns true; 0: there is none. */
static char find_state(pid_t pid, bool (*wanted)(char state))
{
    char path[32], state = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *e; !state && (e = readdir(dir));) {
        char name[sizeof e->d_name + 8];
        struct gn_process_stat stat;
        snprintf(name, sizeof name, "%s/stat", e->d_name);
        if (e->d_name[0] != '.' && read_stat(dirfd(dir), name, &stat) == 0 && wanted(stat.state))
            state = stat.state;
    }
    closedir(dir);
    return state;
}

static bool is_stop(char state)
{
    return state == 'T' || state == 't';
}

static bool is_live(char state)
{
    return state != 'Z' && state != 'X';
}

bool gn_process_is_stopped(pid_t pid)
{
    return find_state(pid, is_stop) != 0;
}

char gn_process_state(pid_t pid)
{
    return find_state(pid, is_live);
}
