/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits long commands to the driver in parts (parts.h). While other vGPUs wait for the device, a
 * part fills the rest of the time slice; with no other vGPU waiting, it is short enough for a
 * migration to wait for. Called by the submitter, before a command of the class that can be cut is
 * submitted whole. The parts of one command run one after the other: an in-order queue ensures it,
 * in an out-of-order queue each part waits for the one before. So the end of the last part is the
 * end of all, and later commands depend on the last part only. Completions come on the driver's
 * threads.
 */
#include "vgpu/core/parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "vgpu/core/gate.h"
#include "vgpu/core/vgpu_core.h"

#include <stdlib.h>

/* A vGPU that has waited for the device this recently is expected to wait again. */
#define CONTENDED_NS 1000000000u
/* Every 13th launch that is known to be short is measured, since its length may change. */
#define TEACH_EVERY 13u
/* A kernel's first launch may be long because the driver compiles: no reason to compile more. */
#define MEASURED_ALONE 2u

struct gn_part {
    struct gn_command *command;
    uint64_t groups, submit_ns;
    uint32_t covers; /* commands that its end stands for in the turn; 0: there are no turns */
    bool first, teaches;
};

/*
 * Whether another vGPU waits for the device, now or a moment ago. *ret_left_ns: rest of the slice.
 */
static bool is_contended(struct gn_vdevice *d, bool *ret_preempted, uint64_t *ret_left_ns)
{
    struct gn_turn *t = &d->turn;
    if (!t->slot)
        return false;
    const bool preempted = gn_grant_is_preempted(t->slot);
    if (!preempted && !t->preempted_ns)
        return false;
    const uint64_t now = gn_now_ns(), held_ns = now - t->began_ns;
    if (preempted) {
        t->preempted_ns = now;
    } else if (now - t->preempted_ns > CONTENDED_NS) {
        t->preempted_ns = 0;
        return false;
    }
    *ret_preempted = preempted;
    *ret_left_ns = !preempted ? t->slice_ns : held_ns < t->slice_ns ? t->slice_ns - held_ns : 0;
    return true;
}

/*
 * Parts that the driver has. While other vGPUs wait, parts of all commands, since the device's time
 * is shared.
 */
static uint32_t count_open_parts(struct gn_vdevice *d, const struct gn_cutting *cut, bool shares)
{
    if (shares || !cut)
        return shares ? atomic_load_explicit(&d->n_parts, memory_order_seq_cst) : 0;
    pthread_mutex_lock(&d->vgpu->lock);
    const uint32_t n = cut->n_open;
    pthread_mutex_unlock(&d->vgpu->lock);
    return n;
}

/*
 * True: the end of one of the n_seen parts will wake the submit thread. False: it has ended
 * already.
 */
static bool waits_for_a_part(struct gn_vdevice *d, const struct gn_cutting *cut, bool shares,
                             uint32_t n_seen)
{
    /* Set before the second look; a part's end decrements the count before it reads part_waits. */
    atomic_store_explicit(&d->part_waits, true, memory_order_seq_cst);
    return count_open_parts(d, cut, shares) >= n_seen;
}

/*
 * Whether the device runs the command next if it is submitted now: then the time to its end is its
 * own.
 */
static bool runs_next(const struct gn_command *c)
{
    const struct gn_vqueue *q = c->queue;
    return !c->n_producers && (!q->last || !q->last->driver_event ||
                               c->vgpu->api->is_over(c->vgpu, q->last->driver_event));
}

/* For a command that is submitted whole: whether its launch is to be measured. */
static bool should_measure(struct gn_vdevice *d, const struct gn_command *c,
                           const struct gn_slice_case *k)
{
    if (!gn_slice_is_long(k->groups, k->pace_ps) && ++d->n_short < TEACH_EVERY)
        return false;
    d->n_short = 0;
    return c->queue->measured || runs_next(c);
}

static struct gn_cutting *cutting_new(const struct gn_grid *grid, void *how)
{
    struct gn_cutting *cut = calloc(1, sizeof *cut);
    if (!cut)
        return NULL;
    cut->grid = *grid;
    cut->n_groups = gn_grid_groups(grid);
    cut->how = how;
    return cut;
}

/* Starts to cut a command. NULL: it runs whole. */
static struct gn_cutting *begin_cutting(struct gn_vgpu *v, struct gn_command *c,
                                        const struct gn_grid *grid, uint32_t n_measured)
{
    void *how = NULL;
    struct gn_cutting *cut =
        v->slicer->prepare(v, c, n_measured, &how) ? cutting_new(grid, how) : NULL;
    if (!cut)
        return NULL;
    c->cut = cut;
    gn_debug("vgpu=%08x %s of %llu groups goes in parts", v->boot->id, c->class->name,
             (unsigned long long)cut->n_groups);
    return cut;
}

