/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_MIGRATE_TRANSACTION_H
#define GN_DAEMON_MIGRATE_TRANSACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The life of a migration: one table of kinds, states and inputs gives the next state, the actions
 * to carry out and the deadline. Pure: no I/O, no allocation, time is an argument. tests/model
 * explores the table together with workers and programs that die at any moment.
 *
 * In the names, the source is the worker that has the vGPU, the destination is the worker that is
 * to take it over.
 */
enum gn_transaction_kind {
    GN_TX_LOCAL,      /* to a new worker of this gantryd */
    GN_TX_IN_PROCESS, /* into its program */
    GN_TX_OUTBOUND,   /* to another gantryd: the program decides */
    GN_TX_INBOUND,    /* from another gantryd: the program decides */
    GN_TX_SNAPSHOT,   /* into a file; the source goes on */
    GN_TX_STOP,       /* into a file; the program then waits. Decided when the program is told */
    GN_TX_STOP_TCP,   /* the same over tcp. Decided by the program's answer */
    GN_TX_RESTORE,    /* out of a file; there is no source */
    GN_TX_N_KINDS
};

enum gn_transaction_state {
    GN_TX_ANNOUNCED,     /* INBOUND: a ticket is given out, and not shown yet */
    GN_TX_BOOTING,       /* the destination starts its driver */
    GN_TX_PRECOPY,       /* the source saves (INBOUND: the destination loads); the program runs */
    GN_TX_STOPPING,      /* the source's gate is closed */
    GN_TX_LOADED,        /* the destination has everything; the source's SAVED is to come */
    GN_TX_DEST_FAILED,   /* the destination has failed, which the source is about to notice */
    GN_TX_SOURCE_FAILED, /* the source's stream broke; the destination's reason is to come */
    GN_TX_SAVED,         /* the source has written everything and waits, or there is a file */
    GN_TX_COMMITTING,    /* the two workers are being exchanged */
    GN_TX_NOTIFIED,      /* STOP_TCP: the program was told that it is in a file */
    GN_TX_STOPPED,       /* STOP: decided; the source ends and the program begins to wait */
    GN_TX_COMMITTED,     /* over: the destination, or the file, has the vGPU */
    GN_TX_COPIED,        /* over: the file is a copy, and the source goes on */
    GN_TX_ABORTED,       /* over: the source goes on, or the program waits on */
    GN_TX_ENDED,         /* over: the program is gone */
    GN_TX_N_STATES
};

enum gn_transaction_input {
    GN_TX_ON_CLAIM,        /* the program has shown its ticket */
    GN_TX_ON_UP,           /* the destination can load */
    GN_TX_ON_NO_DRIVER,    /* the destination cannot have a vGPU */
    GN_TX_ON_STOPS,        /* the source closes its gate */
    GN_TX_ON_SAVED,        /* the source has written everything, and waits */
    GN_TX_ON_SAVE_FAILED,  /* the source could not, and goes on */
    GN_TX_ON_SAVE_BROKEN,  /* the same, because the destination does not read any more */
    GN_TX_ON_LOADED,       /* the destination has everything, and waits */
    GN_TX_ON_LOAD_FAILED,  /* the destination gives up (OUTBOUND: the program says so) */
    GN_TX_ON_SOURCE_DIED,  /* */
    GN_TX_ON_DEST_DIED,    /* */
    GN_TX_ON_GOES_ON,      /* the program goes on at the destination */
    GN_TX_ON_NOTIFIED,     /* the file is safe, and the program was told that it is in it */
    GN_TX_ON_WAITS,        /* the program waits for its vGPU */
    GN_TX_ON_SETTLED,      /* the source has ended, and the program waits */
    GN_TX_ON_DONE,         /* the action is carried out */
    GN_TX_ON_FAILED,       /* the action could not be carried out, or an operator cancels it */
    GN_TX_ON_ASKER_GONE,   /* nobody waits for the answer */
    GN_TX_ON_LINK_BROKEN,  /* the connection of a program over tcp broke; it may come back */
    GN_TX_ON_LINK_BACK,    /* it has come back */
    GN_TX_ON_PROGRAM_GONE, /* */
    GN_TX_ON_DEADLINE,     /* or a process that is needed has been stopped for too long */
    GN_TX_N_INPUTS
};

