/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files that a driver may need: the system's programs and libraries, to read and run;
 * files that describe the machine; and device nodes. Every user of the machine may open all of them
 * without Gantry, too. landlock.c, view.c and scratch.c call it on the worker's main thread. It
 * never opens the files; it reads only the names in /dev and resolves the driver's path.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "wall/parts.h"

static const struct {
    const char *path;
    unsigned how;
} fixed[] = {
    {"/usr", GN_WALL_READ | GN_WALL_RUN},
    {"/lib", GN_WALL_READ | GN_WALL_RUN},
    {"/lib32", GN_WALL_READ | GN_WALL_RUN},
    {"/lib64", GN_WALL_READ | GN_WALL_RUN},
    {"/bin", GN_WALL_READ | GN_WALL_RUN},
    {"/opt", GN_WALL_READ | GN_WALL_RUN},
    {"/nix/store", GN_WALL_READ | GN_WALL_RUN},
    {"/run/opengl-driver", GN_WALL_READ | GN_WALL_RUN},
    {"/etc/ld.so.cache", GN_WALL_READ},
    {"/etc/ld.so.conf", GN_WALL_READ},
    {"/etc/ld.so.conf.d", GN_WALL_READ},
    {"/etc/localtime", GN_WALL_READ},
    {"/etc/debian_version", GN_WALL_READ},
    {"/etc/os-release", GN_WALL_READ},
    {"/etc/alternatives", GN_WALL_READ},
    {"/etc/ssl/openssl.cnf", GN_WALL_READ},
    {"/etc/nvidia", GN_WALL_READ},
    {"/etc/drirc", GN_WALL_READ},
    {"/sys/devices", GN_WALL_READ},
    {"/sys/bus", GN_WALL_READ},
    {"/sys/class", GN_WALL_READ},
    {"/sys/dev", GN_WALL_READ},
    {"/sys/module", GN_WALL_READ},
    {"/sys/kernel/mm", GN_WALL_READ},
    {"/proc/self/maps", GN_WALL_READ},
    {"/proc/self/smaps", GN_WALL_READ},
    {"/proc/self/stat", GN_WALL_READ},
    {"/proc/self/statm", GN_WALL_READ},
    {"/proc/self/status", GN_WALL_READ},
    {"/proc/self/cgroup", GN_WALL_READ},
    {"/proc/self/mountinfo", GN_WALL_READ},
    {"/proc/self/fd", GN_WALL_READ},
    {"/proc/cpuinfo", GN_WALL_READ},
    {"/proc/meminfo", GN_WALL_READ},
    {"/proc/loadavg", GN_WALL_READ},
    {"/proc/stat", GN_WALL_READ},
    {"/proc/uptime", GN_WALL_READ},
    {"/proc/version", GN_WALL_READ},
    {"/proc/filesystems", GN_WALL_READ},
    {"/proc/modules", GN_WALL_READ},
    {"/proc/devices", GN_WALL_READ},
    {"/proc/driver", GN_WALL_READ},
    {"/proc/sys/vm", GN_WALL_READ},
    {"/proc/sys/kernel/osrelease", GN_WALL_READ},
    {"/proc/sys/kernel/version", GN_WALL_READ},
    {"/dev/null", GN_WALL_DEVICE},
    {"/dev/full", GN_WALL_DEVICE},
    {"/dev/random", GN_WALL_READ},
    {"/dev/urandom", GN_WALL_READ},
    {"/dev/dri", GN_WALL_DEVICE},
    {"/dev/kfd", GN_WALL_DEVICE},
    {"/dev/accel", GN_WALL_DEVICE},
    {"/dev/dxg", GN_WALL_DEVICE},
};

/* Prefixes of devices with a number, or with vendor-specific names. */
static const char *const families[] = {"nvidia",     "mali",  "xclmgmt",
                                       "intel-fpga", "cndrv", "davinci"};

static void each_device(void (*each)(void *ctx, const char *path, unsigned how), void *ctx)
{
    DIR *dir = opendir("/dev");
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));) {
        char path[PATH_MAX];
        for (size_t i = 0; i < GN_ARRAY_SIZE(families); i++) {
            if (strncmp(e->d_name, families[i], strlen(families[i])) != 0)
                continue;
            snprintf(path, sizeof path, "/dev/%s", e->d_name);
            each(ctx, path, GN_WALL_DEVICE);
        }
    }
    closedir(dir);
}

