/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vGPU's devices, and the way of commands to the driver: the thread that holds a device's role
 * gives the driver the commands whose waits are met. That is the serving thread itself as long as
 * the driver returns at once, so that a launch crosses one thread boundary and not two; else the
 * device's submit thread. The driver keeps the order between commands that it has.
 */
#include "vgpu/core/command_internal.h"
#include "vgpu/core/evict.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "shm/counters.h"
#include "shm/futex.h"

#include <stdlib.h>

/*
 * A driver that holds its caller this long, this often in a row, is called from the submit thread.
 * One slow launch is normal: a driver compiles a kernel for a new work-group size.
 */
#define SLOW_SUBMIT_NS  2000000u
#define SLOW_IN_A_ROW   3u
#define FLUSH_EVERY     32u
#define MAX_STACK_WAITS 32u

void gn_device_wake(struct gn_vdevice *d)
{
    if (!atomic_exchange_explicit(&d->woken, 1, memory_order_seq_cst))
        gn_futex_wake(&d->woken, 1, true);
}

static void answer(struct gn_command *c, int32_t result)
{
    gn_vgpu_reply(c->vgpu, gn_command_msg_of(c)->reply, result, NULL, 0);
}

/*
 * The vGPU's lock is held, as in the next function. Skips commands that wait in this pass of the
 * device (0: none).
 */
static struct gn_command *next_ready(const struct gn_vqueue *q, uint32_t pass)
{
    bool first = true;
    gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        const bool waits = pass && c->cut && c->cut->waits_in == pass;
        if (!c->n_blockers && !waits && (first || !c->ordered))
            return c;
        if (q->in_order || c->fence)
            return NULL;
        first = false;
    }
    return NULL;
}

bool gn_device_has_ready_locked(const struct gn_vdevice *d)
{
    gn_list_for_each(q, &d->queues, const struct gn_vqueue, link)
    {
        if (next_ready(q, 0))
            return true;
    }
    return false;
}

static void refused(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    if (c->asked) {
        pthread_mutex_lock(&v->lock);
        gn_command_forget_event_locked(c);
        pthread_mutex_unlock(&v->lock);
        answer(c, error);
        gn_count(&v->counters->pending, -1);
        gn_command_unref(c);
        return;
    }
    gn_debug("vgpu=%08x %s failed late: %d", v->boot->id, c->class->name, error);
    if (gn_command_head_of(c)->event == GN_NO_EVENT) {
        pthread_mutex_lock(&v->lock);
        if (!c->queue->late_error)
            c->queue->late_error = error;
        pthread_mutex_unlock(&v->lock);
    }
    gn_command_over(c, error);
}

void gn_command_accepted(struct gn_command *c)
{
    gn_command_given(c);
    if (c->asked)
        answer(c, 0);
    c->asked = false;
}

/* Does the command write objects that its class tells? A kernel's arguments are marked as the
 * kernel gets them. */
static bool writes_objects(const struct gn_command *c)
{
    return c->class->writes && c->class->writes != GN_WRITES_ARGS;
}

int32_t gn_command_issue(struct gn_vdevice *d, struct gn_command *c, uint64_t now_ns, void *after,
                         void **ret_event)
{
    struct gn_vgpu *v = c->vgpu;
    void *stack_events[MAX_STACK_WAITS], **events = stack_events;
    uint32_t n = c->n_producers;

    if (n >= MAX_STACK_WAITS && !(events = malloc((n + 1) * sizeof *events)))
        return v->api->out_of_memory;
    for (uint32_t i = 0; i < n; i++)
        events[i] = c->producers[i]->driver_event;
    if (after)
        events[n++] = after;
    int32_t result = gn_vgpu_has_evicted(v) ? gn_command_bring_in(c) : 0;
    if (writes_objects(c) && gn_vgpu_has_copies(v))
        v->api->will_write(v, c);
    if (!result)
        result = c->class->submit(v, c, c->queue->object->driver, n, n ? events : NULL, ret_event);
    d->n_slow = gn_now_ns() - now_ns > SLOW_SUBMIT_NS ? d->n_slow + 1 : 0;
    if (d->n_slow == SLOW_IN_A_ROW) {
        d->blocks = true;
        gn_device_wake(d); /* the submit thread flushes the queues */
    }
    atomic_fetch_add_explicit(&c->queue->n_unflushed, 1, memory_order_relaxed);
    if (events != stack_events)
        free(events);
    return result;
}

