/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending commands. A command is admitted by the ring thread, waits in its queue until nothing in the vGPU keeps it, and
 * is then given to the driver by whoever holds its device's role: the ring thread itself as long as the driver returns at
 * once, so that a launch crosses one thread boundary and not two; else the device's submit thread. Dependences between
 * commands that the driver has are the driver's to keep; what waits for the program (user events) stays here.
 *
 * A command is its message: it can be kept, moved and given to another driver as it is.
 *
 * Long because a command that is saved is taken in again by the same steps as a new one.
 */
#include "vgpu/core/vgpu_core.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "vgpu/core/save.h"
#include "shm/counters.h"
#include "shm/futex.h"

#include <stdlib.h>
#include <string.h>

/* A driver that holds its caller this long, this often in a row, gets a thread to hold. Compiling a kernel for a new
 * work-group size at its first launch is slow once. */
#define SLOW_SUBMIT_NS  2000000u
#define SLOW_IN_A_ROW   3u
#define FLUSH_EVERY     32u
#define MAX_STACK_WAITS 32u

static const struct gn_command_head *head_of(const struct gn_command *c)
{
    return (const void *)(c->bytes + sizeof(struct gn_msg));
}

static const struct gn_msg *msg_of(const struct gn_command *c)
{
    return (const void *)c->bytes;
}

uint32_t gn_command_event(const struct gn_command *c)
{
    return head_of(c)->event;
}

static void drop_objects(struct gn_command *c)
{
    for (uint32_t i = 0; i < GN_MAX_REFS; i++) {
        gn_object_unref(c->refs[i]);
        c->refs[i] = NULL;
    }
    for (uint32_t i = 0; i < c->n_objects; i++)
        gn_object_unref(c->object_refs[i]);
    c->n_objects = 0;
    /* The queue's last command outlives its run, so it must not keep the queue. */
    gn_object_unref(c->queue_object);
    c->queue_object = NULL;
}

/* Once given to the driver, a command no longer needs those before it: keeping them would keep the whole chain. */
static void drop_producers(struct gn_command *c)
{
    for (uint32_t i = 0; i < c->n_producers; i++)
        gn_command_unref(c->producers[i]);
    c->n_producers = 0;
}

struct gn_event_entry *gn_command_entry(const struct gn_command *c)
{
    const uint32_t event = head_of(c)->event;
    return event == GN_NO_EVENT ? NULL : gn_event_at(c->vgpu->events, event);
}

void gn_command_unref(struct gn_command *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    if (c->driver_event)
        c->vgpu->api->release_event(c->vgpu, c->driver_event);
    drop_objects(c);
    for (uint32_t i = 0; i < c->n_blobs; i++)
        free(c->blobs[i]);
    free(c->objects);
    free(c->object_refs);
    drop_producers(c);
    free(c->producers);
    free(c->blockers);
    free(c->cut);
    free(c);
}

void gn_command_forget(struct gn_command *c)
{
    gn_list_remove(&c->link);
    /* Of one that was cut the queue keeps what the driver has had last. */
    drop_objects(c);
    gn_command_unref(c);
}

/* ---- the end of a command */

void gn_device_wake(struct gn_vdevice *d)
{
    if (!atomic_exchange_explicit(&d->woken, 1, memory_order_seq_cst))
        gn_futex_wake(&d->woken, 1, true);
}

/* The next one whose end may be told, taken off; NULL: none now. */
static struct gn_command *next_told_locked(struct gn_vqueue *q)
{
    bool first = true;
    gn_list_for_each(c, &q->open, struct gn_command, link)
    {
        if (c->ended && (first || !c->ordered)) {
            gn_list_remove(&c->link);
            return c;
        }
        if (q->in_order)
            return NULL;
        first = false;
    }
    return NULL;
}

static void tell_end(struct gn_command *c)
{
    struct gn_vgpu *v = c->vgpu;
    uint32_t index = head_of(c)->event;
    struct gn_list told;

    gn_list_init(&told);
    drop_objects(c);
    pthread_mutex_lock(&v->lock);
    gn_vevent_over_locked(gn_vevent_at(v, index), c->end_error, &told);
    pthread_mutex_unlock(&v->lock);
    gn_vevent_told(v, &told, c->end_error);
    /* From here on the guest may use the index anew. */
    gn_vgpu_event_end(v, index, c->end_error, &c->times, c);
    for (uint32_t i = 0; i < v->n_devices; i++)
        if (atomic_load_explicit(&v->devices[i].dirty, memory_order_seq_cst))
            gn_device_wake(&v->devices[i]);
    gn_command_unref(c);
}

