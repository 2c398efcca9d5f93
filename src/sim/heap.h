/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SIM_HEAP_H
#define GN_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Timers in virtual time. The caller owns their memory. If two have the same time, the one that was
 * set first fires first.
 */
struct gn_sim_timer {
    uint64_t at_ns;
    uint64_t order;
    size_t place; /* index in the heap, from 1; 0: not set */
    void (*fire)(struct gn_sim_timer *t, void *ctx);
};

struct gn_sim_heap {
    struct gn_sim_timer **timers;
    size_t n, room;
    uint64_t orders;
};

/* Makes a heap for at most `room` timers at a time. Returns 0 or -ENOMEM. */
int gn_sim_heap_init(struct gn_sim_heap *h, size_t room);
void gn_sim_heap_fini(struct gn_sim_heap *h);
/* Sets or moves a timer. */
void gn_sim_heap_set(struct gn_sim_heap *h, struct gn_sim_timer *t, uint64_t at_ns);
void gn_sim_heap_clear(struct gn_sim_heap *h, struct gn_sim_timer *t);
/* Removes and returns the next timer. NULL: none fires before or at end_ns. */
struct gn_sim_timer *gn_sim_heap_next(struct gn_sim_heap *h, uint64_t end_ns);

#endif
