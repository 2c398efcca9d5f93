/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round robin (GViM 4.1). rr gives each node one slice. xenocredit gives each node a number of
 * slices by its weight: 1024, 512, 256 and 512 credits are 4, 2, 1 and 2 ticks. The time by which a
 * kernel overruns is neither measured nor paid back.
 *
 * sched.c calls the functions through struct gn_sched_policy, on the thread of the scheduler that
 * owns the queue. They never allocate, lock or read a clock.
 */
#include "sched/policy.h"

static void init(struct gn_sched_queue *q, uint64_t now_ns)
{
    (void)now_ns;
    gn_list_init(&q->rr.list);
}

static void ready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    (void)now_ns;
    gn_list_append(&q->rr.list, &n->rr.link);
}

static void unready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    (void)now_ns;
    (void)q;
    gn_list_remove(&n->rr.link);
}

static struct gn_sched_node *first(struct gn_sched_queue *q, uint64_t now_ns)
{
    (void)now_ns;
    return gn_list_empty(&q->rr.list) ? NULL
                                      : gn_list_first(&q->rr.list, struct gn_sched_node, rr.link);
}

static uint64_t one(struct gn_sched_queue *q, const struct gn_sched_node *n, uint64_t slice_ns)
{
    (void)q;
    (void)n;
    return slice_ns;
}

static uint64_t by_weight(struct gn_sched_queue *q, const struct gn_sched_node *n,
                          uint64_t slice_ns)
{
    uint32_t least = n->weight;
    gn_list_for_each(other, &q->rr.list, struct gn_sched_node, rr.link)
    {
        if (other->weight < least)
            least = other->weight;
    }
    return slice_ns * n->weight / least;
}

static void charge(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t used_ns,
                   uint64_t now_ns)
{
    (void)now_ns;
    (void)q;
    (void)n;
    (void)used_ns;
}

const struct gn_sched_policy gn_sched_rr = {
    .name = "rr",
    .about = "a slice each in turn, whatever the weights (GViM)",
    .conserving = true,
    .init = init,
    .ready = ready,
    .unready = unready,
    .first = first,
    .slice = one,
    .charge = charge,
};

const struct gn_sched_policy gn_sched_xenocredit = {
    .name = "xenocredit",
    .about = "slices in proportion to weights in turn (GViM)",
    .conserving = true,
    .init = init,
    .ready = ready,
    .unready = unready,
    .first = first,
    .slice = by_weight,
    .charge = charge,
};
