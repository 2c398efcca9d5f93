/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending commands: admission, dependencies and completion. The ring thread admits a command. The
 * command waits in its queue until nothing in the vGPU blocks it, the submitter (device.c) hands it
 * to the driver, and the driver's completion callback, on the driver's own thread, ends it.
 * Commands that depend on user events wait here, since the program sets those events. This file
 * never hands a command to the driver.
 *
 * A command is its message: it can be saved, moved and given to another driver unchanged
 * (saved_commands.c).
 */
#include "vgpu/core/command_internal.h"
#include "vgpu/core/evict.h"

#include "base/fault.h"
#include "shm/counters.h"

#include <stdlib.h>
#include <string.h>

uint32_t gn_command_event(const struct gn_command *c)
{
    return gn_command_head_of(c)->event;
}

void gn_command_drop_objects(struct gn_command *c)
{
    for (uint32_t i = 0; i < GN_MAX_REFS; i++) {
        gn_object_unref(c->refs[i]);
        c->refs[i] = NULL;
    }
    for (uint32_t i = 0; i < c->n_objects; i++)
        gn_object_unref(c->object_refs[i]);
    c->n_objects = 0;
    /*
     * queue->last keeps a command referenced after its completion, so the command must not keep the
     * queue object alive.
     */
    gn_object_unref(c->queue_object);
    c->queue_object = NULL;
}

struct gn_event_entry *gn_command_entry(const struct gn_command *c)
{
    const uint32_t event = gn_command_head_of(c)->event;
    return event == GN_NO_EVENT ? NULL : gn_event_at(c->vgpu->events, event);
}

void gn_command_free(struct gn_command *c)
{
    if (c->driver_event)
        c->vgpu->api->release_event(c->vgpu, c->driver_event);
    gn_command_drop_objects(c);
    for (uint32_t i = 0; i < c->n_blobs; i++)
        free(c->blobs[i]);
    free(c->objects);
    free(c->object_refs);
    gn_command_drop_producers(c);
    free(c->producers);
    free(c->blockers);
    free(c->cut);
    free(c);
}

void gn_command_forget(struct gn_command *c)
{
    gn_list_remove(&c->link);
    /*
     * A sliced command may stay referenced by queue->last: drop its objects now, not with its last
     * reference.
     */
    gn_command_drop_objects(c);
    gn_command_unref(c);
}

/* ---- completion */

/* Whether all commands that it waited for have been reported as complete. If not, the thread that
 * reports the last of them looks at this queue again. */
static bool may_be_reported_locked(struct gn_command *c)
{
    for (uint32_t i = 0; i < c->n_before; i++)
        if (!atomic_load_explicit(&c->producers[i]->reported, memory_order_acquire)) {
            c->vgpu->ends_held = true;
            return false;
        }
    return true;
}

/* The next command to report as complete; NULL: none now. */
static struct gn_command *next_reportable_locked(struct gn_vqueue *q)
{
    bool first = true;
    gn_list_for_each(c, &q->open, struct gn_command, link)
    {
        if (c->ended && (first || !c->ordered) && may_be_reported_locked(c))
            return c;
        if (q->in_order)
            return NULL;
        first = false;
    }
    return NULL;
}

static void report_completion(struct gn_command *c)
{
    struct gn_vgpu *v = c->vgpu;
    uint32_t index = gn_command_head_of(c)->event;
    struct gn_list reported;

    gn_list_init(&reported);
    gn_command_drop_objects(c);
    gn_command_drop_producers(c);
    if (index != GN_NO_EVENT) {
        pthread_mutex_lock(&v->lock);
        gn_vevent_over_locked(gn_vevent_at(v, index), c->end_error, &reported);
        pthread_mutex_unlock(&v->lock);
        gn_vevent_notify(v, &reported, c->end_error);
        GN_FAULT("worker-end-told");
        /* From here on the guest may reuse the event's index. */
        gn_vgpu_event_end(v, index, c->end_error, &c->times, c);
    }
    atomic_store_explicit(&c->reported, true, memory_order_release);
    gn_command_unref(c);
}

/* Reports what is complete of a queue. A thread that is doing so already looks again itself.
 * vgpu->lock, released meanwhile: the caller has a reference to the queue's object. */
