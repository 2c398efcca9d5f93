/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes a request that the guest waits for. The message has been copied out of the ring once; its
 * bytes in the data area are copied here, once, into private memory, and only the copy is used.
 * Called by generated code on the ring thread, or on the helper or lease thread for requests that
 * may wait. Calls the driver only to release objects.
 */
#include "base/fault.h"
#include "vgpu/core/build_includes.h"
#include "vgpu/core/vgpu_core.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Limit on the inputs and outputs of a request. A program object's binary is the largest legitimate
 * one.
 */
#define REQUEST_LIMIT_BYTES (UINT64_C(1) << 31)

struct blob {
    struct gn_list link;
    /* malloc's alignment; an attribute here would force the list head to the same alignment. */
    unsigned char bytes[];
};
_Static_assert(offsetof(struct blob, bytes) % 16 == 0, "bytes are aligned for any type");

void *gn_request_alloc(struct gn_request *r, uint64_t bytes)
{
    if (bytes > REQUEST_LIMIT_BYTES) {
        r->no_memory = true;
        return NULL;
    }
    struct blob *b = calloc(1, sizeof *b + (bytes ? bytes : 1));
    if (!b) {
        r->no_memory = true;
        return NULL;
    }
    gn_list_append(&r->blobs, &b->link);
    return b->bytes;
}

struct gn_vobject *gn_request_named(struct gn_request *r, uint16_t kind, uint64_t id)
{
    bool lie = false;
    struct gn_vobject *o = gn_object_get(r->vgpu, id, kind, &lie);
    if (lie || r->n_held == GN_REQUEST_MAX_HELD)
        r->fault = true;
    if (!o || r->fault) {
        gn_object_unref(o);
        return NULL;
    }
    r->held[r->n_held++] = o;
    return o;
}

bool gn_request_bring_in(struct gn_request *r, struct gn_vobject *o)
{
    struct gn_vgpu *v = r->vgpu;
    if (!o || !gn_vgpu_has_evicted(v))
        return true;
    /* Another thread serves a request only while everything is in. */
    if (!r->off_ring && !gn_budget_is_whole(&v->budget) && !v->api->is_resident(o)) {
        r->absent |= !r->refused;
        r->no_memory |= r->refused;
        return false;
    }
    if (!v->api->bring_in(o))
        return true;
    r->no_memory = true;
    return false;
}

struct gn_vobject *gn_request_object(struct gn_request *r, uint16_t kind, uint64_t id)
{
    struct gn_vobject *o = gn_request_named(r, kind, id);
    (void)gn_request_bring_in(r, o);
    return o;
}

void *gn_request_in(struct gn_request *r, const struct gn_span *span, uint64_t bytes)
{
    if (span->segment == GN_SPAN_NULL)
        return NULL;
    if (span->bytes != bytes) {
        r->fault = true;
        return NULL;
    }
    const void *from;
    if (span->segment == GN_SPAN_INLINE) {
        if (!gn_range_ok(span->offset, span->bytes, r->n_bytes)) {
            r->fault = true;
            return NULL;
        }
        from = r->whole + span->offset;
        /* A driver may require C's natural alignment. */
        if (span->offset % 8 == 0)
            return (void *)from;
    } else {
        from = gn_vgpu_area(r->vgpu, span->segment, span->offset, span->bytes);
        if (!from) {
            r->fault = true;
            return NULL;
        }
    }
    void *copy = gn_request_alloc(r, bytes);
    if (!copy)
        return NULL;
    memcpy(copy, from, bytes);
    if (span->segment != GN_SPAN_INLINE) {
        if (r->n_ins == GN_REQUEST_MAX_INS) {
            r->fault = true;
            return NULL;
        }
        r->ins[r->n_ins].span = span;
        r->ins[r->n_ins++].bytes = copy;
    }
    return copy;
}

void *gn_request_objects(struct gn_request *r, uint16_t kind, const struct gn_span *span,
                         uint64_t n)
{
    const uint64_t *ids = gn_request_in(r, span, gn_times(n, sizeof *ids));
    if (!ids)
        return NULL;
    void **drivers = gn_request_alloc(r, gn_times(n, sizeof *drivers));
    struct gn_vobject **objects = gn_request_alloc(r, gn_times(n, sizeof *objects));
    if (r->n_arrays == GN_ARRAY_SIZE(r->arrays))
        r->fault = true;
    if (!drivers || !objects || r->fault)
        return NULL;
    r->arrays[r->n_arrays].objects = objects;
    r->arrays[r->n_arrays++].n = n;
    for (uint64_t i = 0; i < n; i++) {
        bool lie = false;
        objects[i] = gn_object_get(r->vgpu, ids[i], kind, &lie);
        if (lie)
            r->fault = true;
        (void)gn_request_bring_in(r, objects[i]);
        drivers[i] = gn_driver_of(objects[i]);
    }
    return drivers;
}

