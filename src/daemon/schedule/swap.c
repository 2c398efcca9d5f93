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
#include "link/worker_wire.h"
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
#define RETRY_NS      UINT64_C(1000000000)
#define MOST_REFUSALS 8u
/*
 * Others use the device, too: after a first refusal of its driver a vGPU comes in again when more
 * slots are free than it needs, after a second one later.
 */
#define UNFIT_NS UINT64_C(10000000000)

/* 0: never. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

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
    const bool ready = !m->retry_ns && (m->has_work || m->wants || m->grows);
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

static void await_answer(struct gn_placed *m, uint64_t now)
{
    m->answer_by_ns =
        now + ANSWER_NS + m->place.n_chunks * (m->on->place.slot_bytes >> 20) * SLOWEST_NS_A_MIB;
}

/* ---- host memory: evicted contents, and copies of those on the device */

/* The most that the member takes of it, in slots, at the end of a swap that is under way. */
static uint64_t slots_in_host_memory(const struct gn_placed *m)
{
    const struct gn_place_vgpu *v = &m->place;
    const bool comes = m->state == GN_PLACEMENT_COMING;
    if (m->copies != GN_COPIES_NONE)
        return v->n_chunks;
    return v->n_chunks - v->n_occupied + (comes ? m->n_missing : 0) +
           (gn_list_empty(&m->leaving) ? 0 : gn_chunk_count(&m->out));
}

/* Of all members but this one; NULL: of all. */
static uint64_t slots_beside(const struct gn_placing *on, const struct gn_placed *but)
{
    uint64_t n = 0;
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        const struct gn_placed *m = gn_placed_of(v);
        n += m == but ? 0 : slots_in_host_memory(m);
    }
    return n;
}

static bool fits_swap_memory(const struct gn_placing *on, uint64_t n_slots)
{
    return n_slots <= on->swap_bytes / on->place.slot_bytes;
}

/*
 * A member may have copies while there is room for them beside all that is evicted. One that comes
 * in frees those that it may not have, and nothing is evicted meanwhile; one that leaves keeps what
 * it has, which the swap's plan has room for.
 */
static void let_keep_copies(struct gn_placed *m)
{
    const bool fits = fits_swap_memory(m->on, slots_beside(m->on, m) + m->place.n_chunks);
    if (m->copies == GN_COPIES_DISCARDED)
        return;
    if (m->state == GN_PLACEMENT_COMING || m->copies == GN_COPIES_NONE)
        m->copies = fits ? GN_COPIES_ALLOWED : GN_COPIES_NONE;
}

static void discard(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    m->copies = GN_COPIES_DISCARDED;
    m->tells_discard = true;
    m->on->n_discarding++;
    await_answer(m, now);
    gn_placed_post(s, m);
}

void gn_placed_discarded(struct gn_placed *m, uint64_t now)
{
    m->copies = GN_COPIES_NONE;
    if (m->place.ran)
        gn_place_set_changed(&m->place, &m->place.occupied);
    m->on->n_discarding--;
    m->on->again_ns = now;
}

/* Of the plan: chunks of the member that lose their slots. */
static uint32_t n_leaving(const struct gn_placing *on, const struct gn_placed *m)
{
    return m->place.plan_number == on->place.plan_number ? gn_chunk_count(&m->place.leaving) : 0;
}

/*
 * Is there host memory for what the plan evicts? If copies take it, some are discarded, and the
 * swap begins later. What is evicted always has room: leases have a limit.
 */
static bool has_swap_memory(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    uint64_t n = slots_beside(on, NULL);
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        const struct gn_placed *m = gn_placed_of(v);
        n += m->copies == GN_COPIES_NONE ? n_leaving(on, m) : 0;
    }
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        struct gn_placed *m = gn_placed_of(v);
        const uint32_t freed = m->copies == GN_COPIES_NONE ? 0 : v->n_occupied - n_leaving(on, m);
        if (fits_swap_memory(on, n) || !freed)
            continue;
        discard(s, m, now);
        n -= freed;
    }
    return !on->n_discarding;
}

/* ---- orders */

static void tell(struct gn_scheduler *s, struct gn_placed *m, enum gn_placement_state state,
                 uint64_t bytes, uint64_t now)
{
    m->state = state;
    m->told_bytes = bytes;
    m->told_ns = now;
    await_answer(m, now);
    let_keep_copies(m);
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
    if (m->copies == GN_COPIES_ALLOWED)
        m->copies = GN_COPIES_MADE;
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
    if (fits && m->state == GN_PLACEMENT_EVICTED && m->on->phase == GN_SWAP_NONE && !m->retry_ns)
        come_without_slots(s, m, now);
    gn_placed_set_evicted(s, m, now);
    gn_placed_update(m, now);
    return !m->grows;
}

