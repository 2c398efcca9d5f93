/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/core/turn.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "vgpu/core/vgpu_core.h"

#include <unistd.h>

#define HOLD_NS 500000u /* a program that waited is woken, decides and sends meanwhile; */
#define HOLD_LONG_NS                                                                               \
    2000000u /* one that always does so is worth waiting for: it comes, and is held up if it does  \
                not */
#define WINDOW_NS                                                                                  \
    10000000u /* FairGV 3.2.3: more synchronous calls than so many in so long make a vGPU          \
                 interactive */
#define WINDOW_MOST  10u
#define TELL_EVERY   8u      /* with nobody waiting: of so many commands one tells of its end, */
#define TELL_EACH_NS 250000u /* but each one that takes this long */
#define AHEAD_FIRST  32u     /* commands, while nobody knows how long they take and nobody waits */
#define AHEAD_LEAST                                                                                \
    2u /* the driver has so many, however long they take: else the device waits for us in between  \
        */
#define REFILL_NS                                                                                  \
    50000u /* while others wait, who submits is woken so long before the driver has nothing left   \
            */

static void tell(struct gn_turn *t)
{
    (void)gn_fd_signal(t->tell_fd);
}

static uint64_t count_waits(const struct gn_vdevice *d)
{
    return atomic_load_explicit(&d->turn.n_dry, memory_order_relaxed) +
           atomic_load_explicit(&d->vgpu->counters->sync_calls, memory_order_relaxed);
}

/* At a slice's end, and whenever a window is over. Only the time in which the grant was held
 * counts. The role. */
static void classify(struct gn_vdevice *d, uint64_t now)
{
    struct gn_turn *t = &d->turn;
    const uint64_t waits = count_waits(d), took = now - t->window_ns;
    atomic_store_explicit(&t->slot->interactive,
                          (waits - t->window_waits) * WINDOW_NS > took * WINDOW_MOST,
                          memory_order_relaxed);
    t->window_ns = now;
    t->window_waits = waits;
}

/* Who waits in the program spins while the device is his, where he is in no kernel's way, and else
 * leaves his processor to who has it (FairGV 3.2.3). */
static void show(struct gn_vdevice *d, enum gn_spin_turn whose)
{
    if (whose == GN_SPIN_MINE && !gn_vgpu_is_apart(d->vgpu))
        whose = GN_SPIN_ANY;
    _Atomic uint32_t *word = d->vgpu->view.turn ? &d->vgpu->view.turn->whose : NULL;
    if (word && atomic_load_explicit(word, memory_order_relaxed) != whose)
        atomic_store_explicit(word, whose, memory_order_relaxed);
}

static bool begin(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    bool news;
    if (gn_grant_acquire(t->slot, &news)) {
        t->held = true;
        t->over = false;
        t->began_ns = gn_now_ns();
        show(d, GN_SPIN_MINE);
        if (atomic_load_explicit(&t->wanted, memory_order_relaxed)) {
            t->window_ns = t->began_ns;
            t->window_waits = count_waits(d);
        }
        t->slice_ns = atomic_load_explicit(&t->slot->slice_ns, memory_order_relaxed);
        t->used = false;
        atomic_store_explicit(&t->wanted, false, memory_order_relaxed);
        gn_count(&t->slot->n_grants, 1);
        return true;
    }
    atomic_store_explicit(&t->wanted, true, memory_order_seq_cst);
    /* Who rested on a device that nobody else wants has it in a moment. */
    if (t->preempted_ns)
        show(d, GN_SPIN_AWAY);
    if (news)
        tell(t);
    return false;
}

