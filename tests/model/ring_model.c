/* SPDX-License-Identifier: Apache-2.0 */
/* The slot ring as step functions. The labels are those of slot_ring.c and docs/ring.md. */
#include "ring_model.h"

#include <stddef.h>

#define CAPACITY   4u
#define PRODUCERS  2u
#define CONSUMER   2u
#define DECLARER   3u
#define N_MESSAGES 3u

/* Slots of each producer's messages: more than two laps together, and such that both producers can
 * be starved at once. */
static const uint8_t lengths[PRODUCERS][N_MESSAGES] = {{2, 2, 1}, {1, 2, 2}};

enum {
    SEQ,
    PAYLOAD = SEQ + CAPACITY,
    PARKED = PAYLOAD + CAPACITY,
    STARVED,
    TAIL,
    KNOWN_FREE,
    LOST
};

static uint8_t lap(uint8_t position)
{
    return position & (uint8_t) ~(CAPACITY - 1);
}

static unsigned seq_of(uint8_t position)
{
    return SEQ + position % CAPACITY;
}

static unsigned payload_of(uint8_t position)
{
    return PAYLOAD + position % CAPACITY;
}

/* What a slot of a message holds: never 0, and different for every slot that is ever sent. */
static uint8_t content(unsigned producer, unsigned message, unsigned part)
{
    return (uint8_t)(1 + producer + 2 * part + 4 * message);
}

/* ---- producer ---- */

enum { R_MESSAGE, R_TAIL, R_I, R_STARVED, R_N };

enum {
    P_TAIL,
    P_KNOWN,
    P_FAR,
    P_NEAR,
    P_AGAIN,
    P_CLAIM,
    P_CLAIM_STORE,
    P_FILL,
    P_PUBLISH,
    P_LOOK_PARKED,
    P_TAKE_PARKED,
    P_WAKE,
    P_SET_STARVED,
    P_CHECK_LOST,
    P_SLEEP,
};

static void learn_free(struct model_state *s, uint8_t end)
{
    if (s->cell[KNOWN_FREE] < end) /* an atomic maximum */
        s->cell[KNOWN_FREE] = end;
}

static void next_message(struct model_thread *me)
{
    me->reg[R_MESSAGE]++;
    me->reg[R_TAIL] = me->reg[R_I] = me->reg[R_STARVED] = me->reg[R_N] = 0;
    me->pc = me->reg[R_MESSAGE] == N_MESSAGES ? MODEL_DONE : P_TAIL;
}

static bool publish(struct model *m, struct model_state *s, unsigned t, uint8_t start, uint8_t n,
                    uint8_t i)
{
    uint8_t k = m->mutant == RING_FIRST_SLOT_BEFORE_LAST ? i : (uint8_t)(n - 1 - i);
    bool ends = i == n - 1;
    enum model_order order = ends ? SEQ_CST : RELEASE;
    if (m->mutant == RING_PUBLISH_NOT_SEQ_CST && ends)
        order = RELEASE;
    if (m->mutant == RING_PUBLISH_RELAXED)
        order = PLAIN;
    uint8_t position = (uint8_t)(start + k);
    return model_store(m, s, t, seq_of(position), (uint8_t)(lap(position) + 1), order);
}

static bool fill(struct model *m, struct model_state *s, unsigned t, uint8_t start, uint8_t i)
{
    uint8_t position = (uint8_t)(start + i);
    return model_store(m, s, t, payload_of(position), content(t, s->thread[t].reg[R_MESSAGE], i),
                       PLAIN);
}