static bool has_failed(struct gn_vgpu *v, const struct gn_cutting *cut)
{
    pthread_mutex_lock(&v->lock);
    const bool is = cut->error != 0;
    pthread_mutex_unlock(&v->lock);
    return is;
}

/*
 * Submits no further part. The command ends with the last part that the driver has, or here if it
 * has none.
 */
static void abort_command(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    pthread_mutex_lock(&v->lock);
    gn_list_remove(&c->link);
    if (!c->cut->error)
        c->cut->error = error;
    c->cut->next_group = c->cut->n_groups;
    error = c->cut->error;
    const bool end = !c->cut->n_open;
    pthread_mutex_unlock(&v->lock);
    if (end)
        gn_command_over(c, error);
}

/* The driver has accepted the part: updates the command, its event and the turn. */
static void record_submitted_part(struct gn_vdevice *d, struct gn_part *part, void *event)
{
    struct gn_command *c = part->command;
    struct gn_vgpu *v = c->vgpu;
    struct gn_vqueue *q = c->queue;
    struct gn_cutting *cut = c->cut;
    struct gn_command *before_last = NULL;
    const uint32_t index = gn_command_event(c);
    void *before = c->driver_event;

    pthread_mutex_lock(&v->lock);
    c->driver_event = event;
    cut->n_open++;
    cut->next_group += part->groups;
    if (q->last != c) {
        before_last = q->last;
        q->last = c;
        atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
    }
    struct gn_vevent *e = index == GN_NO_EVENT ? NULL : gn_vevent_at(v, index);
    const bool begun = e && part->first, watched = begun && !gn_list_empty(&e->watches);
    if (begun)
        e->begun = true;
    if (cut->next_group == cut->n_groups) {
        gn_list_remove(&c->link);
        if (e || c->n_before) {
            c->open = true;
            gn_list_append(&q->open, &c->link);
        }
        if (e)
            gn_vevent_given_locked(e, c);
    }
    pthread_mutex_unlock(&v->lock);
    gn_command_unref(before_last);
    if (before)
        v->api->release_event(v, before);
    if (begun)
        gn_vgpu_event_post(v, index, GN_EVENT_SUBMITTED);
    if (watched)
        gn_vevent_submitted(v, index);
    atomic_fetch_add_explicit(&d->n_parts, 1, memory_order_seq_cst);
    part->covers = d->turn.slot ? gn_turn_given(d) : 0;
}

/* GN_PARTS_WHOLE: the driver refused the first part, and is to judge the whole command. */
static enum gn_parts_verdict submit_part(struct gn_vdevice *d, struct gn_command *c, uint64_t want,
                                         uint64_t least, bool shares)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_cutting *cut = c->cut;
    void *event = NULL;
    const bool first = !cut->next_group;
    /*
     * While other vGPUs wait, every command's end is tracked, so the start of this part on the
     * device is known.
     */
    const bool teaches = shares || !first || c->queue->measured || runs_next(c);
    struct gn_part *part = calloc(1, sizeof *part);
    const uint64_t groups = gn_grid_cut(&cut->grid, cut->next_group, want, least, &cut->now);
    const uint64_t submit_ns = gn_now_ns();
    int32_t result = v->api->out_of_memory;
    if (part)
        result = gn_command_issue(d, c, submit_ns,
                                  first || c->queue->in_order ? NULL : c->driver_event, &event);
    if (!part || result) {
        free(part);
        if (!first) {
            abort_command(c, result);
            return GN_PARTS_TAKEN;
        }
        free(c->cut);
        c->cut = NULL;
        return GN_PARTS_WHOLE;
    }
    *part = (struct gn_part){c, groups, submit_ns, 0, first, teaches};
    if (first) {
        c->submit_ns = submit_ns;
        gn_command_accepted(c);
    }
    record_submitted_part(d, part, event);
    /* The callback may run, and end the command, before this returns. */
    if (v->api->when_part_over(v, event, part))
        gn_part_over(part, event, v->api->out_of_memory);
    return GN_PARTS_TAKEN;
}