/* Does the command change contents that a migration sends in advance? */
static bool is_followed_write(const struct gn_command *c)
{
    return writes_objects(c) && atomic_load_explicit(&c->vgpu->follow_writes, memory_order_relaxed);
}

static void submit(struct gn_vdevice *d, struct gn_command *c)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_vqueue *q = c->queue;
    void *driver_event = NULL;
    uint32_t index = gn_command_head_of(c)->event;

    int32_t result = c->no_memory ? v->api->out_of_memory : c->doomed;
    c->submit_ns = gn_now_ns();
    if (!result)
        result = gn_command_issue(d, c, c->submit_ns, NULL, &driver_event);
    gn_command_given(c);
    if (c->doomed && c->asked) {
        /* The call is valid; the command is not run. */
        answer(c, 0);
        c->asked = false;
    }
    if (result) {
        c->teaches = false;
        refused(c, result);
        return;
    }

    GN_FAULT("worker-given-to-driver");
    c->driver_event = driver_event;
    if (c->asked)
        answer(c, 0);
    pthread_mutex_lock(&v->lock);
    struct gn_command *before_last = NULL;
    if (driver_event) {
        before_last = q->last;
        q->last = c;
        atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
    }
    struct gn_vevent *e = index == GN_NO_EVENT ? NULL : gn_vevent_at(v, index);
    bool watched = e && !gn_list_empty(&e->watches);
    const bool shown = e || c->n_before;
    if (shown) {
        c->open = true;
        gn_list_append(&q->open, &c->link);
    }
    if (e)
        gn_vevent_given_locked(e, c);
    pthread_mutex_unlock(&v->lock);
    /*
     * Ends that the program does not ask for are tracked only when another vGPU waits for the
     * device.
     */
    const bool timed = v->slicer && c->class == v->slicer->class && d->turn.preempted_ns;
    c->followed = is_followed_write(c);
    const bool tracked =
        shown || c->followed || c->teaches ||
        (driver_event && d->turn.slot && (!q->in_order || timed || gn_turn_tracks(d)));
    gn_command_unref(before_last);

    if (c->area)
        gn_count(&v->counters->copies_two, 1);
    if (!tracked) {
        gn_count(&v->counters->pending, -1);
        gn_command_drop_objects(c);
        gn_command_unref(c);
        return;
    }
    if (c->followed || c->teaches)
        atomic_fetch_add_explicit(&v->n_followed, 1, memory_order_seq_cst);
    if (e)
        gn_vgpu_event_post(v, index, GN_EVENT_SUBMITTED);
    if (watched)
        gn_vevent_submitted(v, index);
    c->covers = d->turn.slot ? gn_turn_given(d) : 0;
    if (!driver_event)
        gn_command_over(c, 0);
    else if (v->api->when_over(v, driver_event, c))
        gn_command_over(c, v->api->out_of_memory);
}

/*
 * Another thread waits for the role: a driver that runs commands before it returns could hold its
 * caller for ever.
 */
static bool is_asked(const struct gn_vdevice *d)
{
    return atomic_load_explicit(&d->n_asking, memory_order_seq_cst);
}

/* Commands that came meanwhile were left to the holder of the role, which left them here. */
static void after_asking(struct gn_vdevice *d)
{
    atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
    gn_device_wake(d);
}

int gn_device_acquire(struct gn_vdevice *d, const struct timespec *until)
{
    atomic_fetch_add_explicit(&d->n_asking, 1, memory_order_seq_cst);
    const int r = gn_lock_until(&d->role, until);
    atomic_fetch_sub_explicit(&d->n_asking, 1, memory_order_seq_cst);
    if (r)
        after_asking(d);
    return -r;
}

void gn_device_release(struct gn_vdevice *d)
{
    pthread_mutex_unlock(&d->role);
    after_asking(d);
}

/* The device's role is held. */
static void drain(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    struct gn_command *c;
    if (!++d->n_passes)
        d->n_passes = 1;
    do {
        if (is_asked(d))
            return;
        c = NULL;
        pthread_mutex_lock(&v->lock);
        gn_list_for_each(q, &d->queues, struct gn_vqueue, link)
        {
            if ((c = next_ready(q, d->n_passes)))
                break;
        }
        if (c && (gn_gate_holds(&v->gate) || !gn_turn_allows(d)))
            c = NULL;
        const bool cuts = c && v->slicer && c->class == v->slicer->class;
        if (c && !cuts)
            gn_list_remove(&c->link);
        pthread_mutex_unlock(&v->lock);
        /* Only the holder of the role removes a pending command. */
        const enum gn_parts_verdict verdict = cuts ? gn_parts_next(d, c) : GN_PARTS_WHOLE;
        if (verdict == GN_PARTS_LATER)
            return;
        if (verdict == GN_PARTS_TAKEN || verdict == GN_PARTS_WAITS)
            continue;
        if (cuts) {
            pthread_mutex_lock(&v->lock);
            gn_list_remove(&c->link);
            pthread_mutex_unlock(&v->lock);
        }
        if (c)
            submit(d, c);
    } while (c);
}

