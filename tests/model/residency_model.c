/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of src/vgpu/residency/swap_state.c among gantryd, a worker's submitting thread, a
 * worker's swapping thread and a driver that may fail: all orders of their steps are explored for
 * one memory object and one kernel that has it as an argument. Then the same with one wrong entry
 * in the table, for each entry that a party can meet and each way to be wrong, and with each order
 * that the parties must keep broken.
 */
#include "vgpu/residency/swap_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Orders that the parties must keep; each is broken once. */
enum broken {
    NOTHING,
    EVICTS_BEFORE_DRAIN,    /* the swapping thread does not wait for commands in the driver */
    EVICTS_BEFORE_READ,     /* it destroys the driver's object without a copy */
    SAYS_EVICTED_TOO_EARLY, /* before the driver's object is destroyed */
    SAYS_FILLED_TOO_EARLY,  /* before the contents are written */
    KEEPS_INCARNATION,      /* a new driver's object looks like the one before */
    KEEPS_REFUSED_OBJECT,   /* a driver's object that could not be filled stays */
    SUBMITS_UNGRANTED,      /* the submitting thread does not look at the grant */
    SUBMITS_UNSEEN,         /* nor at the state */
    VACATES_UNDER_GRANT,    /* gantryd does not take the grant first */
    N_BROKEN
};

enum object { NONE, EMPTY, FULL }; /* the driver's object: not there; without, with the contents */
enum swapper { RESTS, DRAINED, COPIED, DESTROYED, SAID, CREATED, FILLED };
enum submitter { IDLE, SEEN };
enum pinned { NOT_PINNED, BY_CALLER, UNREADABLE };

/* The argument of the driver's kernel: its incarnation is the object's present one, or it is not.
 */
enum argument { UNSET, PRESENT, OTHER };

struct world {
    uint8_t state;
    uint8_t object, backing; /* enum object; the backing has the present contents */
    uint8_t swapper, submitter;
    uint8_t granted;
    uint8_t in_driver; /* a command that names the object */
    uint8_t waiting;   /* another one, not submitted */
    uint8_t pinned;    /* enum pinned */
    uint8_t slot;      /* gantryd counts a slot for it */
    uint8_t leaving;   /* gantryd waits for that slot */
    uint8_t argument;  /* enum argument */
    uint8_t stale;     /* the driver's object of the argument is destroyed */
};

struct model {
    unsigned char table[GN_SWAP_N_STATES][GN_SWAP_N_EVENTS]; /* state + 1; 0: no such event */
    bool met[GN_SWAP_N_STATES][GN_SWAP_N_EVENTS];            /* a party has sent it there */
    enum broken broken;
    struct world *worlds;
    uint32_t n, capacity, *hashed, n_hashed;
    uint32_t (*edges)[2];
    uint32_t n_edges, edges_capacity, from;
    const char *violation;
};

static void violate(struct model *m, const char *what)
{
    if (!m->violation)
        m->violation = what;
}

static void check(struct model *m, const struct world *w)
{
    const enum gn_swap_state s = w->state;
    if (s == GN_SWAP_EVICTED && (!w->backing || w->object != NONE))
        violate(m, "evicted without a copy, or with an object in the driver");
    if (gn_swap_is_usable(s) && w->object != FULL)
        violate(m, "usable without its contents");
    if (w->object != NONE && !gn_swap_occupies(s))
        violate(m, "takes memory without a slot");
    if (gn_swap_occupies(s) && !w->slot)
        violate(m, "has a slot that gantryd does not count");
    if (w->in_driver && (w->object != FULL || (!gn_swap_is_usable(s) && s != GN_SWAP_OUT)))
        violate(m, "a command runs without the contents");
    if ((w->pinned != NOT_PINNED) != (s == GN_SWAP_PINNED))
        violate(m, "pinned, and may be evicted, or the other way round");
    if (s == GN_SWAP_LOST && (w->backing || w->object == FULL))
        violate(m, "lost while the contents exist");
    if (w->leaving && s == GN_SWAP_RESIDENT)
        violate(m, "resident while gantryd waits for its slot");
}

static void enter(struct model *m, const struct world *w);

