/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_TOKEN_H
#define GN_LINK_TOKEN_H

#include <stddef.h>

#include "base/error.h"
#include "link/link_wire.h"

#define GN_TOKEN_LEAST 16 /* characters: shorter ones can be guessed */

/*
 * Whether this is a token: 16 to 255 printable characters without blanks, so that it fits into an
 * environment variable and a line of a file. 0 or -EINVAL.
 */
int gn_token_check(const char *token, size_t n, struct gn_error *err);

/*
 * Reads a file that holds one token, optionally followed by white space. 0 or -errno; ret is padded
 * with zeros. *ret_shared: whether group or others may read the file, for a warning by the caller.
 */
int gn_token_read(const char *path, char ret[GN_LINK_TOKEN_BYTES], int *ret_shared,
                  struct gn_error *err);

#endif
