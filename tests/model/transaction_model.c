/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of src/daemon/migrate/transaction.c among workers, a program and an asker, each of
 * which may fail or die at any moment, and send messages that arrive late: all sequences of events
 * are explored, for each kind. Then the same with one wrong entry in the table, for each entry and
 * each way to be wrong.
 *
 * Assumptions: the messages of one process arrive in their order; a program decides for the
 * destination only when it was offered to go and the destination has everything; and gantryd reads
 * that word before the ten minutes are over that it waits for it.
 *
 * Long because the events, the invariants and the planted entries are about one world, whose parts
 * no other file needs to see.
 */
#include "daemon/migrate/transaction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static struct {
    enum gn_transaction_kind kind;
    struct cell (*table)[GN_TX_N_INPUTS];
    const char *violation;
    bool reached[GN_TX_N_STATES][GN_TX_N_INPUTS];
    bool succeeded;
    struct world *all;
    uint32_t n, capacity, *index, index_size;
} now;

static bool is_kind(uint32_t kinds)
{
    return kinds >> now.kind & 1;
}

static void violate(const char *what)
{
    if (!now.violation)
        now.violation = what;
}

static void push(struct queue *q, enum gn_transaction_input input)
{
    if (q->n < N_QUEUED)
        q->inputs[q->n++] = (uint8_t)input;
    else
        violate("the model's queues are too short");
}

static enum gn_transaction_input pop(struct queue *q)
{
    const uint8_t input = q->inputs[0];
    memmove(q->inputs, q->inputs + 1, --q->n);
    q->inputs[q->n] = 0;
    return input;
}

/* ---- the table's part */

static bool is_over(const struct world *w)
{
    return gn_transaction_is_over(w->state);
}

static bool owns_at_source(const struct world *w)
{
    return w->source == RUNS || w->source == SAVES_NOW || w->source == CLOSED;
}

static void feed(struct world *w, enum gn_transaction_input input);

static void answer(struct world *w)
{
    w->answered |= w->asker;
}

static void act(struct world *w, uint32_t action)
{
    switch (action) {
    case GN_TX_DO_SAVE:
        w->asked = 1;
        if (w->source == RUNS)
            w->source = SAVES_NOW;
        if (w->dest == UP)
            w->dest = LOADS;
        break;
    case GN_TX_DO_FETCH:
        w->dest = w->dest == UP ? LOADS : w->dest;
        break;
    case GN_TX_DO_OFFER:
        w->offered = w->link;
        break;
    case GN_TX_DO_FLUSH:
        w->flush = 1;
        w->session = is_kind(K(STOP));
        break;
    case GN_TX_DO_COMMIT:
        w->commit = 1;
        break;
    case GN_TX_DO_PARK:
        w->parked = 1;
        if (w->source != SOURCE_GONE && w->source != SOURCE_DEAD)
            w->source = SOURCE_ENDS;
        break;
    case GN_TX_DO_SETTLE:
        if (w->waits && w->source == SOURCE_GONE)
            feed(w, GN_TX_ON_SETTLED);
        break;
    case GN_TX_DO_CLAIMED:
        w->dest = w->dest == UP ? LOADS : w->dest;
        break;
    case GN_TX_DO_READY:
        w->offered = 1;
        break;
    case GN_TX_DO_GO:
        w->dest = w->dest == HAS_ALL ? DEST_RUNS : w->dest;
        break;
    case GN_TX_DO_RESUME:
        if (w->source == SOURCE_ENDS)
            violate("a source that was told to end is resumed");
        if (w->source == PAUSED)
            w->source = RUNS;
        break;
    case GN_TX_DO_STAY:
        w->told_stay = 1;
        w->session = 0;
        if (is_kind(K(INBOUND))) /* its worker ends with the record */
            w->dest = DEST_GONE;
        break;
    case GN_TX_DO_RECALL:
        w->in_file = w->waits = 0;
        break;
    case GN_TX_DO_REPORT:
    case GN_TX_DO_EXCUSE:
    case GN_TX_DO_ADVISE:
        answer(w);
        break;
    case GN_TX_DO_RELEASE:
        w->source = SOURCE_GONE;
        break;
    case GN_TX_DO_DISMISS:
        if (w->exchanged)
            w->source = SOURCE_GONE;
        else if (is_kind(TWO))
            w->dest = DEST_GONE;
        break;
    }
}

