/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory objects hold, into a stream and out of one. Queues of its own are used, one a context, which nobody else sees. What a
 * program forbids its host to read or write (CL_MEM_HOST_*) is copied on the device, to or from a buffer that may be. Run by the
 * thread that saves or loads, behind a closed gate.
 *
 * Nothing goes of what is a view of another object (sub-buffers, images over buffers), and of what lies in the data area: that stays
 * where the program is.
 */
#include "opencl_host.h"
#include "vgpu/core/save.h"

#include "base/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (UINT64_C(4) << 20)

struct context_queue {
    cl_context context;
    cl_command_queue queue;
    cl_mem between; /* PIECE_BYTES, or as large as an image; NULL: not needed yet */
    uint64_t between_bytes;
};

struct gn_contents {
    struct context_queue *queues;
    uint32_t n;
    unsigned char *piece;
    /* An image whose pages are coming. */
    uint64_t image_id;
    unsigned char *image;
    uint64_t image_bytes;
};

static struct gn_contents *contents_of(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    if (!detail->contents && (detail->contents = calloc(1, sizeof *detail->contents)))
        detail->contents->piece = malloc(PIECE_BYTES);
    return detail->contents && detail->contents->piece ? detail->contents : NULL;
}

static void end(struct gn_vgpu *v)
{
    struct gn_opencl_vgpu *detail = v->detail;
    struct gn_contents *c = detail->contents;
    for (uint32_t i = 0; c && i < c->n; i++) {
        if (c->queues[i].between)
            gn_cl(v)->clReleaseMemObject(c->queues[i].between);
        gn_cl(v)->clReleaseCommandQueue(c->queues[i].queue);
    }
    if (c) {
        free(c->queues);
        free(c->piece);
        free(c->image);
    }
    free(c);
    detail->contents = NULL;
}

static struct context_queue *queue_for(struct gn_vgpu *v, cl_mem mem)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_contents *c = contents_of(v);
    cl_context context = NULL;
    size_t bytes = 0;
    cl_int result = CL_SUCCESS;
    if (!c || cl->clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL))
        return NULL;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->queues[i].context == context)
            return &c->queues[i];
    struct context_queue *more = realloc(c->queues, (c->n + 1) * sizeof *more);
    if (!more)
        return NULL;
    c->queues = more;
    if (cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes) || bytes < sizeof(cl_device_id))
        return NULL;
    cl_device_id *devices = malloc(bytes);
    if (!devices || cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices, NULL)) {
        free(devices);
        return NULL;
    }
    cl_command_queue queue = cl->clCreateCommandQueue(context, devices[0], 0, &result);
    free(devices);
    if (!queue)
        return NULL;
    c->queues[c->n] = (struct context_queue){.context = context, .queue = queue};
    return &c->queues[c->n++];
}

static cl_mem between(struct gn_vgpu *v, struct context_queue *q, uint64_t bytes)
{
    cl_int result;
    if (q->between && q->between_bytes < bytes) {
        gn_cl(v)->clReleaseMemObject(q->between);
        q->between = NULL;
    }
    if (!q->between) {
        q->between = gn_cl(v)->clCreateBuffer(q->context, CL_MEM_READ_WRITE, bytes, NULL, &result);
        q->between_bytes = bytes;
    }
    return q->between;
}

/* ---- which, and how large */

struct content {
    cl_mem mem;
    bool image;
    uint64_t bytes;
    size_t region[3]; /* of an image */
    cl_mem_flags flags;
};

