/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swaps of one device's memory (placement.h): asks src/place which vGPU comes in and which lose
 * memory for it, waits until these have given the grant back and evicted, then lets the vGPU in.
 * The scheduler's thread decides; answers come on gantryd's thread. All under the scheduler's lock;
 * never waits.
 *
 * A swap is broken when a worker in it ends or cannot evict: then the slots that came free are
 * free, and the next decision plans anew.
 */
#include "daemon/schedule/placement_internal.h"
#include "place/residency.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A worker answers within ten seconds and the time of its copies, even if it cannot evict. */
#define ANSWER_NS        UINT64_C(30000000000)
#define SLOWEST_NS_A_MIB UINT64_C(20000000)
/*
 * A worker that cannot evict is not asked again sooner, and after each further refusal not for
 * twice the time. In the end it is as one that does not answer.
 */
#define REST_NS       UINT64_C(1000000000)
#define MOST_REFUSALS 8u

void gn_placed_post(struct gn_scheduler *s, struct gn_placed *m)
{
    const uint64_t one = 1;
    if (gn_list_empty(&m->order))
        gn_list_append(&s->orders, &m->order);
    (void)!write(s->news_fd, &one, sizeof one);
}

void gn_placed_set_evicted(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    const bool evicted = m->state != GN_PLACEMENT_RESIDENT || !gn_place_is_resident(&m->place);
    if (m->share && m->share->entity.evicted != evicted)
        gn_sched_set_evicted(&s->devices[m->device].sched, &m->share->entity, evicted, now);
}

void gn_placed_update(struct gn_placed *m, uint64_t now)
{
    const bool ready = m->has_work || m->wants || m->grows;
    if (ready && !m->place.ready)
        gn_place_wake(&m->on->place, &m->place, now);
    else if (!ready && m->place.ready && !m->place.granted)
        gn_place_sleep(&m->on->place, &m->place, now);
}

void gn_placed_end(struct gn_scheduler *s, struct gn_placed *m)
{
    if (m->ended)
        return;
    m->ended = m->overdue = true;
    gn_placed_post(s, m);
}

static void note(const struct gn_scheduler *s, const struct gn_placed *m, enum gn_trace_kind kind,
                 uint64_t bytes, uint64_t now)
{
    if (m->share)
        gn_scheduler_note(&s->devices[m->device], m->share, kind, bytes, 0, now);
}

static void tell(struct gn_scheduler *s, struct gn_placed *m, enum gn_placement_state state,
                 uint64_t bytes, uint64_t now)
{
    m->state = state;
    m->told_bytes = bytes;
    m->told_ns = now;
    m->answer_by_ns =
        now + ANSWER_NS + m->place.n_chunks * (m->on->place.slot_bytes >> 20) * SLOWEST_NS_A_MIB;
    m->number++;
    m->tells = true;
    m->on->n_awaited++;
    gn_placed_post(s, m);
}

/* n_missing: of its chunks, those that it has to copy. */
static void tell_to_come(struct gn_scheduler *s, struct gn_placed *m, uint32_t n_missing,
                         uint64_t now)
{
    m->n_missing = n_missing;
    tell(s, m, GN_PLACEMENT_COMING, UINT64_MAX, now);
    note(s, m, GN_TRACE_SWAP_IN, m->place.n_chunks * m->on->place.slot_bytes, now);
}

/* ---- the size */