/* Checks one step. */
static void judge_step(const struct world *w, enum gn_transaction_input input, uint32_t actions)
{
    const uint32_t last = GN_TX_DO_RESUME | GN_TX_DO_STAY | GN_TX_DO_RECALL | GN_TX_DO_REPORT |
                          GN_TX_DO_EXCUSE | GN_TX_DO_RELEASE | GN_TX_DO_DISMISS;
    const bool over = gn_transaction_is_over(w->state);
    if (!over && (actions & last))
        violate("it goes on behind its end");
    if ((input == GN_TX_ON_PROGRAM_GONE) != (w->state == GN_TX_ENDED))
        violate("ENDED is for programs that are gone");
    if (w->state == GN_TX_COMMITTING && !(actions & GN_TX_DO_COMMIT))
        violate("a commit that nobody carries out");
    if (w->state == GN_TX_STOPPED && !w->parked && !(actions & GN_TX_DO_PARK))
        violate("a stop that nobody carries out");
    if (w->state == GN_TX_COMMITTED && (actions & GN_TX_DO_RESUME))
        violate("a commit resumes the source");
    if (!over || is_kind(K(INBOUND)))
        return;
    const bool good = w->state == GN_TX_COMMITTED || w->state == GN_TX_COPIED;
    if (!(actions & (good ? GN_TX_DO_REPORT : GN_TX_DO_EXCUSE)))
        violate("the asker is not answered");
    if (is_kind(TWO) && !(actions & GN_TX_DO_DISMISS))
        violate("the destination's record is left over");
}

static void feed(struct world *w, enum gn_transaction_input input)
{
    static char what[96];
    const struct cell *c = &now.table[w->state][input];
    now.reached[w->state][input] = true;
    if (!c->there) {
        snprintf(what, sizeof what, "kind %d, state %d: input %d is out of place", now.kind,
                 w->state, input);
        violate(what);
        return;
    }
    const bool was_over = gn_transaction_is_over(w->state);
    /* Else the next migration finds the source busy. */
    if (w->state == GN_TX_DEST_FAILED && input == GN_TX_ON_DEST_DIED && c->next != w->state)
        violate("the failure is reported before the source has noticed it");
    if (was_over && c->next != w->state)
        violate("what is over changes");
    w->state = c->next;
    if (c->limit)
        w->limited = c->limit != GN_TX_NEVER;
    w->saved |= input == GN_TX_ON_SAVED;
    if (!was_over)
        judge_step(w, input, c->actions);
    for (uint32_t left = c->actions; left; left &= left - 1)
        act(w, left & -left);
}

/* A word that is read. When it is over, only the source's late words count. */
static void hear(struct world *w, struct queue *q)
{
    const enum gn_transaction_input input = pop(q);
    if (!is_over(w) || (w->state == GN_TX_ABORTED && q != &w->from_program &&
                        is_kind(SAVES | TWO) && input != GN_TX_ON_UP))
        feed(w, input);
}

/* ---- events */

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

static bool is_dead(const struct world *w)
{
    return w->dest == DEST_FAILS || w->dest == DEST_DEAD || w->dest == DEST_GONE;
}

/* Does the source read or write for this migration still? */
static bool is_saving(const struct world *w)
{
    return w->source == SAVES_NOW || w->source == CLOSED;
}