static uint32_t clamp(uint64_t n, uint32_t least)
{
    return n < least ? least : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* How many commands the driver may have: what takes it a slice, or, where others wait, what ends
 * nearest to the slice's end. */
static uint32_t most_ahead(const struct gn_turn *t, bool pressed, uint64_t left_ns)
{
    const uint64_t each = atomic_load_explicit(&t->service_ns, memory_order_relaxed);
    if (pressed)
        return each ? clamp((left_ns + each / 2) / each, 1) : AHEAD_LEAST;
    return clamp(each ? t->slice_ns / each : AHEAD_FIRST, AHEAD_LEAST);
}

/*
 * The driver has all that it may have now: below which number is it to be given more? Not at each
 * end, since who submits is woken for it: half of a slice's work keeps the device busy meanwhile.
 * Where others wait that was what the slice holds, and only what it was misjudged by is to be
 * added. A device that computes on processors has none idle while we come; to be woken once more
 * costs it more.
 */
static uint32_t refill_at(const struct gn_vdevice *d, bool pressed, uint32_t most)
{
    const uint64_t each = atomic_load_explicit(&d->turn.service_ns, memory_order_relaxed);
    if (!pressed || !each)
        return most > AHEAD_LEAST ? most / 2 + 1 : most;
    const uint32_t low = (uint32_t)(REFILL_NS / each) + (d->vgpu->on_processors ? 1 : AHEAD_LEAST);
    return low < most ? low : most;
}

/* Others wait: is another command to begin in this slice? Not one of which less than half would be
 * in it, unless it is the first. */
static bool ends_now(const struct gn_turn *t, uint64_t held_ns)
{
    const uint64_t each = atomic_load_explicit(&t->service_ns, memory_order_relaxed);
    return t->over || held_ns >= t->slice_ns ||
           (t->used && !atomic_load_explicit(&t->n_ahead, memory_order_seq_cst) &&
            t->slice_ns - held_ns < each / 2);
}

/* For how long after its last end the device is kept for a program. The role. */
static uint64_t keeps_ns(struct gn_turn *t)
{
    const uint64_t asked = atomic_load_explicit(&t->slot->keep_ns, memory_order_relaxed);
    if (asked == GN_GRANT_KEEP_ALL)
        return t->slice_ns;
    if (atomic_load_explicit(&t->slot->interactive, memory_order_relaxed))
        return asked > HOLD_LONG_NS ? asked : HOLD_LONG_NS;
    return HOLD_NS;
}

/* Held, pressed, and nothing left: has the slice come to its end before it was clear that the
 * program has no more? One that has sent nothing since before this turn has none, or it could idle
 * from turn to turn. The role. */
static bool ends_too_soon(struct gn_turn *t, uint64_t now)
{
    const uint64_t since = atomic_load_explicit(&t->over_at_ns, memory_order_relaxed);
    return gn_grant_is_preempted(t->slot) && now - t->began_ns >= t->slice_ns &&
           now - since < keeps_ns(t);
}

bool gn_turn_allows(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return true;
    if (!t->held && !begin(d)) {
        gn_device_wake(d); /* it sleeps on the grant from now on */
        return false;
    }
    const bool pressed = gn_grant_is_preempted(t->slot);
    uint64_t left_ns = t->slice_ns;
    if (pressed) {
        const uint64_t now = gn_now_ns(), held_ns = now - t->began_ns;
        if (now - t->window_ns >= WINDOW_NS)
            classify(d, now);
        t->preempted_ns = now;
        if (ends_now(t, held_ns)) {
            t->over = true;
            gn_device_wake(d);
            return false;
        }
        left_ns = t->slice_ns - held_ns;
    }
    const uint32_t most = most_ahead(t, pressed, left_ns);
    if (atomic_load_explicit(&t->n_ahead, memory_order_seq_cst) < most)
        return true;
    /* Announced before the second look, so that the end that makes room either is seen here or sees
     * that we wait. */
    const uint32_t low = refill_at(d, pressed, most);
    atomic_store_explicit(&t->held_up, low, memory_order_seq_cst);
    return atomic_load_explicit(&t->n_ahead, memory_order_seq_cst) < low;
}

uint64_t gn_turn_hold_ns(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    uint64_t ns = 0;
    if (!gn_turn_is_idle(t) || !gn_grant_is_preempted(t->slot) || pthread_mutex_trylock(&d->role))
        return 0;
    const uint64_t held_ns = t->held ? gn_now_ns() - t->began_ns : 0;
    const bool always =
        atomic_load_explicit(&t->slot->interactive, memory_order_relaxed) ||
        atomic_load_explicit(&t->slot->keep_ns, memory_order_relaxed) == GN_GRANT_KEEP_ALL;
    const uint64_t most = keeps_ns(t);
    if (t->held && !t->over && held_ns < t->slice_ns && (always || gn_spin_is_worth(&t->hold)))
        ns = t->slice_ns - held_ns < most ? t->slice_ns - held_ns : most;
    pthread_mutex_unlock(&d->role);
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
    return ns;
}

void gn_turn_held(struct gn_vdevice *d, bool came)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot || pthread_mutex_trylock(&d->role))
        return;
    if (came)
        gn_spin_was_worth(&t->hold, true);
    else if (t->held && !ends_too_soon(t, gn_now_ns()))
        gn_spin_was_not(&t->hold, true);
    pthread_mutex_unlock(&d->role);
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
}

