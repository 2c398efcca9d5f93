/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_TEST_TRANSACTION_WORLD_H
#define GN_TEST_TRANSACTION_WORLD_H

#include "daemon/migrate/transaction.h"

/*
 * Workers, a program and an asker around the table of src/daemon/migrate/transaction.c. Each may
 * fail or die at any moment, and send messages that arrive late.
 *
 * Assumptions: the messages of one process arrive in their order; a program decides for the
 * destination only when it was offered to go and the destination has everything; and gantryd reads
 * that word before the ten minutes are over that it waits for it.
 */

#define K(kind)  (1u << GN_TX_##kind)
#define HERE     (K(LOCAL) | K(IN_PROCESS))
#define MOVES    (HERE | K(OUTBOUND))
#define STOPS    (K(STOP) | K(STOP_TCP))
#define SAVES    (MOVES | STOPS | K(SNAPSHOT))
#define TWO      (HERE | K(RESTORE))
#define N_QUEUED 3

struct cell {
    uint8_t there, next;
    uint32_t actions;
    uint8_t limit;
};
typedef struct cell table[GN_TX_N_STATES][GN_TX_N_INPUTS];

enum source { NO_SOURCE, RUNS, SAVES_NOW, CLOSED, PAUSED, SOURCE_ENDS, SOURCE_DEAD, SOURCE_GONE };
enum dest { NO_DEST, BOOTS, UP, LOADS, HAS_ALL, DEST_FAILS, DEST_RUNS, DEST_DEAD, DEST_GONE };

struct queue {
    uint8_t n, inputs[N_QUEUED];
};

struct world {
    uint8_t state, source, dest;
    struct queue from_source, from_dest, from_program;
    uint8_t limited;                  /* there is a deadline */
    uint8_t source_died, dest_died;   /* by themselves */
    uint8_t asker, answered;          /* is there; has its answer */
    uint8_t program, there, offered;  /* lives; has decided for the destination; may */
    uint8_t stays, told_stay, link;   /* has said that it stays; was told so; is connected */
    uint8_t in_file, parked, waits;   /* was told that it is in a file; for good; has said so */
    uint8_t flush, commit, exchanged; /* asked to; asked to; done */
    uint8_t asked, saved;             /* the source was; and has, by its word */
    uint8_t back;                     /* the program has come back: it has not gone */
    uint8_t link_broke;               /* once */
    uint8_t session;                  /* gantryd has the program's end of it */
    uint8_t lied;                     /* the destination has not loaded everything */
    uint8_t fault;                    /* anything has gone wrong */
};

enum event {
    HEAR_SOURCE,
    HEAR_DEST,
    HEAR_PROGRAM,
    SOURCE_STOPS,
    SOURCE_SAVED,
    SOURCE_FAILS,
    SOURCE_STREAM_BREAKS,
    SOURCE_DIES,
    SOURCE_ENDED,
    SOURCE_SEEN_DEAD,
    DEST_UP,
    DEST_HAS_NO_DRIVER,
    DEST_LOADED,
    DEST_LIES,
    DEST_CANNOT_LOAD,
    DEST_DIES,
    DEST_SEEN_DEAD,
    CLAIMS,
    SAVE_UNSENT,
    CALLED_OFF,
    FILE_SAFE,
    FILE_NOT_SAFE,
    COMMIT_DONE,
    COMMIT_FAILS,
    PROGRAM_GOES,
    PROGRAM_STAYS,
    PROGRAM_WAITS,
    PROGRAM_ENDS,
    LINK_BREAKS,
    LINK_RETURNS,
    ASKER_ENDS,
    TIME_OUT,
    N_EVENTS
};

/* The exploration of one kind with one table. */
extern struct exploration {
    enum gn_transaction_kind kind;
    struct cell (*table)[GN_TX_N_INPUTS];
    const char *violation; /* the first; NULL: none */
    bool reached[GN_TX_N_STATES][GN_TX_N_INPUTS];
    bool succeeded;
} now;

static inline bool is_kind(uint32_t kinds)
{
    return kinds >> now.kind & 1;
}

void violate(const char *what);
/* Changes the world by the event. False: it cannot happen in this world. */
bool happens(struct world *w, enum event e);
/* Tests the invariants. */
void judge(const struct world *w);

#endif
