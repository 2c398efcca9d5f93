/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_INI_H
#define GN_BASE_INI_H

#include <stddef.h>

#include "base/error.h"

/*
 * Files of [SECTION], KEY = VALUE, # COMMENT and ; COMMENT, one a line, read from the top. Each
 * mistake is an error that names the file and the line. Blanks around names and values are ignored;
 * a value is never empty. The callbacks define the valid sections and keys. They return 0 or
 * -errno, and their arguments are valid until they return.
 */
struct gn_ini {
    const char *path; /* as errors name it */
    int (*section)(struct gn_ini *ini, char *name);
    /* The keys before any section come here as well. */
    int (*key)(struct gn_ini *ini, const char *key, const char *value);
    void *ctx;
    int line; /* number of the current line, from 1 */
    struct gn_error *err;
};

/* Parses n bytes of text. Returns 0, -EBADMSG, or the error of a callback. */
int gn_ini_parse(struct gn_ini *ini, const char *text, size_t n);
/*
 * Parses the file ini->path, of at most 1 MiB. The second argument names the kind of file in
 * errors, as in "cannot read the configuration x".
 */
int gn_ini_read(struct gn_ini *ini, const char *what);

/*
 * For callbacks: fills the error with PATH:LINE, the message and the quoted text. Returns -EBADMSG.
 */
int gn_ini_complain(struct gn_ini *ini, const char *fix, const char *what, const char *quoted);
/*
 * For callbacks: fills the error with PATH:LINE and the text of an inner error. Returns -EBADMSG.
 */
int gn_ini_pass_on(struct gn_ini *ini, const struct gn_error *inner);

/* Removes blanks at both ends; changes s. */
char *gn_ini_trim(char *s);

#endif