static bool producer_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    uint8_t n = lengths[t][me->reg[R_MESSAGE]];
    uint8_t start = me->reg[R_TAIL];
    uint8_t end = (uint8_t)(start + n), looked;
    bool swapped = m->mutant == RING_PUBLISH_BEFORE_FILL;

    switch (me->pc) {
    case P_TAIL:
        me->reg[R_TAIL] = s->cell[TAIL];
        me->pc = P_KNOWN;
        return true;
    case P_KNOWN:
        me->pc = s->cell[KNOWN_FREE] >= end ? P_CLAIM : P_FAR;
        return true;
    case P_FAR:
    case P_NEAR: /* P1 (and S1) */
        looked = me->pc == P_FAR ? (uint8_t)(end + CAPACITY / 2) : end;
        if (m->mutant == RING_LOOK_AT_FIRST_SLOT)
            looked = (uint8_t)(looked - n + 1);
        if (model_load(s, t, seq_of((uint8_t)(looked - 1))) == lap((uint8_t)(looked - 1))) {
            if (m->mutant != RING_LOOK_AT_FIRST_SLOT)
                learn_free(s, looked);
            me->pc = P_CLAIM;
        } else {
            me->pc = me->pc == P_FAR ? P_NEAR : P_AGAIN;
        }
        return true;
    case P_AGAIN:
        if (s->cell[TAIL] != start) {
            me->reg[R_TAIL] = s->cell[TAIL];
            me->pc = P_KNOWN;
        } else if (me->reg[R_STARVED]) {
            me->pc = P_CHECK_LOST;
        } else {
            me->pc = P_SET_STARVED;
        }
        return true;
    case P_CLAIM: /* relaxed: does not wait for the buffer */
        me->reg[R_STARVED] = 0;
        if (s->cell[TAIL] != start) {
            me->reg[R_TAIL] = s->cell[TAIL];
            me->pc = P_KNOWN;
        } else if (m->mutant == RING_CLAIM_NOT_ATOMIC) {
            me->pc = P_CLAIM_STORE;
        } else {
            s->cell[TAIL] = end;
            me->pc = swapped ? P_PUBLISH : P_FILL;
        }
        return true;
    case P_CLAIM_STORE:
        s->cell[TAIL] = end;
        me->pc = P_FILL;
        return true;
    case P_FILL:
        if (!fill(m, s, t, start, me->reg[R_I]))
            return false;
        if (++me->reg[R_I] == n) {
            me->reg[R_I] = 0;
            me->pc = swapped ? P_LOOK_PARKED : P_PUBLISH;
        }
        return true;
    case P_PUBLISH: /* P0 */
        if (!publish(m, s, t, start, n, me->reg[R_I]))
            return false;
        if (++me->reg[R_I] == n) {
            me->reg[R_I] = 0;
            me->pc = swapped ? P_FILL : P_LOOK_PARKED;
            if (m->mutant == RING_NO_WAKE)
                next_message(me);
        }
        return true;
    case P_LOOK_PARKED: /* P2 */
        if (model_load(s, t, PARKED))
            me->pc = P_TAKE_PARKED;
        else
            next_message(me);
        return true;
    case P_TAKE_PARKED:
        if (!model_can_rmw(s, t))
            return false;
        if (model_exchange(s, PARKED, 0))
            me->pc = P_WAKE;
        else
            next_message(me);
        return true;
    case P_WAKE:
        if (!model_can_rmw(s, t))
            return false;
        model_wake(s, PARKED, false);
        next_message(me);
        return true;
    case P_SET_STARVED: /* S0 */
        if (!model_can_rmw(s, t))
            return false;
        model_exchange(s, STARVED, 1);
        me->reg[R_STARVED] = 1;
        me->pc = m->mutant == RING_NO_LOOK_AFTER_STARVED ? P_CHECK_LOST : P_TAIL;
        return true;
    case P_CHECK_LOST:
        if (model_load(s, t, LOST))
            me->pc = MODEL_DONE;
        else
            me->pc = P_SLEEP;
        return true;
    case P_SLEEP:
        if (!model_can_rmw(s, t))
            return false;
        if (m->mutant == RING_LOST_NOT_IN_THE_PARK)
            model_sleep(s, t, STARVED, 1);
        else
            model_sleep_on_two(s, t, STARVED, 1, LOST, 0);
        me->reg[R_STARVED] = 0;
        /* Back in gn_ring_send's loop, which looks at `lost` before it tries again; here on the way
         * to the next sleep. */
        me->pc = P_TAIL;
        return true;
    }
    return false;
}

