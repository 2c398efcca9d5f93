/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TESTS_MODEL_H
#define GN_TESTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A small explicit-state checker: a protocol is written as step functions over shared cells, and
 * every interleaving of the threads' steps is visited, and, with store buffers, every moment at
 * which a delayed store may become visible.
 *
 * Store buffers: a plain store may be delayed past anything that comes after it but another store
 * to its cell; a release store becomes visible after all stores before it; a sequentially
 * consistent store and a read-modify-write wait until the thread's buffer is empty. A thread reads
 * its own delayed stores. Loads are not reordered.
 */
#define MODEL_THREADS 4
#define MODEL_CELLS   20
#define MODEL_REGS    8
#define MODEL_BUFFER  5
#define MODEL_DONE    255 /* a pc: the thread has ended */

enum model_order { PLAIN, RELEASE, SEQ_CST };

struct model_store {
    uint8_t cell, value, order;
};

struct model_thread {
    uint8_t pc;
    uint8_t asleep;      /* 1 + the cell it sleeps on; 0: awake */
    uint8_t also_asleep; /* a second such cell */
    uint8_t n_buffered;
    uint8_t reg[MODEL_REGS];
    struct model_store buffer[MODEL_BUFFER];
};

struct model_state {
    uint8_t cell[MODEL_CELLS];
    struct model_thread thread[MODEL_THREADS];
};

struct model {
    const char *name;
    unsigned n_threads;
    /*
     * Does the next step of thread t: one access to shared memory and whatever private work goes
     * with it. False when it cannot move now (the state is then untouched). A violated property is
     * told with model_violation.
     */
    bool (*step)(struct model *m, struct model_state *s, unsigned t);
    void (*init)(struct model *m, struct model_state *s); /* s is zeroed */
    void (*at_end)(struct model *m,
                   struct model_state *s); /* all threads done, all stores visible; may be NULL */
    bool buffers;
    int mutant; /* 0: the protocol as it is */
    /* results */
    const char *violation;
    uint64_t n_states;
};

/* Visits all states. NULL, or what went wrong first; "deadlock" when nobody can move and somebody
 * is not done. */
const char *model_check(struct model *m);

void model_violation(struct model *m, const char *what);

/* ---- what a step is made of; those that return bool do nothing and return false while the buffer
 * is not empty ---- */

uint8_t model_load(const struct model_state *s, unsigned t, unsigned cell);
/* False (and nothing done) when the store cannot be made now: full buffer, or SEQ_CST with a buffer
 * that is not empty. */
bool model_store(struct model *m, struct model_state *s, unsigned t, unsigned cell, uint8_t value,
                 enum model_order order);
bool model_can_rmw(const struct model_state *s, unsigned t);
/* The caller has asked model_can_rmw. */
uint8_t model_exchange(struct model_state *s, unsigned cell, uint8_t value);
/* FUTEX_WAIT, on one or two cells: sleeps if all have the expected values. The caller has asked
 * model_can_rmw. */
void model_sleep(struct model_state *s, unsigned t, unsigned cell, uint8_t expected);
void model_sleep_on_two(struct model_state *s, unsigned t, unsigned cell, uint8_t expected,
                        unsigned also, uint8_t also_expected);
/* FUTEX_WAKE of all, or of the first sleeper only. */
void model_wake(struct model_state *s, unsigned cell, bool all);

#endif