static void report_queue_locked(struct gn_vqueue *q)
{
    struct gn_vgpu *v = q->device->vgpu;
    struct gn_command *c;
    if (q->telling)
        return;
    q->telling = true;
    while ((c = next_reportable_locked(q))) {
        gn_list_remove(&c->link);
        pthread_mutex_unlock(&v->lock);
        report_completion(c);
        pthread_mutex_lock(&v->lock);
    }
    q->telling = false;
}

/* A queue with a command to report, which no thread reports; NULL: none. */
static struct gn_vqueue *reportable_queue_locked(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link)
        {
            if (!q->telling && next_reportable_locked(q))
                return q;
        }
    return NULL;
}

/* Reports commands of other queues that waited for those which have just been reported. */
static void report_held_locked(struct gn_vgpu *v)
{
    struct gn_vqueue *q;
    while (v->ends_held) {
        v->ends_held = false;
        if (!(q = reportable_queue_locked(v)))
            return;
        struct gn_vobject *queue_object = q->object;
        atomic_fetch_add_explicit(&queue_object->n_refs, 1, memory_order_relaxed);
        v->ends_held = true;
        report_queue_locked(q);
        pthread_mutex_unlock(&v->lock);
        gn_object_unref(queue_object);
        pthread_mutex_lock(&v->lock);
    }
}

/*
 * Comes last: a woken thread may preempt this one, so nothing that another thread waits for may be
 * left to do.
 */
static void wake_dirty(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++)
        if (atomic_load_explicit(&v->devices[i].dirty, memory_order_seq_cst))
            gn_device_wake(&v->devices[i]);
}

/* After a completion has been reported: the device may have become idle. */
static void check_for_idle(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    const bool idle = gn_turn_is_idle(&d->turn);
    if (gn_gate_is_closed(&v->gate))
        gn_gate_notify(v);
    /*
     * There is more to submit, or the slice is over: the woken submit thread also checks whether
     * the device is idle.
     */
    const bool is_seen_to = atomic_load_explicit(&d->dirty, memory_order_seq_cst);
    wake_dirty(v);
    if (is_seen_to)
        return;
    /*
     * The program probably continues at once: make the ring thread poll for the next message. If
     * none comes, the ring thread gives up the grant.
     */
    const bool preempted =
        idle && gn_grant_is_preempted(d->turn.slot) && gn_grant_look(d->turn.slot) == GN_GRANT_HELD;
    const bool looks =
        preempted || (v->on_processors && v->session->has_serving_thread &&
                      !atomic_load_explicit(&v->counters->pending, memory_order_relaxed) &&
                      (gn_vgpu_is_apart(v) || gn_spin_room()));
    if (!(looks && v->session->expect_message(v)) && idle)
        gn_turn_park(d);
}

/*
 * A driver may report completions in any order and from several threads at once. The program sees
 * them in queue order: a thread that has waited for a command, or for the queue, finds every
 * earlier event complete. A completion therefore waits in `open` for those before it, and one
 * thread per queue reports them.
 */
static void end_command(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_vqueue *q = c->queue;

    GN_FAULT("worker-command-over");
    if (c->followed)
        v->api->wrote(v, c);
    if (c->followed || c->teaches)
        atomic_fetch_sub_explicit(&v->n_followed, 1, memory_order_seq_cst);
    gn_count(&v->counters->pending, -1);
    if (c->covers || c->teaches) {
        struct gn_turn *turn = &q->device->turn;
        uint64_t start_ns = 0, end_ns = 0;
        const bool tells = q->measured && c->driver_event && error >= 0 && !c->class->many;
        if (tells && (c->teaches || gn_turn_measures(turn)))
            v->api->ran(v, c->driver_event, &start_ns, &end_ns);
        if ((c->teaches || (c->covers == 1 && v->slicer && c->class == v->slicer->class)) &&
            error >= 0)
            v->slicer->took(v, c, 0,
                            end_ns > start_ns ? end_ns - start_ns
                                              : gn_turn_service_ns(turn, c->submit_ns));
        if (c->covers)
            gn_turn_over(q->device, c->covers, c->submit_ns, start_ns, end_ns);
        else
            gn_turn_ended(turn);
    }
    c->times.submit_ns = c->submit_ns;
    if (q->profiling && c->driver_event && error >= 0)
        v->api->times(v, c->driver_event, &c->times);
    /*
     * The first part's times may come from another machine's clock: ignored if its start lies
     * behind the end.
     */
    if (c->cut && c->cut->times.start_ns && c->cut->times.start_ns <= c->times.end_ns) {
        c->times.submit_ns = c->cut->times.submit_ns;
        c->times.start_ns = c->cut->times.start_ns;
    }
    struct gn_vdevice *d = q->device;
    if (gn_command_head_of(c)->event == GN_NO_EVENT && !c->open) {
        gn_command_drop_objects(c);
        gn_command_unref(c);
        check_for_idle(d);
        return;
    }
    /* Keeps the queue: reporting its last command may drop the last reference on it. */
    struct gn_vobject *queue_object = c->queue_object;
    atomic_fetch_add_explicit(&queue_object->n_refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&v->lock);
    c->ended = true;
    c->end_error = error < 0 ? error : 0;
    if (!c->open) {
        /* The driver never received it. */
        c->open = true;
        gn_list_append(&q->open, &c->link);
    }
    report_queue_locked(q);
    report_held_locked(v);
    pthread_mutex_unlock(&v->lock);
    gn_object_unref(queue_object);
    check_for_idle(d);
}

