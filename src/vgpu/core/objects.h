/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OBJECTS_H
#define GN_VGPU_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The table of a vGPU's objects: by id, with reference counts. */
struct gn_record_link;
struct gn_vgpu;

#define GN_OBJECT_CHUNK  1024u
#define GN_OBJECT_CHUNKS 4096u

struct gn_vobject {
    /* set once */
    struct gn_vgpu *vgpu;
    uint64_t id;
    uint16_t kind;
    void *detail;           /* the API's, freed by its release */
    uint64_t charged_bytes; /* device memory taken from the lease for it; its release sees to it
                               that it goes back */
    /* gn_object_replace_driver() alone changes these */
    void *driver;
    uint64_t incarnation; /* counts the driver's objects that this one has had; 0: the first */
    /* any thread */
    _Atomic uint32_t n_refs; /* the table's, and each pending command's and slow request's */
    /* objects lock */
    struct gn_record_link *records, *last_record;
    struct gn_vobject **holds; /* by address, each once: gn_object_hold */
    uint32_t n_holds, holds_capacity;
    bool unsaveable; /* there was no memory for one, or it does not hold all: a program that
                        includes too much */
    bool given;      /* no request made it: a platform, a device */
    bool whole;      /* it has its detail and its record: others than its maker may look at it */
    struct gn_vobject *next_dead;
    /* the vGPU's lock */
    uint64_t last_walk; /* of released_objects.c that has seen it; the first is 1 */
};

struct gn_objects {
    struct gn_vobject *_Atomic *_Atomic chunks[GN_OBJECT_CHUNKS];
    uint32_t *generations[GN_OBJECT_CHUNKS]; /* the latest of each index: an older one is stale, a
                                                newer one a lie */
    pthread_mutex_t lock;
    struct gn_vobject *dead;               /* lock */
    struct gn_vobject *dead_behind_builds; /* lock: the builder's thread releases them */
    struct gn_vobject
        *aside; /* lock: during a load, objects whose index another has; found by their ids still */
    uint64_t last_serial; /* lock: of the records */
    _Atomic uint64_t n_replaced;
};

/* Puts an object under an id that the guest chose. NULL when the id is impossible or taken, or no
 * memory. */
struct gn_vobject *gn_object_put(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver);
/* The same for objects that no request makes, at the start. */
bool gn_object_put_initial(struct gn_vgpu *v, uint64_t id, uint16_t kind, void *driver);
/* With a reference, or NULL. *ret_lie is set when the id was never handed out: no honest guest
 * sends such a one. */
struct gn_vobject *gn_object_get(struct gn_vgpu *v, uint64_t id, uint16_t kind, bool *ret_lie);
void gn_object_remove(struct gn_vgpu *v, uint64_t id, uint16_t kind);
void gn_object_unref(struct gn_vobject *o);
/* A reference on an object that a list names without holding it; false when its end has begun. */
static inline bool gn_object_ref_if_held(struct gn_vobject *o)
{
    uint32_t n = atomic_load_explicit(&o->n_refs, memory_order_relaxed);
    while (n && !atomic_compare_exchange_weak_explicit(&o->n_refs, &n, n + 1, memory_order_acquire,
                                                       memory_order_relaxed))
        ;
    return n != 0;
}
/*
 * `other` lives as long as o does: the driver's object of o uses that of `other`, and so does the
 * program through o when it has no handle on `other` any more. Any thread that holds a reference on
 * both. 0 or -ENOMEM.
 */
int gn_object_hold(struct gn_vobject *o, struct gn_vobject *other);
/* Room for n objects more: gn_object_hold of the next n does not fail. 0 or -ENOMEM. */
int gn_object_reserve_holds(struct gn_vobject *o, uint32_t n);
/* The i-th object that o holds, without a reference; NULL: there are fewer. Any thread that holds a
 * reference on o. */
struct gn_vobject *gn_object_held(struct gn_vobject *o, uint32_t i);
/* The next one from *index on, without a reference; NULL: there is none. While nothing makes or
 * ends objects. */
struct gn_vobject *gn_object_next(struct gn_vgpu *v, uint32_t *index);
/* For a load: an index has been used up to this generation; an object of an earlier one, left from
 * before, is set aside. */
int gn_object_index_used(struct gn_vgpu *v, uint32_t index, uint32_t generation);
void gn_object_make_room(struct gn_vgpu *v, uint64_t id);
/* The load is over: releases the objects that it has set aside. */
void gn_objects_drop_aside(struct gn_vgpu *v);
/* Does a handle stand for it still? Any thread that holds a reference. */
bool gn_object_is_named(struct gn_vobject *o);
/* A thread of the vGPU's own says so once, and may then call the driver's releases. */
void gn_objects_own_thread(void);
/* The same for the thread that serves builds. */
void gn_objects_builder_thread(void);
/* Releases objects that the driver's threads have dropped. */
void gn_objects_bury(struct gn_vgpu *v);
/* The builder's thread: one of n_building is over; releases objects that waited for that. */
void gn_objects_built(struct gn_vgpu *v);

/* A command's handles are resolved so when it is submitted, a request's when it is served: never
 * earlier, because the driver's object may be replaced. */
static inline void *gn_driver_of(const struct gn_vobject *o)
{
    return o ? o->driver : NULL;
}

/*
 * The object has another driver's object from now on; the caller releases the earlier one. While
 * nothing else uses the object: no command that names it is being submitted, and no request served.
 */
void gn_object_replace_driver(struct gn_vobject *o, void *driver);
/* Counts these replacements, of any object. Any thread. */
static inline uint64_t gn_objects_replaced(const struct gn_objects *t)
{
    return atomic_load_explicit(&t->n_replaced, memory_order_relaxed);
}

#endif