static uint32_t chunks_of(const struct gn_placing *on, uint64_t bytes)
{
    const uint64_t n = bytes / on->place.slot_bytes + (bytes % on->place.slot_bytes != 0);
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Pins the first n chunks, and no others. 0 or -ENOSPC. */
static int pin(struct gn_placed *m, uint32_t n)
{
    struct gn_place *p = &m->on->place;
    const struct gn_chunk_set all = gn_chunk_range(n);
    const struct gn_chunk_set more = gn_chunk_minus(&all, &m->place.pinned);
    const struct gn_chunk_set fewer = gn_chunk_minus(&m->place.pinned, &all);
    const int rc = gn_chunk_empty(&more) ? 0 : gn_place_pin(p, &m->place, &more);
    if (!rc && !gn_chunk_empty(&fewer))
        gn_place_unpin(p, &m->place, &fewer);
    return rc;
}

/* Gives up the chunks from n on. Those on the device only while its worker is not told to evict. */
static void shrink(struct gn_placed *m, uint32_t n, uint64_t now)
{
    struct gn_placing *on = m->on;
    const struct gn_chunk_set rest = gn_chunk_range(n);
    const struct gn_chunk_set gone = gn_chunk_minus(&m->place.occupied, &rest);
    if (!gn_chunk_empty(&gone) &&
        (m->state != GN_PLACEMENT_RESIDENT || !gn_list_empty(&m->leaving)))
        return; /* when it is resident again */
    if (on->phase == GN_SWAP_LEAVE && on->coming == m)
        on->broken = true;
    const struct gn_chunk_set pinned = gn_chunk_minus(&m->place.pinned, &rest);
    gn_place_unpin(&on->place, &m->place, &pinned);
    gn_place_vacate(&on->place, &m->place, &gone);
    (void)gn_place_resize(&on->place, &m->place, n, now);
}

/* Takes free slots for all that it needs. False: there are not enough, or a swap may want them. */
static bool take_free(struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    if (on->phase != GN_SWAP_NONE || m->state != GN_PLACEMENT_RESIDENT ||
        !gn_place_plan(&on->place, &m->place, now, &on->plan) || on->plan.n_out)
        return false;
    gn_place_apply(&on->place, &on->plan, now);
    return true;
}

/* What was evicted has been released, so it has slots for all that is left. */
static void come_without_slots(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    on->phase = GN_SWAP_COME;
    on->began_ns = now;
    on->n_awaited = 0;
    tell_to_come(s, m, 0, now);
}

static void set_grows(struct gn_scheduler *s, struct gn_placed *m, bool grows)
{
    if (m->grows && !grows) {
        m->has_room = true;
        gn_placed_post(s, m);
    }
    m->grows = grows;
}

int gn_placed_fit(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_place *p = &m->on->place;
    const uint32_t before = m->place.n_chunks, n = chunks_of(m->on, m->bytes);
    if (n < before)
        shrink(m, n, now);
    int rc = n > before ? gn_place_resize(p, &m->place, n, now) : 0;
    /* Memory that it has already stays its own, pinned or not. */
    if (!rc && pin(m, chunks_of(m->on, m->pinned_bytes)) && n > before) {
        (void)gn_place_resize(p, &m->place, before, now);
        rc = -ENOSPC;
    }
    if (rc)
        return rc;
    const bool fits = gn_place_is_resident(&m->place) || take_free(m, now);
    /* What it had before may be evicted; then it is its worker that waits. */
    set_grows(s, m, !fits && (n > before || m->grows));
    if (fits && m->state == GN_PLACEMENT_EVICTED && m->on->phase == GN_SWAP_NONE)
        come_without_slots(s, m, now);
    gn_placed_set_evicted(s, m, now);
    gn_placed_update(m, now);
    return !m->grows;
}

/* ---- a swap */

static void tell_to_leave(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    const uint32_t n = m->place.n_occupied - gn_chunk_count(&m->out);
    m->on->n_awaited--; /* it was awaited since it was pressed */
    tell(s, m, GN_PLACEMENT_LEAVING, n * m->on->place.slot_bytes, now);
    note(s, m, GN_TRACE_SWAP_OUT, m->told_bytes, now);
}

static void end_swap(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    on->phase = GN_SWAP_NONE;
    on->coming = NULL;
    on->copying_ns += now - on->began_ns;
    on->again_ns = now; /* others may come in */
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        struct gn_placed *m = gn_placed_of(v);
        const bool changed = m->grows || chunks_of(on, m->bytes) < v->n_chunks ||
                             (m->state == GN_PLACEMENT_EVICTED && gn_place_is_resident(v));
        if (changed)
            (void)gn_placed_fit(s, m, now);
    }
}

static void settle_in(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    m->state = GN_PLACEMENT_RESIDENT;
    m->wants = false;
    if (gn_place_is_resident(&m->place))
        set_grows(s, m, false);
    gn_placed_set_evicted(s, m, now);
    gn_placed_update(m, now);
}