/* Actions, as bits. The answers come behind all that touches the source's record: an answer that
 * cannot be written ends its connection, and with it maybe that record. */
enum {
    GN_TX_DO_SAVE = 1 << 0,    /* ask the source to save */
    GN_TX_DO_FETCH = 1 << 1,   /* ask the program to hand its session to the destination */
    GN_TX_DO_OFFER = 1 << 2,   /* tell the program that it may go on at the destination */
    GN_TX_DO_ADVISE = 1 << 3,  /* tell the asker that the program has not decided yet */
    GN_TX_DO_FLUSH = 1 << 4,   /* ask the asker to bring the file to the disk */
    GN_TX_DO_COMMIT = 1 << 5,  /* exchange the workers, let the destination go on: DONE or FAILED */
    GN_TX_DO_PARK = 1 << 6,    /* the program waits from now on; end the source */
    GN_TX_DO_SETTLE = 1 << 7,  /* SETTLED, if the source has ended and the program waits */
    GN_TX_DO_CLAIMED = 1 << 8, /* tell the program that the destination is up */
    GN_TX_DO_READY = 1 << 9,   /* tell the program that the destination has loaded */
    GN_TX_DO_GO = 1 << 10,     /* let the destination go on */
    GN_TX_DO_RESUME = 1 << 11, /* let the source go on; the vGPU is lost if the source is dead */
    GN_TX_DO_STAY = 1 << 12,   /* tell the program that it stays where it was */
    GN_TX_DO_RECALL = 1 << 13, /* tell the program that it is not in a file */
    GN_TX_DO_REPORT = 1 << 14, /* answer the asker: it has succeeded */
    GN_TX_DO_EXCUSE = 1 << 15, /* answer the asker: it has failed */
    GN_TX_DO_RELEASE = 1 << 16, /* end the source, which has nothing of the program's any more */
    GN_TX_DO_DISMISS = 1 << 17, /* end the worker that is in the destination's record */
};

enum gn_transaction_limit {
    GN_TX_AS_BEFORE,
    GN_TX_TICKET,
    GN_TX_BOOT,
    GN_TX_CLAIM,
    GN_TX_COPY, /* everything ahead of the stop, and the stop */
    GN_TX_STOP_LIMIT,
    GN_TX_LEAVE,
    GN_TX_FILE, /* to write or to read a file; the asker may give up earlier */
    GN_TX_FLUSH,
    GN_TX_NOTIFY,
    GN_TX_SETTLE,
    GN_TX_DECIDE,
    GN_TX_NEVER,
    GN_TX_N_LIMITS
};

struct gn_transaction_row {
    uint32_t kinds, states, inputs; /* sets, as bits; each triple is in one row at most */
    int next;                       /* a state, or GN_TX_SAME */
    uint32_t actions;
    enum gn_transaction_limit limit;
};
enum { GN_TX_SAME = -1 };

extern const struct gn_transaction_row gn_transaction_rows[];
extern const size_t gn_transaction_n_rows;

struct gn_transaction {
    enum gn_transaction_kind kind;
    enum gn_transaction_state state;
    uint64_t until_ns; /* UINT64_MAX: no deadline */
    uint64_t drain_ns; /* how long the stop may wait for the device */
    uint64_t ahead_ns; /* how long the rounds ahead of the stop may take */
};

/* A transaction at its beginning. An INBOUND one is ANNOUNCED, one into a file is at PRECOPY, as
 * its source is asked at once; all others are BOOTING. */
void gn_transaction_begin(struct gn_transaction *t, enum gn_transaction_kind kind,
                          uint64_t drain_ns, uint64_t now_ns);
/* Makes the step of this input, and returns true with the actions, which are to be carried out in
 * the order of their bits. False: the input is out of place, and nothing has changed. */
bool gn_transaction_step(struct gn_transaction *t, enum gn_transaction_input input, uint64_t now_ns,
                         uint32_t *ret_actions);
static inline bool gn_transaction_is_over(enum gn_transaction_state state)
{
    return state >= GN_TX_COMMITTED;
}

/* All that the source had is saved: its end is not the vGPU's. */
bool gn_transaction_has_all(const struct gn_transaction *t);

#endif
