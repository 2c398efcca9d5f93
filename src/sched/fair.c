/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-time fair queuing (FairGV 3.2.1). Each node has a start tag, its run time so far divided by
 * its weight, and the node with the least tag is next. A node that wakes up gets the queue's
 * virtual time, the least tag of all nodes with work, unless its own tag is greater: idling earns
 * nothing, and an earlier overrun is still paid back.
 *
 * A node that was absent for only a moment, such as a program that looks at one result before it
 * asks for the next, keeps the credit that it had when it left, and earns nothing while it is
 * absent. Otherwise a program that waits for its results would lose all its credit at each of them,
 * when others overrun their slices.
 *
 * The credit that a node keeps over an absence is bounded by two of the longest turns that other
 * nodes recently had: a node cannot save up credit by acquiring the device for an instant each
 * time. A node that lets a grant fail keeps no credit.
 *
 * sched.c calls the functions through struct gn_sched_policy, on the thread of the scheduler that
 * owns the queue. They never allocate, lock or read a clock.
 */
#include "sched/policy.h"

/*
 * Tags count nanoseconds of a node of this weight. At the least weight a node can use the whole
 * device for a year before two tags are so far apart that their order is lost. The remainder of
 * each division is kept in fair.rest, so that no weight makes time free.
 */
#define UNIT_WEIGHT 256u
#define MOMENT_NS   6000000u /* one slice */
#define KEPT_TURNS  2u       /* The bound on kept credit, in turns of other nodes. */
#define LATELY_NS   UINT64_C(10000000000)

/* Compares tags by their distance, because tags wrap around. */
static int compare(const struct gn_sched_node *a, const struct gn_sched_node *b)
{
    int64_t d = (int64_t)(a->fair.start - b->fair.start);
    if (!d)
        d = (int64_t)(a->fair.since - b->fair.since);
    return d < 0 ? -1 : d > 0;
}

/* The macros generate functions that this file does not use. */
#define UNUSED static __attribute__((unused))
RB_PROTOTYPE_INTERNAL(gn_sched_tree, gn_sched_node, fair.link, compare, UNUSED)
RB_GENERATE_INTERNAL(gn_sched_tree, gn_sched_node, fair.link, compare, UNUSED)

static uint64_t behind(uint64_t time, const struct gn_sched_node *n)
{
    const int64_t by = (int64_t)(time - n->fair.start);
    return by > 0 ? (uint64_t)by : 0;
}

static void init(struct gn_sched_queue *q, uint64_t now_ns)
{
    (void)now_ns;
    RB_INIT(&q->fair.tree);
    q->fair.time = q->fair.arrivals = 0;
    q->fair.longest[0] = q->fair.longest[1] = (struct gn_sched_step){NULL, 0, 0};
}

/*
 * Records a turn. The two longest recent turns belong to two different nodes, so that each node
 * finds one of another node.
 */
static void note_step(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t tag,
                      uint64_t now_ns)
{
    struct gn_sched_step *longest = q->fair.longest;
    const struct gn_sched_step step = {n, tag, now_ns};
    for (int i = 0; i < 2; i++)
        if (now_ns - longest[i].at_ns > LATELY_NS)
            longest[i] = (struct gn_sched_step){NULL, 0, 0};
    struct gn_sched_step *slot = longest[0].of == n ? &longest[0] : &longest[1];
    if (slot->of == n ? tag >= slot->tag : tag > slot->tag)
        *slot = step;
    if (longest[1].tag > longest[0].tag) {
        const struct gn_sched_step first = longest[0];
        longest[0] = longest[1];
        longest[1] = first;
    }
}

static uint64_t most_kept(const struct gn_sched_queue *q, const struct gn_sched_node *n)
{
    return KEPT_TURNS * q->fair.longest[q->fair.longest[0].of == n].tag;
}

static void ready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    const bool momentary = n->fair.left_ns && now_ns - n->fair.left_ns <= MOMENT_NS;
    const uint64_t least = q->fair.time - (momentary ? n->fair.owed : 0);
    if ((int64_t)(least - n->fair.start) > 0)
        n->fair.start = least;
    n->fair.owed = behind(q->fair.time, n);
    n->fair.since = ++q->fair.arrivals;
    RB_INSERT(gn_sched_tree, &q->fair.tree, n);
}

static void unready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    RB_REMOVE(gn_sched_tree, &q->fair.tree, n);
    n->fair.left_ns = now_ns;
}

static struct gn_sched_node *first(struct gn_sched_queue *q, uint64_t now_ns)
{
    (void)now_ns;
    struct gn_sched_node *n = RB_MIN(gn_sched_tree, &q->fair.tree);
    /* While this node runs, its tag is the least of all active nodes: the virtual time. */
    if (n && (int64_t)(n->fair.start - q->fair.time) > 0)
        q->fair.time = n->fair.start;
    return n;
}

static uint64_t slice(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t slice_ns)
{
    (void)q;
    (void)n;
    return slice_ns;
}

static void charge(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns,
                   uint64_t now_ns)
{
    const uint64_t weighed = used_ns * UNIT_WEIGHT + n->fair.rest;
    note_step(q, n, weighed / n->weight, now_ns);
    n->fair.start += weighed / n->weight;
    n->fair.rest = (uint32_t)(weighed % n->weight);
    /* If this node leaves now, the next node's tag is the virtual time. */
    const struct gn_sched_node *next = RB_MIN(gn_sched_tree, &q->fair.tree);
    n->fair.owed = behind(next ? next->fair.start : q->fair.time, n);
    if (n->fair.owed > most_kept(q, n))
        n->fair.owed = most_kept(q, n);
    n->fair.left_ns = now_ns;
}

static void forfeit(struct gn_sched_queue *q, struct gn_sched_node *n)
{
    (void)q;
    n->fair.owed = n->fair.left_ns = 0;
}

const struct gn_sched_policy gn_sched_fair = {
    .name = "fair",
    .about = "device time in proportion to weights, by start-time fair queuing (FairGV)",
    .conserving = true,
    .init = init,
    .ready = ready,
    .unready = unready,
    .first = first,
    .slice = slice,
    .charge = charge,
    .forfeit = forfeit,
};