/* False: it cannot happen now, and w is untouched. */
static bool happens(struct world *w, enum event e)
{
    const bool over = is_over(w);
    if (w->commit && e != COMMIT_DONE && e != COMMIT_FAILS &&
        !(e == PROGRAM_ENDS && is_kind(K(RESTORE)))) /* it may turn out when it is told */
        return false;
    w->fault |= e == SOURCE_FAILS || e == SOURCE_DIES || e == DEST_DIES || e == PROGRAM_ENDS ||
                e == DEST_CANNOT_LOAD || e == TIME_OUT || e == PROGRAM_STAYS || e == COMMIT_FAILS ||
                e == FILE_NOT_SAFE || e == SAVE_UNSENT || e == CALLED_OFF || e == LINK_BREAKS ||
                e == DEST_HAS_NO_DRIVER || e == ASKER_ENDS || e == DEST_LIES || e == LINK_RETURNS ||
                (e == SOURCE_STREAM_BREAKS && !is_dead(w));
    switch (e) {
    case HEAR_SOURCE:
        if (!w->from_source.n)
            return false;
        hear(w, &w->from_source);
        return true;
    case HEAR_DEST:
        if (!w->from_dest.n)
            return false;
        hear(w, &w->from_dest);
        return true;
    case HEAR_PROGRAM:
        if (!w->from_program.n)
            return false;
        hear(w, &w->from_program);
        return true;
    case SOURCE_STOPS:
        if (w->source != SAVES_NOW)
            return false;
        w->source = CLOSED;
        push(&w->from_source, GN_TX_ON_STOPS);
        return true;
    case SOURCE_SAVED:
        /* One without a gate to close says nothing of it. */
        if (!is_saving(w))
            return false;
        w->source = PAUSED;
        push(&w->from_source, GN_TX_ON_SAVED);
        return true;
    case SOURCE_FAILS:
        if (!is_saving(w))
            return false;
        w->source = RUNS;
        push(&w->from_source, GN_TX_ON_SAVE_FAILED);
        return true;
    case SOURCE_STREAM_BREAKS:
        if (!is_saving(w) || !(is_kind(SAVES & ~MOVES) || is_dead(w) || w->lied))
            return false;
        w->source = RUNS;
        push(&w->from_source, GN_TX_ON_SAVE_BROKEN);
        return true;
    case SOURCE_DIES:
        if (w->source == NO_SOURCE || w->source >= SOURCE_DEAD || is_kind(K(INBOUND)))
            return false;
        w->source_died |= w->source != SOURCE_ENDS;
        w->source = SOURCE_DEAD;
        return true;
    case SOURCE_ENDED:
        if (w->source != SOURCE_ENDS)
            return false;
        w->source = SOURCE_DEAD;
        return true;
    case SOURCE_SEEN_DEAD: /* its socket is closed, read or not */
        if (w->source != SOURCE_DEAD)
            return false;
        w->source = SOURCE_GONE;
        memset(&w->from_source, 0, sizeof w->from_source);
        if (!over)
            feed(w, GN_TX_ON_SOURCE_DIED);
        return true;
    case DEST_UP:
        if (w->dest != BOOTS)
            return false;
        w->dest = UP;
        push(is_kind(K(OUTBOUND)) ? &w->from_program : &w->from_dest, GN_TX_ON_UP);
        return true;
    case DEST_HAS_NO_DRIVER:
        if (!(w->dest == BOOTS && is_kind(TWO)) &&
            !(is_kind(K(IN_PROCESS)) && (w->dest == UP || w->dest == LOADS)))
            return false;
        w->dest = DEST_FAILS;
        push(&w->from_dest, GN_TX_ON_NO_DRIVER);
        return true;
    case DEST_LOADED:
        if (w->dest != LOADS ||
            !(w->source == PAUSED || w->source == NO_SOURCE || w->source >= SOURCE_DEAD))
            return false;
        if (w->source >= SOURCE_DEAD && !w->exchanged && w->state < GN_TX_SAVED)
            return false; /* the stream ended early */
        w->dest = HAS_ALL;
        if (!is_kind(K(OUTBOUND)))
            push(&w->from_dest, GN_TX_ON_LOADED);
        return true;
    case DEST_LIES: /* it says so, reads no more, and has not got everything */
        if (w->dest != LOADS || !is_saving(w) || !is_kind(HERE))
            return false;
        w->dest = HAS_ALL;
        w->lied = 1;
        push(&w->from_dest, GN_TX_ON_LOADED);
        return true;
    case DEST_CANNOT_LOAD:
        if (w->dest != LOADS)
            return false;
        w->dest = DEST_FAILS;
        if (!is_kind(K(OUTBOUND)))
            push(&w->from_dest, GN_TX_ON_LOAD_FAILED);
        return true;
    case DEST_DIES:
        if (w->dest == NO_DEST || w->dest >= DEST_DEAD)
            return false;
        w->dest_died = 1;
        w->dest = DEST_DEAD;
        return true;
    case DEST_SEEN_DEAD:
        if (w->dest != DEST_DEAD || is_kind(K(OUTBOUND)))
            return false;
        w->dest = DEST_GONE;
        memset(&w->from_dest, 0, sizeof w->from_dest);
        if (!over)
            feed(w, GN_TX_ON_DEST_DIED);
        return true;
    case CLAIMS:
        if (!is_kind(K(INBOUND)) || w->state != GN_TX_ANNOUNCED || !w->program)
            return false;
        w->dest = BOOTS;
        w->asker = 0;
        feed(w, GN_TX_ON_CLAIM);
        return true;
    case SAVE_UNSENT: /* the word UP leads to a save that cannot be asked for */
        if (!is_kind(MOVES) || w->state != GN_TX_PRECOPY || w->source != SAVES_NOW)
            return false;
        w->source = RUNS;
        feed(w, GN_TX_ON_FAILED);
        return true;
    case CALLED_OFF:
        if (!is_kind(K(INBOUND)) || (w->state != GN_TX_BOOTING && w->state != GN_TX_PRECOPY))
            return false;
        feed(w, GN_TX_ON_FAILED);
        return true;
    case FILE_SAFE:
        if (!w->flush || !w->asker || w->state != GN_TX_SAVED)
            return false;
        w->flush = 0;
        w->in_file = 1;
        w->session = 0; /* the program has it */
        feed(w, GN_TX_ON_NOTIFIED);
        return true;
    case FILE_NOT_SAFE:
        if (!w->flush || w->state != GN_TX_SAVED)
            return false;
        w->flush = 0;
        feed(w, GN_TX_ON_FAILED);
        return true;
    case COMMIT_DONE:
        if (!w->commit)
            return false;
        w->commit = 0;
        w->exchanged = 1;
        if (w->dest == HAS_ALL)
            w->dest = DEST_RUNS;
        feed(w, GN_TX_ON_DONE);
        return true;
    case COMMIT_FAILS:
        if (!w->commit)
            return false;
        w->commit = 0;
        feed(w, GN_TX_ON_FAILED);
        return true;
    case PROGRAM_GOES:
        if (!is_kind(K(OUTBOUND) | K(INBOUND)) || !w->program || !w->offered || w->there ||
            w->stays || w->back || w->told_stay || w->dest != HAS_ALL)
            return false;
        w->there = 1;
        if (is_kind(K(OUTBOUND)))
            w->dest = DEST_RUNS;
        push(&w->from_program, GN_TX_ON_GOES_ON);
        return true;
    case PROGRAM_STAYS: /* of its own accord, or since the destination has failed; twice maybe */
        if (!is_kind(K(OUTBOUND)) || !w->program || w->there || w->stays > 1 || w->told_stay ||
            !w->link)
            return false;
        w->stays++;
        if (w->dest < DEST_DEAD)
            w->dest = DEST_FAILS;
        push(&w->from_program, GN_TX_ON_LOAD_FAILED);
        return true;
    case PROGRAM_WAITS:
        if (!is_kind(STOPS) || !w->program || !w->in_file || w->waits)
            return false;
        w->waits = 1;
        if (w->state == GN_TX_NOTIFIED || w->state == GN_TX_STOPPED)
            feed(w, GN_TX_ON_WAITS);
        return true;
    case PROGRAM_ENDS:
        if (!w->program || (is_kind(K(INBOUND)) && w->state == GN_TX_ANNOUNCED))
            return false;
        w->program = w->commit = 0;
        memset(&w->from_program, 0, sizeof w->from_program);
        if (!over)
            feed(w, GN_TX_ON_PROGRAM_GONE);
        return true;
    case LINK_BREAKS:
        if (!is_kind(SAVES | K(RESTORE)) || is_kind(K(IN_PROCESS) | K(STOP)) || !w->program ||
            !w->link || over)
            return false;
        w->link = 0;
        w->link_broke = 1;
        memset(&w->from_program, 0, sizeof w->from_program);
        feed(w, GN_TX_ON_LINK_BROKEN);
        return true;
    case LINK_RETURNS: /* gantryd may not have heard that it broke */
        if (!is_kind(SAVES | K(RESTORE)) || is_kind(K(IN_PROCESS) | K(STOP)) || !w->program ||
            w->there || over)
            return false;
        w->link = 1;
        memset(&w->from_program, 0, sizeof w->from_program);
        w->back = 1;
        feed(w, GN_TX_ON_LINK_BACK);
        return true;
    case ASKER_ENDS:
        if (!w->asker || over)
            return false;
        w->asker = 0;
        w->answered = 1;
        feed(w, GN_TX_ON_ASKER_GONE);
        return true;
    case TIME_OUT:
        /* A worker that has been stopped for too long counts like one. */
        if (over || (is_kind(K(INBOUND)) && w->there) ||
            (!w->limited && w->state != GN_TX_BOOTING && w->state != GN_TX_PRECOPY))
            return false;
        feed(w, GN_TX_ON_DEADLINE);
        if (!is_over(w) && !(is_kind(K(OUTBOUND)) && w->state == GN_TX_SAVED && w->answered))
            violate("a deadline changes nothing");
        return true;
    case N_EVENTS:
        break;
    }
    return false;
}

