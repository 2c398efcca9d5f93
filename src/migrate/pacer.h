/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_PACER_H
#define GN_MIGRATE_PACER_H

#include <stdint.h>

/*
 * A bandwidth limit: a token bucket that holds 10 ms of the rate. Its state is the time at which
 * the line becomes free. From then on a piece of any size may be sent whole, and the next piece
 * waits for the time that this one takes. Pure: time is an argument, and may stand still. Not
 * thread-safe.
 */
struct gn_pacer {
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t free_at_ns;  /* at first the time of the beginning */
};

/* The time to wait before the next piece may be sent; 0: none. */
uint64_t gn_pacer_wait_ns(const struct gn_pacer *p, uint64_t now_ns);
/* Call it for each piece of n bytes that is being sent. */
void gn_pacer_sent(struct gn_pacer *p, uint64_t n, uint64_t now_ns);

#endif