static void flush_device(struct gn_vdevice *d, uint32_t at_least)
{
    struct gn_vgpu *v = d->vgpu;
    for (;;) {
        struct gn_vobject *o = NULL;
        pthread_mutex_lock(&v->lock);
        gn_list_for_each(q, &d->queues, struct gn_vqueue, link)
        {
            if (atomic_load_explicit(&q->n_unflushed, memory_order_relaxed) < at_least)
                continue;
            atomic_store_explicit(&q->n_unflushed, 0, memory_order_relaxed);
            /*
             * A queue stays listed until its last reference is gone: one without references is
             * skipped.
             */
            if (!gn_object_ref_if_held(q->object))
                continue;
            o = q->object;
            break;
        }
        pthread_mutex_unlock(&v->lock);
        if (!o)
            return;
        v->api->flush(v, o->driver);
        gn_object_unref(o);
    }
}

/*
 * A thread that finds the role taken returns: the holder looks at `dirty` again after it has
 * released the role, and one of the two orders (dirty set before that look, or role free before
 * this try) always holds.
 */
void gn_device_pump(struct gn_vdevice *d)
{
    while (atomic_load_explicit(&d->dirty, memory_order_seq_cst)) {
        if (is_asked(d) || pthread_mutex_trylock(&d->role))
            return;
        if (d->blocks) {
            pthread_mutex_unlock(&d->role);
            gn_device_wake(d);
            return;
        }
        while (!d->blocks && atomic_exchange_explicit(&d->dirty, false, memory_order_seq_cst))
            drain(d);
        flush_device(d, FLUSH_EVERY);
        pthread_mutex_unlock(&d->role);
        atomic_thread_fence(memory_order_seq_cst);
    }
}

/*
 * No command is submitted here: its answers would come behind the records that the caller has sent
 * before it sleeps.
 */
void gn_vgpu_flush(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++) {
        struct gn_vdevice *d = &v->devices[i];
        if (!atomic_load_explicit(&d->n_queues, memory_order_relaxed) ||
            pthread_mutex_trylock(&d->role))
            continue;
        if (!d->blocks)
            flush_device(d, 1);
        pthread_mutex_unlock(&d->role);
    }
}

void gn_vgpu_park_grants(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_turn_park(&v->devices[i]);
}

