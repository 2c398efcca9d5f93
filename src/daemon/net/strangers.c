/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds the tcp connections that have not proved anything yet, and the processor time of failed
 * TLS handshakes by address (strangers.h). Called by listen_tcp.c on gantryd's thread. Allocates
 * nothing, reads no clock and closes nothing itself: the caller does, by the end() of the stranger.
 */
#include "daemon/net/strangers.h"

#include <string.h>

void gn_strangers_init(struct gn_strangers *s)
{
    memset(s, 0, sizeof *s);
    gn_list_init(&s->all);
}

static const struct gn_strangers_cost *find_cost(const struct gn_strangers *s, uint64_t address)
{
    for (uint32_t i = 0; i < GN_STRANGERS_ADDRESSES; i++)
        if (s->costs[i].paid_at_ns && s->costs[i].address == address)
            return &s->costs[i];
    return NULL;
}

bool gn_strangers_may_come(const struct gn_strangers *s, uint64_t address, uint64_t now_ns)
{
    const struct gn_strangers_cost *cost = find_cost(s, address);
    return !cost || cost->paid_at_ns <= now_ns + GN_STRANGERS_PART * GN_STRANGERS_BURST_NS;
}

static void charge_address(struct gn_strangers *s, uint64_t address, uint64_t cost_ns,
                           uint64_t now_ns)
{
    struct gn_strangers_cost *cost = (struct gn_strangers_cost *)(uintptr_t)find_cost(s, address);
    if (!cost_ns)
        return;
    if (!cost) {
        cost = &s->costs[0];
        for (uint32_t i = 1; i < GN_STRANGERS_ADDRESSES; i++)
            if (s->costs[i].paid_at_ns < cost->paid_at_ns)
                cost = &s->costs[i];
        *cost = (struct gn_strangers_cost){.address = address};
    }
    cost->paid_at_ns =
        (cost->paid_at_ns > now_ns ? cost->paid_at_ns : now_ns) + GN_STRANGERS_PART * cost_ns;
}

static uint32_t count_strangers(const struct gn_strangers *s, uint64_t address)
{
    uint32_t n = 0;
    gn_list_for_each(x, (struct gn_list *)(uintptr_t)&s->all, struct gn_stranger, link) n +=
        x->address == address;
    return n;
}

struct gn_stranger *gn_strangers_in_excess(struct gn_strangers *s)
{
    struct gn_stranger *found = NULL;
    uint32_t most = 0;
    if (s->n < GN_STRANGERS_MOST)
        return NULL;
    gn_list_for_each(x, &s->all, struct gn_stranger, link)
    {
        const uint32_t n = count_strangers(s, x->address);
        if (n > most) {
            most = n;
            found = x; /* the oldest of its address, since the list is in order of age */
        }
    }
    return found;
}

void gn_strangers_add(struct gn_strangers *s, struct gn_stranger *x, uint64_t address,
                      uint64_t now_ns)
{
    x->address = address;
    x->deadline_ns = now_ns + GN_STRANGERS_NS;
    x->cost_ns = 0;
    gn_list_append(&s->all, &x->link);
    s->n++;
}

void gn_strangers_replace(struct gn_stranger *from, struct gn_stranger *to)
{
    to->address = from->address;
    to->deadline_ns = from->deadline_ns;
    to->cost_ns = from->cost_ns;
    /* Inserted right behind `from`: the list is in the order of deadlines. */
    gn_list_append(from->link.next, &to->link);
    gn_list_remove(&from->link);
}

bool gn_stranger_is(const struct gn_stranger *x)
{
    return !gn_list_empty(&x->link);
}

void gn_strangers_admit(struct gn_strangers *s, struct gn_stranger *x)
{
    if (!gn_stranger_is(x))
        return;
    gn_list_remove(&x->link);
    s->n--;
}

void gn_strangers_refuse(struct gn_strangers *s, struct gn_stranger *x, uint64_t now_ns)
{
    if (!gn_stranger_is(x))
        return;
    charge_address(s, x->address, x->cost_ns, now_ns);
    gn_strangers_admit(s, x);
}

struct gn_stranger *gn_strangers_late(struct gn_strangers *s, uint64_t now_ns)
{
    struct gn_stranger *first =
        gn_list_empty(&s->all) ? NULL : gn_list_first(&s->all, struct gn_stranger, link);
    return first && first->deadline_ns <= now_ns ? first : NULL;
}

uint64_t gn_strangers_deadline(const struct gn_strangers *s)
{
    return gn_list_empty(&s->all) ? 0
                                  : gn_list_first(&s->all, struct gn_stranger, link)->deadline_ns;
}
