/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_FAULT_THROTTLE_H
#define GN_DAEMON_TENANTS_FAULT_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "link/link_wire.h"

/*
 * A program that breaks its vGPU (a message that no front end sends, a system call that no driver
 * makes, a crash in the driver, a kernel beyond its limit) costs the machine a worker's start each
 * time, some 10 ms of a processor that others then lack. A user that does so again and again starts
 * programs one in a pause, as a leaky bucket has it: GN_BREACHES_FREE at once, and one a pause
 * thereafter. One record for each user of each tenant: nobody waits for the breaches of another. No
 * place in time is promised to a program that waits, so that one that leaves takes none from the
 * next.
 *
 * gantryd's only thread; time is an argument.
 */
#define GN_BREACHES_FREE 10u
#define GN_BREACHES_MOST                                                                           \
    20u /* more than these count for nothing: a user that stops is soon rid of them */
#define GN_BREACHES_USERS 4096u /* records at most; the one that is forgotten first gives way */

struct gn_fault_throttle {
    struct gn_list users;
    uint32_t n;
};

struct gn_fault_user {
    struct gn_list link;
    char tenant[GN_LINK_TENANT_BYTES];
    uint64_t user;
    uint64_t level_ns;      /* the breaches that are not yet forgotten, a pause each, end then */
    uint64_t last_start_ns; /* of a program that the level could have made wait; 0: none */
    uint32_t n_waiting;     /* programs, by the caller's count: the record stays */
};

void gn_fault_throttle_init(struct gn_fault_throttle *b);
void gn_fault_throttle_fini(struct gn_fault_throttle *b);
/* pause_ns 0: nobody waits, here and below. Without memory the breach is not counted. */
void gn_fault_throttle_note(struct gn_fault_throttle *b, const char *tenant, uint64_t user,
                            uint64_t pause_ns, uint64_t now_ns);
/* NULL: the user has no breaches that count. Valid while somebody waits, else until the next call.
 */
struct gn_fault_user *gn_fault_throttle_find(struct gn_fault_throttle *b, const char *tenant,
                                             uint64_t user, uint64_t now_ns);
/* When the next program of the user's may start: now_ns, or later. */
uint64_t gn_fault_throttle_next_start(const struct gn_fault_user *u, uint64_t pause_ns,
                                      uint64_t now_ns);
/* A program of the user's starts. */
void gn_fault_throttle_start(struct gn_fault_user *u, uint64_t now_ns);

#endif