/* After an end, maybe the last for now. */
static void calm(struct gn_vdevice *d)
{
    struct gn_vgpu *v = d->vgpu;
    const bool idle = gn_turn_is_idle(&d->turn);
    if (gn_gate_is_closed(&v->gate))
        gn_gate_tell(v);
    /* The program is likely to go on at once: its next message should meet a thread that looks for it, and if none comes that
     * thread gives the grant up. */
    const bool pressed = idle && gn_grant_is_pressed(d->turn.slot);
    const bool looks =
        !v->remote && (pressed || (v->on_processors && !v->hosted && !atomic_load_explicit(&v->counters->pending, memory_order_relaxed) &&
                                   (gn_vgpu_is_apart(v) || gn_spin_room())));
    if (looks)
        gn_ring_nudge(&v->ring);
    else if (idle)
        gn_turn_rest(d);
}

/* Somebody sends contents ahead, and is to be told when this has changed some. */
static bool is_followed_write(const struct gn_command *c)
{
    return c->class->writes && c->class->writes != GN_WRITES_ARGS && atomic_load_explicit(&c->vgpu->follows_writes, memory_order_relaxed);
}

/*
 * A driver may report ends in any order, from several threads at once. The program sees them as the queue has them: who has
 * waited for a command, or for the queue, finds every earlier event complete. So an end waits here for those before it, and one
 * thread a queue tells them.
 */
static void over(struct gn_command *c, int32_t error)
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
        if (q->measured && c->driver_event && error >= 0 && (c->teaches || gn_turn_measures(turn)))
            v->api->ran(v, c->driver_event, &start_ns, &end_ns);
        if ((c->teaches || (c->covers == 1 && v->slicer && c->class == v->slicer->class)) && error >= 0)
            v->slicer->took(v, c, 0, end_ns > start_ns ? end_ns - start_ns : gn_turn_service_ns(turn, c->submit_ns));
        if (c->covers)
            gn_turn_over(q->device, c->covers, c->submit_ns, start_ns, end_ns);
        else
            gn_turn_ended(turn);
    }
    c->times.submit_ns = c->submit_ns;
    if (q->profiling && c->driver_event && error >= 0)
        v->api->times(v, c->driver_event, &c->times);
    /* What another machine's clock has said of its first part is not believed where it would be over before it began. */
    if (c->cut && c->cut->times.start_ns && c->cut->times.start_ns <= c->times.end_ns) {
        c->times.submit_ns = c->cut->times.submit_ns;
        c->times.start_ns = c->cut->times.start_ns;
    }
    struct gn_vdevice *d = q->device;
    if (head_of(c)->event == GN_NO_EVENT) {
        drop_objects(c);
        gn_command_unref(c);
        calm(d);
        return;
    }
    /* The last one told would take the queue with it. */
    struct gn_vobject *queue_object = c->queue_object;
    atomic_fetch_add_explicit(&queue_object->n_refs, 1, memory_order_relaxed);
    pthread_mutex_lock(&v->lock);
    c->ended = true;
    c->end_error = error < 0 ? error : 0;
    if (!c->open) {
        /* The driver never had it. */
        c->open = true;
        gn_list_append(&q->open, &c->link);
    }
    if (!q->telling) {
        q->telling = true;
        while ((c = next_told_locked(q))) {
            pthread_mutex_unlock(&v->lock);
            tell_end(c);
            pthread_mutex_lock(&v->lock);
        }
        q->telling = false;
    }
    pthread_mutex_unlock(&v->lock);
    gn_object_unref(queue_object);
    calm(d);
}

void gn_command_over(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    gn_vgpu_enter(v);
    over(c, error);
    gn_vgpu_return(v);
}

/* The command never was: its event's index is the guest's again as soon as it hears of it. */
static void forget_event_locked(struct gn_command *c)
{
    struct gn_vevent *e = head_of(c)->event == GN_NO_EVENT ? NULL : gn_vevent_at(c->vgpu, head_of(c)->event);
    if (e) {
        e->state = GN_EVENT_OVER;
        e->error = 0;
    }
}

