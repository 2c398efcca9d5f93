/* SPDX-License-Identifier: Apache-2.0 */
/* The handshakes of reply.c as step functions. The request itself travels through a cell that both
 * sides see at once. */
#include "wait_model.h"

#include <stddef.h>

#define N_CALLS 3u
#define PARKED  1u

enum { REQUEST, STATE, PAYLOAD };
enum { GUEST, WORKER };
enum { R_CALL, R_STATE };

static uint8_t answered(const struct model *m, uint8_t call)
{
    return m->mutant == REPLY_WITHOUT_GENERATION ? 2 : (uint8_t)(2 * call);
}

enum { G_CALL, G_LOOK, G_READ, G_PARK, G_SLEEP };

static bool guest_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    switch (me->pc) {
    case G_CALL:
        if (!model_store(m, s, t, REQUEST, (uint8_t)(me->reg[R_CALL] + 1), SEQ_CST))
            return false;
        me->reg[R_CALL]++;
        me->pc = G_LOOK;
        return true;
    case G_LOOK: /* R0 */
        me->reg[R_STATE] = model_load(s, t, STATE);
        if ((me->reg[R_STATE] & ~PARKED) == answered(m, me->reg[R_CALL]))
            me->pc = G_READ;
        else
            me->pc = me->reg[R_STATE] & PARKED ? G_SLEEP : G_PARK;
        return true;
    case G_READ:
        if (model_load(s, t, PAYLOAD) != me->reg[R_CALL])
            model_violation(m, "an answer that is not this call's");
        me->reg[R_STATE] = 0;
        me->pc = me->reg[R_CALL] == N_CALLS ? MODEL_DONE : G_CALL;
        return true;
    case G_PARK: /* R1 */
        if (m->mutant == REPLY_PARKED_STORED) {
            if (!model_store(m, s, t, STATE, me->reg[R_STATE] | PARKED, SEQ_CST))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            if (s->cell[STATE] != me->reg[R_STATE]) {
                me->pc = G_LOOK;
                return true;
            }
            s->cell[STATE] |= PARKED;
        }
        me->reg[R_STATE] |= PARKED;
        me->pc = G_SLEEP;
        return true;
    case G_SLEEP:
        if (!model_can_rmw(s, t))
            return false;
        model_sleep(s, t, STATE, me->reg[R_STATE]);
        me->reg[R_STATE] = 0;
        me->pc = G_LOOK;
        return true;
    }
    return false;
}

enum { W_RECEIVE, W_PAYLOAD, W_LOOK, W_STATE, W_WAKE, W_NEXT, W_LATE_PAYLOAD };

static bool worker_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    uint8_t done = answered(m, me->reg[R_CALL]), old;
    switch (me->pc) {
    case W_RECEIVE:
        if (model_load(s, t, REQUEST) != me->reg[R_CALL] + 1)
            return false;
        me->reg[R_CALL]++;
        me->pc = m->mutant == REPLY_PAYLOAD_AFTER_STATE ? W_STATE
                 : m->mutant == REPLY_STORED            ? W_LOOK
                                                        : W_PAYLOAD;
        return true;
    case W_PAYLOAD:
        if (!model_store(m, s, t, PAYLOAD, me->reg[R_CALL], PLAIN))
            return false;
        me->pc = W_STATE;
        return true;
    case W_LOOK:
        me->reg[R_STATE] = model_load(s, t, STATE);
        me->pc = W_PAYLOAD;
        return true;
    case W_STATE: /* W0 */
        if (m->mutant == REPLY_STORED || m->mutant == REPLY_PAYLOAD_UNORDERED) {
            old = m->mutant == REPLY_STORED ? me->reg[R_STATE] : model_load(s, t, STATE);
            if (!model_store(m, s, t, STATE, done, m->mutant == REPLY_STORED ? RELEASE : PLAIN))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            old = model_exchange(s, STATE, done);
        }
        me->reg[R_STATE] = 0;
        me->pc = old & PARKED && m->mutant != REPLY_NO_WAKE ? W_WAKE : W_NEXT;
        return true;
    case W_WAKE:
        if (!model_can_rmw(s, t))
            return false;
        model_wake(s, STATE, false);
        me->pc = W_NEXT;
        return true;
    case W_NEXT:
        if (m->mutant == REPLY_PAYLOAD_AFTER_STATE)
            me->pc = W_LATE_PAYLOAD;
        else
            me->pc = me->reg[R_CALL] == N_CALLS ? MODEL_DONE : W_RECEIVE;
        return true;
    case W_LATE_PAYLOAD:
        if (!model_store(m, s, t, PAYLOAD, me->reg[R_CALL], PLAIN))
            return false;
        me->pc = me->reg[R_CALL] == N_CALLS ? MODEL_DONE : W_RECEIVE;
        return true;
    }
    return false;
}