/* Sends an event. False: the state has no such event. */
static bool send(struct model *m, struct world *w, enum gn_swap_event event)
{
    m->met[w->state][event] = true;
    const unsigned char to = m->table[w->state][event];
    if (!to)
        return false;
    if (to - 1 == w->state)
        violate(m, "an event without a change");
    w->state = to - 1;
    return true;
}

/* The worker ends a swap; the table must know that. */
static void send_own(struct model *m, struct world *w, enum gn_swap_event event)
{
    if (!send(m, w, event))
        violate(m, "the end of a swap is refused");
}

/* gantryd, by an old look at the state at any time. */
static void step_gantryd(struct model *m, struct world w)
{
    struct world next = w;
    if (!w.granted || m->broken == VACATES_UNDER_GRANT)
        if (send(m, &next, GN_SWAP_VACATE)) {
            if (!gn_swap_occupies(w.state) || w.leaving)
                violate(m, "gantryd takes a slot that the object does not have");
            next.leaving = 1;
            enter(m, &next);
        }
    next = w;
    if (send(m, &next, GN_SWAP_ASSIGN)) {
        if (gn_swap_occupies(w.state))
            violate(m, "gantryd assigns a second slot");
        next.slot = 1;
        next.leaving = 0;
        enter(m, &next);
    }
    next = w;
    next.granted = 1;
    enter(m, &next);
    /* It sees that the slot is free, or that the object stays. */
    if (w.slot && !gn_swap_occupies(w.state)) {
        next = w;
        next.slot = next.leaving = 0;
        enter(m, &next);
    }
    if (w.leaving && w.state == GN_SWAP_PINNED) {
        next = w;
        next.leaving = 0;
        enter(m, &next);
    }
}

/* Launches with the argument of an incarnation. */
static void submit(struct model *m, struct world *w)
{
    if (w->argument != PRESENT) {
        w->argument = PRESENT;
        w->stale = 0;
    }
    if (w->stale || w->object == NONE)
        violate(m, "the kernel has an argument whose object is destroyed");
    w->in_driver = 1;
    w->waiting = 0;
    w->submitter = IDLE;
}

static void step_submitter(struct model *m, struct world w)
{
    struct world next = w;
    const bool may = (w.granted || m->broken == SUBMITS_UNGRANTED) &&
                     (gn_swap_is_usable(w.state) || m->broken == SUBMITS_UNSEEN);
    if (w.submitter == SEEN) {
        submit(m, &next);
        enter(m, &next);
        return;
    }
    if (!w.waiting) {
        next.waiting = 1;
        enter(m, &next);
        next = w;
    } else if (may && !w.in_driver) {
        next.submitter = SEEN;
        enter(m, &next);
        next = w;
    } else if (w.state == GN_SWAP_LOST) {
        next.waiting = 0; /* it fails */
        enter(m, &next);
        next = w;
    }
    if (w.granted) {
        next.granted = 0; /* the turn's end */
        enter(m, &next);
        next = w;
        if (send(m, &next, GN_SWAP_PIN)) {
            next.pinned = BY_CALLER;
            enter(m, &next);
        }
    }
}

static void destroy(struct world *w)
{
    w->object = NONE;
    w->stale |= w->argument != UNSET;
}

/* Out: drain, copy, destroy, tell. Each step may be the last before another party's. */
static void step_out(struct model *m, struct world w)
{
    struct world next = w;
    switch ((enum swapper)w.swapper) {
    case RESTS:
        if (w.state != GN_SWAP_OUT || (w.in_driver && m->broken != EVICTS_BEFORE_DRAIN))
            return;
        next.swapper = m->broken == EVICTS_BEFORE_READ ? COPIED : DRAINED;
        break;
    case DRAINED:
        if (w.object != FULL)
            violate(m, "reads an object that has not the contents");
        next.swapper = RESTS;
        send_own(m, &next, GN_SWAP_UNREADABLE);
        next.pinned = UNREADABLE;
        enter(m, &next);
        next = w;
        next.backing = 1;
        next.swapper = COPIED;
        break;
    case COPIED:
        if (m->broken == SAYS_EVICTED_TOO_EARLY) {
            send_own(m, &next, GN_SWAP_SAVED);
            next.swapper = SAID;
            break;
        }
        destroy(&next);
        next.swapper = DESTROYED;
        break;
    case DESTROYED:
        send_own(m, &next, GN_SWAP_SAVED);
        if (gn_swap_occupies(next.state))
            violate(m, "an evicted object has a slot still");
        next.swapper = RESTS;
        break;
    case SAID:
        destroy(&next);
        next.swapper = RESTS;
        break;
    default:
        return;
    }
    enter(m, &next);
}

