/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object table: maps the guest's handles to objects. The guest chooses indices and generations,
 * so that it can use a handle before the answer arrives; the table trusts neither. The ring thread
 * creates and removes objects, the helper thread creates them; every other thread that uses an
 * object holds a reference. The API's release, and with it the driver, is called only on the vGPU's
 * own threads.
 */
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct gn_vobject *_Atomic *slot_of(struct gn_vgpu *v, uint32_t index)
{
    if (index / GN_OBJECT_CHUNK >= GN_OBJECT_CHUNKS)
        return NULL;
    struct gn_vobject *_Atomic *chunk =
        atomic_load_explicit(&v->objects.chunks[index / GN_OBJECT_CHUNK], memory_order_acquire);
    return chunk ? &chunk[index % GN_OBJECT_CHUNK] : NULL;
}

static int grow_locked(struct gn_objects *t, uint32_t chunk)
{
    if (chunk >= GN_OBJECT_CHUNKS)
        return -ENOSPC;
    if (atomic_load_explicit(&t->chunks[chunk], memory_order_relaxed))
        return 0;
    uint32_t *generations = calloc(GN_OBJECT_CHUNK, sizeof *generations);
    struct gn_vobject *_Atomic *slots = calloc(GN_OBJECT_CHUNK, sizeof *slots);
    if (!generations || !slots) {
        free(generations);
        free(slots);
        return -ENOMEM;
    }
    t->generations[chunk] = generations;
    atomic_store_explicit(&t->chunks[chunk], slots, memory_order_release);
    return 0;
}

struct gn_vobject *gn_object_put(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver)
{
    uint32_t index = gn_id_index(id), generation = gn_id_generation(id);
    struct gn_objects *t = &v->objects;
    struct gn_vobject *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->vgpu = v;
    o->id = id;
    o->kind = kind;
    o->driver = driver;
    atomic_init(&o->n_refs, 1);
    pthread_mutex_lock(&t->lock);
    /* A correct guest reports an object's end before it reuses the index. */
    if (grow_locked(t, index / GN_OBJECT_CHUNK) ||
        generation <= t->generations[index / GN_OBJECT_CHUNK][index % GN_OBJECT_CHUNK] ||
        atomic_load_explicit(slot_of(v, index), memory_order_relaxed)) {
        pthread_mutex_unlock(&t->lock);
        free(o);
        return NULL;
    }
    t->generations[index / GN_OBJECT_CHUNK][index % GN_OBJECT_CHUNK] = generation;
    atomic_store_explicit(slot_of(v, index), o, memory_order_release);
    pthread_mutex_unlock(&t->lock);
    return o;
}

void gn_object_replace_driver(struct gn_vobject *o, void *driver)
{
    o->driver = driver;
    o->incarnation++;
    /* Relaxed: the caller keeps those out that look at it before they use the object. */
    atomic_fetch_add_explicit(&o->vgpu->objects.n_replaced, 1, memory_order_relaxed);
}

bool gn_object_put_initial(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver)
{
    struct gn_vobject *o = gn_object_put(v, id, kind, driver);
    if (o)
        o->given = true;
    return o != NULL;
}

/* Under the objects' lock. */
static struct gn_vobject *find_aside(struct gn_vgpu *v, uint64_t id, uint16_t kind)
{
    struct gn_vobject *o = v->objects.aside;
    while (o && (o->id != id || o->kind != kind))
        o = o->next_dead;
    return o;
}

struct gn_vobject *gn_object_get(struct gn_vgpu *v, uint64_t id, uint16_t kind, bool *ret_lie)
{
    uint32_t index = gn_id_index(id);
    struct gn_vobject *o = NULL;
    if (!id)
        return NULL;
    pthread_mutex_lock(&v->objects.lock);
    struct gn_vobject *_Atomic *slot = slot_of(v, index);
    if (slot)
        o = atomic_load_explicit(slot, memory_order_relaxed);
    if (o && o->id == id) {
        if (o->kind == kind)
            atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
        else
            o = NULL, *ret_lie = true;
    } else if ((o = find_aside(v, id, kind))) {
        atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
    } else {
        /*
         * A stale handle: a thread of the program may have lost a race with the object's release.
         */
        if (!slot || gn_id_generation(id) >
                         v->objects.generations[index / GN_OBJECT_CHUNK][index % GN_OBJECT_CHUNK])
            *ret_lie = true;
    }
    pthread_mutex_unlock(&v->objects.lock);
    return o;
}