/* All that lose memory have answered. */
static void all_have_left(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    struct gn_placed *coming = on->broken ? NULL : on->coming;
    const uint32_t n_missing = coming ? on->plan.n_in : 0;
    on->phase = GN_SWAP_COME;
    if (coming)
        gn_place_apply(&on->place, &on->plan, now);
    gn_list_for_each(m, &on->leaving, struct gn_placed, leaving)
    {
        gn_list_remove(&m->leaving);
        if (m->refused)
            on->rest_until_ns = now + REST_NS;
        else if (!coming)
            gn_place_vacate(&on->place, &m->place, &m->out);
        /* One that could not evict may have all of its slots still. */
        if (gn_place_is_resident(&m->place))
            tell_to_come(s, m, 0, now);
        gn_placed_set_evicted(s, m, now);
        gn_placed_update(m, now);
    }
    if (coming && coming->state == GN_PLACEMENT_EVICTED)
        tell_to_come(s, coming, n_missing, now);
    else if (coming)
        settle_in(s, coming, now);
    if (!on->n_awaited)
        end_swap(s, on, now);
}

/* The next plans are without it for a time. */
static void note_refusal(struct gn_scheduler *s, struct gn_placed *m, bool refused, uint64_t now)
{
    m->n_refusals = refused ? m->n_refusals + 1 : 0;
    if (refused)
        m->place.kept_until_ns = now + (REST_NS << m->n_refusals);
    if (m->n_refusals > MOST_REFUSALS)
        gn_placed_end(s, m);
}

static void has_left(struct gn_scheduler *s, struct gn_placed *m, bool refused, uint64_t now)
{
    struct gn_placing *on = m->on;
    m->state = GN_PLACEMENT_EVICTED;
    m->refused = refused;
    on->broken |= refused;
    note_refusal(s, m, refused, now);
    if (!refused)
        note(s, m, GN_TRACE_EVICTED, 0, now);
    if (!refused)
        gn_place_note_copy(&on->place, false, gn_chunk_count(&m->out), now - m->told_ns);
    if (!on->n_awaited)
        all_have_left(s, on, now);
}

static void has_come(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    m->n_residencies += m->n_missing != 0;
    note(s, m, GN_TRACE_RESIDENT, 0, now);
    m->evicted_ns += now - m->evicted_since_ns;
    on->n_swaps += m->n_missing != 0;
    gn_place_note_copy(&on->place, true, m->n_missing, now - m->told_ns);
    settle_in(s, m, now);
    if (!on->n_awaited)
        end_swap(s, on, now);
}

void gn_placed_answered(struct gn_scheduler *s, struct gn_placed *m, bool refused, uint64_t now)
{
    m->on->n_awaited--;
    if (m->state == GN_PLACEMENT_LEAVING)
        has_left(s, m, refused, now);
    else
        has_come(s, m, now);
}

void gn_placed_gone(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    const bool awaited = m->state == GN_PLACEMENT_PRESSED || m->state == GN_PLACEMENT_LEAVING ||
                         m->state == GN_PLACEMENT_COMING;
    if (m->share)
        m->share->placed = NULL;
    m->share = NULL;
    /* The plan names it. */
    if (on->phase == GN_SWAP_LEAVE && (on->coming == m || !gn_list_empty(&m->leaving)))
        on->broken = true;
    if (on->coming == m)
        on->coming = NULL;
    gn_list_remove(&m->leaving);
    gn_list_remove(&m->order);
    gn_place_remove(&on->place, &m->place, now);
    m->on = NULL;
    on->n_awaited -= awaited;
    if (on->phase == GN_SWAP_LEAVE && !on->n_awaited)
        all_have_left(s, on, now);
    else if (on->phase == GN_SWAP_COME && !on->n_awaited)
        end_swap(s, on, now);
    on->again_ns = now;
}

