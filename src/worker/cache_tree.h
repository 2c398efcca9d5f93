/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WORKER_CACHE_TREE_H
#define GN_WORKER_CACHE_TREE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/*
 * Copies, trims and removes folders of kernel caches. Hostile workers wrote their contents: only
 * regular files and folders are looked at, no link is followed, no other file system is entered,
 * and files that are too deep or too large are skipped. The destination belongs to the caller
 * alone.
 *
 * Each function works on an open folder; the descriptor stays the caller's.
 */
struct gn_cache_copy {
    uid_t uid; /* the copies' owner */
    gid_t gid;
    uint64_t largest_bytes; /* of one file */
    uint64_t most_bytes;    /* of all copies together: a file with many names is copied as often */
    struct timespec
        older_than; /* skips files changed later, which may be incomplete; tv_sec 0: copies all */
    /* out */
    uint32_t n_files;
    uint64_t bytes;
};

/*
 * Copies `from`, the upper layer of an overlay, over `to`, and removes from `to` the files that the
 * layer marks as removed. A file is replaced atomically; a file of the same size and time is not
 * copied. Files that cannot be copied are skipped. -ENOSPC: no room is left; a twentieth of the
 * file system stays free.
 */
int gn_cache_copy(int from, int to, struct gn_cache_copy *c);

/* Removes the oldest files until the rest has at most most_bytes, and then empty folders, but not
 * the folder itself. */
void gn_cache_trim(int folder, uint64_t most_bytes);

/* Removes `name` in the folder with everything below. 0 or -errno. */
int gn_cache_remove(int folder, const char *name);

/* Removes the kernel caches in `root` that were last used before used_before and whose lock, the
 * file NAME.lock beside them, is free. Returns how many. */
uint32_t gn_cache_sweep(int root, time_t used_before);

#endif