static void notify_unnamed(struct gn_vobject *o)
{
    if (o && o->vgpu->api->unnamed)
        o->vgpu->api->unnamed(o);
}

void gn_object_remove(struct gn_vgpu *v, uint64_t id, uint16_t kind)
{
    struct gn_vobject *o = NULL;
    pthread_mutex_lock(&v->objects.lock);
    struct gn_vobject *_Atomic *slot = slot_of(v, gn_id_index(id));
    if (slot) {
        o = atomic_load_explicit(slot, memory_order_relaxed);
        if (o && o->id == id && o->kind == kind)
            atomic_store_explicit(slot, NULL, memory_order_relaxed);
        else
            o = NULL;
    }
    pthread_mutex_unlock(&v->objects.lock);
    notify_unnamed(o);
    gn_object_unref(o);
}

/*
 * Set in the vGPU's own threads. A driver's thread reports completions, and a release there could
 * wait for that very thread, so it leaves the release to a submit thread.
 */
static _Thread_local bool own_thread;

void gn_objects_own_thread(void)
{
    own_thread = true;
}

static _Thread_local bool is_builder;

void gn_objects_builder_thread(void)
{
    own_thread = is_builder = true;
}

/*
 * A driver may delay a release until a build is over, and a build may wait for a file of the
 * program's. Over tcp the thread that is about to release is the one that receives this file. So
 * while builds are running, the builder's thread releases the objects that its driver builds from.
 * True: it will.
 */
static bool defer_to_builder(struct gn_vobject *o)
{
    struct gn_vgpu *v = o->vgpu;
    if (is_builder || !atomic_load_explicit(&v->n_building, memory_order_seq_cst) ||
        !v->api->release_waits_for_builds || !v->api->release_waits_for_builds(o->kind))
        return false;
    pthread_mutex_lock(&v->objects.lock);
    /* The builder decrements n_building before it looks at the list, under the lock. */
    const bool builds = atomic_load_explicit(&v->n_building, memory_order_seq_cst);
    if (builds) {
        o->next_dead = v->objects.dead_behind_builds;
        v->objects.dead_behind_builds = o;
    }
    pthread_mutex_unlock(&v->objects.lock);
    return builds;
}

static void release_object(struct gn_vobject *o)
{
    o->vgpu->api->release(o);
    gn_lease_refund(&o->vgpu->lease, o->charged_bytes);
    gn_object_forget_records(o);
    /*
     * Recursion is limited by how deep the API nests objects: an image of a buffer that is a
     * sub-buffer.
     */
    for (uint32_t i = 0; i < o->n_holds; i++)
        gn_object_unref(o->holds[i]);
    free(o->holds);
    free(o);
}

void gn_object_unref(struct gn_vobject *o)
{
    if (!o || atomic_fetch_sub_explicit(&o->n_refs, 1, memory_order_acq_rel) != 1)
        return;
    if (defer_to_builder(o))
        return;
    if (own_thread) {
        release_object(o);
        return;
    }
    struct gn_vgpu *v = o->vgpu;
    pthread_mutex_lock(&v->objects.lock);
    o->next_dead = v->objects.dead;
    v->objects.dead = o;
    pthread_mutex_unlock(&v->objects.lock);
    gn_device_wake(&v->devices[0]);
}

static void release_list(struct gn_vgpu *v, struct gn_vobject **list)
{
    pthread_mutex_lock(&v->objects.lock);
    struct gn_vobject *o = *list;
    *list = NULL;
    pthread_mutex_unlock(&v->objects.lock);
    while (o) {
        struct gn_vobject *next = o->next_dead;
        if (!defer_to_builder(o))
            release_object(o);
        o = next;
    }
}

void gn_objects_bury(struct gn_vgpu *v)
{
    release_list(v, &v->objects.dead);
}

void gn_objects_built(struct gn_vgpu *v)
{
    atomic_fetch_sub_explicit(&v->n_building, 1, memory_order_seq_cst);
    release_list(v, &v->objects.dead_behind_builds);
}

