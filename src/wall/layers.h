/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_LAYERS_H
#define GN_WALL_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A folder in two layers, for a user that may fill it. The lower layer is on the disk and
 * read-only. The upper layer holds new files, in memory of a bounded size. When it is full, it is
 * full for that user alone.
 *
 * The mounts are in the caller's own mount namespace: no other process sees them, and they end with
 * it. This needs CAP_SYS_ADMIN and a kernel with overlayfs.
 */

/*
 * Gives the calling process a mount namespace of its own: its later mounts are visible to it and
 * its later children only. The process must have one thread. Returns 0 or -errno.
 */
int gn_wall_own_mounts(void);

/* Folders inside the `at` folder, by name. */
#define GN_WALL_LAYERS_ALL   "all"       /* both layers, for the user */
#define GN_WALL_LAYERS_NEW   "new"       /* the memory file system */
#define GN_WALL_LAYERS_UPPER "new/upper" /* the new files in it */

/*
 * Mounts the two layers in `at`, an empty folder of the caller's, above `kept_fd`. uid and gid own
 * the new files. Returns 0, or -errno and nothing is mounted.
 */
int gn_wall_layers_mount(const char *at, int kept_fd, uid_t uid, gid_t gid, uint64_t bytes,
                         uint32_t entries);
/*
 * Unmounts them and removes the folders in `at`. A mount that is still in use stays until its last
 * user is done.
 */
void gn_wall_layers_unmount(const char *at);

#endif
