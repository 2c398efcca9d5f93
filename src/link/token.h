/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_TOKEN_H
#define GN_LINK_TOKEN_H

#include <stddef.h>

#include "base/error.h"
#include "link/link_wire.h"

#define GN_TOKEN_LEAST 16 /* characters: shorter ones can be guessed */

/* Whether this is one: 16 to 255 printable characters without blanks, so that a variable of an
 * environment and a line of a file hold it. 0 or -EINVAL. */
int gn_token_check(const char *token, size_t n, struct gn_error *err);

/* Reads a file that holds one, and blanks at its end at most. 0 or -errno; ret ends with a NUL.
 * Warns of nothing: *ret_shared says whether others may read the file, too. */
int gn_token_read(const char *path, char ret[GN_LINK_TOKEN_BYTES], int *ret_shared,
                  struct gn_error *err);

#endif
