/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the bytes of memory objects to and from host memory, in pieces of 4 MiB. Migrations
 * (memory_contents.c) and evictions (residency.c) call it, each on the thread that owns its queue.
 * Never touches the program's queues, and never decides which memory is copied.
 */
#include "memory_copy.h"
#include "image_boxes.h"
#include "opencl_host.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (UINT64_C(4) << 20)

bool gn_copy_queue_open(struct gn_vgpu *v, cl_mem mem, struct gn_copy_queue *ret)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_context context = NULL;
    size_t bytes = 0;
    cl_int result;
    *ret = (struct gn_copy_queue){0};
    if (cl->clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL) ||
        cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes) ||
        bytes < sizeof(cl_device_id))
        return false;
    cl_device_id *devices = malloc(bytes);
    if (devices && !cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices, NULL))
        ret->queue = cl->clCreateCommandQueue(context, devices[0], 0, &result);
    free(devices);
    if (!ret->queue)
        return false;
    /* The program may release it meanwhile. */
    cl->clRetainContext(context);
    ret->context = context;
    return true;
}

void gn_copy_queue_close(struct gn_vgpu *v, struct gn_copy_queue *q)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl->clFinish(q->queue);
    if (q->between)
        cl->clReleaseMemObject(q->between);
    cl->clReleaseCommandQueue(q->queue);
    cl->clReleaseContext(q->context);
}

bool gn_copied_describe(const cl_icd_dispatch *cl, cl_mem mem, size_t pixel_bytes,
                        struct gn_copied *ret)
{
    size_t bytes = 0, width = 0, height = 0, depth = 0, layers = 0;
    *ret = (struct gn_copied){.mem = mem, .pixel_bytes = pixel_bytes};
    if (cl->clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof ret->type, &ret->type, NULL) ||
        cl->clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) ||
        cl->clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof ret->flags, &ret->flags, NULL))
        return false;
    ret->bytes = bytes;
    if (ret->type == CL_MEM_OBJECT_BUFFER)
        return true;
    if (!pixel_bytes || cl->clGetImageInfo(mem, CL_IMAGE_WIDTH, sizeof width, &width, NULL) ||
        cl->clGetImageInfo(mem, CL_IMAGE_HEIGHT, sizeof height, &height, NULL) ||
        cl->clGetImageInfo(mem, CL_IMAGE_DEPTH, sizeof depth, &depth, NULL) ||
        cl->clGetImageInfo(mem, CL_IMAGE_ARRAY_SIZE, sizeof layers, &layers, NULL))
        return false;
    ret->size[0] = width;
    ret->size[1] = height ? height : 1;
    ret->size[2] = depth ? depth : 1;
    if (ret->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
        ret->size[1] = layers;
    else if (ret->type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        ret->size[2] = layers;
    ret->bytes = gn_times(pixel_bytes,
                          gn_product((const uint64_t[]){ret->size[0], ret->size[1], ret->size[2]}));
    return true;
}

/* A buffer that is open to host reads and writes. NULL: the driver makes none. */
static cl_mem between(struct gn_vgpu *v, struct gn_copy_queue *q, uint64_t bytes)
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

static cl_int read_buffer(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          uint64_t at, uint64_t n, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueReadBuffer(q->queue, c->mem, CL_TRUE, at, n, to, 0, NULL, NULL);
    cl_mem by = between(v, q, PIECE_BYTES);
    cl_int result = by ? cl->clEnqueueCopyBuffer(q->queue, c->mem, by, at, 0, n, 0, NULL, NULL)
                       : CL_OUT_OF_RESOURCES;
    return result ? result
                  : cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, n, to, 0, NULL, NULL);
}

/* Reads whole pixels. The queue is in order, so only the last command blocks. */
static cl_int read_pixels(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          uint64_t first, uint64_t n, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const bool direct = !(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS));
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    const unsigned n_boxes = gn_image_boxes(c->size, first, n, boxes);
    cl_mem by = direct ? NULL : between(v, q, n * c->pixel_bytes);
    cl_int result = direct || by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    uint64_t at = 0;
    for (unsigned i = 0; i < n_boxes && !result; i++) {
        const struct gn_image_box *b = &boxes[i];
        if (direct)
            result =
                cl->clEnqueueReadImage(q->queue, c->mem, i + 1 == n_boxes, b->origin, b->region, 0,
                                       0, (unsigned char *)to + at, 0, NULL, NULL);
        else
            result = cl->clEnqueueCopyImageToBuffer(q->queue, c->mem, by, b->origin, b->region, at,
                                                    0, NULL, NULL);
        at += b->n_pixels * c->pixel_bytes;
    }
    if (!result && !direct)
        result = cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, at, to, 0, NULL, NULL);
    if (result)
        cl->clFinish(q->queue); /* earlier boxes may still be writing into `to` */
    return result;
}

