/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_SIZE_H
#define GN_BASE_SIZE_H

#include <stdint.h>

#include "base/error.h"

/*
 * Parses a SIZE as people write it: digits, then K, M, G or T (in either case) for powers of 1024.
 * Returns 0 or -EINVAL. Pure.
 */
int gn_size_parse(const char *text, uint64_t *ret, struct gn_error *err);

#endif