void gn_command_over(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    gn_vgpu_enter(v);
    end_command(c, error);
    gn_vgpu_return(v);
}

void gn_command_follow_locked(struct gn_command *c, struct gn_command *producer)
{
    if (!producer->driver_event)
        return;
    atomic_fetch_add_explicit(&producer->n_refs, 1, memory_order_relaxed);
    c->producers[c->n_producers++] = producer;
}

/* ---- admission: the ring thread */

/*
 * The event indices that the command waits for, where they lie in the message or in the data area.
 * They are read once, at admission.
 */
static const uint32_t *locate_wait_list(struct gn_command *c)
{
    const struct gn_span *span = &gn_command_head_of(c)->waits;
    if (span->segment == GN_SPAN_NULL || !span->bytes)
        return NULL;
    const void *from = NULL;
    if (span->segment == GN_SPAN_INLINE)
        from = gn_range_ok(span->offset, span->bytes, c->n_bytes) ? c->bytes + span->offset : NULL;
    else
        from = gn_vgpu_area(c->vgpu, span->segment, span->offset, span->bytes);
    if (!from || span->bytes % sizeof(uint32_t) || span->offset % sizeof(uint32_t)) {
        c->fault = true;
        return NULL;
    }
    c->n_waits = span->bytes / sizeof(uint32_t);
    c->blockers = calloc(c->n_waits, sizeof *c->blockers);
    c->producers = calloc(c->n_waits, sizeof(struct gn_command *));
    if (!c->blockers || !c->producers) {
        c->n_waits = 0;
        c->no_memory = true;
        return NULL;
    }
    return from;
}

/* False: the guest broke the rules of the event table. */
static bool enter_event_locked(struct gn_command *c)
{
    const struct gn_command_head *head = gn_command_head_of(c);
    if (head->event == GN_NO_EVENT)
        return true;
    struct gn_vevent *e = gn_vevent_at(c->vgpu, head->event);
    if (!e || (e->state != GN_EVENT_UNUSED && e->state != GN_EVENT_OVER) ||
        !gn_list_empty(&e->blocked))
        return false;
    e->state = GN_EVENT_PENDING;
    e->user = e->begun = false;
    e->error = 0;
    e->producer = NULL;
    /* Over tcp the guest has armed its own copy of the entry, not this one. */
    if (!c->vgpu->session->shares_memory)
        gn_event_arm(gn_event_at(c->vgpu->events, head->event));
    return true;
}

void gn_command_enter_waits_locked(struct gn_command *c, const uint32_t *waits)
{
    for (uint32_t i = 0; i < c->n_waits; i++) {
        /* Read once: the program may overwrite it meanwhile. */
        const uint32_t event = __atomic_load_n(&waits[i], __ATOMIC_RELAXED);
        struct gn_vevent *e = gn_vevent_at(c->vgpu, event);
        gn_list_init(&c->blockers[i].link);
        if (!e)
            continue;
        if (e->state == GN_EVENT_PENDING) {
            c->blockers[i].command = c;
            c->blockers[i].event = event;
            gn_list_append(&e->blocked, &c->blockers[i].link);
            c->n_blockers++;
        } else if (e->state == GN_EVENT_GIVEN && e->producer) {
            gn_command_follow_locked(c, e->producer);
        } else if (e->state == GN_EVENT_OVER && e->error < 0) {
            c->doomed = c->vgpu->api->wait_failed;
        }
    }
}

