/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of live objects: see records.h. Written by the threads that serve requests, after a
 * request has made or changed an object; gathered by the thread that saves the vGPU. Never on the
 * path of a command. Calls the driver only to release an object that is no longer referenced.
 */
#include "vgpu/core/records.h"

#include "base/array.h"
#include "vgpu/core/build_includes.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Iterative, not recursive: records may hold each other in a long chain. */
static void unref_record_locked(struct gn_record *r, struct gn_record **ret_dead)
{
    if (--r->n_refs)
        return;
    /* The serial is no longer needed; its field links the list of dead records. */
    r->serial = (uint64_t)(uintptr_t)*ret_dead;
    *ret_dead = r;
}

static void unref_record(struct gn_vgpu *v, struct gn_record *r)
{
    struct gn_record *dead = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&v->objects.lock);
    unref_record_locked(r, &dead);
    while (dead) {
        struct gn_record *one = dead;
        dead = (struct gn_record *)(uintptr_t)one->serial;
        for (uint32_t i = 0; i < one->n_pins; i++)
            unref_record_locked(one->pins[i], &dead);
        free(one->pins);
        gn_build_includes_free(one->files);
        free(one);
    }
    pthread_mutex_unlock(&v->objects.lock);
}

/* ---- making a record */

static uint32_t count_links(const struct gn_vobject *o)
{
    uint32_t n = 0;
    for (const struct gn_record_link *l = o ? o->records : NULL; l; l = l->next)
        n++;
    return n;
}

static void pin_records_of(struct gn_record *record, const struct gn_vobject *o)
{
    for (const struct gn_record_link *l = o ? o->records : NULL; l; l = l->next) {
        l->record->n_refs++;
        record->pins[record->n_pins++] = l->record;
    }
}

/*
 * Pins the records of the objects that the request names, except of the object that it changes,
 * which has its records itself.
 */
static int pin_inputs(struct gn_vgpu *v, struct gn_record *record, const struct gn_request *r,
                      const struct gn_vobject *changed)
{
    uint64_t n = 0;
    int rc = 0;
    pthread_mutex_lock(&v->objects.lock);
    for (uint32_t i = 0; i < r->n_held; i++)
        n += r->held[i] != changed ? count_links(r->held[i]) : 0;
    for (uint32_t a = 0; a < r->n_arrays; a++)
        for (uint64_t i = 0; i < r->arrays[a].n; i++)
            n += count_links(r->arrays[a].objects[i]);
    if (n && (n > UINT32_MAX || !(record->pins = calloc(n, sizeof(struct gn_record *)))))
        rc = -ENOMEM;
    for (uint32_t i = 0; n && !rc && i < r->n_held; i++)
        if (r->held[i] != changed)
            pin_records_of(record, r->held[i]);
    for (uint32_t a = 0; n && !rc && a < r->n_arrays; a++)
        for (uint64_t i = 0; i < r->arrays[a].n; i++)
            pin_records_of(record, r->arrays[a].objects[i]);
    pthread_mutex_unlock(&v->objects.lock);
    return rc;
}

/*
 * Copies the message. The bytes of the data area are appended and the spans changed to point there,
 * so that the record needs nothing else.
 */
static struct gn_record *copy_message(const struct gn_request *r)
{
    uint64_t bytes = gn_align_up(r->n_bytes, 8);
    for (uint32_t i = 0; i < r->n_ins; i++)
        bytes += gn_align_up(r->ins[i].span->bytes, 8);
    struct gn_record *record = bytes <= UINT32_MAX ? calloc(1, sizeof *record + bytes) : NULL;
    if (!record)
        return NULL;
    record->op = ((const struct gn_msg *)gn_request_message(r))->op;
    record->n_bytes = (uint32_t)bytes;
    memcpy(record->bytes, r->whole, r->n_bytes);
    /*
     * The serving function may have changed its message (for example to name more than the program
     * still holds).
     */
    memcpy(record->bytes, r->bytes, r->n_bytes < sizeof r->bytes ? r->n_bytes : sizeof r->bytes);
    uint64_t at = gn_align_up(r->n_bytes, 8);
    for (uint32_t i = 0; i < r->n_ins; i++) {
        size_t span_at = (size_t)((const unsigned char *)r->ins[i].span - r->bytes);
        struct gn_span span = {GN_SPAN_INLINE, r->ins[i].span->bytes, at};
        memcpy(record->bytes + at, r->ins[i].bytes, span.bytes);
        memcpy(record->bytes + span_at, &span, sizeof span);
        at += gn_align_up(span.bytes, 8);
    }
    return record;
}

