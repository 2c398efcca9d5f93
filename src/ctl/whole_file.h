/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_WHOLE_FILE_H
#define GN_CTL_WHOLE_FILE_H

#include "base/error.h"

#include <stdbool.h>

/*
 * A file that appears under its name only when all its contents are on the disk; a previous file of
 * that name stays until then. Where the file system supports it, the new file has no name while it
 * is written, so nothing remains if this process is killed. One thread.
 */
struct gn_whole_file {
    const char *path; /* owned by the caller */
    char *temporary;  /* the temporary name of the file; NULL: none */
    char *folder;
    int fd; /* open for writing; -1: closed */
};

/*
 * Creates the file. -EEXIST if `path` exists and is no regular file. The caller must call
 * gn_whole_file_close() and gn_whole_file_fini() in any case.
 */
int gn_whole_file_open(struct gn_whole_file *f, const char *path, struct gn_error *err);
/* Syncs the contents to the disk. */
int gn_whole_file_sync(struct gn_whole_file *f, struct gn_error *err);
/*
 * Gives the file a temporary name that is on the disk: from now on the file survives this process.
 */
int gn_whole_file_keep(struct gn_whole_file *f, struct gn_error *err);
/* Gives the file its own name. Call it after gn_whole_file_sync(). */
int gn_whole_file_name(struct gn_whole_file *f, struct gn_error *err);
/*
 * Closes the file and removes its temporary name, unless `stays`. f->temporary remains readable
 * until gn_whole_file_fini().
 */
void gn_whole_file_close(struct gn_whole_file *f, bool stays);
void gn_whole_file_fini(struct gn_whole_file *f);
/* Sets err to "cannot WHAT PATH: ..." with advice. Returns -code. */
int gn_whole_file_cannot(const struct gn_whole_file *f, const char *what, int code,
                         struct gn_error *err);

#endif
