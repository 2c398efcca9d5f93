/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WORKER_CACHE_TREE_H
#define GN_WORKER_CACHE_TREE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/*
 * Folders of kernel caches, copied, bounded and removed. What lies in them was made by workers,
 * which are hostile: only plain files and folders are looked at, no link is followed, no other file
 * system entered, and what is too deep or too large is left out. The folder that is written to is
 * the caller's alone.
 *
 * Each function works on an open folder and leaves its descriptor to the caller.
 */
struct gn_cache_copy {
    uid_t uid; /* who owns the copies */
    gid_t gid;
    uint64_t largest_bytes; /* of one file */
    uint64_t most_bytes;    /* of all: one file may have many names */
    struct timespec
        older_than; /* files changed later may not be whole yet; tv_sec 0: all are taken */
    /* out */
    uint32_t n_files;
    uint64_t bytes;
};

/*
 * Copies what is in `from`, the upper layer of an overlay, over `to`, and removes there what has
 * been removed above. A file takes its place as a whole; one that is there already, as large and as
 * old, is not copied. What cannot be copied is left out; -ENOSPC: there is no more room, of which a
 * twentieth of the file system is left to others.
 */
int gn_cache_copy(int from, int to, struct gn_cache_copy *c);

/* Removes the files that were written first until the others have at most so many bytes; and
 * folders that are empty then, but for the folder itself. */
void gn_cache_trim(int folder, uint64_t most_bytes);

/* Removes `name` in the folder and all that is below. 0 or -errno. */
int gn_cache_remove(int folder, const char *name);

/* Removes the kernel caches in `root`, by their names, that were used last before then and whose
 * lock, the file NAME.lock beside them, nobody has. How many. */
uint32_t gn_cache_sweep(int root, time_t used_before);

#endif