/*
 * Whether the new record makes the old one unnecessary. A failed change may leave an earlier
 * change's effects in place: then both are kept.
 */
static bool replaces(const struct gn_request *r, const struct gn_record *old,
                     const struct gn_record *new)
{
    const struct gn_request_class *class = r->class;
    return old->op == new->op && (!new->result || old->result) &&
           !memcmp(old->bytes + class->key_at, new->bytes + class->key_at, class->key_bytes);
}

void gn_object_record(struct gn_vobject *o, struct gn_request *r, int32_t result)
{
    struct gn_vgpu *v = o->vgpu;
    struct gn_record_link *link = calloc(1, sizeof *link), *gone = NULL;
    bool first = !r->record;
    if (link && first) {
        r->record = copy_message(r);
        if (r->record) {
            r->record->n_refs = 1;
            r->record->result = result;
            r->record->files = r->files;
            r->files = NULL;
        }
    }
    if (!link || !r->record || (first && pin_inputs(v, r->record, r, o))) {
        /*
         * The object can be used but not migrated: saving fails on an object without complete
         * records.
         */
        gn_object_unsaveable(o);
        free(link);
        return;
    }
    pthread_mutex_lock(&v->objects.lock);
    if (first)
        r->record->serial = ++v->objects.last_serial;
    link->record = r->record;
    link->record->n_refs++;
    /* An addition replaces nothing, and there may be thousands of them: no search. */
    struct gn_record_link **at =
        r->class->adds && o->last_record ? &o->last_record->next : &o->records;
    while (*at) {
        struct gn_record_link *l = *at;
        if (replaces(r, l->record, r->record)) {
            *at = l->next;
            l->next = gone;
            gone = l;
        } else {
            at = &l->next;
        }
    }
    *at = link;
    o->last_record = link;
    pthread_mutex_unlock(&v->objects.lock);
    while (gone) {
        struct gn_record_link *l = gone;
        gone = l->next;
        unref_record(v, l->record);
        free(l);
    }
}

uint64_t gn_object_made_by(const struct gn_vobject *o)
{
    pthread_mutex_lock(&o->vgpu->objects.lock);
    const uint64_t serial = o->records ? o->records->record->serial : 0;
    pthread_mutex_unlock(&o->vgpu->objects.lock);
    return serial;
}

void gn_object_unsaveable(struct gn_vobject *o)
{
    pthread_mutex_lock(&o->vgpu->objects.lock);
    o->unsaveable = true;
    pthread_mutex_unlock(&o->vgpu->objects.lock);
}

void gn_object_forget_records(struct gn_vobject *o)
{
    o->last_record = NULL;
    while (o->records) {
        struct gn_record_link *l = o->records;
        o->records = l->next;
        unref_record(o->vgpu, l->record);
        free(l);
    }
}

void gn_request_forget_record(struct gn_request *r)
{
    unref_record(r->vgpu, r->record);
    r->record = NULL;
}

/* ---- gathering records */

struct heap {
    struct gn_record **all;
    uint32_t n, capacity;
    int error;
};

static void add_record(struct heap *h, struct gn_record *r)
{
    struct gn_record **all = gn_array_reserve(h->all, h->n, &h->capacity, sizeof(void *));
    if (!all) {
        h->error = -ENOMEM;
        return;
    }
    h->all = all;
    r->n_refs++;
    h->all[h->n++] = r;
}

static int by_serial(const void *a, const void *b)
{
    const struct gn_record *const *x = a, *const *y = b;
    return (*x)->serial < (*y)->serial ? -1 : (*x)->serial > (*y)->serial;
}

/* Sorts by serial and removes duplicates. */
static void sort_unique(struct heap *h)
{
    uint32_t n = 0;
    if (h->n)
        qsort(h->all, h->n, sizeof(struct gn_record *), by_serial);
    for (uint32_t i = 0; i < h->n; i++) {
        /* the entry that stays holds a reference */
        if (n && h->all[n - 1] == h->all[i])
            h->all[i]->n_refs--;
        else
            h->all[n++] = h->all[i];
    }
    h->n = n;
}

