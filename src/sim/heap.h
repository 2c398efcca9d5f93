/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_HEAP_H
#define GN_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is to happen when, in virtual time. Timers are the caller's memory; of two at the same time
 * the one that was set first goes first. */
struct gn_sim_timer {
    uint64_t at_ns;
    uint64_t order;
    size_t place; /* in the heap, from 1; 0: not set */
    void (*fire)(struct gn_sim_timer *t, void *ctx);
};

struct gn_sim_heap {
    struct gn_sim_timer **timers;
    size_t n, room;
    uint64_t orders;
};

/* For so many timers at a time. 0 or -ENOMEM. */
int gn_sim_heap_init(struct gn_sim_heap *h, size_t room);
void gn_sim_heap_fini(struct gn_sim_heap *h);
/* Sets or moves it. */
void gn_sim_heap_set(struct gn_sim_heap *h, struct gn_sim_timer *t, uint64_t at_ns);
void gn_sim_heap_clear(struct gn_sim_heap *h, struct gn_sim_timer *t);
/* The next, which is no longer set; NULL: there is none until end_ns. */
struct gn_sim_timer *gn_sim_heap_next(struct gn_sim_heap *h, uint64_t end_ns);

#endif
