/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can happen in a world around the table of migrations, and what must never be true of one.
 * transaction_model.c explores it.
 */
#include "transaction_world.h"

#include <stdio.h>
#include <string.h>

struct exploration now;

void violate(const char *what)
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
bool happens(struct world *w, enum event e)
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

void judge(const struct world *w)
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