static void answer(struct gn_command *c, int32_t result)
{
    gn_vgpu_reply(c->vgpu, msg_of(c)->reply, result, NULL, 0);
}

/* ---- submitting */

/* Both want the vGPU's lock. Not one that is to wait in this pass of the device (0: any). */
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

void gn_command_follow_locked(struct gn_command *c, struct gn_command *producer)
{
    if (!producer->driver_event)
        return;
    atomic_fetch_add_explicit(&producer->n_refs, 1, memory_order_relaxed);
    c->producers[c->n_producers++] = producer;
}

static void refused(struct gn_command *c, int32_t error)
{
    struct gn_vgpu *v = c->vgpu;
    if (c->asked) {
        pthread_mutex_lock(&v->lock);
        forget_event_locked(c);
        pthread_mutex_unlock(&v->lock);
        answer(c, error);
        gn_count(&v->counters->pending, -1);
        gn_command_unref(c);
        return;
    }
    gn_debug("vgpu=%08x %s failed late: %d", v->boot->id, c->class->name, error);
    if (head_of(c)->event == GN_NO_EVENT) {
        pthread_mutex_lock(&v->lock);
        if (!c->queue->late_error)
            c->queue->late_error = error;
        pthread_mutex_unlock(&v->lock);
    }
    gn_command_over(c, error);
}

void gn_command_accepted(struct gn_command *c)
{
    drop_producers(c);
    if (c->asked)
        answer(c, 0);
    c->asked = false;
}

int32_t gn_command_give(struct gn_vdevice *d, struct gn_command *c, uint64_t now_ns, void *after, void **ret_event)
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
    int32_t result = c->class->submit(v, c, c->queue->object->driver, n, n ? events : NULL, ret_event);
    d->n_slow = gn_now_ns() - now_ns > SLOW_SUBMIT_NS ? d->n_slow + 1 : 0;
    if (d->n_slow == SLOW_IN_A_ROW)
        d->blocks = true;
    atomic_fetch_add_explicit(&c->queue->n_unflushed, 1, memory_order_relaxed);
    if (events != stack_events)
        free(events);
    return result;
}

