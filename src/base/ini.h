/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_INI_H
#define GN_BASE_INI_H

#include <stddef.h>

#include "base/error.h"

/*
 * Parses files with lines of the form [SECTION], KEY = VALUE, # COMMENT or ; COMMENT. Every mistake
 * is an error that names the file and the line. Blanks around names and values are ignored; a value
 * is never empty. The callbacks decide which sections and keys are valid and return 0 or -errno;
 * their arguments are valid until they return.
 */
struct gn_ini {
    const char *path; /* the name used in errors */
    int (*section)(struct gn_ini *ini, char *name);
    int (*key)(struct gn_ini *ini, const char *key,
               const char *value); /* also called before the first section */
    void *ctx;
    int line; /* the current line, from 1 */
    struct gn_error *err;
};

/* Parses n bytes of text. 0, -EBADMSG, or the result of a callback. */
int gn_ini_parse(struct gn_ini *ini, const char *text, size_t n);
/* Reads and parses the file ini->path, of at most 1 MiB. The second argument names its kind in
 * errors, as in "cannot read the configuration x". */
int gn_ini_read(struct gn_ini *ini, const char *what);

/* For callbacks: sets an error of the form PATH:LINE: message "quoted". Returns -EBADMSG. */
int gn_ini_complain(struct gn_ini *ini, const char *fix, const char *what, const char *quoted);
/* The same with the message of another error after PATH:LINE. */
int gn_ini_pass_on(struct gn_ini *ini, const struct gn_error *inner);

/* Removes blanks at both ends; changes s. */
char *gn_ini_trim(char *s);

#endif