/* The object in a chunk's slot, unless it is still being made. Under the objects' lock. */
static struct gn_vobject *made_object_at(struct gn_vgpu *v, uint32_t chunk, uint32_t i)
{
    struct gn_vobject *_Atomic *slots =
        atomic_load_explicit(&v->objects.chunks[chunk], memory_order_relaxed);
    struct gn_vobject *o = slots ? atomic_load_explicit(&slots[i], memory_order_relaxed) : NULL;
    return o && (o->whole || o->given) ? o : NULL;
}

static int hold_objects_locked(struct gn_vgpu *v, struct gn_vobject *const *kept, uint32_t n_kept,
                               struct gn_vobject ***ret, uint32_t *ret_n)
{
    uint32_t capacity = n_kept, n = n_kept;
    struct gn_vobject **all = calloc(n_kept ? n_kept : 1, sizeof(struct gn_vobject *));
    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_kept; i++) {
        atomic_fetch_add_explicit(&kept[i]->n_refs, 1, memory_order_relaxed);
        all[i] = kept[i];
    }
    for (uint32_t c = 0; c < GN_OBJECT_CHUNKS; c++) {
        if (!atomic_load_explicit(&v->objects.chunks[c], memory_order_relaxed))
            continue;
        if (capacity - n < GN_OBJECT_CHUNK) {
            capacity = 2 * capacity + GN_OBJECT_CHUNK;
            struct gn_vobject **more = realloc(all, capacity * sizeof(struct gn_vobject *));
            if (!more) {
                gn_objects_put(all, n);
                return -ENOMEM;
            }
            all = more;
        }
        for (uint32_t i = 0; i < GN_OBJECT_CHUNK; i++) {
            struct gn_vobject *o = made_object_at(v, c, i);
            if (!o || o->given)
                continue;
            atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
            all[n++] = o;
        }
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

void gn_objects_put(struct gn_vobject **objects, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gn_object_unref(objects[i]);
    free(objects);
}

/* Under the objects' lock. */
static void add_records_of(struct heap *h, const struct gn_vobject *o)
{
    if (o && o->unsaveable)
        h->error = -ENODATA;
    for (struct gn_record_link *l = o ? o->records : NULL; l && !h->error; l = l->next)
        add_record(h, l->record);
}

int gn_records_gather(struct gn_vgpu *v, struct gn_vobject *const *kept, uint32_t n_kept,
                      struct gn_record ***ret, uint32_t *ret_n, struct gn_vobject ***ret_objects,
                      uint32_t *ret_n_objects)
{
    struct heap h = {0};
    struct gn_vobject **objects = NULL;
    uint32_t n_objects = 0;
    pthread_mutex_lock(&v->objects.lock);
    for (uint32_t c = 0; c < GN_OBJECT_CHUNKS; c++) {
        if (!atomic_load_explicit(&v->objects.chunks[c], memory_order_relaxed))
            continue;
        for (uint32_t i = 0; i < GN_OBJECT_CHUNK; i++)
            add_records_of(&h, made_object_at(v, c, i));
    }
    for (uint32_t i = 0; i < n_kept; i++)
        add_records_of(&h, kept[i]);
    sort_unique(&h);
    /* A record's pins have lower serials, and pins of their own: repeat until nothing is added. */
    for (uint32_t before = UINT32_MAX; !h.error && h.n != before;) {
        before = h.n;
        for (uint32_t i = 0; i < before && !h.error; i++)
            for (uint32_t p = 0; p < h.all[i]->n_pins && !h.error; p++)
                add_record(&h, h.all[i]->pins[p]);
        sort_unique(&h);
    }
    /* Under the same lock, so that all records that these objects need are among those gathered. */
    if (!h.error && ret_objects)
        h.error = hold_objects_locked(v, kept, n_kept, &objects, &n_objects);
    pthread_mutex_unlock(&v->objects.lock);
    if (h.error) {
        gn_records_put(v, h.all, h.n);
        return h.error;
    }
    *ret = h.all;
    *ret_n = h.n;
    if (ret_objects) {
        *ret_objects = objects;
        *ret_n_objects = n_objects;
    }
    return 0;
}

void gn_records_put(struct gn_vgpu *v, struct gn_record **records, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        unref_record(v, records[i]);
    free(records);
}
