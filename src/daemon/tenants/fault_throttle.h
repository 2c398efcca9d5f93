/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_TENANTS_FAULT_THROTTLE_H
#define GN_DAEMON_TENANTS_FAULT_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "link/link_wire.h"

/*
 * Delays the programs of users that cause faults again and again. A fault is a message that no
 * front end sends, a system call that no driver makes, a crash in the driver, or a kernel beyond
 * its time limit. Each fault costs the start of a new worker: about 10 ms of processor time that
 * other programs then lack.
 *
 * A leaky bucket: after GN_BREACHES_FREE faults at once, the user's programs start one in a pause.
 * There is one record for each user of each tenant, so nobody waits for another user's faults. A
 * waiting program has no reserved start time, so that a program that gives up delays none of the
 * others.
 *
 * gantryd's thread only; time is an argument.
 */
#define GN_BREACHES_FREE 10u
#define GN_BREACHES_MOST                                                                           \
    20u /* The level stops here, so that a user recovers soon after its faults end. */
#define GN_BREACHES_USERS 4096u /* number of records; the one with the lowest level is replaced */

struct gn_fault_throttle {
    struct gn_list users;
    uint32_t n;
};

struct gn_fault_user {
    struct gn_list link;
    char tenant[GN_LINK_TENANT_BYTES];
    uint64_t user;
    /* the bucket's level as a time: one pause for each fault that still counts */
    uint64_t level_ns;
    uint64_t last_start_ns; /* of the last program that started while a record existed; 0: none */
    /* programs that wait, counted by the caller; the record stays while there are any */
    uint32_t n_waiting;
};

void gn_fault_throttle_init(struct gn_fault_throttle *b);
void gn_fault_throttle_fini(struct gn_fault_throttle *b);
/* Counts a fault. pause_ns 0 means, here and below, that programs never wait. Without memory the
 * fault is not counted. */
void gn_fault_throttle_note(struct gn_fault_throttle *b, const char *tenant, uint64_t user,
                            uint64_t pause_ns, uint64_t now_ns);
/* Returns the user's record; NULL: no faults that count. Valid while n_waiting is not 0, otherwise
 * until the next call. */
struct gn_fault_user *gn_fault_throttle_find(struct gn_fault_throttle *b, const char *tenant,
                                             uint64_t user, uint64_t now_ns);
/* When the next program of the user may start: now_ns or later. */
uint64_t gn_fault_throttle_next_start(const struct gn_fault_user *u, uint64_t pause_ns,
                                      uint64_t now_ns);
/* Records that a program of the user starts now. */
void gn_fault_throttle_start(struct gn_fault_user *u, uint64_t now_ns);

#endif
