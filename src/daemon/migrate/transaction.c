/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a migration's states (transaction.h). migration.c and inbound.c feed it with the
 * acts and ends of workers, programs and askers, on gantryd's thread, and carry out its actions.
 * This file does no I/O and knows nothing of records and connections.
 */
#include "daemon/migrate/transaction.h"

#define K(kind)  (1u << GN_TX_##kind)
#define S(state) (1u << GN_TX_##state)
#define I(input) (1u << GN_TX_ON_##input)
#define DO(what) ((uint32_t)GN_TX_DO_##what)

/* Kinds */
#define HERE  (K(LOCAL) | K(IN_PROCESS)) /* both workers are this gantryd's */
#define MOVES (HERE | K(OUTBOUND))
#define STOPS (K(STOP) | K(STOP_TCP))
#define FILES (K(SNAPSHOT) | STOPS)
#define SAVES (MOVES | FILES)      /* with a source that saves */
#define TWO   (HERE | K(RESTORE))  /* with a destination of this gantryd's */
#define ASKED (SAVES | K(RESTORE)) /* with an asker that waits for the end */
/* Besides OUTBOUND, with a program that may be attached over tcp. */
#define TCP (K(LOCAL) | K(SNAPSHOT) | K(STOP_TCP) | K(RESTORE))

/* States in which the source has not written everything, and goes on by itself. */
#define SAVING (S(PRECOPY) | S(STOPPING) | S(LOADED) | S(DEST_FAILED) | S(SOURCE_FAILED))
#define EARLY  (S(BOOTING) | SAVING)

/* Actions of an abort. The source of a SAVED one has to be told to go on. */
#define ABORT  (DO(EXCUSE) | DO(STAY) | DO(DISMISS))
#define RESUME (ABORT | DO(RESUME))
#define GONE   (DO(EXCUSE) | DO(DISMISS))