static void refuse(struct model *m, struct world w, enum gn_swap_event event)
{
    if (m->broken != KEEPS_REFUSED_OBJECT)
        w.object = NONE;
    w.backing &= event != GN_SWAP_BROKEN;
    w.swapper = RESTS;
    send_own(m, &w, event);
    if (gn_swap_occupies(w.state))
        violate(m, "a refused object has a slot still");
    enter(m, &w);
}

/* In: create, fill, tell. */
static void step_in(struct model *m, struct world w)
{
    struct world next = w;
    switch ((enum swapper)w.swapper) {
    case RESTS:
        if (w.state != GN_SWAP_IN)
            return;
        if (w.object != NONE)
            violate(m, "creates a second object");
        refuse(m, w, GN_SWAP_REFUSED);
        next.object = EMPTY;
        next.swapper = CREATED;
        break;
    case CREATED:
        refuse(m, w, GN_SWAP_REFUSED);
        refuse(m, w, GN_SWAP_BROKEN);
        if (!w.backing)
            violate(m, "fills an object from nothing");
        if (m->broken != SAYS_FILLED_TOO_EARLY)
            next.object = FULL;
        next.swapper = FILLED;
        break;
    case FILLED:
        if (m->broken != KEEPS_INCARNATION && w.argument == PRESENT)
            next.argument = OTHER;
        send_own(m, &next, GN_SWAP_FILLED);
        next.swapper = RESTS;
        break;
    default:
        return;
    }
    enter(m, &next);
}

static void step_driver(struct model *m, struct world w)
{
    if (!w.in_driver)
        return;
    w.in_driver = 0;
    w.backing = 0; /* the command has written the object */
    enter(m, &w);
}

/* ---- the exploration */

static uint32_t hash_of(const struct world *w)
{
    const unsigned char *at = (const unsigned char *)w;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < sizeof *w; i++)
        h = (h ^ at[i]) * 16777619u;
    return h;
}

static void rehash(struct model *m)
{
    m->n_hashed = m->n_hashed ? m->n_hashed * 2 : 4096;
    free(m->hashed);
    m->hashed = calloc(m->n_hashed, sizeof *m->hashed);
    assert_non_null(m->hashed);
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t at = hash_of(&m->worlds[i]) % m->n_hashed;
        while (m->hashed[at])
            at = (at + 1) % m->n_hashed;
        m->hashed[at] = i + 1;
    }
}

static uint32_t world_at(struct model *m, const struct world *w)
{
    if (m->n * 2 >= m->n_hashed)
        rehash(m);
    uint32_t at = hash_of(w) % m->n_hashed;
    for (; m->hashed[at]; at = (at + 1) % m->n_hashed)
        if (memcmp(&m->worlds[m->hashed[at] - 1], w, sizeof *w) == 0)
            return m->hashed[at] - 1;
    if (m->n == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 1024;
        m->worlds = realloc(m->worlds, m->capacity * sizeof *m->worlds);
        assert_non_null(m->worlds);
    }
    m->worlds[m->n] = *w;
    m->hashed[at] = ++m->n;
    return m->n - 1;
}

static void enter(struct model *m, const struct world *w)
{
    if (m->violation)
        return;
    check(m, w);
    const uint32_t to = world_at(m, w);
    if (m->n_edges == m->edges_capacity) {
        m->edges_capacity = m->edges_capacity ? m->edges_capacity * 2 : 4096;
        m->edges = realloc(m->edges, m->edges_capacity * sizeof *m->edges);
        assert_non_null(m->edges);
    }
    m->edges[m->n_edges][0] = m->from;
    m->edges[m->n_edges++][1] = to;
}

static bool is_served(const struct world *w)
{
    return !w->waiting;
}

static bool is_evicted(const struct world *w)
{
    return w->state == GN_SWAP_EVICTED;
}

static bool is_pinned_by_caller(const struct world *w)
{
    return w->pinned == BY_CALLER;
}

