/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_POLICY_H
#define GN_SCHED_POLICY_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/*
 * The interface of a scheduling policy, which orders nodes in one queue. sched.c uses two levels of
 * queues: the tenants of a device, and the vGPUs of each tenant. A policy is one file and one entry
 * in policies.c. Pure: time is an argument, in nanoseconds of any monotonic clock; nothing is
 * allocated; one thread at a time.
 */
#define GN_SCHED_WEIGHT_MAX 1000000u

struct gn_sched_node {
    uint32_t weight; /* 1 to GN_SCHED_WEIGHT_MAX */
    bool ready;      /* in its queue: it has work and does not hold the device */
    union {
        struct {
            RB_ENTRY(gn_sched_node) link;
            uint64_t start; /* start tag: see fair.c */
            uint32_t rest;
            uint64_t since;   /* increasing number: at equal tags the longest waiter is first */
            uint64_t left_ns; /* when it last went idle */
            uint64_t owed;    /* how far its tag was behind the virtual time then */
        } fair;
        struct {
            struct gn_list link;
        } rr;
        struct {
            struct gn_list link, member;
            int64_t ns; /* credit left; negative: overdrawn */
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
            uint64_t time; /* virtual time */
            uint64_t arrivals;
            /* The longest recent turns of two nodes, in virtual time, the longer one first. */
            struct gn_sched_step {
                /* only compared, never dereferenced: the node may be freed */
                const struct gn_sched_node *of;
                uint64_t tag, at_ns;
            } longest[2];
        } fair;
        struct {
            struct gn_list list;
        } rr;
        struct {
            struct gn_list under, over; /* ready nodes with and without credit */
            struct gn_list members;     /* all nodes that share the credit of the next period */
            uint64_t next_ns;           /* when that period starts */
        } credit;
    };
};

struct gn_sched_policy {
    const char *name;
    const char *about; /* one line for help texts */
    /* a vGPU without work gives the device back; otherwise it polls until its slice ends */
    bool conserving;
    bool by_cpu; /* the CPU scheduler may request a change (Pegasus) */
    void (*init)(struct gn_sched_queue *q, uint64_t now_ns);
    /* A node becomes ready. */
    void (*ready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    void (*unready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    /* The ready node that is next; it stays in the queue. NULL: none is ready. */
    struct gn_sched_node *(*first)(struct gn_sched_queue *q, uint64_t now_ns);
    /* The node's slice, given the device's usual slice. */
    uint64_t (*slice)(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t slice_ns);
    /* Charges the node, which is not ready meanwhile, for used_ns of the device. */
    void (*charge)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns,
                   uint64_t now_ns);
    /* The node was picked but did not take the device, so nothing is charged. NULL: the policy
     * takes nothing from it. */
    void (*forfeit)(struct gn_sched_queue *q, struct gn_sched_node *n);
    /* by_cpu: whether `wanted`, which is ready, may replace `running`. */
    bool (*prefers)(struct gn_sched_queue *q, const struct gn_sched_node *wanted,
                    const struct gn_sched_node *running, uint64_t now_ns);
    /* The node is about to be freed; it is not ready. NULL: nothing to do. */
    void (*forget)(struct gn_sched_queue *q, struct gn_sched_node *n);
};

/* Returns NULL if there is no policy of that name. */
const struct gn_sched_policy *gn_sched_policy_find(const char *name);
/* The i-th policy, NULL after the last; the first is the default. */
const struct gn_sched_policy *gn_sched_policy_at(unsigned i);

/* Writes "fair, credit, ..." into text and returns text. */
const char *gn_sched_policy_names(char *text, size_t n);

extern const struct gn_sched_policy gn_sched_fair, gn_sched_rr, gn_sched_xenocredit,
    gn_sched_credit, gn_sched_credit_hs, gn_sched_strict;

#endif