const struct gn_transaction_row gn_transaction_rows[] = {
    /* From another gantryd. */
    {K(INBOUND), S(ANNOUNCED), I(CLAIM), GN_TX_BOOTING, 0, GN_TX_NEVER},
    {K(INBOUND), S(ANNOUNCED), I(ASKER_GONE) | I(DEADLINE), GN_TX_ABORTED, 0, 0},
    {K(INBOUND), S(BOOTING), I(UP), GN_TX_PRECOPY, DO(CLAIMED), 0},
    {K(INBOUND), S(PRECOPY), I(LOADED), GN_TX_LOADED, DO(READY), GN_TX_DECIDE},
    {K(INBOUND), S(PRECOPY), I(LOAD_FAILED), GN_TX_ABORTED, DO(STAY), 0},
    {K(INBOUND), S(BOOTING) | S(PRECOPY), I(FAILED), GN_TX_ABORTED, DO(STAY), 0},
    {K(INBOUND), S(BOOTING) | S(PRECOPY) | S(LOADED), I(DEST_DIED) | I(DEADLINE), GN_TX_ABORTED,
     DO(STAY), 0},
    {K(INBOUND), S(LOADED), I(GOES_ON), GN_TX_COMMITTED, DO(GO), 0},
    {K(INBOUND), S(BOOTING) | S(PRECOPY) | S(LOADED), I(PROGRAM_GONE), GN_TX_ENDED, 0, 0},

    /* The destination is up. */
    {MOVES, S(BOOTING), I(UP), GN_TX_PRECOPY, DO(SAVE), GN_TX_COPY},
    {K(RESTORE), S(BOOTING), I(UP), GN_TX_SAVED, DO(FETCH), 0},
    {K(LOCAL) | K(RESTORE), S(BOOTING), I(NO_DRIVER), GN_TX_ABORTED, ABORT, 0},
    {K(IN_PROCESS), EARLY & ~(S(LOADED) | S(DEST_FAILED)), I(NO_DRIVER), GN_TX_ABORTED, ABORT, 0},
    {K(IN_PROCESS), S(SAVED), I(NO_DRIVER), GN_TX_ABORTED, RESUME, 0},

    /* The source saves. */
    {MOVES, S(PRECOPY), I(STOPS), GN_TX_STOPPING, 0, GN_TX_STOP_LIMIT},
    {FILES, S(PRECOPY), I(STOPS), GN_TX_STOPPING, 0, 0},
    {MOVES, S(LOADED) | S(DEST_FAILED), I(STOPS), GN_TX_SAME, 0, 0},
    {HERE, S(PRECOPY) | S(STOPPING), I(SAVED), GN_TX_SAVED, 0, 0},
    {HERE, S(LOADED), I(SAVED), GN_TX_COMMITTING, DO(COMMIT), 0},
    {K(OUTBOUND), S(PRECOPY) | S(STOPPING), I(SAVED), GN_TX_SAVED, DO(OFFER), GN_TX_LEAVE},
    {K(SNAPSHOT), S(PRECOPY) | S(STOPPING), I(SAVED), GN_TX_COPIED, DO(RESUME) | DO(REPORT), 0},
    {STOPS, S(PRECOPY) | S(STOPPING), I(SAVED), GN_TX_SAVED, DO(FLUSH), GN_TX_FLUSH},
    {MOVES, S(DEST_FAILED), I(SAVED), GN_TX_ABORTED, RESUME, 0},
    {FILES, S(PRECOPY) | S(STOPPING), I(SAVE_FAILED) | I(SAVE_BROKEN), GN_TX_ABORTED, ABORT, 0},
    {MOVES, S(PRECOPY) | S(STOPPING), I(SAVE_FAILED), GN_TX_ABORTED, ABORT, 0},
    {MOVES, S(PRECOPY) | S(STOPPING), I(SAVE_BROKEN), GN_TX_SOURCE_FAILED, 0, 0},
    {MOVES, S(LOADED) | S(DEST_FAILED), I(SAVE_FAILED) | I(SAVE_BROKEN), GN_TX_ABORTED, ABORT, 0},

    /* The destination loads. */
    {HERE, S(PRECOPY) | S(STOPPING), I(LOADED), GN_TX_LOADED, 0, 0},
    {TWO, S(SAVED), I(LOADED), GN_TX_COMMITTING, DO(COMMIT), 0},
    {MOVES, S(PRECOPY) | S(STOPPING), I(LOAD_FAILED), GN_TX_DEST_FAILED, 0, 0},
    {HERE, S(SOURCE_FAILED), I(LOADED), GN_TX_ABORTED, ABORT, 0},
    {MOVES, S(SOURCE_FAILED), I(LOAD_FAILED), GN_TX_ABORTED, ABORT, 0},
    {MOVES, S(SAVED), I(LOAD_FAILED), GN_TX_ABORTED, RESUME, 0},
    {K(RESTORE), S(SAVED), I(LOAD_FAILED), GN_TX_ABORTED, ABORT, 0},
    /* The program says it, at any time, and says it again. */
    {K(OUTBOUND), S(BOOTING), I(LOAD_FAILED), GN_TX_ABORTED, ABORT, 0},
    {K(OUTBOUND), S(DEST_FAILED), I(LOAD_FAILED), GN_TX_SAME, 0, 0},

    /* The decision. */
    {TWO, S(COMMITTING), I(DONE), GN_TX_COMMITTED, DO(REPORT) | DO(DISMISS), 0},
    {HERE, S(COMMITTING), I(FAILED), GN_TX_ABORTED, RESUME, 0},
    {K(RESTORE), S(COMMITTING), I(FAILED), GN_TX_ABORTED, ABORT, 0},
    {K(OUTBOUND), S(SAVED), I(GOES_ON), GN_TX_COMMITTED, DO(REPORT) | DO(RELEASE), 0},
    {K(STOP), S(SAVED), I(NOTIFIED), GN_TX_STOPPED, DO(PARK), GN_TX_SETTLE},
    {K(STOP_TCP), S(SAVED), I(NOTIFIED), GN_TX_NOTIFIED, 0, GN_TX_NOTIFY},
    {K(STOP_TCP), S(NOTIFIED), I(ASKER_GONE) | I(DEADLINE), GN_TX_ABORTED, RESUME | DO(RECALL), 0},
    {K(STOP_TCP), S(NOTIFIED), I(WAITS), GN_TX_STOPPED, DO(PARK) | DO(SETTLE), GN_TX_SETTLE},
    {K(STOP), S(STOPPED), I(WAITS), GN_TX_SAME, DO(SETTLE), 0},
    {STOPS, S(STOPPED), I(SOURCE_DIED), GN_TX_SAME, DO(SETTLE), 0},
    {STOPS, S(STOPPED), I(SETTLED) | I(DEADLINE), GN_TX_COMMITTED, DO(REPORT), 0},

    /* A step could not be made. */
    {MOVES, S(PRECOPY), I(FAILED), GN_TX_ABORTED, ABORT, 0},
    {STOPS, S(SAVED), I(FAILED), GN_TX_ABORTED, RESUME, 0},

    /* Deaths. A source that has written everything is not needed any more. */
    {SAVES, EARLY, I(SOURCE_DIED), GN_TX_ABORTED, ABORT, 0},
    {MOVES | STOPS, S(SAVED) | S(NOTIFIED), I(SOURCE_DIED), GN_TX_SAME, 0, 0},
    {TWO, EARLY & ~S(DEST_FAILED), I(DEST_DIED), GN_TX_ABORTED, ABORT, 0},
    {HERE, S(DEST_FAILED), I(DEST_DIED), GN_TX_SAME, 0, 0},
    {HERE, S(SAVED), I(DEST_DIED), GN_TX_ABORTED, RESUME, 0},
    {K(RESTORE), S(SAVED), I(DEST_DIED), GN_TX_ABORTED, ABORT, 0},
    {ASKED, EARLY | S(SAVED) | S(NOTIFIED) | S(STOPPED), I(PROGRAM_GONE), GN_TX_ENDED, GONE, 0},
    {K(RESTORE), S(COMMITTING), I(PROGRAM_GONE), GN_TX_ENDED, GONE, 0},

    /* A file that nobody keeps is none. Other askers are not needed. */
    {STOPS, S(SAVED), I(ASKER_GONE), GN_TX_ABORTED, RESUME, 0},
    {K(RESTORE), S(BOOTING) | S(SAVED), I(ASKER_GONE), GN_TX_ABORTED, ABORT, 0},
    {SAVES, EARLY, I(ASKER_GONE), GN_TX_SAME, 0, 0},
    {MOVES, S(SAVED), I(ASKER_GONE), GN_TX_SAME, 0, 0},
    {STOPS, S(STOPPED), I(ASKER_GONE), GN_TX_SAME, 0, 0},

    /* A program that was offered to go may have gone; one that comes back has not. */
    {K(OUTBOUND), EARLY, I(LINK_BROKEN), GN_TX_ABORTED, DO(EXCUSE), 0},
    {K(OUTBOUND), S(SAVED), I(LINK_BACK), GN_TX_ABORTED, RESUME, 0},
    {K(OUTBOUND), S(SAVED), I(LINK_BROKEN), GN_TX_SAME, 0, 0},
    {K(OUTBOUND), EARLY, I(LINK_BACK), GN_TX_SAME, 0, 0},
    {TCP, EARLY | S(SAVED) | S(NOTIFIED) | S(STOPPED), I(LINK_BROKEN) | I(LINK_BACK), GN_TX_SAME, 0,
     0},

    {ASKED, EARLY, I(DEADLINE), GN_TX_ABORTED, ABORT, 0},
    {HERE | STOPS, S(SAVED), I(DEADLINE), GN_TX_ABORTED, RESUME, 0},
    {K(RESTORE), S(SAVED), I(DEADLINE), GN_TX_ABORTED, ABORT, 0},
    {K(OUTBOUND), S(SAVED), I(DEADLINE), GN_TX_SAME, DO(ADVISE), GN_TX_NEVER},

    /* Late: the worker does not know yet that it is over. */
    {SAVES, S(ABORTED), I(SAVED), GN_TX_SAME, DO(RESUME), 0},
    {SAVES, S(ABORTED), I(STOPS) | I(SAVE_FAILED) | I(SAVE_BROKEN), GN_TX_SAME, 0, 0},
    {TWO, S(ABORTED), I(LOADED) | I(LOAD_FAILED) | I(NO_DRIVER), GN_TX_SAME, 0, 0},
};
const size_t gn_transaction_n_rows = sizeof gn_transaction_rows / sizeof gn_transaction_rows[0];