/* ---- invariants */

/* Whether the state follows from the messages that were read. */
static void judge_state(const struct world *w)
{
    const uint8_t state = w->state;
    const bool heard = !w->from_source.n;
    if (heard && w->source == CLOSED && (w->state == GN_TX_BOOTING || w->state == GN_TX_PRECOPY))
        violate("it is not seen that the source stands still");
    if (heard && w->source == PAUSED && (w->state < GN_TX_SAVED || w->state > GN_TX_STOPPED))
        violate("it is not seen that the source has saved everything");
    if (w->source == RUNS && heard && w->state != GN_TX_BOOTING && w->state != GN_TX_SOURCE_FAILED)
        violate("it is waited for a source that does nothing");
    if (!w->from_dest.n && is_kind(HERE) && w->dest == HAS_ALL &&
        (w->state < GN_TX_LOADED || w->state == GN_TX_DEST_FAILED || w->state == GN_TX_SAVED))
        violate("it is not seen that the destination has loaded everything");
    if (!w->from_dest.n && !w->from_program.n && w->dest == DEST_FAILS && !is_kind(K(OUTBOUND)) &&
        w->state != GN_TX_DEST_FAILED)
        violate("it is not seen that the destination has failed");
    if (w->asked && state == GN_TX_BOOTING)
        violate("it has begun already");
    if (w->saved && state < GN_TX_SAVED)
        violate("it is forgotten that the source has saved everything");
    if (state == GN_TX_DEST_FAILED && !w->stays && w->dest < DEST_FAILS)
        violate("the destination has not failed");
    if (w->stays && !w->back && !w->link_broke && !w->from_program.n && is_kind(K(OUTBOUND)) &&
        state != GN_TX_DEST_FAILED)
        violate("it is not seen that the program stays");
    if (state == GN_TX_NOTIFIED && !w->in_file)
        violate("the program was not told");
    if (state == GN_TX_STOPPED && w->waits && w->source == SOURCE_GONE)
        violate("it is waited for what has come");
    if (is_kind(K(INBOUND)) && (state == GN_TX_ANNOUNCED ? !w->asker : w->dest == NO_DEST))
        violate("an announcement that nobody claims stays");
    if (is_kind(K(OUTBOUND)) && w->state == GN_TX_SAVED && w->link && !w->offered && !w->link_broke)
        violate("the program was not offered to go");
    if (is_kind(STOPS) && w->state == GN_TX_SAVED && !w->flush)
        violate("nobody is asked to keep the file");
}