void *gn_request_string(struct gn_request *r, const struct gn_span *span)
{
    char *s = gn_request_in(r, span, span->bytes);
    if (s && (!span->bytes || s[span->bytes - 1]))
        r->fault = true;
    return s;
}

void *gn_request_list(struct gn_request *r, const struct gn_span *span)
{
    uint64_t *list = gn_request_in(r, span, span->bytes);
    /*
     * Pairs and the terminating zero. With a key in the last place the driver would read past the
     * end.
     */
    if (list && (span->bytes % 16 != 8 || list[span->bytes / 8 - 1]))
        r->fault = true;
    return list;
}

bool gn_list_knows(const void *list, const uint64_t *keys, size_t n)
{
    const uint64_t *at = list;
    for (; at && *at; at += 2) {
        size_t i = 0;
        while (i < n && keys[i] != *at)
            i++;
        if (i == n)
            return false;
    }
    return true;
}

void *gn_request_out(struct gn_request *r, const struct gn_span *span, uint64_t bytes)
{
    if (span->segment == GN_SPAN_NULL)
        return NULL;
    bool fits = r->anew;
    if (span->segment == GN_SPAN_INLINE)
        fits |= gn_range_ok(span->offset, span->bytes, GN_REPLY_MAX_BYTES);
    else if (!fits)
        fits = gn_vgpu_area(r->vgpu, span->segment, span->offset, span->bytes) != NULL;
    if (span->bytes != bytes || !fits || r->n_outs == GN_REQUEST_MAX_OUTS) {
        r->fault = true;
        return NULL;
    }
    void *out = gn_request_alloc(r, bytes);
    r->outs[r->n_outs].span = span;
    r->outs[r->n_outs++].bytes = out;
    return out;
}

void gn_request_need(struct gn_request *r, const struct gn_span *span)
{
    if (span->segment == GN_SPAN_NULL)
        r->fault = true;
}

void *gn_request_area(struct gn_request *r, const struct gn_area_ref *ref, uint64_t bytes)
{
    r->fault |= ref->zero != 0;
    if (ref->segment == GN_SPAN_NULL || !bytes)
        return NULL;
    void *at = gn_vgpu_area(r->vgpu, ref->segment, ref->offset, bytes);
    if (!at)
        r->fault = true;
    return at;
}

bool gn_request_faulty(struct gn_request *r)
{
    if (r->fault)
        gn_vgpu_fault(r->vgpu, "a request is malformed", r->class->name);
    else if (r->no_memory)
        r->result = r->vgpu->api->out_of_memory;
    return r->fault || r->no_memory || r->absent;
}

/* 0, -ENOMEM, or -EAGAIN: the lease thread is to wait first. */
static int charge(struct gn_request *r, uint64_t bytes)
{
    struct gn_vgpu *v = r->vgpu;
    if (r->refused)
        return -ENOMEM;
    if (r->anew) {
        const int rc = gn_lease_charge_ahead(&v->lease, bytes, r->pins);
        if (rc == 0) {
            gn_lease_move(&v->lease, bytes, GN_LEASE_EVICTED, GN_LEASE_PINNED);
            gn_lease_end_pins(&v->lease, r->pins ? bytes : 0);
        }
        return rc;
    }
    /* An object made while part of the memory is evicted would exceed the budget. */
    if (!r->off_ring && gn_budget_limits(&v->budget))
        return -EAGAIN;
    return gn_lease_charge(&v->lease, bytes, false, r->pins);
}

bool gn_request_may_pin(struct gn_request *r, uint64_t bytes)
{
    if (r->anew || gn_lease_may_pin(&r->vgpu->lease, bytes))
        return true;
    if (r->refused)
        return false;
    /* One request may pin several objects. */
    r->wants_pin_bytes = (r->defer ? r->wants_pin_bytes : 0) + bytes;
    r->wants_bytes = r->charged_bytes + r->ahead_bytes;
    r->defer = r->pins = true;
    return false;
}

bool gn_request_charge(struct gn_request *r, uint64_t bytes)
{
    if (bytes <= r->ahead_bytes) {
        r->ahead_bytes -= bytes;
        r->charged_bytes += bytes;
        return true;
    }
    const int rc = charge(r, bytes);
    if (rc == 0)
        r->charged_bytes += bytes;
    if (rc == -ENOMEM)
        r->lacks_bytes = bytes;
    if (rc == -EAGAIN) {
        r->defer = true;
        r->wants_pin_bytes = 0;
        r->wants_bytes = UINT64_MAX;
        (void)gn_add_u64(r->charged_bytes, bytes, &r->wants_bytes);
    }
    return rc == 0;
}