#define SECONDS UINT64_C(1000000000)

static const uint64_t limits_ns[GN_TX_N_LIMITS] = {
    [GN_TX_TICKET] = 60 * SECONDS,
    [GN_TX_BOOT] = 120 * SECONDS,      /* as long as a program waits
                                          for a driver; nothing stands
                                        */
    [GN_TX_CLAIM] = 30 * SECONDS,      /* for the program to come to a destination that is up */
    [GN_TX_STOP_LIMIT] = 60 * SECONDS, /* to save and load, after the drain */
    [GN_TX_LEAVE] = 90 * SECONDS,      /* the program waits a minute for the destination itself */
    [GN_TX_FILE] = 3600 * SECONDS,
    [GN_TX_FLUSH] = 600 * SECONDS,
    [GN_TX_NOTIFY] = 10 * SECONDS,
    [GN_TX_SETTLE] = 2 * SECONDS,
    [GN_TX_DECIDE] = 600 * SECONDS,
};

static void set_limit(struct gn_transaction *t, enum gn_transaction_limit limit, uint64_t now_ns)
{
    uint64_t ns = limits_ns[limit == GN_TX_COPY ? GN_TX_STOP_LIMIT : limit];
    if (limit == GN_TX_AS_BEFORE)
        return;
    if (limit == GN_TX_COPY)
        ns += t->ahead_ns;
    if (limit == GN_TX_COPY || limit == GN_TX_STOP_LIMIT || limit == GN_TX_FILE)
        ns += t->drain_ns;
    t->until_ns = limit == GN_TX_NEVER ? UINT64_MAX : now_ns + ns;
}

