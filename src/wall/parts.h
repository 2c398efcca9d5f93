/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_PARTS_H
#define GN_WALL_PARTS_H

#include <sys/types.h>

#include "wall/wall.h"

/*
 * The walls one by one, in the order in which gn_wall_raise builds them. Each function returns 0 or
 * -errno.
 */

/* limits.c. Call it before the user changes. */
int gn_wall_limit(const struct gn_wall_plan *plan);
/* Call it in the worker's own user namespace, where no other process counts. */
int gn_wall_limit_number(void);

/*
 * cache.c: makes the folder plan->cache, which is not layered and has an existing parent. Call it
 * before the user changes.
 */
int gn_wall_make_cache(const struct gn_wall_plan *plan);

/*
 * scratch.c: a mount namespace with temporary folders of its own. The cache is mounted at
 * GN_WALL_CACHE_AT.
 */
#define GN_WALL_CACHE_AT "/tmp/cache"
int gn_wall_scratch(const struct gn_wall_plan *plan);

/*
 * show.c. Makes a mount point for a file or folder (or only the parents, for a link), below the
 * first n_root characters of path.
 */
int gn_wall_make_place(char *path, size_t n_root, mode_t mode);
/* Bind-mounts `from` on the existing `at`. If it fails, nothing has changed. */
int gn_wall_show(const char *from, const char *at, bool writable);

/* user.c */
int gn_wall_switch_user(const struct gn_wall_plan *plan);
/*
 * Enters a user namespace that contains this user only: its processes are counted apart from all
 * others.
 */
int gn_wall_own_users(void);
int gn_wall_drop_privileges(void);

/*
 * view.c: in that namespace, a root with only the driver's files and the worker's own. If it fails,
 * nothing has changed.
 */
int gn_wall_view(const struct gn_wall_plan *plan);

/* files.c and landlock.c */
bool gn_wall_has_landlock(void);
enum { GN_WALL_READ = 1, GN_WALL_RUN = 2, GN_WALL_WRITE = 4, GN_WALL_DEVICE = 8 };
/*
 * Calls each(ctx, path, how) for every file or folder that any driver may need. Absent ones are
 * listed, too.
 */
void gn_wall_driver_files(const struct gn_wall_plan *plan,
                          void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
/*
 * The same for the ones below /tmp, which gn_wall_scratch hides and mounts again: under each name
 * that the driver may use.
 */
void gn_wall_temporary_files(const struct gn_wall_plan *plan,
                             void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
bool gn_wall_is_temporary(const char *path);
/*
 * *ret_abi is the kernel's version of Landlock; without Landlock it fails. `scratch`: /tmp and
 * /dev/shm are the worker's own.
 */
int gn_wall_landlock(const struct gn_wall_plan *plan, const char *cache, bool scratch,
                     uint32_t *ret_abi);

/*
 * syscalls.c. `apart`: the process has a process namespace of its own. `shares`: it may make shared
 * memory. `bounded`: RLIMIT_DATA limits its private memory.
 */
int gn_wall_filter(bool apart, bool shares, bool bounded);

#endif