/* ---- a swap */

static void tell_to_leave(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    const uint32_t n = m->place.n_occupied - gn_chunk_count(&m->out);
    m->on->n_awaited--; /* it was awaited since it was preempted */
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
            on->no_swap_until_ns = now + RETRY_NS;
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
        m->place.kept_until_ns = now + (RETRY_NS << m->n_refusals);
    if (m->n_refusals > MOST_REFUSALS)
        gn_placed_end(s, m);
}

/* How much of it was copied: for the time of the next copies. The worker's own word. */
static void note_copied(struct gn_placed *m, uint64_t copied_bytes, uint64_t now)
{
    const uint64_t slot = m->on->place.slot_bytes;
    const uint32_t n = gn_chunk_count(&m->out);
    const uint64_t slots = copied_bytes / slot + (copied_bytes % slot != 0);
    const uint32_t n_copied = slots < n ? (uint32_t)slots : n;
    gn_place_note_copy(&m->on->place, false, n_copied, now - m->told_ns);
    if (m->copies == GN_COPIES_MADE && n)
        m->changed_share = (uint32_t)((uint64_t)n_copied * GN_PLACE_WHOLE / n);
}

static void has_left(struct gn_scheduler *s, struct gn_placed *m, bool refused,
                     uint64_t copied_bytes, uint64_t now)
{
    struct gn_placing *on = m->on;
    m->state = GN_PLACEMENT_EVICTED;
    m->refused = refused;
    on->broken |= refused;
    note_refusal(s, m, refused, now);
    if (!refused) {
        note(s, m, GN_TRACE_EVICTED, 0, now);
        note_copied(m, copied_bytes, now);
    }
    if (!on->n_awaited)
        all_have_left(s, on, now);
}

/* Of n chunks, which are not pinned, the last ones that have slots. */
static struct gn_chunk_set last_chunks(const struct gn_placed *m, uint32_t n)
{
    const struct gn_chunk_set free = gn_chunk_minus(&m->place.occupied, &m->place.pinned);
    struct gn_chunk_set set = gn_chunk_range(0);
    for (uint32_t k = m->place.n_chunks; k-- && gn_chunk_count(&set) < n;)
        if (gn_chunk_has(&free, k))
            gn_chunk_add(&set, k);
    return set;
}

/*
 * The driver has no room for a part of it, so others have the device's memory. The vGPU is evicted
 * in part, and plans leave as much memory free for a time, except for the vGPU's own needs.
 */
static void has_not_fit(struct gn_scheduler *s, struct gn_placed *m, uint64_t unfit_bytes,
                        uint64_t now)
{
    struct gn_placing *on = m->on;
    const struct gn_chunk_set out = last_chunks(m, chunks_of(on, unfit_bytes));
    const uint32_t n = gn_chunk_count(&out), rest = on->place.n_slots - m->place.n_chunks;
    m->state = GN_PLACEMENT_EVICTED;
    m->retry_ns = now + (m->n_unfit++ ? UNFIT_NS : RETRY_NS);
    on->retry_ns = earlier(on->retry_ns, m->retry_ns);
    gn_place_vacate(&on->place, &m->place, &out);
    gn_place_withhold(&on->place, n < rest ? n : rest, m->retry_ns + UNFIT_NS);
    gn_placed_set_evicted(s, m, now);
    gn_placed_update(m, now);
    if (m->n_unfit > GN_WORKER_REFUSALS)
        gn_placed_end(s, m);
    if (!on->n_awaited)
        end_swap(s, on, now);
}

static void has_come(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    m->n_unfit = 0;
    m->n_residencies += m->n_missing != 0;
    note(s, m, GN_TRACE_RESIDENT, 0, now);
    m->evicted_ns += now - m->evicted_since_ns;
    on->n_swaps += m->n_missing != 0;
    gn_place_note_copy(&on->place, true, m->n_missing, now - m->told_ns);
    settle_in(s, m, now);
    if (!on->n_awaited)
        end_swap(s, on, now);
}

void gn_placed_answered(struct gn_scheduler *s, struct gn_placed *m, bool refused,
                        const struct gn_worker_resides *r, uint64_t now)
{
    m->on->n_awaited--;
    if (m->state == GN_PLACEMENT_LEAVING)
        has_left(s, m, refused, r->copied_bytes, now);
    else if (r->refused_bytes)
        has_not_fit(s, m, r->refused_bytes, now);
    else
        has_come(s, m, now);
}

