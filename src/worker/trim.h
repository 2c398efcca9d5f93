/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WORKER_TRIM_H
#define GN_WORKER_TRIM_H

#include <stdint.h>

struct gn_trimmed {
    uint64_t before_bytes, after_bytes; /* that the folder takes on its disk */
    uint32_t n_removed;
};

/*
 * Makes a folder take at most so many bytes, by what has been neither written nor read for the longest: out it goes until an eighth
 * of them is free. Folders that become empty go too, but those directly in it. Follows no links, stays on the folder's file
 * system, and expects that whoever it belongs to changes it meanwhile: who nests folders deeper than any driver does, or makes more
 * files than GN_TRIM_MOST_FILES, loses those, whatever their age. 0, or -errno: it could not be looked through. Keeps folder_fd.
 */
#define GN_TRIM_MOST_FILES 50000u
#define GN_TRIM_MOST_DEPTH 12u
int gn_trim(int folder_fd, uint64_t most_bytes, struct gn_trimmed *ret);

/* gantry-worker --trim: as that user, if there is one to become; ends with gantryd. An exit status. */
int gn_worker_trim(const char *folder, const char *most_bytes, const char *uid, const char *gid);

#endif
