/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_DRAW_H
#define GN_SIM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Times as a workload's description writes them, and numbers drawn from them. Whole numbers only: a
 * seed gives the same on every machine. Pure.
 */
#define GN_SIM_MAX_NS      (UINT64_C(30) * 24 * 3600 * 1000000000) /* a month */
#define GN_SIM_MAX_CHOICES 8

__extension__ typedef unsigned __int128 gn_sim_wide;

/* A stream of numbers of its own for each (seed, stream). May be copied: the copy goes on alike. */
struct gn_sim_random {
    uint64_t state;
};

void gn_sim_random_init(struct gn_sim_random *r, uint64_t seed, uint64_t stream);

enum gn_sim_shape { GN_SIM_CONSTANT, GN_SIM_BETWEEN, GN_SIM_EXPONENTIAL, GN_SIM_ONE_OF };

struct gn_sim_time {
    enum gn_sim_shape shape;
    uint32_t n;                      /* of ns */
    uint64_t ns[GN_SIM_MAX_CHOICES]; /* the value; least and most; the mean; each as likely */
};

/* In the mean. */
double gn_sim_time_mean(const struct gn_sim_time *t);
uint64_t gn_sim_draw(const struct gn_sim_time *t, struct gn_sim_random *r);

/* "200us", "1.5ms", "2s", "0"; ns, us, ms, s, min, h. 0 or -EINVAL, as all of these. */
int gn_sim_parse_ns(const char *text, uint64_t *ret, struct gn_error *err);
/* "200us", "100us..300us", "exp:200us", "20us/5ms". */
int gn_sim_parse_time(const char *text, struct gn_sim_time *ret, struct gn_error *err);
/* "0.25" or "25%", of the whole (GN_SCHED_WHOLE); what names it in a sentence, as in "a cap". */
int gn_sim_parse_part(const char *what, const char *text, uint32_t *ret, struct gn_error *err);
/* A whole number from least to most; what: "a weight". */
int gn_sim_parse_count(const char *what, const char *text, uint32_t least, uint32_t most,
                       uint32_t *ret, struct gn_error *err);

/* "200us", "1.54ms", "2s": three digits. ret has room for 24. Returns ret. */
char *gn_sim_format_ns(uint64_t ns, char *ret);

#endif
