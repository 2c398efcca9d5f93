/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: objects that a program holds, and their names on the wire. Memory of a freed object goes to the next one of
 * its kind and never back to the system, so a stale handle meets a dead object and not somebody else's memory.
 */
#include "guest/core/guest_core.h"

#include <stdlib.h>
#include <string.h>

_Atomic uint32_t gn_epoch = 1;
bool (*gn_root_revive)(struct gn_object *o);

#define MAX_IDS        (1u << 20)
#define SLAB_OBJECTS   64u

static struct {
    pthread_mutex_t lock;
    struct gn_object *free[GN_MAX_KINDS]; /* linked through parent */
    struct slab {
        struct slab *next;
        char *start, *end;
    } *all;
} slabs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gn_handles_before_fork(void)
{
    pthread_mutex_lock(&slabs.lock);
}

void gn_handles_after_fork(void)
{
    pthread_mutex_unlock(&slabs.lock);
}

static struct gn_object *slab_take(const struct gn_guest_api *api, uint16_t kind)
{
    size_t bytes = gn_align_up(api->object_bytes[kind], 64);
    pthread_mutex_lock(&slabs.lock);
    if (!slabs.free[kind]) {
        char *slab = aligned_alloc(64, bytes * SLAB_OBJECTS);
        struct slab *entry = slab ? malloc(sizeof *entry) : NULL;
        if (!entry) {
            free(slab);
            slab = NULL;
        } else {
            *entry = (struct slab){slabs.all, slab, slab + bytes * SLAB_OBJECTS};
            slabs.all = entry;
        }
        for (uint32_t i = 0; slab && i < SLAB_OBJECTS; i++) {
            struct gn_object *o = (void *)(slab + i * bytes);
            memset(o, 0, bytes);
            o->parent = slabs.free[kind];
            slabs.free[kind] = o;
        }
    }
    struct gn_object *o = slabs.free[kind];
    if (o)
        slabs.free[kind] = o->parent;
    pthread_mutex_unlock(&slabs.lock);
    if (o)
        memset(o, 0, bytes);
    return o;
}

/* The first two words stay: a loader reads them of any handle it is given. */
static void slab_put(struct gn_object *o)
{
    o->magic = 0;
    pthread_mutex_lock(&slabs.lock);
    o->parent = slabs.free[o->kind];
    slabs.free[o->kind] = o;
    pthread_mutex_unlock(&slabs.lock);
}

bool gn_handle_known(const void *handle)
{
    bool known = false;
    pthread_mutex_lock(&slabs.lock);
    for (const struct slab *s = slabs.all; s && !known; s = s->next)
        known = (const char *)handle >= s->start && (const char *)handle < s->end;
    pthread_mutex_unlock(&slabs.lock);
    return known;
}

static uint64_t id_take(struct gn_session *s)
{
    uint64_t id = 0;
    pthread_mutex_lock(&s->ids_lock);
    if (!s->n_free_ids && s->n_ids == s->ids_capacity && s->ids_capacity < MAX_IDS) {
        uint32_t capacity = s->ids_capacity ? s->ids_capacity * 2 : 256;
        uint32_t *generations = realloc(s->generations, capacity * sizeof *generations);
        if (generations) {
            s->generations = generations;
            uint32_t *free_ids = realloc(s->free_ids, capacity * sizeof *free_ids);
            if (free_ids) {
                s->free_ids = free_ids;
                memset(generations + s->ids_capacity, 0, (capacity - s->ids_capacity) * sizeof *generations);
                s->ids_capacity = capacity;
            }
        }
    }
    uint32_t index = UINT32_MAX;
    if (s->n_free_ids)
        index = s->free_ids[--s->n_free_ids];
    else if (s->n_ids < s->ids_capacity)
        index = s->n_ids++;
    if (index != UINT32_MAX)
        id = gn_id_make(index, ++s->generations[index]);
    pthread_mutex_unlock(&s->ids_lock);
    return id;
}