/*
 * For a driver with its own prefix: its library is in PREFIX/lib or below, and needs the folders
 * next to that.
 */
static void each_of_prefix(char *library, void (*each)(void *ctx, const char *path, unsigned how),
                           void *ctx)
{
    static const char *const parts[] = {"lib", "lib64", "libexec", "share", "bin"};
    char path[PATH_MAX];
    char *lib = NULL;
    each(ctx, library, GN_WALL_READ);
    for (char *at = library; (at = strstr(at, "/lib")); at++)
        if (at[4] == '/' || strncmp(at + 4, "64/", 3) == 0)
            lib = at;
    if (!lib || lib == library)
        return;
    *lib = 0;
    for (size_t i = 0; i < GN_ARRAY_SIZE(parts); i++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s", library, parts[i]) < sizeof path)
            each(ctx, path, GN_WALL_READ | GN_WALL_RUN);
}

/* The folders in which the operator told the loader to search. */
static void each_library_folder(void (*each)(void *ctx, const char *path, unsigned how), void *ctx)
{
    char path[PATH_MAX];
    const char *at = getenv("LD_LIBRARY_PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        if (*at == '/' && n < sizeof path) {
            memcpy(path, at, n);
            path[n] = 0;
            each(ctx, path, GN_WALL_READ | GN_WALL_RUN);
        }
        at += n + (at[n] == ':');
    }
}

void gn_wall_driver_files(const struct gn_wall_plan *plan,
                          void (*each)(void *ctx, const char *path, unsigned how), void *ctx)
{
    char library[PATH_MAX];
    for (size_t i = 0; i < GN_ARRAY_SIZE(fixed); i++)
        each(ctx, fixed[i].path, fixed[i].how);
    for (const char *const *path = plan->config_paths; path && *path; path++)
        each(ctx, *path, GN_WALL_READ);
    /* A shared mapping of it is memory that RLIMIT_DATA does not count. */
    each(ctx, "/dev/zero", plan->shares ? GN_WALL_DEVICE : GN_WALL_READ);
    each_device(each, ctx);
    each_library_folder(each, ctx);
    if (plan->library && plan->library[0] == '/' && realpath(plan->library, library))
        each_of_prefix(library, each, ctx);
}

/* True for a path below /tmp that is neither the worker's own nor leads out of /tmp. */
bool gn_wall_is_temporary(const char *path)
{
    static const char *const own[] = {"cache", "shm", "root"};
    if (strncmp(path, "/tmp/", 5) != 0 || strstr(path, "/../") || !path[5])
        return false;
    for (size_t i = 0; i < GN_ARRAY_SIZE(own); i++) {
        const size_t n = strlen(own[i]);
        if (strncmp(path + 5, own[i], n) == 0 && (path[5 + n] == '/' || !path[5 + n]))
            return false;
    }
    return true;
}

struct temporary {
    void (*each)(void *ctx, const char *path, unsigned how);
    void *ctx;
};

static void pass_temporary(void *ctx, const char *path, unsigned how)
{
    const struct temporary *t = ctx;
    if (gn_wall_is_temporary(path))
        t->each(t->ctx, path, how);
}

/*
 * Includes the library's folder under any name, because a library's dependencies are often next to
 * it.
 */
static void each_of_library(const char *library, struct temporary *t)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s", library) >= sizeof path)
        return;
    *strrchr(path, '/') = 0;
    pass_temporary(t, path, GN_WALL_READ | GN_WALL_RUN);
    snprintf(path, sizeof path, "%s", library);
    each_of_prefix(path, pass_temporary, t);
}

void gn_wall_temporary_files(const struct gn_wall_plan *plan,
                             void (*each)(void *ctx, const char *path, unsigned how), void *ctx)
{
    struct temporary t = {each, ctx};
    char library[PATH_MAX];
    each_library_folder(pass_temporary, &t);
    if (!plan->library || plan->library[0] != '/')
        return;
    each_of_library(plan->library, &t);
    if (realpath(plan->library, library) && strcmp(library, plan->library) != 0)
        each_of_library(library, &t);
}