static bool has_blocked_locked(const struct gn_vqueue *q)
{
    gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        if (c->n_blockers)
            return true;
    }
    return false;
}

/*
 * Rejects a command that could not be created. The error is the driver's error for no memory or for
 * a stale handle.
 */
static void reject(struct gn_vgpu *v, const struct gn_msg *msg, const struct gn_command_head *head,
                   int32_t error)
{
    if (msg->flags & GN_MSG_ASK)
        gn_vgpu_reply(v, msg->reply, error, NULL, 0);
    else if (head->event != GN_NO_EVENT && gn_event_at(v->events, head->event))
        gn_vgpu_event_end(v, head->event, error, NULL, NULL);
}

void gn_commands_batch_came(struct gn_vgpu *v, uint64_t batch)
{
    bool any = false;
    pthread_mutex_lock(&v->lock);
    gn_list_for_each(c, &v->batch_waiters, struct gn_command, batch_link)
    {
        if (c->batch > batch)
            continue;
        gn_list_remove(&c->batch_link);
        c->n_blockers--;
        atomic_store_explicit(&c->queue->device->dirty, true, memory_order_seq_cst);
        any = true;
    }
    pthread_mutex_unlock(&v->lock);
    for (uint32_t i = 0; any && i < v->n_devices; i++)
        gn_device_pump(&v->devices[i]);
}

void gn_command_admit(struct gn_vgpu *v, const struct gn_request_class *class,
                      const unsigned char *bytes, uint32_t n_bytes, uint64_t batch)
{
    const struct gn_msg *msg = (const void *)bytes;
    const struct gn_command_head *head = (const void *)(bytes + sizeof *msg);
    bool lie = false;
    struct gn_vobject *queue = gn_object_get(v, head->queue, v->api->queue_kind, &lie);
    struct gn_command *c = queue ? gn_command_new(v, class, queue, bytes, n_bytes) : NULL;
    if (lie) {
        gn_vgpu_fault(v, "a command names no queue", class->name);
        return;
    }
    if (!c) {
        reject(v, msg, head, queue ? v->api->out_of_memory : v->api->invalid_handle);
        gn_object_unref(queue);
        return;
    }
    const uint32_t *waits = locate_wait_list(c);
    c->fault |= head->zero != 0;
    if (!c->fault)
        class->admit(v, c);
    c->ordered = class->ordered && !c->n_waits;
    c->fence = class->fence;
    c->asked = msg->flags & GN_MSG_ASK;

    struct gn_vqueue *q = c->queue;
    bool kept = false, dropped = false, good;
    int32_t assumed = msg->assumed;
    pthread_mutex_lock(&v->lock);
    good = !c->fault && enter_event_locked(c);
    if (good) {
        gn_command_enter_waits_locked(c, waits);
        if (batch)
            gn_command_await_batch_locked(c, batch);
        /*
         * Only this thread adds commands: if nothing in the queue is blocked now, nothing will be.
         */
        if (c->asked && !assumed && class->judge && (c->n_blockers || has_blocked_locked(q))) {
            pthread_mutex_unlock(&v->lock);
            if (v->evicts)
                gn_command_await_objects(c);
            if (!v->evicts || !gn_command_bring_in(c))
                assumed = class->judge(v, c);
            pthread_mutex_lock(&v->lock);
        }
        gn_list_append(&q->pending, &c->link);
        gn_count(&v->counters->pending, 1);
        kept = c->asked && has_blocked_locked(q);
        dropped = kept && assumed;
        if (dropped) {
            gn_list_remove(&c->link);
            gn_list_remove(&c->batch_link);
            gn_count(&v->counters->pending, -1);
            for (uint32_t i = 0; i < c->n_waits; i++)
                gn_list_remove(&c->blockers[i].link);
            gn_command_forget_event_locked(c);
        } else if (kept) {
            c->asked = false;
        }
        atomic_store_explicit(&q->device->dirty, true, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&v->lock);
    /* An accepted command may already be complete and freed. */
    if (!good) {
        gn_vgpu_fault(v, "a command is malformed", class->name);
        gn_command_unref(c);
        return;
    }
    if (kept)
        gn_vgpu_reply(v, msg->reply, assumed, NULL, 0);
    if (dropped)
        gn_command_unref(c);
    gn_device_pump(q->device);
}
