/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_PART_H
#define GN_BASE_PART_H

#include <stdint.h>

#include "base/error.h"

/* Parts of a whole, in millionths. */
#define GN_PART_WHOLE 1000000u

/* A part as people write it: a number from 0 to 1 ("0.25", "1"), or of percents ("25%", "12.5%");
 * "none" is 0. Finer than millionths is cut off, but nothing that is more than 0 becomes 0. 0 or
 * -EINVAL. Pure, and the same in every locale. */
int gn_part_parse(const char *text, uint32_t *ret, struct gn_error *err);

/* "0.25"; ret has room for 16. Returns ret. */
char *gn_part_format(uint32_t part, char *ret);

#endif
