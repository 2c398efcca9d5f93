/* SPDX-License-Identifier: Apache-2.0 */
/* The handshakes of event_table.c as step functions. */
#include "wait_model.h"

#include <stddef.h>

#define PARKED 8u
#define ERROR  5u

enum { WORD, ERR, LOST };
enum { R_WORD, R_PHASE };

/* ---- a worker and two waiters ---- */

enum { E_POST, E_ERROR, E_LOOK, E_END, E_WAKE, E_LATE_ERROR };

static bool post_step(struct model *m, struct model_state *s, unsigned t)
{
    static const uint8_t bits[] = {3, 1}; /* submitted, running */
    struct model_thread *me = &s->thread[t];
    uint8_t old;
    switch (me->pc) {
    case E_POST:
        if (m->mutant == EVENT_POST_STORES) {
            if (!model_store(m, s, t, WORD, bits[me->reg[R_PHASE]], RELEASE))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            s->cell[WORD] &= bits[me->reg[R_PHASE]] | PARKED;
        }
        if (++me->reg[R_PHASE] == 2)
            me->pc = m->mutant == EVENT_WORD_STORED        ? E_LOOK
                     : m->mutant == EVENT_ERROR_AFTER_WORD ? E_END
                                                           : E_ERROR;
        return true;
    case E_LOOK:
        me->reg[R_WORD] = model_load(s, t, WORD);
        me->pc = E_ERROR;
        return true;
    case E_ERROR:
        if (!model_store(m, s, t, ERR, ERROR, PLAIN))
            return false;
        me->pc = E_END;
        return true;
    case E_END: /* E0 */
        if (m->mutant == EVENT_WORD_STORED || m->mutant == EVENT_ERROR_UNORDERED) {
            old = m->mutant == EVENT_WORD_STORED ? me->reg[R_WORD] : model_load(s, t, WORD);
            if (!model_store(m, s, t, WORD, 0, m->mutant == EVENT_WORD_STORED ? RELEASE : PLAIN))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            old = model_exchange(s, WORD, 0);
        }
        me->pc = old & PARKED                          ? E_WAKE
                 : m->mutant == EVENT_ERROR_AFTER_WORD ? E_LATE_ERROR
                                                       : MODEL_DONE;
        return true;
    case E_WAKE:
        if (!model_can_rmw(s, t))
            return false;
        model_wake(s, WORD, m->mutant != EVENT_WAKE_ONE);
        me->pc = m->mutant == EVENT_ERROR_AFTER_WORD ? E_LATE_ERROR : MODEL_DONE;
        return true;
    case E_LATE_ERROR:
        if (!model_store(m, s, t, ERR, ERROR, PLAIN))
            return false;
        me->pc = MODEL_DONE;
        return true;
    }
    return false;
}

enum { V_LOOK, V_READ, V_PARK, V_SLEEP };

static bool wait_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    switch (me->pc) {
    case V_LOOK: /* E1 */
        me->reg[R_WORD] = model_load(s, t, WORD);
        if ((me->reg[R_WORD] & 7) == 0)
            me->pc = V_READ;
        else
            me->pc = me->reg[R_WORD] & PARKED ? V_SLEEP : V_PARK;
        return true;
    case V_READ:
        if (model_load(s, t, ERR) != ERROR)
            model_violation(m, "an end without its error");
        me->pc = MODEL_DONE;
        return true;
    case V_PARK: /* E2 */
        if (m->mutant == EVENT_PARKED_STORED) {
            if (!model_store(m, s, t, WORD, me->reg[R_WORD] | PARKED, SEQ_CST))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            if (s->cell[WORD] != me->reg[R_WORD]) {
                me->pc = V_LOOK;
                return true;
            }
            s->cell[WORD] |= PARKED;
        }
        me->reg[R_WORD] |= PARKED;
        me->pc = V_SLEEP;
        return true;
    case V_SLEEP:
        if (!model_can_rmw(s, t))
            return false;
        model_sleep(s, t, WORD, me->reg[R_WORD]);
        me->reg[R_WORD] = 0;
        me->pc = V_LOOK;
        return true;
    }
    return false;
}

static bool event_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == 0 ? post_step(m, s, t) : wait_step(m, s, t);
}

static void armed(struct model *m, struct model_state *s)
{
    s->cell[WORD] = 7;
}

static void ended(struct model *m, struct model_state *s)
{
    if ((s->cell[WORD] & 7) != 0)
        model_violation(m, "an event that never ends");
}

void event_model(struct model *m)
{
    m->name = "event";
    m->n_threads = 3;
    m->init = armed;
    m->step = event_step;
    m->at_end = ended;
}

/* ---- arming against failing all ---- */

enum { A_ARM, A_LOOK_LOST, A_END };
enum { F_DECLARE, F_LOOK, F_END };

static bool arm_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    switch (me->pc) {
    case A_ARM: /* A0 */
        if (!model_store(m, s, t, WORD, 7, m->mutant == FAIL_ARM_RELEASE ? RELEASE : SEQ_CST))
            return false;
        me->pc = A_LOOK_LOST;
        return true;
    case A_LOOK_LOST: /* in gn_ring_send; the worker is dead, so what is sent is never answered */
        me->pc = model_load(s, t, LOST) ? A_END : MODEL_DONE;
        return true;
    case A_END:
        if (!model_can_rmw(s, t))
            return false;
        model_exchange(s, WORD, 0);
        me->pc = MODEL_DONE;
        return true;
    }
    return false;
}

static bool sweep_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    bool early = m->mutant == FAIL_SWEEP_BEFORE;
    switch (me->pc) {
    case F_DECLARE:
        if (early && me->reg[0] == 0) {
            me->reg[0] = 1;
            me->pc = F_LOOK;
            return true;
        }
        if (!model_store(m, s, t, LOST, 1, m->mutant == FAIL_LOST_RELEASE ? RELEASE : SEQ_CST))
            return false;
        me->pc = early ? MODEL_DONE : F_LOOK;
        return true;
    case F_LOOK: /* F0 */
        if (model_load(s, t, WORD))
            me->pc = F_END;
        else
            me->pc = early ? F_DECLARE : MODEL_DONE;
        return true;
    case F_END:
        if (!model_can_rmw(s, t))
            return false;
        model_exchange(s, WORD, 0);
        me->pc = early ? F_DECLARE : MODEL_DONE;
        return true;
    }
    return false;
}

static bool fail_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == 0 ? arm_step(m, s, t) : sweep_step(m, s, t);
}

static void not_armed(struct model *m, struct model_state *s)
{
}

void fail_model(struct model *m)
{
    m->name = "failing all events";
    m->n_threads = 2;
    m->init = not_armed;
    m->step = fail_step;
    m->at_end = ended;
}
