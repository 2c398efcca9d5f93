/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_WALL_FILTER_H
#define GN_WALL_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#define GN_WALL_FILTER_MAX 1024

struct gn_wall_filter {
    uint16_t n;
    struct sock_filter code[GN_WALL_FILTER_MAX];
};

/*
 * Builds the filter of a worker that sees its own pid as `pid`; the other arguments are those of
 * gn_wall_filter (parts.h). -E2BIG: the filter does not fit.
 */
int gn_wall_make_filter(struct gn_wall_filter *f, bool apart, bool shares, bool bounded,
                        uint32_t pid);

#endif
