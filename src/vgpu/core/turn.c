/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU's turns on a device: acquires and yields the device's grant, limits the commands that the
 * driver may have, and measures their time. Called by the submitter under the device role, and by
 * the driver's threads for completions. Never submits a command; finish and is_over are the only
 * driver calls, and when_quiet the only callback that it asks for.
 */
#include "vgpu/core/turn.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "vgpu/core/vgpu_core.h"

#include <unistd.h>

/* How long the device is kept for a program that waited: it wakes, decides and sends meanwhile. */
#define HOLD_NS 500000u
/*
 * For a program that always comes back in time; it would be delayed if the device were given away.
 */
#define HOLD_LONG_NS 2000000u
/* FairGV 3.2.3: more than WINDOW_MOST synchronous calls in this time make a vGPU interactive */
#define WINDOW_NS   10000000u
#define WINDOW_MOST 10u
/* With no other vGPU waiting, one of this many commands reports its end, */
#define TELL_EVERY   8u
#define TELL_EACH_NS 250000u /* and each command that takes this long */
/* Commands that the driver may have while their length is unknown and no other vGPU waits. */
#define AHEAD_FIRST 32u
/*
 * The driver has at least this many, however long they take, so that the device need not wait for
 * more.
 */
#define AHEAD_LEAST 2u
/* While other vGPUs wait, the submitter is woken this long before the driver runs dry. */
#define REFILL_NS 50000u

static void notify_gantryd(struct gn_turn *t)
{
    (void)gn_fd_signal(t->tell_fd);
}

static uint64_t count_waits(const struct gn_vdevice *d)
{
    return atomic_load_explicit(&d->turn.n_dry, memory_order_relaxed) +
           atomic_load_explicit(&d->vgpu->counters->sync_calls, memory_order_relaxed);
}

/*
 * Updates `interactive`, at a slice's end and after each window. Only time with the grant held
 * counts. Under the device role.
 */
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

/*
 * Tells waiting program threads whether to spin: yes while this vGPU holds the device and the
 * spinner does not run on one of the device's processors (FairGV 3.2.3).
 */
static void publish_spin_turn(struct gn_vdevice *d, enum gn_spin_turn whose)
{
    if (whose == GN_SPIN_MINE && !gn_vgpu_is_apart(d->vgpu))
        whose = GN_SPIN_ANY;
    _Atomic uint32_t *word = d->vgpu->view.turn ? &d->vgpu->view.turn->whose : NULL;
    if (word && atomic_load_explicit(word, memory_order_relaxed) != whose)
        atomic_store_explicit(word, whose, memory_order_relaxed);
}

