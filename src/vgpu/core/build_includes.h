/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_BUILD_INCLUDES_H
#define GN_VGPU_CORE_BUILD_INCLUDES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct gn_stream_entry;
struct gn_stream_writer;

/*
 * The program's files that a build found, by the names that its compiler had for them: they are
 * what the program was built from, beside its sources, so they stay with the record of the build,
 * and the build is repeated with them where the vGPU goes. Names that were not found are found
 * nowhere. One thread at a time.
 */
#define GN_BUILD_FILES_MOST_BYTES                                                                  \
    (UINT64_C(64) << 20) /* of one build; with more it cannot be moved */
#define GN_BUILD_FILES_MOST 16384u

struct gn_build_file {
    char *name;
    uint32_t mode;          /* as in struct stat: a compiler asks for folders, too */
    uint64_t device, inode; /* one that has two names is one file */
    uint64_t bytes;
    unsigned char *contents; /* NULL: only its facts were asked for */
    int fd;                  /* while a build is repeated: of a file that has them; -1 */
};

struct gn_build_includes {
    struct gn_build_file *all;
    uint32_t n, capacity;
    uint64_t total; /* of contents */
    bool lacks;     /* too much, or no memory: not all are here */
};

struct gn_build_includes *gn_build_includes_new(void);    /* NULL: no memory */
void gn_build_includes_free(struct gn_build_includes *f); /* NULL does nothing */

/* The program has answered. fd: its contents, which are copied; -1: none were asked for. Never
 * fails: see lacks. */
void gn_build_includes_found(struct gn_build_includes *f, const char *name,
                             const struct stat *facts, int fd);
/* In a build that is repeated. 0 or -errno; *ret_fd is the caller's. */
int gn_build_includes_give(struct gn_build_includes *f, const char *name, bool contents,
                           int *ret_fd, struct stat *ret_facts);
/* What that took. */
void gn_build_includes_close(struct gn_build_includes *f);

/* As parts of an entry, and back: *ret is NULL when there are none. 0, -ENOMEM, -EBADMSG. */
uint64_t gn_build_includes_bytes(const struct gn_build_includes *f);
int gn_build_includes_save(const struct gn_build_includes *f, struct gn_stream_writer *w);
int gn_build_includes_load(const struct gn_stream_entry *e, struct gn_build_includes **ret);

#endif
