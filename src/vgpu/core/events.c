/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vGPU's own view of events. The shared table is written here and never read back: what commands depend on stands in
 * private memory. User events are events whose command is the program.
 */
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stdlib.h>

struct watch {
    struct gn_list link;
    int32_t phase;
    uint64_t cookie;
};

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

static void tell_event(struct gn_vgpu *v, uint64_t cookie, int32_t status)
{
    struct gn_session_event e = {cookie, status, 0};
    gn_vgpu_tell(v, GN_SESSION_EVENT, &e, sizeof e);
}

/* Moves to `told` the watches that a phase (or, being over, an error) satisfies. */
static void take_watches(struct gn_vevent *e, int32_t phase, struct gn_list *told)
{
    gn_list_for_each(w, &e->watches, struct watch, link)
    {
        if (w->phase >= phase) {
            gn_list_remove(&w->link);
            gn_list_append(told, &w->link);
        }
    }
}

static void tell_watches(struct gn_vgpu *v, struct gn_list *told, int32_t error)
{
    gn_list_for_each(w, told, struct watch, link)
    {
        tell_event(v, w->cookie, error < 0 ? error : w->phase);
        free(w);
    }
}

static void unblock(struct gn_vevent *e, struct gn_command *producer, int32_t error)
{
    gn_list_for_each(b, &e->blocked, struct gn_blocker, link)
    {
        gn_list_remove(&b->link);
        b->command->n_blockers--;
        if (producer)
            gn_command_follow_locked(b->command, producer);
        if (error < 0)
            b->command->doomed = b->command->vgpu->api->wait_failed;
        atomic_store_explicit(&b->command->queue->device->dirty, true, memory_order_relaxed);
    }
}

void gn_vevent_given_locked(struct gn_vevent *e, struct gn_command *producer)
{
    e->state = GN_EVENT_GIVEN;
    e->producer = producer;
    unblock(e, producer, 0);
}

void gn_vevent_over_locked(struct gn_vevent *e, int32_t error, struct gn_list *told)
{
    e->error = error < 0 ? error : 0;
    e->state = GN_EVENT_OVER;
    e->producer = NULL;
    unblock(e, NULL, e->error);
    take_watches(e, 0, told);
}

void gn_vevent_told(struct gn_vgpu *v, struct gn_list *told, int32_t error)
{
    tell_watches(v, told, error);
}

void gn_vevent_submitted(struct gn_vgpu *v, uint32_t index)
{
    struct gn_list told;
    gn_list_init(&told);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    if (e)
        take_watches(e, GN_EVENT_SUBMITTED, &told);
    pthread_mutex_unlock(&v->lock);
    tell_watches(v, &told, 0);
}

int gn_user_event_new(struct gn_vgpu *v, uint32_t index)
{
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    bool good = e && (e->state == GN_EVENT_UNUSED || e->state == GN_EVENT_OVER) && gn_list_empty(&e->blocked);
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
    struct gn_list told;
    gn_list_init(&told);
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, index);
    bool good = e && e->state == GN_EVENT_PENDING && e->user;
    if (good) {
        e->state = GN_EVENT_OVER;
        e->user = false;
        e->error = status < 0 ? status : 0;
        unblock(e, NULL, e->error);
        take_watches(e, 0, &told);
    }
    pthread_mutex_unlock(&v->lock);
    if (!good)
        return -EPROTO;
    tell_watches(v, &told, status);
    for (uint32_t i = 0; i < v->n_devices; i++)
        gn_device_pump(&v->devices[i]);
    return 0;
}

int gn_event_watch(struct gn_vgpu *v, uint32_t index, int32_t phase, uint64_t cookie)
{
    struct watch *w = calloc(1, sizeof *w);
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
        tell_event(v, cookie, error < 0 ? error : phase);
    }
    return 0;
}