static void submit(struct gn_vdevice *d, struct gn_command *c)
{
    struct gn_vgpu *v = c->vgpu;
    struct gn_vqueue *q = c->queue;
    void *driver_event = NULL;
    uint32_t index = head_of(c)->event;

    int32_t result = c->no_memory ? v->api->out_of_memory : c->doomed;
    c->submit_ns = gn_now_ns();
    if (!result)
        result = gn_command_give(d, c, c->submit_ns, NULL, &driver_event);
    drop_producers(c);
    if (c->doomed && c->asked) {
        /* The call is good; the command is not run. */
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
    if (e) {
        c->open = true;
        gn_list_append(&q->open, &c->link);
        gn_vevent_given_locked(e, c);
    }
    pthread_mutex_unlock(&v->lock);
    /* What the program does not ask about is followed only where somebody else waits for the device. */
    const bool timed = v->slicer && c->class == v->slicer->class && d->turn.pressed_ns;
    c->followed = is_followed_write(c);
    const bool tracked = e || c->followed || c->teaches || (driver_event && d->turn.slot && (!q->in_order || timed || gn_turn_tracks(d)));
    gn_command_unref(before_last);

    if (c->area)
        gn_count(&v->counters->copies_two, 1);
    if (!tracked) {
        gn_count(&v->counters->pending, -1);
        drop_objects(c);
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

/* A driver that runs what it is given before it returns could have its caller for ever. */
static bool is_asked(const struct gn_vdevice *d)
{
    return atomic_load_explicit(&d->n_asking, memory_order_seq_cst);
}

/* Who came meanwhile has left it to whoever had the role, and who had it to us. */
static void after_asking(struct gn_vdevice *d)
{
    atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
    gn_device_wake(d);
}

int gn_device_take(struct gn_vdevice *d, const struct timespec *until)
{
    atomic_fetch_add_explicit(&d->n_asking, 1, memory_order_seq_cst);
    const int r = until ? gn_lock_until(&d->role, until) : pthread_mutex_lock(&d->role);
    atomic_fetch_sub_explicit(&d->n_asking, 1, memory_order_seq_cst);
    if (r)
        after_asking(d);
    return -r;
}

void gn_device_return(struct gn_vdevice *d)
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
        /* Nobody but who has the role takes a command off that is pending. */
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
            /* A queue stays listed until its last holder has taken it off: one that nobody holds is not brought back. */
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
 * Whoever finds the role taken leaves: its holder looks at `dirty` again after giving the role back, and one of the two
 * orders (dirty set before he looks, or role free before we try) always holds.
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

void gn_vgpu_flush(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++) {
        struct gn_vdevice *d = &v->devices[i];
        if (!atomic_load_explicit(&d->n_queues, memory_order_relaxed) || pthread_mutex_trylock(&d->role))
            continue;
        if (!d->blocks)
            flush_device(d, 1);
        pthread_mutex_unlock(&d->role);
    }
}

void gn_vgpu_rest(struct gn_vgpu *v)
{
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_turn_rest(&v->devices[i]);
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
        if (gn_turn_is_idle(&v->devices[i].turn) && gn_grant_is_pressed(v->devices[i].turn.slot))
            gn_turn_held(&v->devices[i], came);
}

/* Until it is woken, or the grant is there that the device waits for. True: the grant. */
static bool sleep_on(struct gn_vdevice *d)
{
    struct gn_turn *t = &d->turn;
    while (!atomic_exchange_explicit(&d->woken, 0, memory_order_seq_cst)) {
        if (d->vgpu->hosted && gn_lost_is(&d->vgpu->lost))
            return false;
        const bool wanted = atomic_load_explicit(&t->wanted, memory_order_seq_cst);
        if (wanted && gn_grant_look(t->slot) != GN_GRANT_WANTED)
            return true;
        if (wanted)
            gn_park_either(&t->slot->state, GN_GRANT_WANTED, false, &d->vgpu->lost, &d->woken, 0);
        else
            gn_park(&d->woken, 0, true, &d->vgpu->lost);
    }
    return atomic_load_explicit(&t->wanted, memory_order_seq_cst) && gn_grant_look(t->slot) != GN_GRANT_WANTED;
}

static void *submit_thread(void *arg)
{
    struct gn_vdevice *d = arg;
    struct gn_vgpu *v = d->vgpu;
    gn_objects_own_thread();
    for (;;) {
        bool came = sleep_on(d);
        if (v->hosted && gn_lost_is(&v->lost))
            return NULL; /* the program lives on */
        pthread_mutex_lock(&d->role);
        if (came && !gn_gate_holds(&v->gate))
            gn_turn_came(d);
        do {
            while (atomic_exchange_explicit(&d->dirty, false, memory_order_seq_cst))
                drain(d);
            gn_turn_end(d);
        } while (!is_asked(d) && atomic_load_explicit(&d->dirty, memory_order_seq_cst));
        flush_device(d, 1);
        pthread_mutex_unlock(&d->role);
        /* A short command is over by now, and the program about to send the next: that is the ring's thread to wait for. */
        if (!v->remote && gn_turn_hold_ns(d))
            gn_ring_nudge(&v->ring);
        else
            gn_turn_rest(d);
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
        int r = pthread_create(&d->thread, NULL, submit_thread, d);
        if (r)
            return -r;
    }
    return 0;
}

struct gn_vqueue *gn_queue_new(struct gn_vgpu *v, struct gn_vobject *object, uint32_t device, bool in_order, bool profiling, bool measured)
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
    gn_gate_tell(v);
}

/*
 * A program may let go of a queue that works. What was followed to its end has kept the queue until now; the rest ends with its last
 * one, which a vGPU that is to be quiet has to wait for.
 */
static void follow_last(struct gn_vgpu *v, const struct gn_command *last)
{
    if (!last || !last->driver_event || !v->api->when_quiet || v->api->is_over(v, last->driver_event))
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

/* ---- admission: the ring thread */

/* The indices of the events that the command waits for, where they came: looked at once, at admission. */
static const uint32_t *find_waits(struct gn_command *c)
{
    const struct gn_span *span = &head_of(c)->waits;
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

/* False when the guest breaks the rules of the event table. */
static bool enter_event_locked(struct gn_command *c)
{
    const struct gn_command_head *head = head_of(c);
    if (head->event == GN_NO_EVENT)
        return true;
    struct gn_vevent *e = gn_vevent_at(c->vgpu, head->event);
    if (!e || (e->state != GN_EVENT_UNUSED && e->state != GN_EVENT_OVER) || !gn_list_empty(&e->blocked))
        return false;
    e->state = GN_EVENT_PENDING;
    e->user = e->begun = false;
    e->error = 0;
    e->producer = NULL;
    /* The guest has armed its own entry, which is another one there. */
    if (c->vgpu->remote)
        gn_event_arm(gn_event_at(c->vgpu->events, head->event));
    return true;
}

static void enter_waits_locked(struct gn_command *c, const uint32_t *waits)
{
    for (uint32_t i = 0; i < c->n_waits; i++) {
        struct gn_vevent *e = gn_vevent_at(c->vgpu, waits[i]);
        gn_list_init(&c->blockers[i].link);
        if (!e)
            continue;
        if (e->state == GN_EVENT_PENDING) {
            c->blockers[i].command = c;
            c->blockers[i].event = waits[i];
            gn_list_append(&e->blocked, &c->blockers[i].link);
            c->n_blockers++;
        } else if (e->state == GN_EVENT_GIVEN && e->producer) {
            gn_command_follow_locked(c, e->producer);
        } else if (e->state == GN_EVENT_OVER && e->error < 0) {
            c->doomed = c->vgpu->api->wait_failed;
        }
    }
}

static bool kept_locked(const struct gn_vqueue *q)
{
    gn_list_for_each(c, &q->pending, struct gn_command, link)
    {
        if (c->n_blockers)
            return true;
    }
    return false;
}

/* Not to be had: the answer is what a driver out of memory, or with a stale handle, would say. */
static void turn_away(struct gn_vgpu *v, const struct gn_msg *msg, const struct gn_command_head *head, int32_t error)
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

void gn_command_admit(struct gn_vgpu *v, const struct gn_request_class *class, const unsigned char *bytes, uint32_t n_bytes, uint64_t batch)
{
    const struct gn_msg *msg = (const void *)bytes;
    const struct gn_command_head *head = (const void *)(bytes + sizeof *msg);
    bool lie = false;
    struct gn_vobject *queue = gn_object_get(v, head->queue, v->api->queue_kind, &lie);
    struct gn_command *c = queue ? calloc(1, sizeof *c + n_bytes) : NULL;
    if (lie) {
        gn_vgpu_fault(v, "a command names no queue", class->name);
        return;
    }
    if (!c) {
        turn_away(v, msg, head, queue ? v->api->out_of_memory : v->api->invalid_handle);
        gn_object_unref(queue);
        return;
    }
    c->vgpu = v;
    c->class = class;
    c->queue = queue->detail;
    c->queue_object = queue;
    atomic_init(&c->n_refs, 1);
    gn_list_init(&c->link);
    gn_list_init(&c->batch_link);
    c->n_bytes = n_bytes;
    memcpy(c->bytes, bytes, n_bytes);
    const uint32_t *waits = find_waits(c);
    c->fault |= head->zero != 0;
    if (!c->fault)
        class->admit(v, c);
    c->ordered = class->ordered && !c->n_waits;
    c->fence = class->fence;
    c->asked = msg->flags & GN_MSG_ASK;

    struct gn_vqueue *q = c->queue;
    bool kept = false, dropped = false, good;
    pthread_mutex_lock(&v->lock);
    good = !c->fault && enter_event_locked(c);
    if (good) {
        enter_waits_locked(c, waits);
        if (batch) {
            c->batch = batch;
            c->n_blockers++;
            gn_list_append(&v->batch_waiters, &c->batch_link);
        }
        gn_list_append(&q->pending, &c->link);
        gn_count(&v->counters->pending, 1);
        kept = c->asked && kept_locked(q);
        dropped = kept && msg->assumed;
        if (dropped) {
            gn_list_remove(&c->link);
            gn_count(&v->counters->pending, -1);
            for (uint32_t i = 0; i < c->n_waits; i++)
                gn_list_remove(&c->blockers[i].link);
            forget_event_locked(c);
        } else if (kept) {
            c->asked = false;
        }
        atomic_store_explicit(&q->device->dirty, true, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&v->lock);
    /* A good one that was not dropped may be over by now, and gone. */
    if (!good) {
        gn_vgpu_fault(v, "a command is malformed", class->name);
        gn_command_unref(c);
        return;
    }
    if (kept)
        gn_vgpu_reply(v, msg->reply, msg->assumed, NULL, 0);
    if (dropped)
        gn_command_unref(c);
    gn_device_pump(q->device);
}

/* ---- saved, and taken in again where the vGPU goes on: behind a closed gate */

struct copy {
    unsigned char *bytes;
    uint64_t n;
};

/* The message, with what it had copied out of the data area behind it, and without its wait list. */
static int copy_message(const struct gn_command *c, struct copy *ret)
{
    uint64_t at = gn_align_up(c->n_bytes, 8);
    ret->n = at;
    for (uint32_t i = 0; i < c->n_blobs; i++)
        ret->n += gn_align_up(c->blob_bytes[i], 8);
    ret->bytes = calloc(1, ret->n);
    if (!ret->bytes)
        return -ENOMEM;
    memcpy(ret->bytes, c->bytes, c->n_bytes);
    for (uint32_t i = 0; i < c->n_blobs; i++) {
        const struct gn_span span = {GN_SPAN_INLINE, (uint32_t)c->blob_bytes[i], at};
        memcpy(ret->bytes + c->blob_spans[i], &span, sizeof span);
        memcpy(ret->bytes + at, c->blobs[i], c->blob_bytes[i]);
        at += gn_align_up(c->blob_bytes[i], 8);
    }
    ((struct gn_command_head *)(void *)(ret->bytes + sizeof(struct gn_msg)))->waits = (struct gn_span){.segment = GN_SPAN_NULL};
    return 0;
}

static int save_command(struct gn_stream_writer *w, const struct gn_command *c, uint64_t number)
{
    const struct gn_cutting *cut = c->cut;
    const uint64_t done = cut && !cut->error ? cut->next_group : 0;
    const struct gn_stream_command_state state = {
        .event = head_of(c)->event, .done = done, .submit_ns = done ? cut->times.submit_ns : 0, .start_ns = done ? cut->times.start_ns : 0};
    struct gn_saved_waiting own = {
        .command = {.flags = (c->asked ? GN_SAVED_ASKED : 0) | (c->ordered ? GN_SAVED_ORDERED : 0), .doomed = c->doomed},
        .batch = c->batch};
    const bool waits_for_data = !gn_list_empty(&c->batch_link);
    uint32_t *waits = calloc(c->n_waits ? c->n_waits : 1, sizeof *waits), n = 0;
    struct copy copy = {0};
    int rc = waits ? copy_message(c, &copy) : -ENOMEM;
    for (uint32_t i = 0; !rc && i < c->n_waits; i++)
        if (c->blockers[i].command && !gn_list_empty(&c->blockers[i].link))
            waits[n++] = c->blockers[i].event;
    /* What the driver had of what it follows is over; it would have told of a failure. */
    for (uint32_t i = 0; i < c->n_producers; i++)
        if (c->producers[i]->end_error < 0)
            own.command.doomed = c->vgpu->api->wait_failed;
    if (done)
        gn_debug("vgpu=%08x %s of %llu groups is saved behind group %llu", c->vgpu->boot->id, c->class->name,
                 (unsigned long long)cut->n_groups, (unsigned long long)done);
    /* A part of it has failed, and nobody has taken the rest off yet: nothing more of it runs. */
    if (cut && cut->error)
        own.command.doomed = cut->error;
    if (!rc)
        rc = gn_stream_entry_begin(w, GN_STREAM_COMMANDS, number, msg_of(c)->op, &c->queue->object->id, 1);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_REQUEST, copy.bytes, copy.n);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_WAITS, waits, n * sizeof *waits);
    if (!rc)
        rc = gn_stream_part(w, GN_PART_API, &own, waits_for_data ? sizeof own : sizeof own.command);
    free(copy.bytes);
    free(waits);
    return rc ? rc : gn_stream_entry_end(w);
}

int gn_commands_save(struct gn_vgpu *v, struct gn_stream_writer *w)
{
    uint64_t number = 0;
    int rc = 0;
    /* No lock: the gate is closed, and writing may take long. */
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_list_for_each(q, &v->devices[i].queues, struct gn_vqueue, link) gn_list_for_each(c, &q->pending, struct gn_command, link) rc =
            rc ? rc : save_command(w, c, ++number);
    return rc;
}

static bool is_restorable(const struct gn_vgpu *v, const struct gn_stream_entry *e, const struct gn_stream_part *message)
{
    const struct gn_msg *msg = message->bytes;
    return e->kind < v->api->n_requests && v->api->requests[e->kind].submit && message->n <= UINT32_MAX &&
           message->n >= v->api->requests[e->kind].fixed_bytes && message->n >= sizeof *msg + sizeof(struct gn_command_head) &&
           msg->op == e->kind;
}

/* The rest of one that was cut. Its times are by the clock of whoever wrote them. */
static bool resume(struct gn_command *c, const struct gn_stream_command_state *state, int64_t clock_ahead_ns)
{
    const struct gn_event_times times = {.submit_ns = state->submit_ns + (state->submit_ns ? (uint64_t)clock_ahead_ns : 0),
                                         .start_ns = state->start_ns + (state->start_ns ? (uint64_t)clock_ahead_ns : 0)};
    if (!state->done)
        return !state->submit_ns && !state->start_ns;
    if (c->n_waits || c->asked || state->submit_ns > state->start_ns)
        return false;
    return c->doomed || gn_parts_resume(c, state->done, &times);
}

int gn_command_restore(struct gn_vgpu *v, const struct gn_stream_entry *e, int64_t clock_ahead_ns)
{
    struct gn_stream_command_state state;
    struct gn_stream_part message, waits;
    struct gn_saved_waiting waiting = {.batch = 0};
    bool lie = false, good;
    const bool waits_for_data = v->remote && gn_stream_copy_part(e, GN_PART_API, &waiting, sizeof waiting);
    if (!gn_stream_copy_part(e, GN_PART_STATE, &state, sizeof state) || !gn_stream_find_part(e, GN_PART_REQUEST, &message) ||
        !gn_stream_find_part(e, GN_PART_WAITS, &waits) || waits.n % 4 ||
        (!waits_for_data && !gn_stream_copy_part(e, GN_PART_API, &waiting.command, sizeof waiting.command)) ||
        !is_restorable(v, e, &message))
        return -EBADMSG;
    const struct gn_saved_command own = waiting.command;
    const struct gn_command_head *head = (const void *)((const unsigned char *)message.bytes + sizeof(struct gn_msg));
    struct gn_vobject *queue = gn_object_get(v, head->queue, v->api->queue_kind, &lie);
    struct gn_command *c = queue ? calloc(1, sizeof *c + message.n) : NULL;
    if (!c) {
        gn_object_unref(queue);
        return queue ? -ENOMEM : -EBADMSG;
    }
    c->vgpu = v;
    c->class = &v->api->requests[e->kind];
    c->queue = queue->detail;
    c->queue_object = queue;
    atomic_init(&c->n_refs, 1);
    gn_list_init(&c->link);
    gn_list_init(&c->batch_link);
    c->n_bytes = (uint32_t)message.n;
    memcpy(c->bytes, message.bytes, message.n);
    c->n_waits = (uint32_t)(waits.n / 4);
    c->blockers = calloc(c->n_waits ? c->n_waits : 1, sizeof *c->blockers);
    c->producers = calloc(c->n_waits ? c->n_waits : 1, sizeof(struct gn_command *));
    c->fault = !c->blockers || !c->producers || head->waits.segment != GN_SPAN_NULL || head->zero;
    if (!c->fault)
        c->class->admit(v, c);
    c->ordered = c->class->ordered && (own.flags & GN_SAVED_ORDERED);
    c->fence = c->class->fence;
    c->asked = own.flags & GN_SAVED_ASKED;
    c->doomed = own.doomed < 0 ? own.doomed : 0;
    c->fault |= state.zero || state.event != head->event;
    if (!c->fault)
        c->fault = waits_for_data ? state.done : !resume(c, &state, clock_ahead_ns);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *event = head->event == GN_NO_EVENT ? NULL : gn_vevent_at(v, head->event);
    good = !c->fault && (head->event == GN_NO_EVENT || (event && event->state == GN_EVENT_PENDING && !event->user));
    if (good) {
        if (event)
            event->begun = state.done != 0;
        enter_waits_locked(c, waits.bytes);
        if (waits_for_data) {
            c->batch = waiting.batch;
            c->n_blockers++;
            gn_list_append(&v->batch_waiters, &c->batch_link);
        }
        gn_list_append(&c->queue->pending, &c->link);
        gn_count(&v->counters->pending, 1);
    }
    pthread_mutex_unlock(&v->lock);
    if (!good)
        gn_command_unref(c);
    return good ? 0 : -EBADMSG;
}
