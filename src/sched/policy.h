/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SCHED_POLICY_H
#define GN_SCHED_POLICY_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

/*
 * A policy orders nodes in one queue. sched.c stacks two such queues: a device's tenants, and each
 * tenant's vGPUs. A policy is one file and one entry in policies.c. Pure: time is an argument, in
 * nanoseconds of any monotonic clock; nothing is allocated; one thread at a time.
 */
#define GN_SCHED_WEIGHT_MAX 1000000u

struct gn_sched_node {
    uint32_t weight; /* 1 to GN_SCHED_WEIGHT_MAX */
    bool ready;      /* in its queue: has work, and does not hold the device */
    union {
        struct {
            RB_ENTRY(gn_sched_node) link;
            uint64_t start; /* start tag: see fair.c */
            uint32_t rest;
            /*
             * A sequence number: of two nodes with equal tags, the one that became ready first goes
             * first.
             */
            uint64_t since;
            uint64_t left_ns; /* when it last ran out of work */
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
            struct gn_sched_step {
                /* Only compared, never dereferenced: the node may be freed. */
                const struct gn_sched_node *of;
                uint64_t tag, at_ns;
                /*
                 * The longest recent turns, in virtual time, of two different nodes; the longer one
                 * first.
                 */
            } longest[2];
        } fair;
        struct {
            struct gn_list list;
        } rr;
        struct {
            struct gn_list under, over; /* ready nodes: with credit, without credit */
            struct gn_list members;     /* all nodes that share the next period's credit */
            uint64_t next_ns;           /* when that is distributed */
        } credit;
    };
};

struct gn_sched_policy {
    const char *name;
    const char *about; /* one line for people */
    /* True: a vGPU without work gives the device back. False: it polls until its slice is over. */
    bool conserving;
    bool by_cpu; /* The processors' scheduler may ask for a change of holder (Pegasus). */
    void (*init)(struct gn_sched_queue *q, uint64_t now_ns);
    /* Adds a node that was not ready to the queue. unready removes it. */
    void (*ready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    void (*unready)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns);
    /* Returns the ready node that is next, which stays in the queue. NULL: no node is ready. */
    struct gn_sched_node *(*first)(struct gn_sched_queue *q, uint64_t now_ns);
    /* Returns for how long the node may hold the device, given the usual slice. */
    uint64_t (*slice)(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t slice_ns);
    /* Charges the node, which is not ready meanwhile, for used_ns of device time. */
    void (*charge)(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns,
                   uint64_t now_ns);
    /*
     * The node was picked but did not acquire the device, so nothing is charged. NULL: it loses
     * nothing.
     */
    void (*forfeit)(struct gn_sched_queue *q, struct gn_sched_node *n);
    /* by_cpu policies only: may `wanted`, which is ready, replace `running`? */
    bool (*prefers)(struct gn_sched_queue *q, const struct gn_sched_node *wanted,
                    const struct gn_sched_node *running, uint64_t now_ns);
    /* Removes the state of a node that goes for good and is not ready. NULL: there is none. */
    void (*forget)(struct gn_sched_queue *q, struct gn_sched_node *n);
};

/* Returns NULL if no policy has that name. */
const struct gn_sched_policy *gn_sched_policy_find(const char *name);
/* Returns the i-th policy, or NULL after the last one. The first is the default. */
const struct gn_sched_policy *gn_sched_policy_at(unsigned i);

/* Writes "fair, credit, ..." to text, which has room for n bytes, and returns text. */
const char *gn_sched_policy_names(char *text, size_t n);

extern const struct gn_sched_policy gn_sched_fair, gn_sched_rr, gn_sched_xenocredit,
    gn_sched_credit, gn_sched_credit_hs, gn_sched_strict;

#endif
