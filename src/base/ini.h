/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_INI_H
#define GN_BASE_INI_H

#include <stddef.h>

#include "base/error.h"

/*
 * Files of [SECTION], KEY = VALUE, # COMMENT and ; COMMENT, a line each, read from the top: every
 * mistake is an error that names the file and the line. Blanks around names and values do not
 * count; a value is never empty. What sections and keys there are is the callbacks' business; they
 * return 0 or -errno, and what they are given lasts until they return.
 */
struct gn_ini {
    const char *path; /* as errors name it */
    int (*section)(struct gn_ini *ini, char *name);
    int (*key)(struct gn_ini *ini, const char *key,
               const char *value); /* before any section, too */
    void *ctx;
    int line; /* the one in hand, from 1 */
    struct gn_error *err;
};

/* The text of n bytes. 0 or -EBADMSG, or what a callback returned. */
int gn_ini_parse(struct gn_ini *ini, const char *text, size_t n);
/* The file ini->path, of at most 1 MiB. `what` is what it is, as in "cannot read the configuration
 * x". */
int gn_ini_read(struct gn_ini *ini, const char *what);

/* For callbacks: PATH:LINE: what "quoted". Returns -EBADMSG. */
int gn_ini_complain(struct gn_ini *ini, const char *fix, const char *what, const char *quoted);
/* The same with an error of somebody else's behind the place. */
int gn_ini_pass_on(struct gn_ini *ini, const struct gn_error *inner);

/* Without blanks before and behind; changes s. */
char *gn_ini_trim(char *s);

#endif