static void id_put(struct gn_session *s, uint64_t id)
{
    pthread_mutex_lock(&s->ids_lock);
    s->free_ids[s->n_free_ids++] = gn_id_index(id);
    pthread_mutex_unlock(&s->ids_lock);
}

void gn_session_reserve_ids(struct gn_session *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        id_take(s);
}

struct gn_object *gn_object_new(struct gn_session *s, uint16_t kind, struct gn_object *parent)
{
    bool event = kind == s->api->destroy_op_kind_event;
    uint64_t id = event ? gn_event_index_take(s) : id_take(s);
    if (event ? id == GN_NO_EVENT : !id)
        return NULL;
    struct gn_object *o = slab_take(s->api, kind);
    if (!o) {
        if (event)
            gn_event_index_put(s, (uint32_t)id);
        else
            id_put(s, id);
        return NULL;
    }
    o->kind = kind;
    o->epoch = s->epoch;
    o->id = id;
    o->session = s;
    o->parent = parent;
    o->known = true;
    atomic_init(&o->n_refs, 1);
    if (parent) {
        gn_object_ref(parent);
        o->dispatch = parent->dispatch;
        o->dispatch_data = parent->dispatch_data;
    }
    o->magic = GN_OBJECT_MAGIC;
    return o;
}

static void end(struct gn_object *o)
{
    struct gn_session *s = o->session;
    struct gn_object *parent = o->parent;
    o->magic = 0;
    if (o->kind == s->api->destroy_op_kind_event) {
        gn_event_index_put(s, (uint32_t)o->id);
    } else {
        if (o->known)
            s->api->destroy(s, o->id, o->kind);
        id_put(s, o->id);
    }
    slab_put(o);
    if (parent)
        gn_object_unref(parent);
}

void gn_object_drop(struct gn_object *o)
{
    o->known = false;
    end(o);
}

void gn_object_unref(struct gn_object *o)
{
    if (!o || o->rooted || atomic_fetch_sub_explicit(&o->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    o->session->api->gone(o);
    end(o);
}

/* ---- events */

uint32_t gn_event_index_take(struct gn_session *s)
{
    uint32_t index = GN_NO_EVENT;
    pthread_mutex_lock(&s->events_lock);
    /* A few of those that had not ended when they were let go. */
    for (uint32_t looks = 0; s->n_zombies && looks < 4; looks++) {
        uint32_t last = s->n_zombies - 1, pick = (uint32_t)(s->zombies[last] * 2654435761u) % s->n_zombies;
        if (gn_event_phase(&s->events[s->zombies[pick]], NULL) != GN_EVENT_DONE)
            continue;
        s->free_events[s->n_free_events++] = s->zombies[pick];
        s->zombies[pick] = s->zombies[last];
        s->n_zombies--;
    }
    if (!s->n_free_events && s->n_events == s->events_capacity && s->events_capacity < GN_EVENT_ENTRIES) {
        uint32_t capacity = s->events_capacity ? s->events_capacity * 2 : 256;
        uint32_t *free_events = realloc(s->free_events, capacity * sizeof *free_events);
        if (free_events)
            s->free_events = free_events;
        uint32_t *zombies = realloc(s->zombies, capacity * sizeof *zombies);
        if (zombies)
            s->zombies = zombies;
        if (free_events && zombies)
            s->events_capacity = capacity;
    }
    if (s->n_free_events)
        index = s->free_events[--s->n_free_events];
    else if (s->n_events < s->events_capacity)
        index = s->n_events++;
    pthread_mutex_unlock(&s->events_lock);
    if (index != GN_NO_EVENT)
        gn_event_arm(&s->events[index]);
    return index;
}

void gn_event_index_put(struct gn_session *s, uint32_t index)
{
    bool over = gn_event_phase(&s->events[index], NULL) == GN_EVENT_DONE;
    pthread_mutex_lock(&s->events_lock);
    if (over)
        s->free_events[s->n_free_events++] = index;
    else
        s->zombies[s->n_zombies++] = index;
    pthread_mutex_unlock(&s->events_lock);
}
