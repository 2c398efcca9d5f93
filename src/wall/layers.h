/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_LAYERS_H
#define GN_WALL_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A folder in two layers, for a user whose processes may fill it: below, what is kept on the disk
 * and is not written; above, what is new, in memory of a bounded size. What is full is full for
 * that user alone.
 *
 * The mounts are made in a mount namespace of the caller's own, where nobody else sees them and
 * with which they end. It needs CAP_SYS_ADMIN and a kernel with overlayfs.
 */

/* From now on what the calling process mounts is its own and its later children's. The process has
 * one thread. 0 or -errno. */
int gn_wall_own_mounts(void);

/* Folders inside one of the caller's own, by name. */
#define GN_WALL_LAYERS_ALL   "all"       /* both layers, for the user */
#define GN_WALL_LAYERS_NEW   "new"       /* the memory */
#define GN_WALL_LAYERS_UPPER "new/upper" /* in it what is new */

/*
 * Mounts the two layers in `at`, a folder of the caller's own that is empty, above `kept_fd`. uid
 * and gid own what is new. 0, or -errno and nothing is mounted.
 */
int gn_wall_layers_mount(const char *at, int kept_fd, uid_t uid, gid_t gid, uint64_t bytes,
                         uint32_t entries);
/* Undoes it, and removes what is in `at`. What a process still uses stays until that is over. */
void gn_wall_layers_unmount(const char *at);

#endif