static bool is_any(const struct world *w)
{
    (void)w;
    return true;
}

static bool may_be_evicted(const struct world *w)
{
    return w->state != GN_SWAP_PINNED && w->state != GN_SWAP_LOST;
}

/* From every world with the first property, some steps lead to one with the second. */
static void check_reaches(struct model *m, bool (*from)(const struct world *),
                          bool (*has)(const struct world *), const char *what)
{
    bool *reaches = calloc(m->n, sizeof *reaches), more = true;
    assert_non_null(reaches);
    for (uint32_t i = 0; i < m->n; i++)
        reaches[i] = has(&m->worlds[i]);
    while (more) {
        more = false;
        for (uint32_t e = m->n_edges; e-- > 0;)
            if (reaches[m->edges[e][1]] && !reaches[m->edges[e][0]])
                reaches[m->edges[e][0]] = more = true;
    }
    for (uint32_t i = 0; i < m->n; i++)
        if (!reaches[i] && from(&m->worlds[i]))
            violate(m, what);
    free(reaches);
}

static void explore(struct model *m)
{
    struct world first = {.state = GN_SWAP_RESIDENT, .object = FULL, .slot = 1};
    check(m, &first);
    world_at(m, &first);
    for (m->from = 0; m->from < m->n && !m->violation; m->from++) {
        const struct world w = m->worlds[m->from];
        step_gantryd(m, w);
        step_submitter(m, w);
        step_out(m, w);
        step_in(m, w);
        step_driver(m, w);
    }
    if (!m->violation)
        check_reaches(m, is_any, is_served, "a command waits for ever");
    if (!m->violation)
        check_reaches(m, may_be_evicted, is_evicted, "an object can never be evicted");
    if (!m->violation)
        check_reaches(m, may_be_evicted, is_pinned_by_caller, "an object can never be pinned");
}

static void model_init(struct model *m, enum broken broken)
{
    *m = (struct model){.broken = broken};
    for (int s = 0; s < GN_SWAP_N_STATES; s++)
        for (int e = 0; e < GN_SWAP_N_EVENTS; e++) {
            enum gn_swap_state next;
            if (gn_swap_next((enum gn_swap_state)s, (enum gn_swap_event)e, &next))
                m->table[s][e] = (unsigned char)(next + 1);
        }
}

static void model_fini(struct model *m)
{
    free(m->worlds);
    free(m->hashed);
    free(m->edges);
}

static void test_the_table(void **state)
{
    struct model m;
    (void)state;
    model_init(&m, NOTHING);
    explore(&m);
    if (m.violation)
        fail_msg("%s", m.violation);
    for (int s = 0; s < GN_SWAP_N_STATES; s++)
        for (int e = 0; e < GN_SWAP_N_EVENTS; e++)
            if (m.table[s][e] && !m.met[s][e])
                fail_msg("state %d never meets event %d", s, e);
    printf("%u worlds, %u steps\n", m.n, m.n_edges);
    model_fini(&m);
}

static void test_broken_orders(void **state)
{
    (void)state;
    for (int b = NOTHING + 1; b < N_BROKEN; b++) {
        struct model m;
        model_init(&m, (enum broken)b);
        explore(&m);
        if (!m.violation)
            fail_msg("nothing goes wrong with broken order %d", b);
        model_fini(&m);
    }
}

static void test_wrong_entries(void **state)
{
    struct model right;
    unsigned n = 0;
    (void)state;
    model_init(&right, NOTHING);
    explore(&right);
    for (int s = 0; s < GN_SWAP_N_STATES; s++)
        for (int e = 0; e < GN_SWAP_N_EVENTS; e++)
            for (int to = 0; right.met[s][e] && to <= GN_SWAP_N_STATES; to++) {
                struct model m;
                if (to == right.table[s][e])
                    continue;
                model_init(&m, NOTHING);
                m.table[s][e] = (unsigned char)to;
                explore(&m);
                if (!m.violation)
                    fail_msg("nothing goes wrong when event %d leads from %d to %d", e, s, to - 1);
                model_fini(&m);
                n++;
            }
    printf("%u wrong entries\n", n);
    assert_true(n > 100);
    model_fini(&right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_broken_orders),
        cmocka_unit_test(test_wrong_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