/* The pixels that the bytes [at, at + n) touch. */
struct pixels {
    uint64_t first, n;
    uint64_t ahead_bytes; /* of the first of them, the bytes before `at` */
    bool whole;           /* the bytes are those pixels */
};

static struct pixels pixels_of(const struct gn_copied *c, uint64_t at, uint64_t n)
{
    struct pixels p = {.first = at / c->pixel_bytes, .ahead_bytes = at % c->pixel_bytes};
    p.n = (p.ahead_bytes + n + c->pixel_bytes - 1) / c->pixel_bytes;
    p.whole = p.n * c->pixel_bytes == n;
    return p;
}

/* Pages may begin and end within a pixel, for instance with pixels of three bytes. */
static cl_int read_image(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                         uint64_t at, uint64_t n, void *to)
{
    const struct pixels p = pixels_of(c, at, n);
    if (p.whole)
        return read_pixels(v, q, c, p.first, p.n, to);
    unsigned char *all = malloc(p.n * c->pixel_bytes);
    cl_int result = all ? read_pixels(v, q, c, p.first, p.n, all) : CL_OUT_OF_HOST_MEMORY;
    if (!result)
        memcpy(to, all + p.ahead_bytes, n);
    free(all);
    return result;
}

static cl_int write_buffer(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                           uint64_t at, uint64_t n, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueWriteBuffer(q->queue, c->mem, CL_TRUE, at, n, from, 0, NULL, NULL);
    cl_mem by = between(v, q, PIECE_BYTES);
    cl_int result = by ? cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, n, from, 0, NULL, NULL)
                       : CL_OUT_OF_RESOURCES;
    if (!result)
        result = cl->clEnqueueCopyBuffer(q->queue, by, c->mem, 0, at, n, 0, NULL, NULL);
    return result ? result : cl->clFinish(q->queue);
}

static cl_int write_pixels(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                           uint64_t first, uint64_t n, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const bool direct = !(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS));
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    const unsigned n_boxes = gn_image_boxes(c->size, first, n, boxes);
    cl_mem by = direct ? NULL : between(v, q, n * c->pixel_bytes);
    cl_int result = direct || by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    uint64_t at = 0;
    if (by)
        result = cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, n * c->pixel_bytes, from, 0,
                                          NULL, NULL);
    for (unsigned i = 0; i < n_boxes && !result; i++) {
        const struct gn_image_box *b = &boxes[i];
        if (direct)
            result = cl->clEnqueueWriteImage(q->queue, c->mem, CL_FALSE, b->origin, b->region, 0, 0,
                                             (const unsigned char *)from + at, 0, NULL, NULL);
        else
            result = cl->clEnqueueCopyBufferToImage(q->queue, by, c->mem, at, b->origin, b->region,
                                                    0, NULL, NULL);
        at += b->n_pixels * c->pixel_bytes;
    }
    const cl_int finished = cl->clFinish(q->queue);
    return result ? result : finished;
}

/* A pixel shared by two pages keeps the bytes that the other page wrote. */
static cl_int write_image(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          uint64_t at, uint64_t n, const void *from)
{
    const struct pixels p = pixels_of(c, at, n);
    if (p.whole)
        return write_pixels(v, q, c, p.first, p.n, from);
    unsigned char *all = malloc(p.n * c->pixel_bytes);
    cl_int result = all ? read_pixels(v, q, c, p.first, p.n, all) : CL_OUT_OF_HOST_MEMORY;
    if (!result) {
        memcpy(all + p.ahead_bytes, from, n);
        result = write_pixels(v, q, c, p.first, p.n, all);
    }
    free(all);
    return result;
}

cl_int gn_memory_read(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                      uint64_t at, uint64_t n, void *to)
{
    cl_int result = CL_SUCCESS;
    for (uint64_t done = 0; !result && done < n; done += PIECE_BYTES) {
        const uint64_t piece = n - done < PIECE_BYTES ? n - done : PIECE_BYTES;
        unsigned char *piece_to = (unsigned char *)to + done;
        result = gn_copied_is_image(c) ? read_image(v, q, c, at + done, piece, piece_to)
                                       : read_buffer(v, q, c, at + done, piece, piece_to);
    }
    return result;
}

cl_int gn_memory_write(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                       uint64_t at, uint64_t n, const void *from)
{
    cl_int result = CL_SUCCESS;
    for (uint64_t done = 0; !result && done < n; done += PIECE_BYTES) {
        const uint64_t piece = n - done < PIECE_BYTES ? n - done : PIECE_BYTES;
        const unsigned char *piece_from = (const unsigned char *)from + done;
        result = gn_copied_is_image(c) ? write_image(v, q, c, at + done, piece, piece_from)
                                       : write_buffer(v, q, c, at + done, piece, piece_from);
    }
    return result;
}
