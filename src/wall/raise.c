/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises the walls around the calling process, one after the other. The order matters: mounts need
 * rights that the user does not have, Landlock forbids mounts, and the filter of system calls
 * forbids the calls that build the other walls. A worker's main thread calls it before any of the
 * vendor's code has run. It never lowers a wall.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "wall/parts.h"

static const struct {
    uint32_t wall;
    const char *name;
} names[] = {
    {GN_WALL_PRIVILEGES, "privileges"},
    {GN_WALL_SYSCALLS, "system calls"},
    {GN_WALL_FILES, "files"},
    {GN_WALL_PROCESSES, "processes"},
    {GN_WALL_SCRATCH, "temporary files"},
    {GN_WALL_NUMBER, "number of processes"},
};

void gn_wall_names(uint32_t walls, char *ret, size_t n)
{
    size_t at = 0;
    if (n)
        ret[0] = 0;
    for (size_t i = 0; i < GN_ARRAY_SIZE(names); i++) {
        if (!(walls & names[i].wall) || at >= n)
            continue;
        int added = snprintf(ret + at, n - at, "%s%s", at ? ", " : "", names[i].name);
        at += added > 0 ? (size_t)added : 0;
    }
}

/*
 * Sets the variables that tell drivers where to put compiled kernels and temporary files. It runs
 * as the worker's user: the folder for temporary files is made inside that user's folder, where
 * links could misdirect another user's rights.
 */
static void set_driver_environment(const struct gn_wall_plan *plan, const char *cache, bool scratch)
{
    static const char *const caches[] = {"XDG_CACHE_HOME",        "CUDA_CACHE_PATH",
                                         "NEO_CACHE_DIR",         "AMD_COMGR_CACHE_DIR",
                                         "MESA_SHADER_CACHE_DIR", "HOME"};
    char path[4096];
    for (const char *const *name = plan->cache_variables; name && *name; name++)
        setenv(*name, cache, 1);
    for (size_t i = 0; i < GN_ARRAY_SIZE(caches); i++)
        setenv(caches[i], cache, 1);
    if (scratch)
        setenv("TMPDIR", "/tmp", 1);
    else if ((size_t)snprintf(path, sizeof path, "%s/tmp", cache) < sizeof path) {
        /* It usually exists; if not, the driver reports that it cannot write there. */
        (void)mkdir(path, 0700);
        setenv("TMPDIR", path, 1);
    }
}

static void record_wall(struct gn_wall_report *r, uint32_t wall, int rc)
{
    char name[64];
    if (rc == 0) {
        r->have |= wall;
        return;
    }
    gn_wall_names(wall, name, sizeof name);
    gn_debug("wall: %s: %s", name, strerror(-rc));
}

/* Without its folder the driver still works, but compiles everything anew. */
static void make_cache(struct gn_wall_plan *plan)
{
    const int rc = plan->cache && !plan->layered ? gn_wall_make_cache(plan) : 0;
    if (rc == 0)
        return;
    gn_log(GN_LOG_WARN, "cannot create the kernel cache %s: %s; the worker runs without it",
           plan->cache, strerror(-rc));
    plan->cache = NULL;
}

int gn_wall_raise(const struct gn_wall_plan *given, struct gn_wall_report *ret,
                  struct gn_error *err)
{
    struct gn_wall_report r = {0, 0};
    struct gn_wall_plan copy = *given, *plan = &copy;
    const bool apart = getpid() == 1;
    int rc;
    make_cache(plan);
    const char *cache = plan->cache;
    /* kill(0, ...) reaches the process group, so that must be the worker's own. */
    (void)setsid();
    if (plan->mode == GN_WALL_NONE) {
        if ((rc = gn_wall_switch_user(plan)) < 0)
            return gn_fail(err, -rc, "give gantryd CAP_SETUID and CAP_SETGID",
                           "a worker cannot become user %u: %s", plan->uid, strerror(-rc));
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (cache)
            set_driver_environment(plan, cache, false);
        *ret = r;
        return 0;
    }
    /* Libraries that gantryd had to preload are not visible to its worker's children. */
    unsetenv("LD_PRELOAD");
    record_wall(&r, GN_WALL_PROCESSES, apart ? 0 : -ENOSYS);
    rc = gn_wall_limit(plan);
    if (rc)
        gn_debug("wall: limits: %s", strerror(-rc));
    record_wall(&r, GN_WALL_SCRATCH, gn_wall_scratch(plan));
    const bool scratch = r.have & GN_WALL_SCRATCH;
    if (cache && scratch)
        cache = GN_WALL_CACHE_AT;
    const bool landlock = gn_wall_has_landlock();
    const int view = scratch && !landlock ? gn_wall_view(plan) : -ENOSYS;
    if ((rc = gn_wall_switch_user(plan)) < 0)
        return gn_fail(err, -rc, "give gantryd CAP_SETUID and CAP_SETGID",
                       "a worker cannot become user %u: %s", plan->uid, strerror(-rc));
    /* The kernel never counts the superuser's processes. */
    const bool super = geteuid() == 0;
    rc = gn_wall_own_users();
    record_wall(&r, GN_WALL_NUMBER, rc ? rc : super ? -EPERM : gn_wall_limit_number());
    rc = gn_wall_drop_privileges();
    record_wall(&r, GN_WALL_PRIVILEGES, rc ? rc : super ? -EPERM : 0);
    if (cache)
        set_driver_environment(plan, cache, scratch);
    record_wall(&r, GN_WALL_FILES,
                landlock ? gn_wall_landlock(plan, cache, scratch, &r.landlock_abi) : view);
    record_wall(&r, GN_WALL_SYSCALLS, gn_wall_filter(apart, plan->shares, plan->data_bytes != 0));
    if (plan->mode == GN_WALL_REQUIRED && (~r.have & GN_WALL_MUST)) {
        char missing[128];
        gn_wall_names(~r.have & GN_WALL_MUST, missing, sizeof missing);
        return gn_fail(
            err, EPERM,
            "set walls = available, or let gantryd have namespaces, Landlock and seccomp",
            "walls are required, but these are not available: %s", missing);
    }
    *ret = r;
    return 0;
}
