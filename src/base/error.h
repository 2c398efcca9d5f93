/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ERROR_H
#define GN_BASE_ERROR_H

/* A message for people, in addition to the -errno for the code. Functions of the outer layers have
 * a `struct gn_error *` as their last parameter; it may be NULL. The first member says which
 * operation failed and why, `fix` how to correct it. */
struct gn_error {
    char what[384];
    char fix[256];
};

/* Fills in err (unless it is NULL) and returns -code, so that a failure is `return gn_fail(err,
 * EINVAL, "fix", "cannot open %s", x)`. */
int gn_fail(struct gn_error *err, int code, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