/* False: nothing of it goes. */
static bool look(struct gn_vgpu *v, const struct gn_vobject *o, struct content *ret)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const struct gn_mem_detail *detail = o->detail;
    cl_mem_object_type type = 0;
    cl_mem parent = NULL;
    cl_bool svm = CL_FALSE;
    size_t size = 0, width = 0, height = 0, depth = 0, layers = 0;
    if (o->kind != GN_KIND_MEM || !detail || detail->home)
        return false;
    *ret = (struct content){.mem = o->driver};
    cl->clGetMemObjectInfo(o->driver, CL_MEM_TYPE, sizeof type, &type, NULL);
    cl->clGetMemObjectInfo(o->driver, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    cl->clGetMemObjectInfo(o->driver, CL_MEM_SIZE, sizeof size, &size, NULL);
    cl->clGetMemObjectInfo(o->driver, CL_MEM_FLAGS, sizeof ret->flags, &ret->flags, NULL);
    (void)cl->clGetMemObjectInfo(o->driver, CL_MEM_USES_SVM_POINTER, sizeof svm, &svm, NULL);
    if (parent || svm)
        return false;
    ret->bytes = size;
    if (type == CL_MEM_OBJECT_BUFFER)
        return true;
    cl->clGetImageInfo(o->driver, CL_IMAGE_WIDTH, sizeof width, &width, NULL);
    cl->clGetImageInfo(o->driver, CL_IMAGE_HEIGHT, sizeof height, &height, NULL);
    cl->clGetImageInfo(o->driver, CL_IMAGE_DEPTH, sizeof depth, &depth, NULL);
    cl->clGetImageInfo(o->driver, CL_IMAGE_ARRAY_SIZE, sizeof layers, &layers, NULL);
    ret->image = true;
    ret->region[0] = width;
    ret->region[1] = height ? height : 1;
    ret->region[2] = depth ? depth : 1;
    if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
        ret->region[1] = layers;
    else if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        ret->region[2] = layers;
    ret->bytes = gn_times(detail->element_bytes,
                          gn_product((const uint64_t[]){ret->region[0], ret->region[1], ret->region[2]}));
    return true;
}

static const char *obstacle(struct gn_vgpu *v)
{
    struct gn_vobject *o;
    for (uint32_t at = 0; (o = gn_object_next(v, &at)); at++) {
        cl_mem_object_type type = 0;
        cl_uint levels = 0;
        if (o->kind == GN_KIND_SVM)
            return "shared virtual memory, which cannot be moved yet";
        if (o->kind != GN_KIND_MEM)
            continue;
        gn_cl(v)->clGetMemObjectInfo(o->driver, CL_MEM_TYPE, sizeof type, &type, NULL);
        if (type == CL_MEM_OBJECT_PIPE)
            return "a pipe, whose contents cannot be read";
        if (type != CL_MEM_OBJECT_BUFFER &&
            !gn_cl(v)->clGetImageInfo(o->driver, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels, NULL) && levels > 1)
            return "an image with mip levels, which cannot be moved yet";
    }
    return NULL;
}

static int measure(struct gn_vgpu *v, uint32_t *ret_n, uint64_t *ret_bytes, struct gn_error *err)
{
    struct gn_vobject *o;
    struct content c;
    (void)err;
    for (uint32_t at = 0; (o = gn_object_next(v, &at)); at++)
        if (look(v, o, &c)) {
            ++*ret_n;
            *ret_bytes += c.bytes;
        }
    return 0;
}

/* ---- out */

static cl_int read_buffer(struct gn_vgpu *v, struct context_queue *q, const struct content *c, uint64_t at, uint64_t n, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueReadBuffer(q->queue, c->mem, CL_TRUE, at, n, to, 0, NULL, NULL);
    cl_mem by = between(v, q, PIECE_BYTES);
    cl_int result = by ? cl->clEnqueueCopyBuffer(q->queue, c->mem, by, at, 0, n, 0, NULL, NULL) : CL_OUT_OF_RESOURCES;
    return result ? result : cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, n, to, 0, NULL, NULL);
}

static cl_int read_image(struct gn_vgpu *v, struct context_queue *q, const struct content *c, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueReadImage(q->queue, c->mem, CL_TRUE, gn_zero3, c->region, 0, 0, to, 0, NULL, NULL);
    cl_mem by = between(v, q, c->bytes);
    cl_int result =
        by ? cl->clEnqueueCopyImageToBuffer(q->queue, c->mem, by, gn_zero3, c->region, 0, 0, NULL, NULL) : CL_OUT_OF_RESOURCES;
    return result ? result : cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, c->bytes, to, 0, NULL, NULL);
}

static int put(struct gn_stream_writer *w, uint64_t id, uint64_t at, uint64_t n, const void *bytes)
{
    const struct gn_stream_run run = {.first_page = at / 4096, .n_pages = (uint32_t)((n + 4095) / 4096), .bytes = bytes};
    return gn_stream_put_pages(w, id, &run, 1);
}