void gn_placed_gone(struct gn_scheduler *s, struct gn_placed *m, uint64_t now)
{
    struct gn_placing *on = m->on;
    const bool awaited = m->state == GN_PLACEMENT_PREEMPTED || m->state == GN_PLACEMENT_LEAVING ||
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
    on->n_discarding -= m->copies == GN_COPIES_DISCARDED;
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
        m->state = GN_PLACEMENT_PREEMPTED;
        gn_placed_set_evicted(s, m, now);
        if (!m->place.granted)
            tell_to_leave(s, m, now);
    }
    if (!on->n_awaited)
        all_have_left(s, on, now);
}

/* ---- decisions */

/* Lets vGPUs come in again for which the driver had no room. Returns when to look again; 0: none
 * waits. Looks at the vGPUs only when it is time for one of them. */
static uint64_t check_retries(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    const uint64_t withheld_ns = on->place.n_withheld ? on->place.withheld_until_ns : 0;
    if (on->retry_ns && now >= on->retry_ns) {
        on->retry_ns = 0;
        gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
        {
            struct gn_placed *m = gn_placed_of(v);
            if (m->retry_ns && now >= m->retry_ns) {
                m->retry_ns = 0;
                (void)gn_placed_fit(s, m, now);
            }
            if (m->retry_ns)
                on->retry_ns = earlier(on->retry_ns, m->retry_ns);
        }
    }
    return withheld_ns > now ? earlier(on->retry_ns, withheld_ns) : on->retry_ns;
}

/* Ends workers that do not answer. Returns when to look again; 0: no answer is awaited. */
static uint64_t check_answers(struct gn_scheduler *s, struct gn_placing *on, uint64_t now)
{
    uint64_t first = 0;
    gn_list_for_each(v, &on->place.vgpus, struct gn_place_vgpu, link)
    {
        struct gn_placed *m = gn_placed_of(v);
        if (m->state != GN_PLACEMENT_LEAVING && m->state != GN_PLACEMENT_COMING &&
            m->copies != GN_COPIES_DISCARDED)
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
    const uint64_t tick_ns = gn_place_tick(&on->place, now), retry_ns = check_retries(s, on, now);
    while (on->phase == GN_SWAP_NONE && !on->n_discarding && now >= on->no_swap_until_ns &&
           (v = gn_residency_next(&on->place, now, &on->plan, &again_ns)) &&
           has_swap_memory(s, on, now))
        start_swap(s, on, gn_placed_of(v), now);
    if (on->n_discarding)
        again_ns = check_answers(s, on, now);
    else if (on->phase != GN_SWAP_NONE)
        again_ns =
            now < on->began_ns + ANSWER_NS ? on->began_ns + ANSWER_NS : check_answers(s, on, now);
    else if (now < on->no_swap_until_ns)
        again_ns = earlier(again_ns, on->no_swap_until_ns);
    /* Idle vGPUs are looked for only for one that waits. */
    on->again_ns = RB_EMPTY(&on->place.wanting) ? again_ns : earlier(again_ns, tick_ns);
    on->again_ns = retry_ns ? earlier(on->again_ns, retry_ns) : on->again_ns;
}

/* ---- a share's turns */

bool gn_placing_preempts(const struct device *d, const struct gn_share *holder)
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

/* gantryd does not see which chunks a turn changes: as many as at the last eviction. */
static void guess_changed(struct gn_placed *m)
{
    struct gn_place_vgpu *v = &m->place;
    struct gn_chunk_set some = {0};
    const uint64_t share = m->copies == GN_COPIES_MADE ? m->changed_share : GN_PLACE_WHOLE;
    const uint64_t n = (v->n_occupied * share + GN_PLACE_WHOLE - 1) / GN_PLACE_WHOLE;
    if (n == v->n_occupied) {
        gn_place_set_changed(v, &v->occupied);
        return;
    }
    if (gn_chunk_count(&v->changed) >= n)
        return;
    uint32_t k = gn_chunk_next(&v->occupied, 0);
    for (uint64_t i = 0; i < n; i++, k = gn_chunk_next(&v->occupied, k + 1))
        gn_chunk_add(&some, k);
    gn_place_set_changed(v, &some);
}

void gn_placed_turn(struct gn_share *sh, uint64_t now)
{
    struct gn_placed *m = sh->placed;
    if (!m)
        return;
    m->has_work = true;
    gn_place_turn(&m->on->place, &m->place, now);
    guess_changed(m);
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
    if (m->state == GN_PLACEMENT_PREEMPTED)
        tell_to_leave(s, m, now);
}
