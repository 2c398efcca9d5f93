/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credit scheduling as in Xen, which Pegasus builds on. Each period's time is distributed as credit
 * by weight, and run time consumes it. Nodes with credit left run before nodes without, round
 * robin. Credit that is not consumed in a period does not accumulate.
 *
 * credit polls: a vGPU without work holds the device until its slice is over. credit-hs gives the
 * device back instead (hybrid spinning). strict adds Pegasus' strict coscheduling (FairGV,
 * algorithms 1 and 2): when the processors' scheduler runs a program, its vGPU gets the device at
 * once unless a ready vGPU has more credit.
 *
 * sched.c calls the functions through struct gn_sched_policy, on the thread of the scheduler that
 * owns the queue. They never allocate, lock or read a clock.
 */
#include "sched/policy.h"

#include <stddef.h>

#define PERIOD_NS 30000000u

static void init(struct gn_sched_queue *q, uint64_t now_ns)
{
    gn_list_init(&q->credit.under);
    gn_list_init(&q->credit.over);
    gn_list_init(&q->credit.members);
    q->credit.next_ns = now_ns + PERIOD_NS;
}

static struct gn_list *list_of(struct gn_sched_queue *q, const struct gn_sched_node *n)
{
    return n->credit.ns > 0 ? &q->credit.under : &q->credit.over;
}

static void start_period(struct gn_sched_queue *q)
{
    uint64_t weights = 0;
    gn_list_for_each(n, &q->credit.members, struct gn_sched_node, credit.member) weights +=
        n->weight;
    gn_list_for_each(n, &q->credit.members, struct gn_sched_node, credit.member)
    {
        const struct gn_list *before = list_of(q, n);
        int64_t part = (int64_t)((uint64_t)PERIOD_NS * n->weight / weights);
        n->credit.ns = n->credit.ns > 0 ? part : n->credit.ns + part;
        /*
         * A node whose list does not change stays in its position: otherwise late nodes would never
         * get to the front.
         */
        if (n->ready && list_of(q, n) != before) {
            gn_list_remove(&n->credit.link);
            gn_list_append(list_of(q, n), &n->credit.link);
        }
    }
}

static void update_periods(struct gn_sched_queue *q, uint64_t now_ns)
{
    /* After a long silence, one distribution is as good as many. */
    if (now_ns < q->credit.next_ns)
        return;
    start_period(q);
    q->credit.next_ns += PERIOD_NS;
    if (now_ns >= q->credit.next_ns)
        q->credit.next_ns = now_ns + PERIOD_NS;
}

static void ready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    update_periods(q, now_ns);
    if (!n->credit.known) {
        n->credit.known = true;
        n->credit.ns = 0;
        gn_list_append(&q->credit.members, &n->credit.member);
    }
    gn_list_append(list_of(q, n), &n->credit.link);
}

static void unready(struct gn_sched_queue *q, struct gn_sched_node *n, uint64_t now_ns)
{
    (void)now_ns;
    (void)q;
    gn_list_remove(&n->credit.link);
}

static struct gn_sched_node *first(struct gn_sched_queue *q, uint64_t now_ns)
{
    update_periods(q, now_ns);
    if (!gn_list_empty(&q->credit.under))
        return gn_list_first(&q->credit.under, struct gn_sched_node, credit.link);
    if (!gn_list_empty(&q->credit.over))
        return gn_list_first(&q->credit.over, struct gn_sched_node, credit.link);
    return NULL;
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
    (void)now_ns;
    (void)q;
    n->credit.ns -= (int64_t)used_ns;
}

static bool prefers(struct gn_sched_queue *q, const struct gn_sched_node *wanted,
                    const struct gn_sched_node *running, uint64_t now_ns)
{
    update_periods(q, now_ns);
    if (running && running->credit.ns > wanted->credit.ns)
        return false;
    gn_list_for_each(n, &q->credit.under, struct gn_sched_node, credit.link)
    {
        if (n->credit.ns > wanted->credit.ns)
            return false;
    }
    return wanted->credit.ns > 0 || gn_list_empty(&q->credit.under);
}

static void forget(struct gn_sched_queue *q, struct gn_sched_node *n)
{
    (void)q;
    if (n->credit.known)
        gn_list_remove(&n->credit.member);
    n->credit.known = false;
}

#define CREDIT(title, words, gives_back, asks)                                                     \
    {                                                                                              \
        .name = title, .about = words, .conserving = gives_back, .by_cpu = asks, .init = init,     \
        .ready = ready, .unready = unready, .first = first, .slice = slice, .charge = charge,      \
        .prefers = prefers, .forget = forget,                                                      \
    }

const struct gn_sched_policy gn_sched_credit = CREDIT(
    "credit", "credit by weight each 30 ms; holds the device while it polls (Xen)", false, false);
const struct gn_sched_policy gn_sched_credit_hs =
    CREDIT("credit-hs", "credit, giving the device back when there is no work", true, false);
const struct gn_sched_policy gn_sched_strict = CREDIT(
    "strict", "credit, and a program that runs brings its vGPU with it (Pegasus)", false, true);