static int unreadable(struct gn_error *err, cl_int result)
{
    return gn_fail(err, EIO, NULL, "the driver does not give out the contents of its memory: error %d", result);
}

static int save_one(struct gn_vgpu *v, struct gn_stream_writer *w, const struct gn_vobject *o, const struct content *c,
                    struct gn_error *err)
{
    struct context_queue *q = queue_for(v, c->mem);
    cl_int result = q ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    int rc = 0;
    GN_FAULT("save-contents");
    if (c->image && !result) {
        void *all = malloc(c->bytes);
        if (!all)
            return gn_fail(err, ENOMEM, NULL, "no memory left to save an image");
        result = read_image(v, q, c, all);
        rc = result ? unreadable(err, result) : put(w, o->id, 0, c->bytes, all);
        free(all);
        return rc;
    }
    unsigned char *piece = contents_of(v) ? contents_of(v)->piece : NULL;
    for (uint64_t at = 0; piece && !result && !rc && at < c->bytes; at += PIECE_BYTES) {
        const uint64_t n = c->bytes - at < PIECE_BYTES ? c->bytes - at : PIECE_BYTES;
        result = read_buffer(v, q, c, at, n, piece);
        if (!result)
            rc = put(w, o->id, at, n, piece);
    }
    return result || !piece ? unreadable(err, result) : rc;
}

static int save(struct gn_vgpu *v, struct gn_stream_writer *w, struct gn_error *err)
{
    struct gn_vobject *o;
    struct content c;
    int rc = 0;
    for (uint32_t at = 0; !rc && (o = gn_object_next(v, &at)); at++)
        if (look(v, o, &c)) {
            const struct gn_stream_memory m = {.id = o->id, .object = o->id, .bytes = c.bytes};
            rc = gn_stream_put_memories(w, &m, 1);
        }
    if (!rc)
        rc = gn_stream_round_begin(w, GN_STREAM_STOP);
    for (uint32_t at = 0; !rc && (o = gn_object_next(v, &at)); at++)
        if (look(v, o, &c))
            rc = save_one(v, w, o, &c, err);
    end(v);
    return rc;
}

/* ---- in */

static cl_int write_buffer(struct gn_vgpu *v, struct context_queue *q, const struct content *c, uint64_t at, uint64_t n, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueWriteBuffer(q->queue, c->mem, CL_TRUE, at, n, from, 0, NULL, NULL);
    cl_mem by = between(v, q, PIECE_BYTES);
    cl_int result = by ? cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, n, from, 0, NULL, NULL) : CL_OUT_OF_RESOURCES;
    if (!result)
        result = cl->clEnqueueCopyBuffer(q->queue, by, c->mem, 0, at, n, 0, NULL, NULL);
    return result ? result : cl->clFinish(q->queue);
}

static cl_int write_image(struct gn_vgpu *v, struct context_queue *q, const struct content *c, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueWriteImage(q->queue, c->mem, CL_TRUE, gn_zero3, c->region, 0, 0, from, 0, NULL, NULL);
    cl_mem by = between(v, q, c->bytes);
    cl_int result = by ? cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, c->bytes, from, 0, NULL, NULL) : CL_OUT_OF_RESOURCES;
    if (!result)
        result = cl->clEnqueueCopyBufferToImage(q->queue, by, c->mem, 0, gn_zero3, c->region, 0, NULL, NULL);
    return result ? result : cl->clFinish(q->queue);
}

static struct gn_vobject *object_of(struct gn_vgpu *v, uint64_t id, uint64_t bytes, struct content *ret)
{
    bool lie = false;
    struct gn_vobject *o = gn_object_get(v, id, GN_KIND_MEM, &lie);
    if (o && (!look(v, o, ret) || ret->bytes != bytes)) {
        gn_object_unref(o);
        return NULL;
    }
    return o;
}

static int unwritable(struct gn_error *err, cl_int result)
{
    return gn_fail(err, EIO, NULL, "the driver does not take the contents of its memory: error %d", result);
}