enum gn_parts_verdict gn_parts_next(struct gn_vdevice *d, struct gn_command *c)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_cutting *cut = c->cut;
    const uint64_t least = v->slice_groups ? v->slice_groups : GN_SLICE_LEAST_GROUPS;
    struct gn_slice_case k = {.least = least};
    struct gn_grid grid;
    bool preempted = false;

    if (cut && has_failed(v, cut)) {
        abort_command(c, 0);
        return GN_PARTS_TAKEN;
    }
    if (c->doomed || c->no_memory)
        return GN_PARTS_WHOLE;
    const bool shares = v->slice_groups || is_contended(d, &preempted, &k.left_ns);
    if (!v->slicer->look(v, c, least, &grid, &k.pace_ps) && !cut)
        return GN_PARTS_WHOLE;
    k.groups = cut ? cut->n_groups - cut->next_group : gn_grid_groups(&grid);
    k.slice_ns = d->turn.slice_ns;
    k.max_open = preempted ? 1 : 2;
    k.n_open = count_open_parts(d, cut, shares);
    if (!shares)
        k.slice_ns = k.left_ns = k.max_open * GN_SLICE_ALONE_NS;
    if (!shares && !cut && !gn_slice_is_long(k.groups, k.pace_ps)) {
        c->teaches = should_measure(d, c, &k);
        return GN_PARTS_WHOLE;
    }

    uint64_t groups = k.groups;
    enum gn_slice_verdict verdict = GN_SLICE_ALL;
    if (v->slice_groups) {
        verdict = GN_SLICE_PART;
        groups = v->slice_groups;
    } else {
        verdict = gn_slice_decide(&k, &groups);
    }
    switch (verdict) {
    case GN_SLICE_ALL:
        if (!cut)
            return GN_PARTS_WHOLE;
        groups = k.groups;
        break;
    case GN_SLICE_WAIT:
        if (!waits_for_a_part(d, cut, shares, k.n_open))
            return GN_PARTS_TAKEN;
        if (shares || !cut)
            return GN_PARTS_LATER;
        cut->waits_in = d->n_passes;
        return GN_PARTS_WAITS;
    case GN_SLICE_STOP:
        d->turn.over = true;
        gn_device_wake(d);
        return GN_PARTS_LATER;
    case GN_SLICE_PART:
        break;
    }
    if (!cut && !(cut = begin_cutting(v, c, &grid,
                                      v->slice_groups ? 0
                                      : shares        ? 1
                                                      : MEASURED_ALONE))) {
        c->teaches = !shares && should_measure(d, c, &k);
        return GN_PARTS_WHOLE;
    }
    return submit_part(d, c, groups, least, shares);
}

bool gn_parts_resume(struct gn_command *c, uint64_t next, const struct gn_event_times *times)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_grid grid;
    void *how = NULL;
    if (!v->slicer || c->class != v->slicer->class || !v->slicer->resume(v, c, &grid, &how))
        return false;
    struct gn_cutting *cut = next < gn_grid_groups(&grid) ? cutting_new(&grid, how) : NULL;
    if (!cut)
        return false;
    cut->next_group = next;
    cut->times = *times;
    c->submit_ns = times->submit_ns;
    c->cut = cut;
    gn_debug("vgpu=%08x %s of %llu groups goes on behind group %llu", v->boot->id, c->class->name,
             (unsigned long long)cut->n_groups, (unsigned long long)next);
    return true;
}

void gn_part_over(struct gn_part *part, void *event, int32_t status)
{
    struct gn_command *c = part->command;
    struct gn_cutting *cut = c->cut;
    struct gn_vgpu *v = c->vgpu;
    struct gn_vdevice *d = c->queue->device;
    uint64_t start_ns = 0, end_ns = 0;

    gn_vgpu_enter(v);
    if (status >= 0 && c->queue->measured)
        v->api->ran(v, event, &start_ns, &end_ns);
    if (status >= 0 && part->teaches)
        v->slicer->took(v, c, part->groups,
                        end_ns > start_ns ? end_ns - start_ns
                                          : gn_turn_service_ns(&d->turn, part->submit_ns));
    if (part->first && c->queue->profiling && status >= 0) {
        cut->times.submit_ns = part->submit_ns;
        v->api->times(v, event, &cut->times);
    }
    atomic_fetch_sub_explicit(&d->n_parts, 1, memory_order_seq_cst);
    if (part->covers)
        gn_turn_over(d, part->covers, part->submit_ns, start_ns, end_ns);
    else
        gn_turn_ended(&d->turn);
    free(part);
    pthread_mutex_lock(&v->lock);
    cut->n_open--;
    if (status < 0 && !cut->error)
        cut->error = status;
    const int32_t error = cut->error;
    const bool given_all = cut->next_group == cut->n_groups, end = given_all && !cut->n_open;
    pthread_mutex_unlock(&v->lock);
    /*
     * After n_parts was decremented: submit more if a command waits for a part, or remove the
     * pending rest of a failed command.
     */
    if (atomic_exchange_explicit(&d->part_waits, false, memory_order_seq_cst) ||
        (error && !given_all))
        atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
    if (end)
        gn_command_over(c, error);
    if (!end && gn_gate_is_closed(&v->gate))
        gn_gate_notify(v);
    if (atomic_load_explicit(&d->dirty, memory_order_seq_cst))
        gn_device_wake(d);
    gn_vgpu_return(v);
}