int32_t gn_request_made(struct gn_request *r, uint16_t kind, uint64_t id, void *driver,
                        int32_t result)
{
    if (!driver)
        return result ? result : r->vgpu->api->out_of_memory;
    if (r->anew)
        gn_object_make_room(r->vgpu, id);
    struct gn_vobject *o = gn_object_put(r->vgpu, id, kind, driver);
    if (!o) {
        struct gn_vobject unregistered = {
            .vgpu = r->vgpu, .kind = kind, .driver = driver, .n_refs = 1};
        r->vgpu->api->release(&unregistered);
        gn_vgpu_fault(r->vgpu, "a new object's handle is taken", r->class->name);
        return r->vgpu->api->out_of_memory;
    }
    o->charged_bytes = r->charged_bytes;
    r->charged_bytes = 0;
    gn_object_record(o, r, result);
    if (r->vgpu->api->made(o, r)) {
        gn_object_remove(r->vgpu, id, kind);
        return r->vgpu->api->out_of_memory;
    }
    pthread_mutex_lock(&r->vgpu->objects.lock);
    o->whole = true;
    pthread_mutex_unlock(&r->vgpu->objects.lock);
    return result;
}

void gn_request_changed(struct gn_request *r, struct gn_vobject *o)
{
    const struct gn_vgpu_api *api = r->vgpu->api;
    if (o && (!r->result || (api->changes_though && api->changes_though(r->result))))
        gn_object_record(o, r, r->result);
}

void gn_request_init(struct gn_request *r, struct gn_vgpu *v)
{
    memset(r, 0, offsetof(struct gn_request, bytes));
    r->vgpu = v;
    r->whole = r->bytes;
    gn_list_init(&r->link);
    gn_list_init(&r->blobs);
}

void gn_request_again(struct gn_request *r)
{
    struct gn_vgpu *v = r->vgpu;
    const struct gn_request_class *class = r->class;
    const uint32_t n_bytes = r->n_bytes;
    const bool off_ring = r->off_ring, refused = r->refused, pins = r->pins;
    const uint64_t wants_bytes = r->wants_bytes, wants_pin_bytes = r->wants_pin_bytes;
    gn_request_fini(r);
    gn_request_init(r, v);
    r->class = class;
    r->n_bytes = n_bytes;
    r->off_ring = off_ring;
    r->refused = refused;
    r->pins = pins;
    r->wants_bytes = wants_bytes;
    r->wants_pin_bytes = wants_pin_bytes;
}

void gn_request_answer(struct gn_request *r)
{
    unsigned char payload[GN_REPLY_MAX_BYTES] = {0};
    GN_FAULT("worker-outputs-written");
    uint32_t reply = ((const struct gn_msg *)gn_request_message(r))->reply;
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_outs; i++) {
        const struct gn_span *span = r->outs[i].span;
        if (!r->outs[i].bytes)
            continue;
        if (span->segment == GN_SPAN_INLINE) {
            memcpy(payload + span->offset, r->outs[i].bytes, span->bytes);
            if (span->offset + span->bytes > n)
                n = span->offset + span->bytes;
        } else {
            memcpy(gn_vgpu_area(r->vgpu, span->segment, span->offset, span->bytes),
                   r->outs[i].bytes, span->bytes);
        }
    }
    if (reply == GN_NO_REPLY)
        return;
    r->vgpu->session->answer(r->vgpu, r, reply, payload, n);
}

void gn_request_fini(struct gn_request *r)
{
    for (uint32_t i = 0; i < r->n_held; i++)
        gn_object_unref(r->held[i]);
    for (uint32_t a = 0; a < r->n_arrays; a++)
        for (uint64_t i = 0; i < r->arrays[a].n; i++)
            gn_object_unref(r->arrays[a].objects[i]);
    /* Not gn_list_for_each: it treats the list head as a blob, and the head is less aligned. */
    while (!gn_list_empty(&r->blobs)) {
        struct blob *b = gn_list_first(&r->blobs, struct blob, link);
        gn_list_remove(&b->link);
        free(b);
    }
    gn_lease_refund(&r->vgpu->lease, r->charged_bytes + r->ahead_bytes);
    if (r->record)
        gn_request_forget_record(r);
    gn_build_includes_free(r->files);
}
