/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_PARTS_H
#define GN_WALL_PARTS_H

#include <sys/types.h>

#include "wall/wall.h"

/* The single walls, in the order in which gn_wall_raise() raises them. Each function returns 0 or
 * -errno. */

/* limits.c. Call before the user changes. */
int gn_wall_limit(const struct gn_wall_plan *plan);
/* Limits the number of processes. Call in the worker's own user namespace, where only its processes
 * count. */
int gn_wall_limit_number(void);

/* cache.c: creates the folder plan->cache, which is not layered and has an existing parent. Call
 * before the user changes. */
int gn_wall_make_cache(const struct gn_wall_plan *plan);

/* scratch.c: a mount namespace with temporary folders of the worker's own. The cache appears at
 * GN_WALL_CACHE_AT. */
#define GN_WALL_CACHE_AT "/tmp/cache"
int gn_wall_scratch(const struct gn_wall_plan *plan);

/* show.c. Creates a file or folder to mount on, with its parents below the path's first n_root
 * characters. For a link, only the parents. */
int gn_wall_make_place(char *path, size_t n_root, mode_t mode);
/* Bind-mounts `from` on `at`, which exists. On failure nothing has changed. */
int gn_wall_show(const char *from, const char *at, bool writable);

/* user.c */
int gn_wall_switch_user(const struct gn_wall_plan *plan);
/* Creates a user namespace with this one user in it, so that its processes are counted apart from
 * all others. */
int gn_wall_own_users(void);
int gn_wall_drop_privileges(void);

/* view.c: a root with only the driver's and the worker's own files, in the worker's mount
 * namespace. On failure nothing has changed. */
int gn_wall_view(const struct gn_wall_plan *plan);

/* files.c and landlock.c */
bool gn_wall_has_landlock(void);
enum { GN_WALL_READ = 1, GN_WALL_RUN = 2, GN_WALL_WRITE = 4, GN_WALL_DEVICE = 8 };
/* Calls each(ctx, path, how) for all files that a driver may need. They need not exist. */
void gn_wall_driver_files(const struct gn_wall_plan *plan,
                          void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
/* The same for those below /tmp, under every name that the driver may use: gn_wall_scratch() covers
 * them and then mounts them again. */
void gn_wall_temporary_files(const struct gn_wall_plan *plan,
                             void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
bool gn_wall_is_temporary(const char *path);
/* *ret_abi is 0 if the kernel has no Landlock. `scratch`: /tmp and /dev/shm are the
 * worker's own. */
int gn_wall_landlock(const struct gn_wall_plan *plan, const char *cache, bool scratch,
                     uint32_t *ret_abi);

/* syscalls.c. `apart`: the process has a process namespace of its own. `shares`: it may create
 * shared memory. `bounded`: RLIMIT_DATA limits its private memory. */
int gn_wall_filter(bool apart, bool shares, bool bounded);

#endif