static bool reserve_holds_locked(struct gn_vobject *o, uint32_t n)
{
    if (n <= o->holds_capacity - o->n_holds)
        return true;
    const uint32_t capacity = n < o->n_holds ? 2 * o->n_holds : o->n_holds + n;
    struct gn_vobject **holds = realloc(o->holds, capacity * sizeof(struct gn_vobject *));
    if (!holds)
        return false;
    o->holds = holds;
    o->holds_capacity = capacity;
    return true;
}

int gn_object_reserve_holds(struct gn_vobject *o, uint32_t n)
{
    pthread_mutex_lock(&o->vgpu->objects.lock);
    const bool has_place = reserve_holds_locked(o, n);
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return has_place ? 0 : -ENOMEM;
}

int gn_object_hold(struct gn_vobject *o, struct gn_vobject *other)
{
    uint32_t low = 0;
    int rc = 0;
    pthread_mutex_lock(&o->vgpu->objects.lock);
    for (uint32_t high = o->n_holds; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)o->holds[middle] < (uintptr_t)other)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == o->n_holds || o->holds[low] != other) {
        rc = reserve_holds_locked(o, 1) ? 0 : -ENOMEM;
        if (!rc) {
            memmove(&o->holds[low + 1], &o->holds[low],
                    (o->n_holds - low) * sizeof(struct gn_vobject *));
            o->holds[low] = other;
            o->n_holds++;
            atomic_fetch_add_explicit(&other->n_refs, 1, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return rc;
}

struct gn_vobject *gn_object_held(struct gn_vobject *o, uint32_t i)
{
    pthread_mutex_lock(&o->vgpu->objects.lock);
    struct gn_vobject *held = i < o->n_holds ? o->holds[i] : NULL;
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return held;
}

struct gn_vobject *gn_object_next(struct gn_vgpu *v, uint32_t *index)
{
    for (; *index < GN_OBJECT_CHUNK * GN_OBJECT_CHUNKS; ++*index) {
        struct gn_vobject *_Atomic *slot = slot_of(v, *index);
        struct gn_vobject *o = slot ? atomic_load_explicit(slot, memory_order_relaxed) : NULL;
        if (o)
            return o;
        if (!slot)
            *index |= GN_OBJECT_CHUNK - 1;
    }
    return NULL;
}

int gn_object_index_used(struct gn_vgpu *v, uint32_t index, uint32_t generation)
{
    pthread_mutex_lock(&v->objects.lock);
    int rc = grow_locked(&v->objects, index / GN_OBJECT_CHUNK);
    uint32_t *latest =
        rc ? NULL : &v->objects.generations[index / GN_OBJECT_CHUNK][index % GN_OBJECT_CHUNK];
    if (latest && *latest < generation)
        *latest = generation;
    pthread_mutex_unlock(&v->objects.lock);
    return rc;
}

void gn_object_make_room(struct gn_vgpu *v, uint64_t id)
{
    pthread_mutex_lock(&v->objects.lock);
    struct gn_vobject *_Atomic *slot = slot_of(v, gn_id_index(id));
    struct gn_vobject *o = slot ? atomic_load_explicit(slot, memory_order_relaxed) : NULL;
    if (o && o->records && gn_id_generation(o->id) < gn_id_generation(id)) {
        atomic_store_explicit(slot, NULL, memory_order_relaxed);
        o->next_dead = v->objects.aside;
        v->objects.aside = o;
    } else {
        o = NULL;
    }
    pthread_mutex_unlock(&v->objects.lock);
    notify_unnamed(o);
}

void gn_objects_drop_aside(struct gn_vgpu *v)
{
    pthread_mutex_lock(&v->objects.lock);
    struct gn_vobject *o = v->objects.aside;
    v->objects.aside = NULL;
    pthread_mutex_unlock(&v->objects.lock);
    while (o) {
        struct gn_vobject *next = o->next_dead;
        gn_object_unref(o);
        o = next;
    }
}

bool gn_object_is_named(struct gn_vobject *o)
{
    pthread_mutex_lock(&o->vgpu->objects.lock);
    struct gn_vobject *_Atomic *slot = slot_of(o->vgpu, gn_id_index(o->id));
    bool is = slot && atomic_load_explicit(slot, memory_order_relaxed) == o;
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return is;
}
