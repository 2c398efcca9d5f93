/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_RING_MODEL_H
#define GN_TESTS_RING_MODEL_H

#include "model.h"

/* The slot ring of src/shm/slot_ring.c, step by step: two producers, one consumer, four slots. */
enum ring_mutant {
    RING_AS_IT_IS,
    RING_PARKED_NOT_SEQ_CST,     /* C2 a release store */
    RING_PUBLISH_NOT_SEQ_CST,    /* P0 a release store */
    RING_NO_LOOK_AFTER_PARKED,   /* no C3 */
    RING_PUBLISH_BEFORE_FILL,    /* P0 first */
    RING_PUBLISH_RELAXED,        /* the inner P0 does not wait for the fill */
    RING_FIRST_SLOT_BEFORE_LAST, /* P0 in the other order */
    RING_LOOK_AT_FIRST_SLOT,     /* P1 looks at the first slot of the run instead of the last */
    RING_FREE_LAST_SLOT_FIRST,   /* C1 in the other order */
    RING_FREE_BEFORE_COPY,       /* C1 before the payload is read */
    RING_STARVED_PLAIN_LOAD,     /* C4 a load and a store */
    RING_NO_LOOK_AFTER_STARVED,  /* no S1 */
    RING_WAKE_ONE_STARVED,       /* C4 wakes one of several */
    RING_CLAIM_NOT_ATOMIC,       /* the tail is loaded and stored */
    RING_NO_WAKE,                /* P2 is forgotten */
    RING_LOST_NOT_IN_THE_PARK,   /* `lost` is looked at before sleeping only */
    RING_LOST_WITHOUT_WAKE,      /* declaring does not wake */
    RING_N_MUTANTS
};

/* All messages arrive; checks loss, duplicates, order for each producer, payloads, deadlock. */
void ring_model_traffic(struct model *m);

/* The consumer dies at any moment and the loss is declared: every producer must end. */
void ring_model_loss(struct model *m);

#endif