static bool acquire_grant(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    bool news;
    if (gn_grant_acquire(t->slot, &news)) {
        t->held = true;
        t->over = false;
        t->began_ns = gn_now_ns();
        publish_spin_turn(d, GN_SPIN_MINE);
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
    /* With no other vGPU waiting, a parked grant comes back at once: no need to stop spinning. */
    if (t->preempted_ns)
        publish_spin_turn(d, GN_SPIN_AWAY);
    if (news)
        notify_gantryd(t);
    return false;
}

static uint32_t clamp(uint64_t n, uint32_t least)
{
    return n < least ? least : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/*
 * How many commands the driver may have: a slice's worth, or, while other vGPUs wait, as many as
 * end nearest to the slice's end.
 */
static uint32_t most_ahead(const struct gn_turn *t, bool preempted, uint64_t left_ns)
{
    const uint64_t each = atomic_load_explicit(&t->service_ns, memory_order_relaxed);
    if (preempted)
        return each ? clamp((left_ns + each / 2) / each, 1) : AHEAD_LEAST;
    return clamp(each ? t->slice_ns / each : AHEAD_FIRST, AHEAD_LEAST);
}

/*
 * The driver has as many commands as it may have now: below which number does it get more? Not at
 * each completion, since that would wake the submitter each time: half a slice's work keeps the
 * device busy meanwhile. While other vGPUs wait, the driver already has the rest of the slice, and
 * only the error of that estimate is corrected. A device that computes on processors does not idle
 * while the submitter wakes, and a wake costs it more.
 */
static uint32_t refill_at(const struct gn_vdevice *d, bool preempted, uint32_t most)
{
    const uint64_t each = atomic_load_explicit(&d->turn.service_ns, memory_order_relaxed);
    if (!preempted || !each)
        return most > AHEAD_LEAST ? most / 2 + 1 : most;
    const uint32_t low = (uint32_t)(REFILL_NS / each) + (d->vgpu->on_processors ? 1 : AHEAD_LEAST);
    return low < most ? low : most;
}

/*
 * While other vGPUs wait: whether the slice is over for new commands. A command that would run
 * mostly past the end is not submitted, unless it is the turn's first.
 */
static bool is_slice_used_up(const struct gn_turn *t, uint64_t held_ns)
{
    const uint64_t each = atomic_load_explicit(&t->service_ns, memory_order_relaxed);
    return t->over || held_ns >= t->slice_ns ||
           (t->used && !atomic_load_explicit(&t->n_ahead, memory_order_seq_cst) &&
            t->slice_ns - held_ns < each / 2);
}

/*
 * For how long after its last completion the device is kept for a program. Under the device role.
 */
static uint64_t keep_limit_ns(struct gn_turn *t)
{
    const uint64_t asked = atomic_load_explicit(&t->slot->keep_ns, memory_order_relaxed);
    if (asked == GN_GRANT_KEEP_ALL)
        return t->slice_ns;
    if (atomic_load_explicit(&t->slot->interactive, memory_order_relaxed))
        return asked > HOLD_LONG_NS ? asked : HOLD_LONG_NS;
    return HOLD_NS;
}

/*
 * The grant is held, other vGPUs wait, and the driver is idle: whether the slice has ended before
 * it was clear that the program has no more work. A program that has sent nothing since before this
 * turn has none; otherwise it could keep the device idle in every turn. Under the device role.
 */
static bool may_have_more_work(struct gn_turn *t, uint64_t now)
{
    const uint64_t since = atomic_load_explicit(&t->over_at_ns, memory_order_relaxed);
    return gn_grant_is_preempted(t->slot) && now - t->began_ns >= t->slice_ns &&
           now - since < keep_limit_ns(t);
}

bool gn_turn_allows(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return true;
    if (!t->held && !acquire_grant(d)) {
        gn_device_wake(d); /* from now on it sleeps on the grant */
        return false;
    }
    const bool preempted = gn_grant_is_preempted(t->slot);
    uint64_t left_ns = t->slice_ns;
    if (preempted) {
        const uint64_t now = gn_now_ns(), held_ns = now - t->began_ns;
        if (now - t->window_ns >= WINDOW_NS)
            classify(d, now);
        t->preempted_ns = now;
        if (is_slice_used_up(t, held_ns)) {
            t->over = true;
            gn_device_wake(d);
            return false;
        }
        left_ns = t->slice_ns - held_ns;
    }
    const uint32_t most = most_ahead(t, preempted, left_ns);
    if (atomic_load_explicit(&t->n_ahead, memory_order_seq_cst) < most)
        return true;
    /*
     * Set before the second look: the completion that makes room is either seen here or sees
     * `held_up`.
     */
    const uint32_t low = refill_at(d, preempted, most);
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
    const uint64_t most = keep_limit_ns(t);
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
    else if (t->held && !may_have_more_work(t, gn_now_ns()))
        gn_spin_was_not(&t->hold, true);
    pthread_mutex_unlock(&d->role);
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
}

bool gn_turn_tracks(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (gn_grant_is_preempted(t->slot) || t->n_unreported + 1 >= TELL_EVERY ||
        atomic_load_explicit(&t->service_ns, memory_order_relaxed) >= TELL_EACH_NS)
        return true;
    t->n_unreported++;
    return false;
}

uint32_t gn_turn_given(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    const uint32_t covers = t->n_unreported + 1;
    t->n_unreported = 0;
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

/*
 * The device time of a command: the part of [start, end] that no earlier command was charged for,
 * so that overlapping commands are charged once (FairGV 3.3.1, from the driver's profiling times).
 */
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
    /* A device clock that shows more than the host's clock is not trusted. */
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

/*
 * The next queue that this pass has not visited, and its last command, with a reference on both;
 * NULL: none left. Under vgpu->lock.
 */
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

/*
 * Calls f for each queue of which the driver has received a command, without locks. Under the
 * device role.
 */
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

static bool finish_queue(struct gn_vdevice *d, void *queue, void *last_event)
{
    (void)last_event;
    d->vgpu->api->finish(d->vgpu, queue);
    return true;
}

static bool is_queue_over(struct gn_vdevice *d, void *queue, void *last_event)
{
    (void)queue;
    return d->vgpu->api->is_over(d->vgpu, last_event);
}

void gn_turn_end(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    if (!t->held || !t->over)
        return;
    /*
     * A finish on an idle queue would only cost a wake. An out-of-order queue reports the end of
     * each of its commands.
     */
    if (!gn_turn_is_idle(t) || !each_queue(d, is_queue_over))
        each_queue(d, finish_queue);
    t->preempted_ns = gn_now_ns();
    classify(d, t->preempted_ns);
    t->held = t->over = false;
    t->n_unreported = 0;
    /*
     * Wants the grant again at once, with or without ready commands. A program that waits for each
     * of its commands has none ready at this moment; if the vGPU stopped wanting the grant, it
     * would lose its place and its credit each time.
     */
    atomic_store_explicit(&t->wanted, true, memory_order_seq_cst);
    publish_spin_turn(d, GN_SPIN_AWAY);
    gn_grant_yield(t->slot, true);
    notify_gantryd(t);
}

/* The last command of a queue without tracked completions is over. The driver's thread. */
static void on_last_command_over(void *arg)
{
    struct gn_vdevice *d = arg;
    atomic_store_explicit(&d->turn.watched, false, memory_order_seq_cst);
    /* As after a reported completion: the program probably continues. */
    if (!gn_grant_is_preempted(d->turn.slot) || !d->vgpu->session->expect_message(d->vgpu))
        gn_turn_park(d);
    gn_vgpu_unhold(d->vgpu);
}

static bool is_queue_over_or_watched(struct gn_vdevice *d, void *queue, void *last_event)
{
    const struct gn_vgpu_api *api = d->vgpu->api;
    (void)queue;
    if (api->is_over(d->vgpu, last_event))
        return true;
    if (!atomic_exchange_explicit(&d->turn.watched, true, memory_order_seq_cst)) {
        /* Its end is not tracked otherwise. */
        gn_vgpu_hold(d->vgpu);
        if (api->when_quiet(d->vgpu, last_event, on_last_command_over, d)) {
            gn_vgpu_unhold(d->vgpu);
            atomic_store_explicit(&d->turn.watched, false, memory_order_seq_cst);
        }
    }
    /* It may have ended meanwhile. */
    return api->is_over(d->vgpu, last_event);
}

static bool is_device_idle(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    if (!gn_turn_is_idle(&d->turn))
        return false;
    pthread_mutex_lock(&v->lock);
    bool ready = gn_device_has_ready_locked(d) && !gn_gate_holds(&v->gate);
    pthread_mutex_unlock(&v->lock);
    return !ready && each_queue(d, is_queue_over_or_watched);
}

/*
 * A thread that finds the role taken leaves the check to the role's holder: gn_turn_park reads
 * `rests` again after it has released the role, and every submitter calls it before it sleeps.
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
            !t->over && is_device_idle(d)) {
            /*
             * A program that is about to continue keeps its place in line, as at the end of every
             * slice: it may have more work.
             */
            if (may_have_more_work(t, gn_now_ns())) {
                t->over = true;
                pthread_mutex_unlock(&d->role);
                gn_device_wake(d);
                return;
            }
            const uint64_t now = atomic_load_explicit(&t->over_at_ns, memory_order_relaxed);
            if (now >= t->window_ns + WINDOW_NS)
                classify(d, now);
            t->held = false;
            t->n_unreported = 0;
            if (gn_grant_park(t->slot)) {
                t->preempted_ns = gn_now_ns();
                notify_gantryd(t);
            }
        }
        pthread_mutex_unlock(&d->role);
        atomic_thread_fence(memory_order_seq_cst);
    }
    /* Threads that found the role taken meanwhile have left. */
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
}

/* True: gantryd has to be told. Under the device role. */
static bool give_up_grant(struct gn_turn *t)
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
    const bool news = give_up_grant(t);
    pthread_mutex_unlock(&d->role);
    if (news)
        notify_gantryd(t);
    gn_device_wake(d); /* it may sleep on a grant that is no longer wanted */
}

/*
 * GPU-centric coscheduling (FairGV 3.2.3): wakes the program thread that waits for a command before
 * this command is submitted, not when it is over, so that the thread is running by then. Such a
 * thread waits for the last command of some queue.
 */
static void wake_waiting_threads(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    if (!v->session->shares_memory)
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
        /* While the driver drains, or a build runs, other vGPUs may use the device. */
        if (give_up_grant(t))
            notify_gantryd(t);
        return;
    }
    if (!t->held && acquire_grant(d) &&
        atomic_load_explicit(&t->slot->interactive, memory_order_relaxed))
        wake_waiting_threads(d);
    atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
}
