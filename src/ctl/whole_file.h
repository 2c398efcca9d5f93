/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_WHOLE_FILE_H
#define GN_CTL_WHOLE_FILE_H

#include "base/error.h"

#include <stdbool.h>

/*
 * A file that stands under its name with all its contents on the disk, or not at all; what stood
 * there before stays until then. It is written without a name where the file system can do that:
 * then nothing is left of it when this process is killed. One thread.
 */
struct gn_whole_file {
    const char *path; /* the caller's */
    char *temporary;  /* the name that it stands under before it has its own; NULL: none */
    char *folder;
    int fd; /* to write to; -1: none any more */
};

/* -EEXIST when something is there that is no plain file. In any case gn_whole_file_close() follows.
 */
int gn_whole_file_open(struct gn_whole_file *f, const char *path, struct gn_error *err);
/* Its contents are brought to the disk. */
int gn_whole_file_sync(struct gn_whole_file *f, struct gn_error *err);
/* On the disk under f->temporary: from now on it outlives this process. */
int gn_whole_file_keep(struct gn_whole_file *f, struct gn_error *err);
/* After a sync: it gets its own name. */
int gn_whole_file_name(struct gn_whole_file *f, struct gn_error *err);
/* What has not got its name goes, unless `stays`. f->temporary can still be read until
 * gn_whole_file_fini().
 */
void gn_whole_file_close(struct gn_whole_file *f, bool stays);
void gn_whole_file_fini(struct gn_whole_file *f);
/* "cannot WHAT PATH: ...", with what to do about it. -code. */
int gn_whole_file_cannot(const struct gn_whole_file *f, const char *what, int code,
                         struct gn_error *err);

#endif