void gn_transaction_begin(struct gn_transaction *t, enum gn_transaction_kind kind,
                          uint64_t drain_ns, uint64_t now_ns)
{
    static const struct {
        enum gn_transaction_state state;
        enum gn_transaction_limit limit;
    } first[GN_TX_N_KINDS] = {
        [GN_TX_LOCAL] = {GN_TX_BOOTING, GN_TX_BOOT},
        [GN_TX_IN_PROCESS] = {GN_TX_BOOTING, GN_TX_BOOT},
        [GN_TX_OUTBOUND] = {GN_TX_BOOTING, GN_TX_CLAIM},
        [GN_TX_INBOUND] = {GN_TX_ANNOUNCED, GN_TX_TICKET},
        [GN_TX_SNAPSHOT] = {GN_TX_PRECOPY, GN_TX_FILE},
        [GN_TX_STOP] = {GN_TX_PRECOPY, GN_TX_FILE},
        [GN_TX_STOP_TCP] = {GN_TX_PRECOPY, GN_TX_FILE},
        [GN_TX_RESTORE] = {GN_TX_BOOTING, GN_TX_FILE},
    };
    *t = (struct gn_transaction){.kind = kind, .state = first[kind].state, .drain_ns = drain_ns};
    set_limit(t, first[kind].limit, now_ns);
}

static const struct gn_transaction_row *find_row(const struct gn_transaction *t,
                                                 enum gn_transaction_input input)
{
    for (size_t i = 0; i < gn_transaction_n_rows; i++) {
        const struct gn_transaction_row *row = &gn_transaction_rows[i];
        if ((row->kinds >> t->kind & 1) && (row->states >> t->state & 1) &&
            (row->inputs >> input & 1))
            return row;
    }
    return NULL;
}

bool gn_transaction_step(struct gn_transaction *t, enum gn_transaction_input input, uint64_t now_ns,
                         uint32_t *ret_actions)
{
    const struct gn_transaction_row *row = find_row(t, input);
    *ret_actions = 0;
    if (!row)
        return false;
    if (row->next != GN_TX_SAME)
        t->state = (enum gn_transaction_state)row->next;
    *ret_actions = row->actions;
    set_limit(t, row->limit, now_ns);
    return true;
}

bool gn_transaction_has_all(const struct gn_transaction *t)
{
    return ((MOVES | STOPS) >> t->kind & 1) &&
           ((S(SAVED) | S(COMMITTING) | S(NOTIFIED) | S(STOPPED)) >> t->state & 1);
}