bool gn_turn_tracks(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (gn_grant_is_preempted(t->slot) || t->n_untold + 1 >= TELL_EVERY ||
        atomic_load_explicit(&t->service_ns, memory_order_relaxed) >= TELL_EACH_NS)
        return true;
    t->n_untold++;
    return false;
}

uint32_t gn_turn_given(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    const uint32_t covers = t->n_untold + 1;
    t->n_untold = 0;
    t->used = true;
    atomic_fetch_add_explicit(&t->n_given, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&t->n_ahead, covers, memory_order_seq_cst);
    return covers;
}

uint64_t gn_turn_service_ns(const struct gn_turn *t, uint64_t submit_ns)
{
    const uint64_t now = gn_now_ns(),
                   before = atomic_load_explicit(&t->over_at_ns, memory_order_relaxed);
    const uint64_t from = submit_ns > before ? submit_ns : before;
    return now > from ? now - from : 0;
}

void gn_turn_ended(struct gn_turn *t)
{
    atomic_store_explicit(&t->over_at_ns, gn_now_ns(), memory_order_relaxed);
}

/* What the device worked for it: the part of [start, end] that no earlier command is charged with,
 * so that overlapping commands are charged once (FairGV 3.3.1, by the driver's profiling times). */
static uint64_t device_time(struct gn_turn *t, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t before = atomic_load_explicit(&t->device_end_ns, memory_order_relaxed);
    do {
        if (end_ns <= before)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&t->device_end_ns, &before, end_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return end_ns - (start_ns > before ? start_ns : before);
}

void gn_turn_over(struct gn_vdevice *d, uint32_t covers, uint64_t submit_ns, uint64_t start_ns,
                  uint64_t end_ns)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return;
    const uint64_t now = gn_now_ns(),
                   before = atomic_exchange_explicit(&t->over_at_ns, now, memory_order_relaxed);
    const uint64_t from = submit_ns > before ? submit_ns : before,
                   took = now > from ? now - from : 0;
    const uint64_t old = atomic_load_explicit(&t->service_ns, memory_order_relaxed);
    const uint64_t each = took / covers;
    atomic_store_explicit(&t->service_ns, old ? (3 * old + each) / 4 : each, memory_order_relaxed);
    /* A clock of the device's that says more than ours is not believed. */
    uint64_t ran = took;
    if (end_ns > start_ns) {
        ran = device_time(t, start_ns, end_ns);
        if (covers > 1 || end_ns - start_ns > now - submit_ns)
            ran = took;
    }
    gn_count(&t->slot->device_ns, (int64_t)ran);
    const uint32_t n =
        atomic_fetch_sub_explicit(&t->n_ahead, covers, memory_order_seq_cst) - covers;
    if (atomic_fetch_sub_explicit(&t->n_given, 1, memory_order_seq_cst) == 1)
        gn_count(&t->n_dry, 1);
    if (n < atomic_load_explicit(&t->held_up, memory_order_seq_cst) &&
        atomic_exchange_explicit(&t->held_up, 0, memory_order_seq_cst))
        atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
}