static void judge(const struct world *w)
{
    const bool at_dest = w->dest == DEST_RUNS;
    if (at_dest && (owns_at_source(w) || w->source == SOURCE_ENDS) && !w->commit)
        violate("two own the vGPU");
    if (w->parked && owns_at_source(w))
        violate("the source goes on while the program waits for the file");
    if (is_kind(K(STOP)) && w->in_file && owns_at_source(w))
        violate("the source goes on although the program was told that it is in a file");
    if (is_kind(K(OUTBOUND)) && w->there && owns_at_source(w))
        violate("the source goes on although the program has gone");
    if (!is_over(w))
        judge_state(w);
    const bool waits_for_program = is_kind(K(OUTBOUND)) && w->state == GN_TX_SAVED;
    /* The gantryd that it comes from has the deadline. */
    const bool limited_there =
        is_kind(K(INBOUND)) && (w->state == GN_TX_BOOTING || w->state == GN_TX_PRECOPY);
    if (!is_over(w) && !w->limited && !waits_for_program && !limited_there)
        violate("nothing ends it");
    if (!is_over(w) || w->from_source.n || w->from_dest.n || w->from_program.n || is_saving(w) ||
        w->source == SOURCE_DEAD || w->source == SOURCE_ENDS)
        return;
    /* It is over, and everything has been heard. */
    if (w->asker && !w->answered && !is_kind(K(INBOUND)))
        violate("the asker was not answered");
    if ((is_kind(TWO) || (is_kind(K(INBOUND)) && w->program)) && w->dest != DEST_GONE &&
        w->dest != DEST_DEAD && w->dest != NO_DEST && w->state != GN_TX_COMMITTED)
        violate("the destination's worker was left over");
    if (!w->program)
        return;
    if (w->session)
        violate("the session is left over");
    if (w->state == GN_TX_ENDED)
        violate("it ended as if the program was gone");
    if (is_kind(K(STOP_TCP)) && w->in_file && !w->parked)
        violate("the program waits for a file that there is not");
    const bool moved = w->state == GN_TX_COMMITTED;
    if (moved && is_kind(MOVES) && w->source < SOURCE_DEAD)
        violate("the source was left over");
    if (moved && is_kind(MOVES | K(RESTORE)) && !at_dest && !w->dest_died)
        violate("nobody owns the vGPU: the destination does not run");
    if (moved && is_kind(K(INBOUND)) && !w->there)
        violate("an arrival without its program's word");
    if (is_kind(K(INBOUND)) && w->there && !at_dest && !w->dest_died)
        violate("nobody owns the vGPU: the program has come, and the destination does not run");
    if (moved && is_kind(STOPS) && !w->parked)
        violate("nobody owns the vGPU: the program does not wait for its file");
    if (moved && is_kind(K(SNAPSHOT)))
        violate("a copy is taken for a stop");
    if (w->state == GN_TX_COPIED && !is_kind(K(SNAPSHOT)))
        violate("a migration is taken for a copy");
    if (!moved && is_kind(SAVES) && w->source != RUNS && !w->source_died)
        violate("nobody owns the vGPU: the source was not resumed");
    if (!moved && is_kind(K(OUTBOUND)) && w->link && !w->told_stay)
        violate("the program was not told that it stays");
    if (!moved && is_kind(K(RESTORE)) && !w->told_stay)
        violate("the program was not told that it was not restored");
    if (!moved && is_kind(K(INBOUND)) && w->dest != NO_DEST && !w->told_stay)
        violate("the program was not refused");
    if (!w->fault)
        now.succeeded |= w->state == (is_kind(K(SNAPSHOT)) ? GN_TX_COPIED : GN_TX_COMMITTED);
    if (!w->fault && !now.succeeded)
        violate("it fails although nothing has gone wrong");
}

