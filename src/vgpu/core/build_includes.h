/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_BUILD_INCLUDES_H
#define GN_VGPU_CORE_BUILD_INCLUDES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct gn_stream_entry;
struct gn_stream_writer;

/*
 * The program's files that a build has read, by the names that the compiler used. The program
 * object was built from them as well as from its sources, so they stay with the record of the
 * build, and the destination of a migration repeats the build with them. A repeated build finds no
 * other files. One thread at a time.
 */
/* Limit per build; a program object that read more cannot be migrated. */
#define GN_BUILD_FILES_MOST_BYTES (UINT64_C(64) << 20)
#define GN_BUILD_FILES_MOST       16384u

struct gn_build_file {
    char *name;
    uint32_t mode;          /* as in struct stat: a compiler asks for directories, too */
    uint64_t device, inode; /* identify the file: two names may mean the same one */
    uint64_t bytes;
    unsigned char *contents; /* NULL: only the facts (stat) were asked for */
    int fd;                  /* in a repeated build: open on the contents; else -1 */
};

struct gn_build_includes {
    struct gn_build_file *all;
    uint32_t n, capacity;
    uint64_t total; /* bytes of contents */
    bool lacks;     /* incomplete: too much, or no memory */
};

struct gn_build_includes *gn_build_includes_new(void);    /* NULL: no memory */
void gn_build_includes_free(struct gn_build_includes *f); /* NULL: ignored */

/*
 * Stores the program's answer. fd: the contents, which are copied; -1: only facts were asked for.
 * Never fails: sets `lacks`.
 */
void gn_build_includes_found(struct gn_build_includes *f, const char *name,
                             const struct stat *facts, int fd);
/* Looks up a file in a repeated build. 0 or -errno; the caller owns *ret_fd. */
int gn_build_includes_open(struct gn_build_includes *f, const char *name, bool contents,
                           int *ret_fd, struct stat *ret_facts);
/* Closes the descriptors that gn_build_includes_open has opened. */
void gn_build_includes_close(struct gn_build_includes *f);

/*
 * Saves the files as parts of a stream entry, and loads them; *ret is NULL when the entry has none.
 * 0, -ENOMEM or -EBADMSG. gn_build_includes_bytes estimates the size.
 */
uint64_t gn_build_includes_bytes(const struct gn_build_includes *f);
int gn_build_includes_save(const struct gn_build_includes *f, struct gn_stream_writer *w);
int gn_build_includes_load(const struct gn_stream_entry *e, struct gn_build_includes **ret);

#endif