static void start_swap(struct gn_scheduler *s, struct gn_placing *on, struct gn_placed *coming,
                       uint64_t now)
{
    on->phase = GN_SWAP_LEAVE;
    on->broken = false;
    on->coming = coming;
    on->began_ns = now;
    on->n_awaited = 0;
    gn_list_for_each(v, &on->plan.victims, struct gn_place_vgpu, victim)
    {
        struct gn_placed *m = gn_placed_of(v);
        m->out = v->leaving;
        m->refused = false;
        gn_list_append(&on->leaving, &m->leaving);
        on->n_awaited++;
        if (m->state == GN_PLACEMENT_RESIDENT)
            m->evicted_since_ns = now;
        m->state = GN_PLACEMENT_PRESSED;
        gn_placed_set_evicted(s, m, now);
        if (!m->place.granted)
            tell_to_leave(s, m, now);
    }
    if (!on->n_awaited)
        all_have_left(s, on, now);
}

/* ---- decisions */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

/* Ends workers that do not answer. Returns when to look again; 0: no answer is awaited. */
static uint64_t check_answers(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    uint64_t first = 0;
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        struct gn_placed *m = gn_placed_of(v);
        if (m->state != GN_PLACEMENT_LEAVING && m->state != GN_PLACEMENT_COMING)
            continue;
        if (now < m->answer_by_ns)
            first = earlier(first, m->answer_by_ns);
        else
            gn_placed_end(s, m);
    }
    return first;
}

void gn_placing_decide(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    struct gn_place_vgpu *v = NULL;
    uint64_t again_ns = 0;
    if (gn_list_empty(&on->place.vgpus)) {
        on->again_ns = 0;
        return;
    }
    const uint64_t tick_ns = gn_place_tick(&on->place, now);
    while (on->phase == GN_SWAP_NONE && now >= on->rest_until_ns &&
           (v = gn_residency_next(&on->place, now, &on->plan, &again_ns)))
        start_swap(s, on, gn_placed_of(v), now);
    if (on->phase != GN_SWAP_NONE)
        again_ns =
            now < on->began_ns + ANSWER_NS ? on->began_ns + ANSWER_NS : check_answers(s, on, now);
    else if (now < on->rest_until_ns)
        again_ns = earlier(again_ns, on->rest_until_ns);
    /* Idle vGPUs are looked for only for one that waits. */
    on->again_ns = RB_EMPTY(&on->place.wanting) ? again_ns : earlier(again_ns, tick_ns);
}

/* ---- a share's turns */

bool gn_placing_presses(const struct device *d, const struct gn_share *holder)
{
    return d->placing && (holder->entity.evicted || !RB_EMPTY(&d->placing->place.wanting));
}

/* The scheduler ends turns after it has decided, too: a parked holder gives the grant back at once.
 * No other event may follow. */
static void decide_again(struct gn_placing *on, uint64_t now)
{
    if (!RB_EMPTY(&on->place.wanting))
        on->again_ns = now;
}

void gn_placed_ready(struct gn_share *sh, bool ready, uint64_t now)
{
    struct gn_placed *m = sh->placed;
    if (!m || m->has_work == ready)
        return;
    m->has_work = ready;
    gn_placed_update(m, now);
    decide_again(m->on, now);
}

void gn_placed_unbind(struct gn_share *sh, uint64_t now)
{
    struct gn_placed *m = sh->placed;
    if (!m)
        return;
    sh->placed = NULL;
    m->share = NULL;
    m->has_work = false;
    gn_placed_update(m, now);
}

void gn_placed_turn(struct gn_share *sh, uint64_t now)
{
    struct gn_placed *m = sh->placed;
    if (!m)
        return;
    m->has_work = true;
    gn_place_turn(&m->on->place, &m->place, now);
    gn_place_set_changed(&m->place, &m->place.occupied);
}

void gn_placed_turn_over(struct gn_scheduler *s, struct gn_share *sh, uint64_t used_ns,
                         bool more_work, uint64_t now)
{
    struct gn_placed *m = sh->placed;
    if (!m)
        return;
    m->has_work = more_work;
    gn_place_yield(&m->on->place, &m->place, used_ns, more_work, now);
    gn_placed_update(m, now);
    decide_again(m->on, now);
    if (m->state == GN_PLACEMENT_PRESSED)
        tell_to_leave(s, m, now);
}