/* ---- the search */

static uint32_t slot_of(const struct world *w)
{
    const unsigned char *bytes = (const unsigned char *)w;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < sizeof *w; i++)
        h = (h ^ bytes[i]) * 16777619u;
    h &= now.index_size - 1;
    while (now.index[h] && memcmp(&now.all[now.index[h] - 1], w, sizeof *w) != 0)
        h = (h + 1) & (now.index_size - 1);
    return h;
}

static void add(const struct world *w)
{
    const uint32_t slot = slot_of(w);
    if (now.index[slot])
        return;
    assert_true(now.n < now.capacity);
    now.all[now.n] = *w;
    now.index[slot] = ++now.n;
}

static const char *explore(enum gn_transaction_kind kind, table t)
{
    struct gn_transaction begun;
    gn_transaction_begin(&begun, kind, 0, 0);
    now.kind = kind;
    now.table = t;
    now.violation = NULL;
    now.n = 0;
    now.succeeded = false;
    now.capacity = 1u << 19;
    now.index_size = 1u << 20;
    if (!now.all)
        now.all = calloc(now.capacity, sizeof *now.all);
    if (!now.index)
        now.index = calloc(now.index_size, sizeof *now.index);
    assert_true(now.all && now.index);
    struct world first = {.state = begun.state,
                          .limited = 1,
                          .asker = 1,
                          .program = 1,
                          .link = 1,
                          .source = is_kind(MOVES)   ? RUNS
                                    : is_kind(SAVES) ? SAVES_NOW
                                                     : NO_SOURCE,
                          .dest = is_kind(TWO | K(OUTBOUND)) ? BOOTS : NO_DEST};
    add(&first);
    for (uint32_t i = 0; i < now.n && !now.violation; i++) {
        for (enum event e = 0; e < N_EVENTS && !now.violation; e++) {
            struct world w = now.all[i];
            if (happens(&w, e)) {
                judge(&w);
                add(&w);
            }
        }
    }
    if (!now.violation && !now.succeeded)
        violate("it can never succeed");
    memset(now.index, 0, now.index_size * sizeof *now.index);
    return now.violation;
}

