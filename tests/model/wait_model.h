/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_WAIT_MODEL_H
#define GN_TESTS_WAIT_MODEL_H

#include "model.h"

/* The reply slot of src/shm/reply.c: a guest thread makes three calls through one slot, a worker
 * answers. */
enum reply_mutant {
    REPLY_AS_IT_IS,
    REPLY_STORED,              /* W0 looks at the flag and then stores, instead of one exchange */
    REPLY_PAYLOAD_AFTER_STATE, /* the payload is written after W0 */
    REPLY_PAYLOAD_UNORDERED,   /* W0 does not wait for the payload */
    REPLY_PARKED_STORED,       /* R1 a store, instead of a compare-and-exchange */
    REPLY_WITHOUT_GENERATION,  /* every answer sets the same state */
    REPLY_NO_WAKE,             /* W0 forgets the sleeper */
    REPLY_N_MUTANTS
};
void reply_model(struct model *m);

/* Taking a reply slot when none is free (two threads, one slot): T0, T1 and the starved. */
enum take_mutant {
    TAKE_AS_IT_IS,
    TAKE_PUT_RELEASE,      /* T1 a release store: a starved thread can be missed */
    TAKE_WITHOUT_COUNT,    /* n_freed is not changed by a put */
    TAKE_COUNT_AFTER_LOOK, /* n_freed is read after the look at the slots */
    TAKE_N_MUTANTS
};
void take_model(struct model *m);

/* An event of src/shm/event_table.c: a worker posts and ends it, two threads wait for it. */
enum event_mutant {
    EVENT_AS_IT_IS,
    EVENT_POST_STORES,      /* a phase is stored and loses the parked bit */
    EVENT_ERROR_AFTER_WORD, /* the error is written after E0 */
    EVENT_ERROR_UNORDERED,  /* E0 does not wait for the error */
    EVENT_WORD_STORED,      /* E0 a look and a store, instead of one exchange */
    EVENT_PARKED_STORED,    /* E2 a store, instead of a compare-and-exchange */
    EVENT_WAKE_ONE,         /* of several sleepers one is woken */
    EVENT_N_MUTANTS
};
void event_model(struct model *m);

/* A thread arms an event and sends while another one declares the loss and fails all events: A0 and
 * F0. */
enum fail_mutant {
    FAIL_AS_IT_IS,
    FAIL_ARM_RELEASE,  /* A0 a release store */
    FAIL_LOST_RELEASE, /* `lost` declared by a release store */
    FAIL_SWEEP_BEFORE, /* the events are failed before the loss is declared */
    FAIL_N_MUTANTS
};
void fail_model(struct model *m);

/* A grant of src/shm/grant.c: a worker rests on it and takes it up again, gantryd presses. */
enum grant_mutant {
    GRANT_AS_IT_IS,
    GRANT_REST_STORED,      /* G0 a release store: the look at the press may come before it */
    GRANT_LOOK_BEFORE_REST, /* G1 before G0 */
    GRANT_BACK_STORED,      /* G2 a store, instead of a compare-and-exchange */
    GRANT_PRESS_AFTER_TRY,  /* G4 before G3 */
    GRANT_PRESS_LOOKS,      /* G4 a look and a store */
    GRANT_N_MUTANTS
};
void grant_model(struct model *m);

#endif
