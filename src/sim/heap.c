/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of timers. Each timer knows its index, so that any timer can be moved. The other
 * files of this folder call it on the thread of the run. It never calls a timer's function.
 */
#include "sim/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gn_sim_heap_init(struct gn_sim_heap *h, size_t room)
{
    memset(h, 0, sizeof *h);
    h->timers = calloc(room + 1, sizeof *h->timers);
    h->room = room;
    return h->timers ? 0 : -ENOMEM;
}

void gn_sim_heap_fini(struct gn_sim_heap *h)
{
    free(h->timers);
    memset(h, 0, sizeof *h);
}

static bool before(const struct gn_sim_timer *a, const struct gn_sim_timer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put(struct gn_sim_heap *h, struct gn_sim_timer *t, size_t place)
{
    h->timers[place] = t;
    t->place = place;
}

/* Moves the timer up or down to its position, starting at a free index. */
static void settle(struct gn_sim_heap *h, struct gn_sim_timer *t, size_t place)
{
    while (place > 1 && before(t, h->timers[place / 2])) {
        put(h, h->timers[place / 2], place);
        place /= 2;
    }
    for (size_t child; (child = 2 * place) <= h->n; place = child) {
        if (child < h->n && before(h->timers[child + 1], h->timers[child]))
            child++;
        if (!before(h->timers[child], t))
            break;
        put(h, h->timers[child], place);
    }
    put(h, t, place);
}

void gn_sim_heap_set(struct gn_sim_heap *h, struct gn_sim_timer *t, uint64_t at_ns)
{
    t->at_ns = at_ns;
    t->order = ++h->orders;
    if (!t->place) {
        assert(h->n < h->room);
        t->place = ++h->n;
    }
    settle(h, t, t->place);
}

void gn_sim_heap_clear(struct gn_sim_heap *h, struct gn_sim_timer *t)
{
    const size_t place = t->place;
    if (!place)
        return;
    struct gn_sim_timer *last = h->timers[h->n--];
    t->place = 0;
    if (last != t)
        settle(h, last, place);
}

struct gn_sim_timer *gn_sim_heap_next(struct gn_sim_heap *h, uint64_t end_ns)
{
    struct gn_sim_timer *t = h->n ? h->timers[1] : NULL;
    if (!t || t->at_ns > end_ns)
        return NULL;
    gn_sim_heap_clear(h, t);
    return t;
}
