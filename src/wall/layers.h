/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_LAYERS_H
#define GN_WALL_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A folder in two layers, for a user that could fill it. The lower layer is on disk and is not
 * written. The upper layer has the new files, in memory of a limited size; when it is full, it is
 * full for that user alone.
 *
 * The mounts are in a mount namespace of the caller's own: no other process sees them, and they end
 * with the namespace. This needs CAP_SYS_ADMIN and a kernel with overlayfs.
 */

/* Moves the calling process, which must have one thread, into a mount namespace of its own: only it
 * and its later children see its later mounts. 0 or -errno. */
int gn_wall_own_mounts(void);

/* Names of folders inside the folder `at` of gn_wall_layers_mount(). */
#define GN_WALL_LAYERS_ALL   "all"       /* both layers together, for the user */
#define GN_WALL_LAYERS_NEW   "new"       /* the memory file system */
#define GN_WALL_LAYERS_UPPER "new/upper" /* the new files in it */

/* Mounts the two layers in `at`, an empty folder of the caller's own, with `kept_fd` as the lower
 * layer. uid and gid own the upper layer, which is limited to `bytes` and `entries`. 0, or -errno
 * and nothing is mounted. */
int gn_wall_layers_mount(const char *at, int kept_fd, uid_t uid, gid_t gid, uint64_t bytes,
                         uint32_t entries);
/* Unmounts the layers and empties `at`. Files that a process still uses stay until it has closed
 * them. */
void gn_wall_layers_unmount(const char *at);

#endif
