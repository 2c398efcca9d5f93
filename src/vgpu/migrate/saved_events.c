/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in a migration stream: those that are pending or have failed, and the program's watches of
 * them. Called by the threads that save and load the vGPU, behind the closed gate. Restoring trusts
 * no entry.
 */
#include "vgpu/migrate/save.h"

#include <errno.h>

static int save_event(struct gn_stream_writer *w, uint32_t index, const struct gn_vevent *e)
{
    const struct gn_stream_event_state state = {
        .phase = e->state == GN_EVENT_PENDING ? GN_STREAM_EVENT_PENDING : GN_STREAM_EVENT_OVER,
        .error = e->error,
        .flags = e->state == GN_EVENT_PENDING && e->user ? GN_STREAM_EVENT_USER : 0,
    };
    /*
     * An event that ended without an error equals an unused one. Skipping it keeps the checkpoint
     * of a long run small.
     */
    if (state.phase == GN_STREAM_EVENT_OVER && state.error >= 0)
        return 0;
    /* A failure of the writer sticks. */
    (void)gn_stream_entry_begin(w, GN_STREAM_EVENTS, (uint64_t)index + 1, 0, NULL, 0);
    (void)gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
    return gn_stream_entry_end(w);
}

static int save_watches(struct gn_stream_writer *w, uint32_t index, const struct gn_vevent *e)
{
    int rc = 0;
    gn_list_for_each(watch, &e->watches, const struct gn_vevent_watch, link)
    {
        const struct gn_stream_call_state state = {.event = index, .phase = watch->phase};
        (void)gn_stream_entry_begin(w, GN_STREAM_CALLS, watch->cookie, 1, NULL, 0);
        (void)gn_stream_part(w, GN_PART_STATE, &state, sizeof state);
        rc = gn_stream_entry_end(w);
    }
    return rc;
}

int gn_events_save(struct gn_vgpu *v, struct gn_stream_writer *w)
{
    int rc = 0;
    /* All events come before the first watch. */
    for (int watches = 0; watches < 2; watches++)
        for (uint32_t c = 0; c < GN_ARRAY_SIZE(v->event_chunks); c++)
            for (uint32_t i = 0; v->event_chunks[c] && i < GN_OBJECT_CHUNK && !rc; i++)
                rc = (watches ? save_watches : save_event)(w, c * GN_OBJECT_CHUNK + i,
                                                           &v->event_chunks[c][i]);
    return rc;
}

static int restore_watch(struct gn_vgpu *v, const struct gn_stream_entry *e,
                         const struct gn_stream_call_state *state)
{
    pthread_mutex_lock(&v->lock);
    const struct gn_vevent *event = gn_vevent_at(v, state->event);
    bool good = event && event->state == GN_EVENT_PENDING && state->phase >= 0 &&
                state->phase <= GN_EVENT_QUEUED;
    pthread_mutex_unlock(&v->lock);
    return good ? gn_event_watch(v, state->event, state->phase, e->id) : -EBADMSG;
}

int gn_event_restore(struct gn_vgpu *v, const struct gn_stream_entry *entry)
{
    struct gn_stream_event_state state;
    struct gn_stream_call_state call;
    if (entry->kind == 1)
        return gn_stream_copy_part(entry, GN_PART_STATE, &call, sizeof call)
                   ? restore_watch(v, entry, &call)
                   : -EBADMSG;
    if (!gn_stream_copy_part(entry, GN_PART_STATE, &state, sizeof state) || !entry->id ||
        entry->id > GN_EVENT_ENTRIES)
        return -EBADMSG;
    pthread_mutex_lock(&v->lock);
    struct gn_vevent *e = gn_vevent_at(v, (uint32_t)(entry->id - 1));
    bool good = e && e->state == GN_EVENT_UNUSED;
    if (good) {
        e->state = state.phase == GN_STREAM_EVENT_PENDING ? GN_EVENT_PENDING : GN_EVENT_OVER;
        e->user = state.flags & GN_STREAM_EVENT_USER;
        e->error = state.error < 0 ? state.error : 0;
    }
    pthread_mutex_unlock(&v->lock);
    return good ? 0 : -EBADMSG;
}
