/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-time fair queuing (FairGV 3.2.1): each node has a start tag, its run time so far divided by its
 * weight, and the least tag is next. Who wakes up gets the queue's virtual time, the least tag of those who
 * have work, unless his own is greater: idling earns nothing, and what was overrun before is still to be paid
 * back.
 *
 * Who was away for a moment only, as a program is that looks at one result before it asks for the next, keeps what he was owed when he
 * left, and earns nothing meanwhile. Without that, one that waits for its results loses everything it is owed at each of them, when others
 * overrun their slices.
 */
#include "sched/policy.h"

/* Tags count nanoseconds of a node of this weight: a year of the whole device at the least weight before two
 * of them are so far apart that their order is lost. What a division leaves is kept, so that no weight makes
 * time free. */
#define UNIT_WEIGHT 256u
#define MOMENT_NS   6000000u /* a slice */

/* Tags go on for ever: they are compared by their distance, so that a wrap is no event. */
static int compare(const struct gn_sched_node *a, const struct gn_sched_node *b)
{
    int64_t d = (int64_t)(a->fair.start - b->fair.start);
    if (!d)
        d = (int64_t)(a->fair.since - b->fair.since);
    return d < 0 ? -1 : d > 0;
}

/* Not all of the macros' functions are used. */
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
    /* While it runs its tag is the least of all that are active: the virtual time. */
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

static void charge(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns, uint64_t now_ns)
{
    const uint64_t weighed = used_ns * UNIT_WEIGHT + n->fair.rest;
    n->fair.start += weighed / n->weight;
    n->fair.rest = (uint32_t)(weighed % n->weight);
    /* Whoever is next has the virtual time, when this one goes now. */
    const struct gn_sched_node *next = RB_MIN(gn_sched_tree, &q->fair.tree);
    n->fair.owed = behind(next ? next->fair.start : q->fair.time, n);
    n->fair.left_ns = now_ns;
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
};