/* ---- consumer ---- */

enum { R_HEAD, R_HELD, R_FREED, R_EXPECTED, R_LEFT = R_EXPECTED + PRODUCERS, R_PART, R_FIRST };

enum {
    C_FREE,
    C_STARVED,
    C_STARVED_CLEAR,
    C_WAKE,
    C_SEQ,
    C_READ,
    C_INNER_SEQ,
    C_SET_PARKED,
    C_LOOK,
    C_CLEAR,
    C_SLEEP,
    C_WOKEN
};

static void take(struct model *m, struct model_thread *me, uint8_t value)
{
    uint8_t part = me->reg[R_PART];
    if (part == 0) {
        for (unsigned p = 0; p < PRODUCERS; p++) {
            uint8_t k = me->reg[R_EXPECTED + p];
            if (k < N_MESSAGES && value == content(p, k, 0)) {
                me->reg[R_FIRST] = (uint8_t)(p + 1);
                return;
            }
        }
        model_violation(m, "a message that was not published, was seen before, or is out of order");
        return;
    }
    unsigned p = me->reg[R_FIRST] - 1u;
    if (value != content(p, me->reg[R_EXPECTED + p], part))
        model_violation(m, "a payload that was not published");
}

static uint8_t length_in_hand(const struct model_thread *me)
{
    unsigned p = me->reg[R_FIRST] - 1u;
    return lengths[p][me->reg[R_EXPECTED + p]];
}

static void message_complete(struct model *m, struct model_thread *me)
{
    unsigned p = me->reg[R_FIRST] - 1u;
    uint8_t n = length_in_hand(me);
    me->reg[R_EXPECTED + p]++;
    me->reg[R_HEAD] = (uint8_t)(me->reg[R_HEAD] + n);
    me->reg[R_HELD] = m->mutant == RING_FREE_BEFORE_COPY ? 0 : n;
    me->reg[R_LEFT]--;
    me->reg[R_PART] = me->reg[R_FIRST] = 0;
    me->pc = C_FREE;
}

