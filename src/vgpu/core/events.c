/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vGPU's own view of events. The shared event table is written and never read back: the
 * dependencies of commands stand in private memory. A user event is one that the program completes.
 * Called by the ring thread, by submitters, by the driver's threads (completion), and by the thread
 * that loads the vGPU. Saving them: migrate/saved_events.c.
 */
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stdlib.h>

struct gn_vevent *gn_vevent_at(struct gn_vgpu *v, uint32_t index)
{
    if (index >= GN_EVENT_ENTRIES)
        return NULL;
    struct gn_vevent **chunk = &v->event_chunks[index / GN_OBJECT_CHUNK];
    if (!*chunk) {
        *chunk = calloc(GN_OBJECT_CHUNK, sizeof **chunk);
        for (uint32_t i = 0; *chunk && i < GN_OBJECT_CHUNK; i++) {
            gn_list_init(&(*chunk)[i].blocked);
            gn_list_init(&(*chunk)[i].watches);
        }
    }
    return *chunk ? &(*chunk)[index % GN_OBJECT_CHUNK] : NULL;
}

static void send_event_notice(struct gn_vgpu *v, uint64_t cookie, int32_t status)
{
    struct gn_session_event e = {cookie, status, 0};
    gn_vgpu_notify(v, GN_SESSION_EVENT, &e, sizeof e);
}

/* Moves to `told` the watches that this phase satisfies. 0: all of them; the event is over. */
static void collect_watches(struct gn_vevent *e, int32_t phase, struct gn_list *reported)
{
    gn_list_for_each(w, &e->watches, struct gn_vevent_watch, link)
    {
        if (w->phase >= phase) {
            gn_list_remove(&w->link);
            gn_list_append(reported, &w->link);
        }
    }
}

static void notify_watches(struct gn_vgpu *v, struct gn_list *reported, int32_t error)
{
    gn_list_for_each(w, reported, struct gn_vevent_watch, link)
    {
        send_event_notice(v, w->cookie, error < 0 ? error : w->phase);
        free(w);
    }
}

static void unblock_commands(struct gn_vevent *e, struct gn_command *producer, int32_t error)
{
    gn_list_for_each(b, &e->blocked, struct gn_blocker, link)
    {
        gn_list_remove(&b->link);
        b->command->n_blockers--;
        if (producer)
            gn_command_follow_locked(b->command, producer);
        if (error < 0)
            b->command->doomed = b->command->vgpu->api->wait_failed;
        struct gn_vdevice *d = b->command->queue->device;
        atomic_store_explicit(&d->dirty, true, memory_order_seq_cst);
        /* The caller looks for ready commands on the producer's device only. */
        if (producer && d != producer->queue->device)
            gn_device_wake(d);
    }
}

void gn_vevent_given_locked(struct gn_vevent *e, struct gn_command *producer)
{
    e->state = GN_EVENT_GIVEN;
    e->producer = producer;
    unblock_commands(e, producer, 0);
}

void gn_vevent_over_locked(struct gn_vevent *e, int32_t error, struct gn_list *reported)
{
    e->error = error < 0 ? error : 0;
    e->state = GN_EVENT_OVER;
    e->producer = NULL;
    unblock_commands(e, NULL, e->error);
    collect_watches(e, 0, reported);
}

void gn_vevent_notify(struct gn_vgpu *v, struct gn_list *reported, int32_t error)
{
    notify_watches(v, reported, error);
}

void gn_vevent_submitted(struct gn_vgpu *v, uint32_t index)
{
    struct gn_list reported;
    gn_list_init(&reported);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    if (e)
        collect_watches(e, GN_EVENT_SUBMITTED, &reported);
    pthread_mutex_unlock(&v->lock);
    notify_watches(v, &reported, 0);
}

int gn_user_event_new(struct gn_vgpu *v, uint32_t index)
{
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    bool good = e && (e->state == GN_EVENT_UNUSED || e->state == GN_EVENT_OVER) &&
                gn_list_empty(&e->blocked);
    if (good) {
        e->state = GN_EVENT_PENDING;
        e->user = true;
        e->begun = false;
        e->error = 0;
        e->producer = NULL;
    }
    pthread_mutex_unlock(&v->lock);
    return good ? 0 : -EPROTO;
}

int gn_user_event_set(struct gn_vgpu *v, uint32_t index, int32_t status)
{
    struct gn_list reported;
    gn_list_init(&reported);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    bool good = e && e->state == GN_EVENT_PENDING && e->user;
    if (good) {
        e->state = GN_EVENT_OVER;
        e->user = false;
        e->error = status < 0 ? status : 0;
        unblock_commands(e, NULL, e->error);
        collect_watches(e, 0, &reported);
    }
    pthread_mutex_unlock(&v->lock);
    if (!good)
        return -EPROTO;
    notify_watches(v, &reported, status);
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_device_pump(&v->devices[i]);
    return 0;
}

int gn_event_watch(struct gn_vgpu *v, uint32_t index, int32_t phase, uint64_t cookie)
{
    struct gn_vevent_watch *w = calloc(1, sizeof *w);
    bool now = false;
    int32_t error = 0;
    if (!w)
        return -ENOMEM;
    w->phase = phase;
    w->cookie = cookie;
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    if (!e || e->state == GN_EVENT_UNUSED || e->state == GN_EVENT_OVER ||
        ((e->state == GN_EVENT_GIVEN || e->begun) && phase >= GN_EVENT_SUBMITTED)) {
        now = true;
        error = e && e->state == GN_EVENT_OVER ? e->error : 0;
    } else {
        gn_list_append(&e->watches, &w->link);
    }
    pthread_mutex_unlock(&v->lock);
    if (now) {
        free(w);
        send_event_notice(v, cookie, error < 0 ? error : phase);
    }
    return 0;
}
