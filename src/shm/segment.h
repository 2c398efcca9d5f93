/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SEGMENT_H
#define GN_SHM_SEGMENT_H

#include <stdint.h>

/*
 * A sealed piece of memory that two processes share: a memfd with a size that can never change
 * again, so that no peer can make a mapped page vanish (SIGBUS). Its pages are zero and not
 * allocated before the first access.
 *
 * Functions return 0 or -errno. One thread uses a segment until it is mapped; any thread uses the
 * mapping.
 */
struct gn_segment {
    int fd;         /* owned; -1: none */
    void *base;     /* NULL while not mapped */
    uint64_t bytes; /* the file's size */
};

#define GN_SEGMENT_NONE                                                                            \
    {                                                                                              \
        -1, 0, 0                                                                                   \
    }

/*
 * Creates a segment without mapping it. `bytes` is rounded up to whole pages; 0 is -EINVAL. `name`
 * shows in /proc.
 */
int gn_segment_create(const char *name, uint64_t bytes, struct gn_segment *ret);

/*
 * Checks a descriptor received from another process (an ordinary memfd, shrinking and growing
 * sealed, not empty, at most max_bytes: else -EINVAL) and maps it. On success the segment owns fd;
 * on failure the caller still does.
 */
int gn_segment_adopt(int fd, uint64_t max_bytes, struct gn_segment *ret);

/*
 * Maps a created segment, readable and writable, not inherited over fork. Does nothing if it is
 * mapped already.
 */
int gn_segment_map(struct gn_segment *s);

/* Unmaps, closes, and sets *s to GN_SEGMENT_NONE. */
void gn_segment_fini(struct gn_segment *s);

#endif
