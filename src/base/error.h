/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_ERROR_H
#define GN_BASE_ERROR_H

/*
 * One sentence for a person, next to an -errno for the code. Functions of the outer layers have a
 * `struct gn_error *` as their last parameter; it may be NULL. `what` is the message with the
 * reason, `fix` how to correct the failure.
 */
struct gn_error {
    char what[384];
    char fix[384];
};

/*
 * Fills err (unless it is NULL) and returns -code, so that a failure is `return gn_fail(err,
 * EINVAL, "fix", "cannot do %s", x)`.
 */
int gn_fail(struct gn_error *err, int code, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