static void expand(enum gn_transaction_kind kind, table ret)
{
    memset(ret, 0, sizeof(table));
    for (size_t i = 0; i < gn_transaction_n_rows; i++) {
        const struct gn_transaction_row *r = &gn_transaction_rows[i];
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS; in++) {
                if (!(r->kinds >> kind & 1) || !(r->states >> s & 1) || !(r->inputs >> in & 1))
                    continue;
                if (ret[s][in].there)
                    fail_msg("kind %d, state %u, input %u: two rows", kind, s, in);
                ret[s][in] =
                    (struct cell){.there = 1,
                                  .next = (uint8_t)(r->next == GN_TX_SAME ? (int)s : r->next),
                                  .actions = r->actions,
                                  .limit = (uint8_t)r->limit};
            }
    }
}

static bool is_visited(enum gn_transaction_state state)
{
    for (uint32_t i = 0; i < now.n; i++)
        if (now.all[i].state == state)
            return true;
    return false;
}

static void the_table_holds(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < GN_TX_N_KINDS; kind++) {
        table t;
        unsigned n = 0;
        expand(kind, t);
        memset(now.reached, 0, sizeof now.reached);
        const char *violation = explore(kind, t);
        if (violation)
            fail_msg("kind %u: %s", kind, violation);
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS && is_visited(s); in++) {
                if (t[s][in].there && !now.reached[s][in])
                    fail_msg("kind %u, state %u: input %u is never met", kind, s, in);
                n += t[s][in].there;
            }
        print_message("kind %u: %u entries of the table, %u states of the world\n", kind, n, now.n);
    }
}

/* Is a table with this entry in the place of its own found to be wrong? */
static bool is_caught(enum gn_transaction_kind kind, table t, unsigned state, unsigned input,
                      struct cell wrong)
{
    const struct cell right = t[state][input];
    t[state][input] = wrong;
    const bool caught = explore(kind, t) != NULL;
    t[state][input] = right;
    return caught;
}

static unsigned n_planted, n_missed;

static void plant(enum gn_transaction_kind kind, table t, unsigned state, unsigned input,
                  struct cell wrong, const char *what)
{
    n_planted++;
    if (is_caught(kind, t, state, input, wrong))
        return;
    n_missed++;
    print_message("kind %u, state %u, input %u: %s is not caught (next %u, actions %x)\n", kind,
                  state, input, what, wrong.next, (unsigned)wrong.actions);
}

/* Does this kind do anything at this action? A set of kinds may have more in common. */
static bool matters(enum gn_transaction_kind kind, unsigned state, uint32_t action)
{
    const uint32_t reported = K(OUTBOUND) | K(INBOUND) | K(RESTORE);
    switch (action) {
    case GN_TX_DO_DISMISS:
        return TWO >> kind & 1;
    case GN_TX_DO_STAY: /* STOP lets go of the session that it has when all is saved */
        return (reported >> kind & 1) || (kind == GN_TX_STOP && state == GN_TX_SAVED);
    default:
        return true;
    }
}

static void plant_all(enum gn_transaction_kind kind, table t, unsigned state, unsigned input)
{
    const struct cell right = t[state][input];
    struct cell wrong = right;
    wrong.there = 0;
    plant(kind, t, state, input, wrong, "no entry");
    for (uint32_t left = right.actions; left; left &= left - 1) {
        if (!matters(kind, state, left & -left))
            continue;
        wrong = right;
        wrong.actions &= ~(left & -left);
        plant(kind, t, state, input, wrong, "an action too few");
    }
    for (unsigned next = 0; next < GN_TX_N_STATES; next++) {
        wrong = right;
        wrong.next = (uint8_t)next;
        if (next != right.next)
            plant(kind, t, state, input, wrong, "another state");
    }
}

static void every_wrong_entry_is_caught(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < GN_TX_N_KINDS; kind++) {
        table t;
        bool visited[GN_TX_N_STATES];
        expand(kind, t);
        assert_null(explore(kind, t));
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            visited[s] = is_visited(s);
        for (unsigned s = 0; s < GN_TX_N_STATES; s++)
            for (unsigned in = 0; in < GN_TX_N_INPUTS; in++)
                if (t[s][in].there && visited[s])
                    plant_all(kind, t, s, in);
    }
    print_message("%u wrong entries planted\n", n_planted);
    assert_int_equal(n_missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_holds),
                                       cmocka_unit_test(every_wrong_entry_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
