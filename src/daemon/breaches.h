/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_BREACHES_H
#define GN_DAEMON_BREACHES_H

#include <stdint.h>

/*
 * A program that breaks its vGPU (a message that no front end sends, a system call that no driver makes, a crash in the driver) costs
 * the machine a worker's start each time, some 10 ms of a processor that others then lack. Whoever does it again and again starts
 * programs one in a pause, as a leaky bucket has it: GN_BREACHES_FREE at once, and one a pause thereafter. One record a tenant.
 * Pure: time is an argument.
 */
#define GN_BREACHES_FREE 10u
#define GN_BREACHES_MOST 20u /* more than these count for nothing: who stops is soon rid of them */

struct gn_breaches {
    uint64_t level_ns;    /* the breaches that are not yet forgotten, a pause each, end then; 0: none */
    uint64_t last_let_ns; /* when the last start that had to wait was to happen */
};

/* pause_ns 0: nobody waits, here and below. */
void gn_breaches_note(struct gn_breaches *b, uint64_t pause_ns, uint64_t now_ns);

/* When a program may start that asks now: now_ns, or later; whoever asks takes that place. */
uint64_t gn_breaches_let_in(struct gn_breaches *b, uint64_t pause_ns, uint64_t now_ns);

#endif
