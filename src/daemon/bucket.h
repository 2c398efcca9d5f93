/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_BUCKET_H
#define GN_DAEMON_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* A token bucket: `burst` tokens at once, and one more after each period. Zero-initialized it is
 * full. Pure: time is an argument, and so are the bounds, which the caller keeps constant. */
struct gn_bucket {
    uint64_t full_at_ns;
};

struct gn_bucket_bounds {
    uint32_t burst;
    uint64_t period_ns;
};

/* Takes a token; false: there is none. */
bool gn_bucket_spend(struct gn_bucket *b, const struct gn_bucket_bounds *bounds, uint64_t now_ns);

/* When a token is available: now_ns or later. */
uint64_t gn_bucket_ready_at(const struct gn_bucket *b, const struct gn_bucket_bounds *bounds,
                            uint64_t now_ns);

/* A limit on log lines: GN_LINES_BURST at once, then one in GN_LINE_PERIOD_NS. With
 * GANTRY_LOG=debug there is no limit. */
#define GN_LINES_BURST    64u
#define GN_LINE_PERIOD_NS UINT64_C(200000000)

struct gn_line_limit {
    struct gn_bucket bucket;
    uint32_t n_dropped;
};

/* True: write the line; *ret_dropped is then the number of lines dropped since the last one
 * written. */
bool gn_line_limit_pass(struct gn_line_limit *l, uint64_t now_ns, uint32_t *ret_dropped);

#endif
