/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: objects that a program holds, and their names on the wire. Memory of a freed object goes
 * to the next one of its kind and never back to the system, so a stale handle meets a dead object
 * and not somebody else's memory.
 */
#include "guest/core/guest_core.h"
#include "guest/core/loss.h"

#include <stdlib.h>
#include <string.h>

_Atomic uint32_t gn_epoch = GN_FIRST_EPOCH;
bool (*gn_root_revive)(struct gn_object *o);

#define MAX_IDS      (1u << 20)
#define SLAB_BYTES   (UINT64_C(1) << 14) /* and aligned so: an address tells its slab */
#define SLAB_BUCKETS (1u << 16)          /* twice as many as all objects there can be need */

static struct {
    pthread_mutex_t lock;
    struct gn_object *free[GN_MAX_KINDS]; /* linked through parent */
    uint32_t n;
    /* Slabs by their number, in the first free bucket from the number's own on. Only ever filled,
     * so looks need no lock. */
    _Atomic uintptr_t buckets[SLAB_BUCKETS];
} slabs = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gn_handles_before_fork(void)
{
    pthread_mutex_lock(&slabs.lock);
}

void gn_handles_after_fork(void)
{
    pthread_mutex_unlock(&slabs.lock);
}

static void slab_new_locked(size_t bytes, uint16_t kind)
{
    char *slab = slabs.n < SLAB_BUCKETS / 2 ? aligned_alloc(SLAB_BYTES, SLAB_BYTES) : NULL;
    if (!slab)
        return;
    uintptr_t number = (uintptr_t)slab / SLAB_BYTES;
    uint32_t i = (uint32_t)number % SLAB_BUCKETS;
    while (atomic_load_explicit(&slabs.buckets[i], memory_order_relaxed))
        i = (i + 1) % SLAB_BUCKETS;
    memset(slab, 0, SLAB_BYTES);
    atomic_store_explicit(&slabs.buckets[i], number, memory_order_release);
    slabs.n++;
    for (uint32_t at = 0; at + bytes <= SLAB_BYTES; at += (uint32_t)bytes) {
        struct gn_object *o = (void *)(slab + at);
        o->parent = slabs.free[kind];
        slabs.free[kind] = o;
    }
}

static struct gn_object *slab_take(const struct gn_guest_api *api, uint16_t kind)
{
    size_t bytes = gn_align_up(api->object_bytes[kind], 64);
    pthread_mutex_lock(&slabs.lock);
    if (!slabs.free[kind])
        slab_new_locked(bytes, kind);
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
    uintptr_t number = (uintptr_t)handle / SLAB_BYTES, found;
    for (uint32_t i = (uint32_t)number % SLAB_BUCKETS;
         (found = atomic_load_explicit(&slabs.buckets[i], memory_order_acquire));
         i = (i + 1) % SLAB_BUCKETS)
        if (found == number)
            return true;
    return false;
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
                memset(generations + s->ids_capacity, 0,
                       (capacity - s->ids_capacity) * sizeof *generations);
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
    if (gn_session_lost(s))
        gn_area_discard_unused(s);
}

uint64_t gn_session_reserve_id(struct gn_session *s)
{
    const uint64_t id = id_take(s);
    pthread_mutex_lock(&s->ids_lock);
    s->n_roots += id != 0;
    pthread_mutex_unlock(&s->ids_lock);
    return id;
}

bool gn_session_is_used(struct gn_session *s)
{
    pthread_mutex_lock(&s->ids_lock);
    const uint32_t n_objects =
        s->n_ids - s->n_free_ids; /* events have none, and hold their contexts */
    const bool used = n_objects > s->n_roots;
    pthread_mutex_unlock(&s->ids_lock);
    return used;
}

void *gn_object_anew(const void *handle, uint16_t kind)
{
    struct gn_object *o = gn_object_of(handle, kind);
    if (o && o->rooted && gn_session_lost(o->session))
        (void)gn_root_revive(o);
    return o;
}

/* Other threads may look at it: one that meets half of it is refused by the vGPU, or by none. */
void gn_object_rebind(struct gn_object *o, struct gn_session *s, uint64_t id)
{
    __atomic_store_n(&o->id, id, __ATOMIC_RELAXED);
    __atomic_store_n(&o->session, s, __ATOMIC_RELAXED);
    __atomic_store_n(&o->epoch, s->epoch, __ATOMIC_RELEASE);
}

static void init(struct gn_object *o, struct gn_session *s, uint16_t kind, uint64_t id)
{
    o->kind = kind;
    o->epoch = s->epoch;
    o->id = id;
    o->session = s;
    o->known = true;
    atomic_init(&o->n_refs, 1);
}

struct gn_object *gn_object_new_root(struct gn_session *s, uint16_t kind)
{
    struct gn_object *o = slab_take(s->api, kind);
    if (!o)
        return NULL;
    init(o, s, kind, 0);
    o->rooted = true;
    o->magic = GN_OBJECT_MAGIC;
    return o;
}

struct gn_object *gn_object_new(struct gn_session *s, uint16_t kind, struct gn_object *parent)
{
    bool event = kind == s->api->destroy_op_kind_event;
    uint64_t id = event ? gn_event_index_alloc(s) : id_take(s);
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
    init(o, s, kind, id);
    o->parent = parent;
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

static bool grow_events_locked(struct gn_session *s)
{
    uint32_t capacity = s->events_capacity ? s->events_capacity * 2 : 256;
    if (s->events_capacity == GN_EVENT_ENTRIES)
        return false;
    uint32_t *free_events = realloc(s->free_events, capacity * sizeof *free_events);
    if (free_events)
        s->free_events = free_events;
    uint32_t *zombies = free_events ? malloc(capacity * sizeof *zombies) : NULL;
    if (!zombies)
        return false;
    for (uint32_t i = 0; i < s->n_zombies; i++)
        zombies[i] = s->zombies[(s->first_zombie + i) % s->events_capacity];
    free(s->zombies);
    s->zombies = zombies;
    s->first_zombie = 0;
    s->events_capacity = capacity;
    return true;
}

static void bury_locked(struct gn_session *s, uint32_t index)
{
    s->zombies[(s->first_zombie + s->n_zombies++) % s->events_capacity] = index;
}

/* An index that was let go before its event had ended: the oldest, if it has by now. One look a
 * call; one that has not goes to the end, so that an event that never ends keeps nobody waiting. */
static uint32_t oldest_zombie_locked(struct gn_session *s)
{
    if (!s->n_zombies)
        return GN_NO_EVENT;
    uint32_t index = s->zombies[s->first_zombie];
    s->first_zombie = (s->first_zombie + 1) % s->events_capacity;
    s->n_zombies--;
    if (gn_event_phase(&s->events[index], NULL) == GN_EVENT_DONE)
        return index;
    bury_locked(s, index);
    return GN_NO_EVENT;
}

uint32_t gn_event_index_alloc(struct gn_session *s)
{
    pthread_mutex_lock(&s->events_lock);
    uint32_t index = oldest_zombie_locked(s);
    if (index == GN_NO_EVENT && s->n_free_events)
        index = s->free_events[--s->n_free_events];
    else if (index == GN_NO_EVENT && (s->n_events < s->events_capacity || grow_events_locked(s)))
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
        bury_locked(s, index);
    pthread_mutex_unlock(&s->events_lock);
}
