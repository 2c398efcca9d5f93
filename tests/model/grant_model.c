/* SPDX-License-Identifier: Apache-2.0 */
/* A grant of src/shm/grant.c that is rested on and taken up again while gantryd presses, as step
 * functions. */
#include "wait_model.h"

#define ROUNDS 2

enum { NONE, WANTED, HELD, RESTING };
enum { STATE, PRESSED, TOLD, OTHER }; /* OTHER: somebody else has the device */
enum { R_ROUND, R_SEEN };

static bool turn(struct model_state *s, uint8_t from, uint8_t to)
{
    if (s->cell[STATE] != from)
        return false;
    s->cell[STATE] = to;
    return true;
}

enum { W_WORK, W_LOOK_EARLY, W_REST, W_LOOK, W_BACK, W_TELL, W_TAKE };

static bool worker_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    const bool early = m->mutant == GRANT_LOOK_BEFORE_REST;
    switch (me->pc) {
    case W_WORK:
        if (model_load(s, t, OTHER))
            model_violation(m, "two have the device");
        me->pc = early ? W_LOOK_EARLY : W_REST;
        return true;
    case W_LOOK_EARLY:
        me->reg[R_SEEN] = model_load(s, t, PRESSED);
        me->pc = W_REST;
        return true;
    case W_REST: /* G0 */
        if (m->mutant == GRANT_REST_STORED) {
            if (!model_store(m, s, t, STATE, RESTING, RELEASE))
                return false;
        } else {
            if (!model_can_rmw(s, t))
                return false;
            if (!turn(s, HELD, RESTING))
                model_violation(m, "what was held is gone");
        }
        if (early)
            me->pc = me->reg[R_SEEN] ? W_BACK : W_TAKE;
        else
            me->pc = W_LOOK;
        return true;
    case W_LOOK: /* G1 */
        me->pc = model_load(s, t, PRESSED) ? W_BACK : W_TAKE;
        return true;
    case W_BACK: /* G2 */
        if (m->mutant == GRANT_BACK_STORED) {
            if (!model_store(m, s, t, STATE, NONE, SEQ_CST))
                return false;
            me->pc = W_TELL;
            return true;
        }
        if (!model_can_rmw(s, t))
            return false;
        me->pc = turn(s, RESTING, NONE) ? W_TELL : MODEL_DONE;
        return true;
    case W_TELL:
        if (!model_store(m, s, t, TOLD, 1, SEQ_CST))
            return false;
        me->pc = MODEL_DONE;
        return true;
    case W_TAKE:
        if (++me->reg[R_ROUND] == ROUNDS) {
            me->pc = MODEL_DONE;
            return true;
        }
        if (!model_can_rmw(s, t)) {
            me->reg[R_ROUND]--;
            return false;
        }
        me->pc = turn(s, RESTING, HELD) ? W_WORK : MODEL_DONE;
        return true;
    }
    return false;
}

enum { P_PRESS, P_TRY, P_TAKE_IT, P_WAIT, P_OTHER };

static bool gantryd_step(struct model *m, struct model_state *s, unsigned t)
{
    struct model_thread *me = &s->thread[t];
    const bool late = m->mutant == GRANT_PRESS_AFTER_TRY;
    switch (me->pc) {
    case P_PRESS: /* G3 */
        if (late && me->reg[R_ROUND] == 0) {
            me->reg[R_ROUND] = 1;
            me->pc = P_TRY;
            return true;
        }
        if (!model_store(m, s, t, PRESSED, 1, SEQ_CST))
            return false;
        me->pc = late ? P_WAIT : P_TRY;
        return true;
    case P_TRY: /* G4 */
        if (m->mutant == GRANT_PRESS_LOOKS) {
            me->pc = model_load(s, t, STATE) == RESTING ? P_TAKE_IT : P_WAIT;
            return true;
        }
        if (!model_can_rmw(s, t))
            return false;
        me->reg[R_SEEN] = turn(s, RESTING, NONE);
        me->pc = me->reg[R_SEEN] ? P_OTHER : late ? P_PRESS : P_WAIT;
        return true;
    case P_TAKE_IT:
        if (!model_store(m, s, t, STATE, NONE, SEQ_CST))
            return false;
        me->reg[R_SEEN] = 1;
        me->pc = P_OTHER;
        return true;
    case P_WAIT: /* asleep until the worker tells */
        if (!model_load(s, t, TOLD))
            return false;
        me->pc = P_OTHER;
        return true;
    case P_OTHER:
        if (!model_store(m, s, t, OTHER, 1, SEQ_CST))
            return false;
        me->pc = MODEL_DONE;
        return true;
    }
    return false;
}

static bool grant_step(struct model *m, struct model_state *s, unsigned t)
{
    return t == 0 ? worker_step(m, s, t) : gantryd_step(m, s, t);
}

static void held(struct model *m, struct model_state *s)
{
    s->cell[STATE] = HELD;
}

static void back_once(struct model *m, struct model_state *s)
{
    if (s->thread[1].reg[R_SEEN] && s->cell[TOLD])
        model_violation(m, "it came back twice");
}

void grant_model(struct model *m)
{
    m->name = "grant";
    m->n_threads = 2;
    m->init = held;
    m->step = grant_step;
    m->at_end = back_once;
}
