/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes a command's message: looks up the handles and copies the data that the message names.
 * Called by generated code, on the thread that admits the command; the driver's objects of an array
 * are looked up on the thread that submits it. Never calls the driver.
 */
#include "vgpu/core/vgpu_core.h"

#include <stdlib.h>
#include <string.h>

void gn_command_ref(struct gn_command *c, uint32_t i, uint16_t kind, uint64_t id)
{
    bool lie = false;
    c->refs[i] = gn_object_get(c->vgpu, id, kind, &lie);
    if (lie)
        c->fault = true;
}

static void *add_blob(struct gn_command *c, uint64_t bytes)
{
    void *blob = c->n_blobs < GN_ARRAY_SIZE(c->blobs) ? malloc(bytes ? bytes : 1) : NULL;
    if (blob) {
        c->blob_bytes[c->n_blobs] = bytes;
        c->blobs[c->n_blobs++] = blob;
    } else {
        c->no_memory = true;
    }
    return blob;
}

void gn_command_in(struct gn_command *c, struct gn_span *span, uint64_t bytes)
{
    if (span->segment == GN_SPAN_NULL)
        return;
    if (span->bytes != bytes) {
        c->fault = true;
    } else if (span->segment == GN_SPAN_INLINE) {
        c->fault |= !gn_range_ok(span->offset, bytes, c->n_bytes) || span->offset % 8;
    } else {
        const void *from = gn_vgpu_area(c->vgpu, span->segment, span->offset, bytes);
        void *blob = from ? add_blob(c, bytes) : NULL;
        c->fault |= !from;
        if (blob) {
            memcpy(blob, from, bytes);
            c->blob_spans[c->n_blobs - 1] = (uint32_t)((unsigned char *)span - c->bytes);
            span->segment = GN_SPAN_PRIVATE;
            span->offset = c->n_blobs - 1;
        }
    }
}

const void *gn_command_bytes(const struct gn_command *c, const struct gn_span *span)
{
    if (span->segment == GN_SPAN_NULL)
        return NULL;
    return span->segment == GN_SPAN_PRIVATE ? c->blobs[span->offset]
                                            : (const void *)(c->bytes + span->offset);
}

void gn_command_objects(struct gn_command *c, uint16_t kind, struct gn_span *span, uint64_t n)
{
    gn_command_in(c, span, gn_times(n, sizeof(uint64_t)));
    if (c->fault || c->no_memory || span->segment == GN_SPAN_NULL)
        return;
    const uint64_t *ids = gn_command_bytes(c, span);
    c->objects = calloc(n ? n : 1, sizeof *c->objects);
    c->object_refs = calloc(n ? n : 1, sizeof *c->object_refs);
    if (!c->objects || !c->object_refs) {
        c->no_memory = true;
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        bool lie = false;
        c->object_refs[i] = gn_object_get(c->vgpu, ids[i], kind, &lie);
        c->n_objects++;
        if (lie)
            c->fault = true;
    }
}

void **gn_command_drivers(struct gn_command *c)
{
    for (uint32_t i = 0; c->objects && i < c->n_objects; i++)
        c->objects[i] = gn_driver_of(c->object_refs[i]);
    return c->objects;
}

void *gn_command_area(struct gn_command *c, const struct gn_area_ref *ref, uint64_t bytes)
{
    static char nothing;
    c->fault |= ref->zero != 0;
    if (ref->segment == GN_SPAN_NULL)
        return NULL;
    /* A pointer was given with a size of 0: the driver judges that. */
    if (!bytes)
        return &nothing;
    void *at = gn_vgpu_area(c->vgpu, ref->segment, ref->offset, bytes);
    if (!at)
        c->fault = true;
    c->area_ref = *ref;
    c->area_bytes = bytes;
    return at;
}
