/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_POLICY_H
#define GN_SCHED_POLICY_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/*
 * A policy orders nodes in one queue. sched.c puts two such queues on top of each other: a device's
 * tenants, and each tenant's vGPUs. A policy is one file and one entry in policies.c. Pure: time is
 * an argument, in nanoseconds of any clock that does not run backwards; nothing is allocated; one
 * thread at a time.
 */
#define GN_SCHED_WEIGHT_MAX 1000000u

struct gn_sched_node {
    uint32_t weight; /* 1 to GN_SCHED_WEIGHT_MAX */
    bool ready;      /* in its queue: has work, and does not hold the device */
    union {
        struct {
            RB_ENTRY(gn_sched_node) link;
            uint64_t start; /* tag: see fair.c */
            uint32_t rest;
            uint64_t since;   /* a number that grows: who has waited longer goes first */
            uint64_t left_ns; /* when it had no work any more, */
            uint64_t owed;    /* and how far its tag was behind the others' then */
        } fair;
        struct {
            struct gn_list link;
        } rr;
        struct {
            struct gn_list link, member;
            int64_t ns; /* credit left; below zero: overdrawn */
            bool known;
        } credit;
    };
};

struct gn_sched_policy;

struct gn_sched_queue {
    const struct gn_sched_policy *policy;
    union {
        struct {
            RB_HEAD(gn_sched_tree, gn_sched_node) tree;
            uint64_t time; /* virtual */
            uint64_t arrivals;
            struct gn_sched_step {
                const struct gn_sched_node *of; /* compared and never followed: it may be gone */
                uint64_t tag, at_ns;
            } longest[2]; /* the longest turns lately, in virtual time, of two nodes; the longer one
                             first */
        } fair;
        struct {
            struct gn_list list;
        } rr;
        struct {
            struct gn_list under, over; /* ready: with credit, without */
            struct gn_list members;     /* all that share out the next period's */
            uint64_t next_ns;           /* when it is shared out */
        } credit;
    };
};

struct gn_sched_policy {
    const char *name;
    const char *about; /* a line for people */
    bool conserving; /* who has no work gives the device back; otherwise he polls until his slice is
                        over */
    bool by_cpu;     /* the processors' scheduler may ask for a change (Pegasus) */
    void (*init)(struct gn_sched_queue *q, uint64_t now_ns);
    /* A node that was not ready is. */
    void (*ready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    void (*unready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    /* The ready node whose turn it is, which stays in the queue; NULL: none is ready. */
    struct gn_sched_node *(*first)(struct gn_sched_queue *q, uint64_t now_ns);
    /* How long it may have the device, given the usual slice. */
    uint64_t (*slice)(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t slice_ns);
    /* The node, not ready meanwhile, has used so much of the device. */
    void (*charge)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns,
                   uint64_t now_ns);
    /* The node was picked and did not take the device, so that nothing is charged. NULL: it loses
     * nothing. */
    void (*forfeit)(struct gn_sched_queue *q, struct gn_sched_node *n);
    /* by_cpu: may `wanted`, which is ready, take the place of `running`? */
    bool (*prefers)(struct gn_sched_queue *q, const struct gn_sched_node *wanted,
                    const struct gn_sched_node *running, uint64_t now_ns);
    /* A node goes for good; it is not ready. NULL: nothing to forget. */
    void (*forget)(struct gn_sched_queue *q, struct gn_sched_node *n);
};

/* NULL: there is none of that name. */
const struct gn_sched_policy *gn_sched_policy_find(const char *name);
/* The i-th, NULL behind the last; the first is the default. */
const struct gn_sched_policy *gn_sched_policy_at(unsigned i);

/* "fair, credit, ...", in text, which it returns. */
const char *gn_sched_policy_names(char *text, size_t n);

extern const struct gn_sched_policy gn_sched_fair, gn_sched_rr, gn_sched_xenocredit,
    gn_sched_credit, gn_sched_credit_hs, gn_sched_strict;

#endif