static void no_init(struct model *m, struct model_state *s)
{
}

static bool reply_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == GUEST ? guest_step(m, s, t) : worker_step(m, s, t);
}

void reply_model(struct model *m)
{
    m->name = "reply slot";
    m->n_threads = 2;
    m->init = no_init;
    m->step = reply_step;
    m->at_end = NULL;
}

/* ---- taking a slot when none is free ---- */

enum { TAKEN, STARVED, FREED, INSIDE };
enum { R_ROUND, R_FREED };
enum {
    T_TRY,
    T_STARVE,
    T_FREED,
    T_TRY_AGAIN,
    T_LATE_FREED,
    T_SLEEP,
    T_UNSTARVE,
    T_USE,
    T_PUT,
    T_LOOK,
    T_COUNT,
    T_WAKE
};

static bool take_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    uint8_t after_put =
        me->reg[R_ROUND] == 1 ? MODEL_DONE : T_TRY; /* each thread takes the slot twice */

    switch (me->pc) {
    case T_TRY:
    case T_TRY_AGAIN: /* T0 */
        if (!model_can_rmw(s, t))
            return false;
        if (model_exchange(s, TAKEN, 1) == 0)
            me->pc = me->pc == T_TRY ? T_USE : T_UNSTARVE;
        else if (me->pc == T_TRY)
            me->pc = T_STARVE;
        else
            me->pc = m->mutant == TAKE_COUNT_AFTER_LOOK ? T_LATE_FREED : T_SLEEP;
        return true;
    case T_STARVE:
        if (!model_can_rmw(s, t))
            return false;
        s->cell[STARVED]++;
        me->pc = m->mutant == TAKE_COUNT_AFTER_LOOK ? T_TRY_AGAIN : T_FREED;
        return true;
    case T_FREED:
    case T_LATE_FREED:
        me->reg[R_FREED] = model_load(s, t, FREED);
        me->pc = me->pc == T_FREED ? T_TRY_AGAIN : T_SLEEP;
        return true;
    case T_SLEEP:
        if (!model_can_rmw(s, t))
            return false;
        model_sleep(s, t, FREED, me->reg[R_FREED]);
        me->reg[R_FREED] = 0;
        me->pc = m->mutant == TAKE_COUNT_AFTER_LOOK ? T_TRY_AGAIN : T_FREED;
        return true;
    case T_UNSTARVE:
        s->cell[STARVED]--;
        me->reg[R_FREED] = 0;
        me->pc = T_USE;
        return true;
    case T_USE:
        if (s->cell[INSIDE]++)
            model_violation(m, "a slot that two threads have");
        me->pc = T_PUT;
        return true;
    case T_PUT: /* T1 */
        s->cell[INSIDE]--;
        if (!model_store(m, s, t, TAKEN, 0, m->mutant == TAKE_PUT_RELEASE ? RELEASE : SEQ_CST)) {
            s->cell[INSIDE]++;
            return false;
        }
        me->pc = T_LOOK;
        return true;
    case T_LOOK:
        if (model_load(s, t, STARVED)) {
            me->pc = m->mutant == TAKE_WITHOUT_COUNT ? T_WAKE : T_COUNT;
            return true;
        }
        me->reg[R_ROUND]++;
        me->pc = after_put;
        return true;
    case T_COUNT:
        if (!model_can_rmw(s, t))
            return false;
        s->cell[FREED]++;
        me->pc = T_WAKE;
        return true;
    case T_WAKE:
        if (!model_can_rmw(s, t))
            return false;
        model_wake(s, FREED, false);
        me->reg[R_ROUND]++;
        me->pc = after_put;
        return true;
    }
    return false;
}

void take_model(struct model *m)
{
    m->name = "taking a reply slot";
    m->n_threads = 3;
    m->init = no_init;
    m->step = take_step;
    m->at_end = NULL;
}