uint64_t gn_vgpu_hold_ns(struct gn_vgpu *v)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < v->n_devices; i++) {
        const uint64_t ns = gn_turn_hold_ns(&v->devices[i]);
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

void gn_vgpu_held(struct gn_vgpu *v, bool came)
{
    for (uint32_t i = 0; i < v->n_devices; i++)
        if (gn_turn_is_idle(&v->devices[i].turn) && gn_grant_is_preempted(v->devices[i].turn.slot))
            gn_turn_held(&v->devices[i], came);
}

/*
 * In a program no serving thread looks for the end of commands that report none, and vGPUs that
 * wait for the device need to know it. True: look.
 */
static bool sleep_on_preempt(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    const uint32_t preempted = atomic_load_explicit(&t->slot->preempted, memory_order_seq_cst);
    if (preempted == t->seen_preempted)
        gn_park_or_shared(&d->woken, 0, &d->vgpu->lost, &t->slot->preempted, preempted);
    /* It may have changed twice: then the number is another one. */
    t->seen_preempted = atomic_load_explicit(&t->slot->preempted, memory_order_seq_cst);
    return t->seen_preempted & 1;
}

/* Sleeps until woken, or until the grant is here that the device waits for. True: the grant. */
static bool sleep_on(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    bool looks = false;
    while (!atomic_exchange_explicit(&d->woken, 0, memory_order_seq_cst) && !looks) {
        if (gn_vgpu_threads_return(d->vgpu))
            return false;
        const bool wanted = atomic_load_explicit(&t->wanted, memory_order_seq_cst);
        if (wanted && gn_grant_look(t->slot) != GN_GRANT_WANTED)
            return true;
        if (wanted)
            gn_park_either(&t->slot->state, GN_GRANT_WANTED, false, &d->vgpu->lost, &d->woken, 0);
        else if (!d->vgpu->session->has_serving_thread && t->slot)
            looks = sleep_on_preempt(d);
        else
            gn_park(&d->woken, 0, true, &d->vgpu->lost);
    }
    return atomic_load_explicit(&t->wanted, memory_order_seq_cst) &&
           gn_grant_look(t->slot) != GN_GRANT_WANTED;
}

static void *submit_thread(void *arg)
{
    struct gn_vdevice *d = arg;
    struct gn_vgpu *v = d->vgpu;
    gn_objects_own_thread();
    for (;;) {
        bool came = sleep_on(d);
        if (gn_vgpu_threads_return(v))
            return NULL;
        pthread_mutex_lock(&d->role);
        if (came)
            gn_turn_began(d);
        do {
            while (atomic_exchange_explicit(&d->dirty, false, memory_order_seq_cst))
                drain(d);
            gn_turn_end(d);
        } while (!is_asked(d) && atomic_load_explicit(&d->dirty, memory_order_seq_cst));
        flush_device(d, 1);
        pthread_mutex_unlock(&d->role);
        /*
         * A short command is over by now, and the program about to send the next: the serving
         * thread looks for it.
         */
        if (!gn_turn_hold_ns(d) || !v->session->expect_message(v))
            gn_turn_park(d);
        gn_objects_bury(v);
        atomic_thread_fence(memory_order_seq_cst);
        if (!is_asked(d) && atomic_load_explicit(&d->dirty, memory_order_seq_cst))
            gn_device_wake(d);
    }
    return NULL;
}

void gn_device_init(struct gn_vgpu *v, uint32_t index)
{
    struct gn_vdevice *d = &v->devices[index];
    struct gn_grant_page *page = v->boot->grants.base;
    d->vgpu = v;
    d->index = index;
    d->turn.slot = v->boot->takes_turns && index < GN_GRANT_DEVICES ? &page->slots[index] : NULL;
    d->turn.tell_fd = v->boot->tell_fd;
    gn_list_init(&d->queues);
    pthread_mutex_init(&d->role, NULL);
}

int gn_devices_start(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++) {
        struct gn_vdevice *d = &v->devices[i];
        int r = gn_vgpu_start_thread(v, submit_thread, d, &d->thread);
        if (r)
            return r;
    }
    return 0;
}

struct gn_vqueue *gn_queue_new(struct gn_vgpu *v, struct gn_vobject *object, uint32_t device,
                               bool in_order, bool profiling, bool measured)
{
    struct gn_vqueue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->object = object;
    q->device = &v->devices[device];
    q->in_order = in_order;
    q->profiling = profiling;
    q->measured = measured;
    gn_list_init(&q->pending);
    gn_list_init(&q->open);
    pthread_mutex_lock(&v->lock);
    gn_list_append(&q->device->queues, &q->link);
    atomic_fetch_add_explicit(&q->device->n_queues, 1, memory_order_relaxed);
    pthread_mutex_unlock(&v->lock);
    return q;
}

static void left_is_over(void *arg)
{
    struct gn_vgpu *v = arg;
    atomic_fetch_sub_explicit(&v->n_left, 1, memory_order_seq_cst);
    gn_gate_notify(v);
}

/*
 * A program may release a queue that still works. Commands whose ends are tracked keep the queue;
 * the others have ended with the last one, for which quiescing waits.
 */
static void follow_last(struct gn_vgpu *v, const struct gn_command *last)
{
    if (!last || !last->driver_event || !v->api->when_quiet ||
        v->api->is_over(v, last->driver_event))
        return;
    atomic_fetch_add_explicit(&v->n_left, 1, memory_order_seq_cst);
    if (v->api->when_quiet(v, last->driver_event, left_is_over, v))
        left_is_over(v);
}

void gn_queue_free(struct gn_vqueue *q)
{
    struct gn_vgpu *v = q->device->vgpu;
    follow_last(v, q->last);
    pthread_mutex_lock(&v->lock);
    gn_list_remove(&q->link);
    atomic_fetch_sub_explicit(&q->device->n_queues, 1, memory_order_relaxed);
    pthread_mutex_unlock(&v->lock);
    gn_command_unref(q->last);
    free(q);
}
