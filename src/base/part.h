/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_PART_H
#define GN_BASE_PART_H

#include <stdint.h>

#include "base/error.h"

/* The unit is millionths of a whole. */
#define GN_PART_WHOLE 1000000u

/*
 * Parses a part as people write it: a number from 0 to 1 ("0.25", "1"), or a percentage ("25%",
 * "12.5%"); "none" is 0. Digits beyond millionths are cut off, but a value above 0 that would
 * become 0 is an error. Returns 0 or -EINVAL. Pure, and the same in every locale.
 */
int gn_part_parse(const char *text, uint32_t *ret, struct gn_error *err);

/* Prints a part as "0.25"; ret has room for 16 bytes. Returns ret. */
char *gn_part_format(uint32_t part, char *ret);

#endif
