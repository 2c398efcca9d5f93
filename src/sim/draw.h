/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_DRAW_H
#define GN_SIM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Times as a workload's description writes them, and random numbers drawn from them. Integers only,
 * so that a seed gives the same results on every machine. Pure.
 */
#define GN_SIM_MAX_NS      (UINT64_C(30) * 24 * 3600 * 1000000000) /* 30 days */
#define GN_SIM_MAX_CHOICES 8

__extension__ typedef unsigned __int128 gn_sim_wide;

/*
 * An independent stream of numbers for each (seed, stream). A copy continues with the same numbers.
 */
struct gn_sim_random {
    uint64_t state;
};

void gn_sim_random_init(struct gn_sim_random *r, uint64_t seed, uint64_t stream);

enum gn_sim_shape { GN_SIM_CONSTANT, GN_SIM_BETWEEN, GN_SIM_EXPONENTIAL, GN_SIM_ONE_OF };

struct gn_sim_time {
    enum gn_sim_shape shape;
    uint32_t n; /* number of values in ns */
    /* The value; minimum and maximum; the mean; or values of equal probability. */
    uint64_t ns[GN_SIM_MAX_CHOICES];
};

/* Returns the mean. */
double gn_sim_time_mean(const struct gn_sim_time *t);
uint64_t gn_sim_draw(const struct gn_sim_time *t, struct gn_sim_random *r);

/*
 * Parses "200us", "1.5ms", "2s" or "0", in ns, us, ms, s, min or h. Like all parsers here, it
 * returns 0 or -EINVAL.
 */
int gn_sim_parse_ns(const char *text, uint64_t *ret, struct gn_error *err);
/* "200us", "100us..300us", "exp:200us", "20us/5ms". */
int gn_sim_parse_time(const char *text, struct gn_sim_time *ret, struct gn_error *err);
/*
 * Parses "0.25" or "25%" to parts of GN_SCHED_WHOLE. The first argument names the value in errors,
 * as in "a cap".
 */
int gn_sim_parse_part(const char *what, const char *text, uint32_t *ret, struct gn_error *err);
/* Parses an integer from least to most. The first argument names it in errors: "a weight". */
int gn_sim_parse_count(const char *what, const char *text, uint32_t least, uint32_t most,
                       uint32_t *ret, struct gn_error *err);

/* Formats with three digits: "200us", "1.54ms", "2s". ret has room for 24 bytes. Returns ret. */
char *gn_sim_format_ns(uint64_t ns, char *ret);

#endif