/* The next queue that this visit has not seen, held, with its last command, held; NULL: there is
 * none left. vgpu->lock. */
static struct gn_vqueue *next_queue_locked(struct gn_vdevice *d, struct gn_command **ret_last)
{
    gn_list_for_each(q, &d->queues, struct gn_vqueue, link)
    {
        if (q->n_visits == d->turn.n_visits)
            continue;
        q->n_visits = d->turn.n_visits;
        if (!q->last || !q->last->driver_event || !gn_object_ref_if_held(q->object))
            continue;
        *ret_last = q->last;
        atomic_fetch_add_explicit(&q->last->n_refs, 1, memory_order_relaxed);
        return q;
    }
    return NULL;
}

/* Calls f for each queue that the driver has been given something of, without a lock. The role. */
static bool each_queue(struct gn_vdevice *d,
                       bool (*f)(struct gn_vdevice *d, void *queue, void *last_event))
{
    struct gn_vgpu *v = d->vgpu;
    struct gn_command *last;
    struct gn_vqueue *q;
    bool all = true;
    pthread_mutex_lock(&v->lock);
    d->turn.n_visits++;
    while ((q = next_queue_locked(d, &last))) {
        struct gn_vobject *o = q->object;
        pthread_mutex_unlock(&v->lock);
        all = f(d, o->driver, last->driver_event) && all;
        gn_command_unref(last);
        gn_object_unref(o);
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
    return all;
}

static bool finish(struct gn_vdevice *d, void *queue, void *last_event)
{
    (void)last_event;
    d->vgpu->api->finish(d->vgpu, queue);
    return true;
}

static bool has_ended(struct gn_vdevice *d, void *queue, void *last_event)
{
    (void)queue;
    return d->vgpu->api->is_over(d->vgpu, last_event);
}

void gn_turn_end(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->held || !t->over)
        return;
    /* Who waits in the driver for what is over is woken for nothing. Of queues whose commands end
     * in any order each one tells of its end.
     */
    if (!gn_turn_is_idle(t) || !each_queue(d, has_ended))
        each_queue(d, finish);
    t->preempted_ns = gn_now_ns();
    classify(d, t->preempted_ns);
    t->held = t->over = false;
    t->n_untold = 0;
    /*
     * Wanted again, whether there is anything ready or not: who has used up a slice goes on, and a
     * program that waits for each of its commands has none ready in this moment. If it stopped
     * wanting it would lose its place, and what it is owed, every time.
     */
    atomic_store_explicit(&t->wanted, true, memory_order_seq_cst);
    show(d, GN_SPIN_AWAY);
    gn_grant_yield(t->slot, true);
    tell(t);
}

/* The last command of a queue whose ends nobody asked for is over. The driver's thread. */
static void last_over(void *arg)
{
    struct gn_vdevice *d = arg;
    atomic_store_explicit(&d->turn.watched, false, memory_order_seq_cst);
    if (!d->vgpu->remote && gn_grant_is_preempted(d->turn.slot))
        gn_ring_nudge(
            &d->vgpu->ring); /* as after an end that is told: the program is likely to go on */
    else
        gn_turn_park(d);
    gn_vgpu_unhold(d->vgpu);
}

