/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_PARTS_H
#define GN_WALL_PARTS_H

#include <sys/types.h>

#include "wall/wall.h"

/* The walls one by one, in the order in which gn_wall_raise builds them. Each returns 0 or -errno.
 */

/* limits.c. Before the user changes. */
int gn_wall_limit(const struct gn_wall_plan *plan);
/* In a user namespace of the worker's own, where nobody else counts. */
int gn_wall_limit_number(void);

/* cache.c: makes the folder plan->cache, which is not layered; its parent is there. Before the user
 * changes. */
int gn_wall_make_cache(const struct gn_wall_plan *plan);

/* scratch.c: a mount namespace with temporary folders of its own. The cache shows at
 * GN_WALL_CACHE_AT. */
#define GN_WALL_CACHE_AT "/tmp/cache"
int gn_wall_scratch(const struct gn_wall_plan *plan);

/* show.c. The place for a file or folder (or a link: its parents alone), below the path's first
 * n_root characters. */
int gn_wall_make_place(char *path, size_t n_root, mode_t mode);
/* `from` shows at `at`, which is there. When it fails, all is as before. */
int gn_wall_show(const char *from, const char *at, bool writable);

/* user.c */
int gn_wall_switch_user(const struct gn_wall_plan *plan);
/* A user namespace with this one user in it: its processes are counted apart from all others. */
int gn_wall_own_users(void);
int gn_wall_drop_privileges(void);

/* view.c: in that namespace, a root with nothing in it but the driver's files and the worker's own.
 * When it fails, all is as before. */
int gn_wall_view(const struct gn_wall_plan *plan);

/* files.c and landlock.c */
bool gn_wall_has_landlock(void);
enum { GN_WALL_READ = 1, GN_WALL_RUN = 2, GN_WALL_WRITE = 4, GN_WALL_DEVICE = 8 };
/* Calls each(ctx, path, how) for what any driver may need of the file system. What is not there is
 * named all the same. */
void gn_wall_driver_files(const struct gn_wall_plan *plan,
                          void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
/* Of those, the ones below /tmp, which gn_wall_scratch covers and shows again: under each name that
 * the driver may use. */
void gn_wall_temporary_files(const struct gn_wall_plan *plan,
                             void (*each)(void *ctx, const char *path, unsigned how), void *ctx);
bool gn_wall_is_temporary(const char *path);
/* *ret_abi is 0 where the kernel has no Landlock. `scratch`: /tmp and /dev/shm are the worker's
 * own. */
int gn_wall_landlock(const struct gn_wall_plan *plan, const char *cache, bool scratch,
                     uint32_t *ret_abi);

/* syscalls.c. `apart`: the process has a process namespace of its own. `shares`: it may make shared
 * memory. `bounded`: RLIMIT_DATA is to bound its private memory. */
int gn_wall_filter(bool apart, bool shares, bool bounded);

#endif