static bool consumer_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    uint8_t head = me->reg[R_HEAD], position, seq;

    switch (me->pc) {
    case C_FREE: /* C1; the slots before head that are held */
        if (me->reg[R_HELD] == 0) {
            me->pc = me->reg[R_LEFT] ? C_SEQ : MODEL_DONE;
            return true;
        }
        position = (uint8_t)(m->mutant == RING_FREE_LAST_SLOT_FIRST
                                 ? head - 1 - me->reg[R_FREED]
                                 : head - me->reg[R_HELD] + me->reg[R_FREED]);
        if (!model_store(m, s, t, seq_of(position), (uint8_t)(lap(position) + CAPACITY), RELEASE))
            return false;
        if (++me->reg[R_FREED] == me->reg[R_HELD]) {
            me->reg[R_HELD] = me->reg[R_FREED] = 0;
            me->pc = C_STARVED;
        }
        return true;
    case C_STARVED: /* C4 */
        if (m->mutant == RING_STARVED_PLAIN_LOAD) {
            me->pc = model_load(s, t, STARVED) ? C_STARVED_CLEAR : C_FREE;
            return true;
        }
        if (!model_can_rmw(s, t))
            return false;
        me->pc = model_exchange(s, STARVED, 0) ? C_WAKE : C_FREE;
        return true;
    case C_STARVED_CLEAR:
        if (!model_store(m, s, t, STARVED, 0, RELEASE))
            return false;
        me->pc = C_WAKE;
        return true;
    case C_WAKE:
        if (!model_can_rmw(s, t))
            return false;
        model_wake(s, STARVED, m->mutant != RING_WAKE_ONE_STARVED);
        me->pc = C_FREE;
        return true;
    case C_SEQ: /* C0 */
        seq = model_load(s, t, seq_of(head));
        if (seq == lap(head)) {
            me->pc = C_SET_PARKED;
        } else if (seq == lap(head) + 1) {
            me->pc = C_READ;
        } else {
            model_violation(m, "a first slot that faults");
        }
        return true;
    case C_READ:
        position = (uint8_t)(head + me->reg[R_PART]);
        if (m->mutant == RING_FREE_BEFORE_COPY && me->reg[R_FREED] == me->reg[R_PART]) {
            if (!model_store(m, s, t, seq_of(position), (uint8_t)(lap(position) + CAPACITY),
                             RELEASE))
                return false;
            me->reg[R_FREED]++;
            return true;
        }
        take(m, me, model_load(s, t, payload_of(position)));
        if (m->violation)
            return true;
        me->reg[R_PART]++;
        if (me->reg[R_PART] == length_in_hand(me)) {
            me->reg[R_FREED] = 0;
            message_complete(m, me);
        } else {
            me->pc = C_INNER_SEQ;
        }
        return true;
    case C_INNER_SEQ:
        position = (uint8_t)(head + me->reg[R_PART]);
        if (model_load(s, t, seq_of(position)) != lap(position) + 1)
            model_violation(m, "an inner slot that faults");
        me->pc = C_READ;
        return true;
    case C_SET_PARKED: /* C2 */
        if (!model_store(m, s, t, PARKED, 1,
                         m->mutant == RING_PARKED_NOT_SEQ_CST ? RELEASE : SEQ_CST))
            return false;
        me->pc = m->mutant == RING_NO_LOOK_AFTER_PARKED ? C_SLEEP : C_LOOK;
        return true;
    case C_LOOK: /* C3 */
        me->pc = model_load(s, t, seq_of(head)) != lap(head) ? C_CLEAR : C_SLEEP;
        return true;
    case C_SLEEP:
        if (!model_can_rmw(s, t))
            return false;
        model_sleep(s, t, PARKED, 1);
        me->pc = C_WOKEN;
        return true;
    case C_WOKEN:
        me->pc = model_load(s, t, seq_of(head)) != lap(head) ? C_CLEAR : C_SET_PARKED;
        return true;
    case C_CLEAR:
        if (!model_store(m, s, t, PARKED, 0, PLAIN))
            return false;
        me->pc = C_SEQ;
        return true;
    }
    return false;
}

/* ---- the two scenarios ---- */

static void init(struct model *m, struct model_state *s)
{
    for (unsigned i = 0; i < CAPACITY; i++)
        s->cell[SEQ + i] = 0;
    s->thread[CONSUMER].reg[R_LEFT] = PRODUCERS * N_MESSAGES;
}

static bool traffic_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == CONSUMER ? consumer_step(m, s, t) : producer_step(m, s, t);
}

void ring_model_traffic(struct model *m)
{
    m->name = "ring";
    m->n_threads = PRODUCERS + 1;
    m->init = init;
    m->step = traffic_step;
    m->at_end = NULL;
}

/* Declares the loss: store, then wake. It starts at any time; from then on the consumer does not
 * move any more. */
static bool declarer_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    if (me->pc == 0) {
        s->thread[CONSUMER].pc = MODEL_DONE;
        s->thread[CONSUMER].asleep = s->thread[CONSUMER].also_asleep = 0;
        me->pc = 1;
    } else if (me->pc == 1) {
        if (!model_store(m, s, t, LOST, 1, SEQ_CST))
            return false;
        me->pc = m->mutant == RING_LOST_WITHOUT_WAKE ? MODEL_DONE : 2;
    } else {
        model_wake(s, LOST, true);
        me->pc = MODEL_DONE;
    }
    return true;
}

static bool loss_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == DECLARER ? declarer_step(m, s, t) : traffic_step(m, s, t);
}

void ring_model_loss(struct model *m)
{
    ring_model_traffic(m);
    m->name = "ring, lost peer";
    m->n_threads = MODEL_THREADS;
    m->step = loss_step;
}