static bool is_over(struct gn_vdevice *d, void *queue, void *last_event)
{
    const struct gn_vgpu_api *api = d->vgpu->api;
    (void)queue;
    if (api->is_over(d->vgpu, last_event))
        return true;
    if (!atomic_exchange_explicit(&d->turn.watched, true, memory_order_seq_cst)) {
        /* Nobody waits for it. */
        gn_vgpu_hold(d->vgpu);
        if (api->when_quiet(d->vgpu, last_event, last_over, d)) {
            gn_vgpu_unhold(d->vgpu);
            atomic_store_explicit(&d->turn.watched, false, memory_order_seq_cst);
        }
    }
    /* It may have ended meanwhile. */
    return api->is_over(d->vgpu, last_event);
}

static bool is_done(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    if (!gn_turn_is_idle(&d->turn))
        return false;
    pthread_mutex_lock(&v->lock);
    bool ready = gn_device_has_ready_locked(d) && !gn_gate_holds(&v->gate);
    pthread_mutex_unlock(&v->lock);
    return !ready && each_queue(d, is_over);
}

/*
 * Who finds the role taken leaves it to its holder: one that rests looks at `rests` again when it
 * has given the role back, and all that submit rest before they sleep.
 */
void gn_turn_park(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return;
    atomic_store_explicit(&t->rests, true, memory_order_seq_cst);
    while (atomic_load_explicit(&t->rests, memory_order_seq_cst)) {
        if (pthread_mutex_trylock(&d->role))
            return;
        if (atomic_exchange_explicit(&t->rests, false, memory_order_seq_cst) && t->held &&
            !t->over && is_done(d)) {
            /* A program that is about to go on stays in line, as with every slice's end; it is not
             * known to have no more work. */
            if (ends_too_soon(t, gn_now_ns())) {
                t->over = true;
                pthread_mutex_unlock(&d->role);
                gn_device_wake(d);
                return;
            }
            const uint64_t now = atomic_load_explicit(&t->over_at_ns, memory_order_relaxed);
            if (now >= t->window_ns + WINDOW_NS)
                classify(d, now);
            t->held = false;
            t->n_untold = 0;
            if (gn_grant_park(t->slot)) {
                t->preempted_ns = gn_now_ns();
                tell(t);
            }
        }
        pthread_mutex_unlock(&d->role);
        atomic_thread_fence(memory_order_seq_cst);
    }
    /* Whoever came meanwhile found the role taken and left. */
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
}

/* True: gantryd has to be told. The role. */
static bool leave(struct gn_turn *t)
{
    const bool was_wanted = atomic_exchange_explicit(&t->wanted, false, memory_order_seq_cst),
               was_held = t->held;
    t->held = t->over = false;
    if (was_held)
        gn_grant_yield(t->slot, false);
    return was_held || (was_wanted && gn_grant_decline(t->slot));
}

void gn_turn_leave(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return;
    pthread_mutex_lock(&d->role);
    const bool news = leave(t);
    pthread_mutex_unlock(&d->role);
    if (news)
        tell(t);
    gn_device_wake(d); /* it may sleep on a grant that nobody wants any more */
}

/*
 * GPU-centric coscheduling (FairGV 3.2.3): the thread that waits for what the driver is about to be
 * given is woken now, not when that is over, and is on its processor by then. It waits for the last
 * command of some queue.
 */
static void rouse(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    if (v->remote)
        return;
    pthread_mutex_lock(&v->lock);
    gn_list_for_each(q, &d->queues, struct gn_vqueue, link)
    {
        if (gn_list_empty(&q->pending))
            continue;
        struct gn_event_entry *e =
            gn_command_entry(gn_list_last(&q->pending, struct gn_command, link));
        if (e)
            gn_event_rouse(e);
    }
    pthread_mutex_unlock(&v->lock);
}

void gn_turn_began(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (gn_gate_holds(&d->vgpu->gate)) {
        /* For as long as the rest of the driver's work takes, or somebody's build, others may use
         * the device. */
        if (leave(t))
            tell(t);
        return;
    }
    if (!t->held && begin(d) && atomic_load_explicit(&t->slot->interactive, memory_order_relaxed))
        rouse(d);
    atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
}