/* The image whose pages came last is whole, or another's begin. */
static int write_out(struct gn_vgpu *v, struct gn_contents *c, struct gn_error *err)
{
    struct content content;
    if (!c->image)
        return 0;
    struct gn_vobject *o = object_of(v, c->image_id, c->image_bytes, &content);
    struct context_queue *q = o ? queue_for(v, o->driver) : NULL;
    cl_int result = q ? write_image(v, q, &content, c->image) : CL_OUT_OF_RESOURCES;
    gn_object_unref(o);
    free(c->image);
    c->image = NULL;
    return result ? unwritable(err, result) : 0;
}

static int load_run(struct gn_vgpu *v, struct context_queue *q, const struct content *c, uint64_t at, uint64_t n, const void *from,
                    struct gn_error *err)
{
    cl_int result = write_buffer(v, q, c, at, n, from);
    return result ? unwritable(err, result) : 0;
}

static int load_pages(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s, struct gn_error *err)
{
    const uint32_t page_bytes = gn_stream_reader_about(r)->page_bytes;
    struct gn_contents *c = contents_of(v);
    struct content content;
    struct gn_vobject *o = c ? object_of(v, s->memory->object, s->memory->bytes, &content) : NULL;
    struct context_queue *q = o ? queue_for(v, o->driver) : NULL;
    void *where[GN_STREAM_MOST_RUNS];
    uint64_t at[GN_STREAM_MOST_RUNS], room = 0;
    int rc = 0;
    if (!q) {
        gn_object_unref(o);
        return gn_fail(err, c ? EBADMSG : ENOMEM, NULL, "contents came that are no memory object's, or there is no memory for them");
    }
    if (content.image && (!c->image || c->image_id != o->id)) {
        rc = write_out(v, c, err);
        c->image = rc ? NULL : calloc(1, content.bytes);
        if (!rc && !c->image)
            rc = gn_fail(err, ENOMEM, NULL, "no memory left to load an image");
        c->image_id = o->id;
        c->image_bytes = content.bytes;
    }
    /* Runs of zeros may be longer than a piece, and come one by one, whole or in parts. */
    for (uint32_t i = 0; !rc && i < s->n_runs; i++) {
        at[i] = s->runs[i].first_page * page_bytes;
        where[i] = content.image ? c->image + at[i] : NULL;
        if (!content.image)
            room += gn_stream_run_bytes(r, s, i);
    }
    unsigned char *all = !rc && !content.image ? malloc(room ? room : 1) : NULL;
    if (!rc && !content.image && !all)
        rc = gn_fail(err, ENOMEM, NULL, "no memory left to load a buffer");
    uint64_t used = 0;
    for (uint32_t i = 0; all && i < s->n_runs; i++) {
        where[i] = all + used;
        used += gn_stream_run_bytes(r, s, i);
    }
    if (!rc)
        rc = gn_stream_take_pages(r, where);
    for (uint32_t i = 0; !rc && all && i < s->n_runs; i++)
        for (uint64_t done = 0, bytes = gn_stream_run_bytes(r, s, i); !rc && done < bytes; done += PIECE_BYTES)
            rc = load_run(v, q, &content, at[i] + done, bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES,
                          (unsigned char *)where[i] + done, err);
    free(all);
    gn_object_unref(o);
    return rc;
}

static int load(struct gn_vgpu *v, struct gn_stream_reader *r, const struct gn_stream_section *s, struct gn_error *err)
{
    struct content content;
    GN_FAULT("load-contents");
    if (s->what == GN_STREAM_IS_PAGES)
        return load_pages(v, r, s, err);
    for (uint32_t i = 0; i < s->n_memories; i++) {
        struct gn_vobject *o = object_of(v, s->memories[i].object, s->memories[i].bytes, &content);
        if (!o)
            return gn_fail(err, EBADMSG, NULL, "contents are announced of no memory object, or of one of another size");
        gn_object_unref(o);
    }
    return 0;
}

static int loaded(struct gn_vgpu *v, bool whole, struct gn_error *err)
{
    struct gn_opencl_vgpu *detail = v->detail;
    int rc = whole && detail->contents ? write_out(v, detail->contents, err) : 0;
    end(v);
    return rc;
}

const struct gn_vgpu_contents gn_opencl_contents = {
    .obstacle = obstacle, .measure = measure, .save = save, .load = load, .loaded = loaded};
