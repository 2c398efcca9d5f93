/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the bytes of memory objects to and from host memory, in pieces of 4 MiB. Migrations
 * (memory_contents.c) and evictions (residency.c) call it, each on the thread that owns its queue.
 * Never touches the program's queues, and never decides which memory is copied.
 */
#include "memory_copy.h"
#include "image_boxes.h"
#include "opencl_host.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE_BYTES  (UINT64_C(4) << 20)
#define GONE_NS      UINT64_C(2000000000)
#define GONE_LOOK_NS 200000

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

/* Told by the driver's thread; the later of the two frees it. */
struct gone {
    _Atomic int n_users;
};

static bool is_last_user(struct gone *g)
{
    return atomic_fetch_sub_explicit(&g->n_users, 1, memory_order_acq_rel) == 1;
}

static void CL_CALLBACK on_gone(cl_mem mem, void *user_data)
{
    (void)mem;
    if (is_last_user(user_data))
        free(user_data);
}

/* Some drivers free memory a while after the release; gantryd gives it to others at once. */
static void release_between(const cl_icd_dispatch *cl, cl_mem by)
{
    const struct timespec pause = {.tv_nsec = GONE_LOOK_NS};
    const uint64_t until_ns = gn_now_ns() + GONE_NS;
    struct gone *g = cl->clSetMemObjectDestructorCallback ? malloc(sizeof *g) : NULL;
    if (g)
        atomic_init(&g->n_users, 2);
    if (g && cl->clSetMemObjectDestructorCallback(by, on_gone, g)) {
        free(g);
        g = NULL;
    }
    cl->clReleaseMemObject(by);
    while (g && atomic_load_explicit(&g->n_users, memory_order_acquire) > 1 &&
           gn_now_ns() < until_ns)
        nanosleep(&pause, NULL);
    if (g && is_last_user(g))
        free(g);
}

void gn_copy_queue_close(struct gn_vgpu *v, struct gn_copy_queue *q)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl->clFinish(q->queue);
    if (q->between)
        release_between(cl, q->between);
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

/* Some drivers allocate a buffer's memory at its first use. NULL: there is none. */
static cl_mem make_between(struct gn_vgpu *v, struct gn_copy_queue *q, uint64_t bytes)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const unsigned char first = 0;
    cl_int result;
    cl_mem by = cl->clCreateBuffer(q->context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    if (!by ||
        !cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, sizeof first, &first, 0, NULL, NULL))
        return by;
    cl->clReleaseMemObject(by);
    return NULL;
}

/*
 * A buffer that is open to host reads and writes, of most_bytes, or of as many as the driver gives,
 * but of least_bytes. NULL: the driver makes none.
 */
static cl_mem between(struct gn_vgpu *v, struct gn_copy_queue *q, uint64_t most_bytes,
                      uint64_t least_bytes)
{
    if (q->between && q->between_bytes < least_bytes) {
        release_between(gn_cl(v), q->between);
        q->between = NULL;
    }
    uint64_t bytes = most_bytes;
    while (!q->between) {
        q->between = make_between(v, q, bytes);
        q->between_bytes = bytes;
        if (!q->between && bytes == least_bytes)
            return NULL;
        bytes = bytes / 2 > least_bytes ? bytes / 2 : least_bytes;
    }
    return q->between;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static cl_int read_buffer(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          uint64_t at, uint64_t n, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueReadBuffer(q->queue, c->mem, CL_TRUE, at, n, to, 0, NULL, NULL);
    cl_mem by = between(v, q, PIECE_BYTES, GN_COPY_LEAST_BYTES);
    cl_int result = by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    for (uint64_t done = 0, some; !result && done < n; done += some) {
        some = smaller(n - done, q->between_bytes);
        result = cl->clEnqueueCopyBuffer(q->queue, c->mem, by, at + done, 0, some, 0, NULL, NULL);
        if (!result)
            result = cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, some,
                                             (unsigned char *)to + done, 0, NULL, NULL);
    }
    return result;
}

/* Reads whole pixels. The queue is in order, so only the last command blocks. by: NULL: direct. */
static cl_int read_boxes(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                         cl_mem by, uint64_t first, uint64_t n, void *to)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    const unsigned n_boxes = gn_image_boxes(c->size, first, n, boxes);
    cl_int result = CL_SUCCESS;
    uint64_t at = 0;
    for (unsigned i = 0; i < n_boxes && !result; i++) {
        const struct gn_image_box *b = &boxes[i];
        if (!by)
            result =
                cl->clEnqueueReadImage(q->queue, c->mem, i + 1 == n_boxes, b->origin, b->region, 0,
                                       0, (unsigned char *)to + at, 0, NULL, NULL);
        else
            result = cl->clEnqueueCopyImageToBuffer(q->queue, c->mem, by, b->origin, b->region, at,
                                                    0, NULL, NULL);
        at += b->n_pixels * c->pixel_bytes;
    }
    if (!result && by)
        result = cl->clEnqueueReadBuffer(q->queue, by, CL_TRUE, 0, at, to, 0, NULL, NULL);
    if (result)
        cl->clFinish(q->queue); /* earlier boxes may still be writing into `to` */
    return result;
}

static cl_int read_pixels(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          uint64_t first, uint64_t n, void *to)
{
    if (!(c->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return read_boxes(v, q, c, NULL, first, n, to);
    const uint64_t bytes = n * c->pixel_bytes;
    cl_mem by = between(v, q, bytes, smaller(bytes, GN_COPY_LEAST_BYTES));
    cl_int result = by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    for (uint64_t done = 0, some; !result && done < n; done += some) {
        some = smaller(n - done, q->between_bytes / c->pixel_bytes);
        result = read_boxes(v, q, c, by, first + done, some,
                            (unsigned char *)to + done * c->pixel_bytes);
    }
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

/*
 * A driver that allocates memory at its first use does so for the object before it does for
 * `between`, which takes what is left. at, first: what is written next.
 */
static void touch_buffer(struct gn_vgpu *v, const struct gn_copy_queue *q,
                         const struct gn_copied *c, uint64_t at)
{
    const unsigned char zero = 0;
    if (!q->between && gn_cl(v)->clEnqueueFillBuffer)
        gn_cl(v)->clEnqueueFillBuffer(q->queue, c->mem, &zero, 1, at, 1, 0, NULL, NULL);
}

static void touch_image(struct gn_vgpu *v, const struct gn_copy_queue *q, const struct gn_copied *c,
                        uint64_t first)
{
    const cl_uint black[4] = {0};
    struct gn_image_box box[GN_IMAGE_MOST_BOXES];
    if (!q->between && gn_cl(v)->clEnqueueFillImage && gn_image_boxes(c->size, first, 1, box) == 1)
        gn_cl(v)->clEnqueueFillImage(q->queue, c->mem, black, box->origin, box->region, 0, NULL,
                                     NULL);
}

static cl_int write_buffer(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                           uint64_t at, uint64_t n, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    if (!(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return cl->clEnqueueWriteBuffer(q->queue, c->mem, CL_TRUE, at, n, from, 0, NULL, NULL);
    touch_buffer(v, q, c, at);
    cl_mem by = between(v, q, PIECE_BYTES, GN_COPY_LEAST_BYTES);
    cl_int result = by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    for (uint64_t done = 0, some; !result && done < n; done += some) {
        some = smaller(n - done, q->between_bytes);
        result = cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, some,
                                          (const unsigned char *)from + done, 0, NULL, NULL);
        if (!result)
            result =
                cl->clEnqueueCopyBuffer(q->queue, by, c->mem, 0, at + done, some, 0, NULL, NULL);
    }
    return result ? result : cl->clFinish(q->queue);
}

/* Writes whole pixels. by: NULL: direct. */
static cl_int write_boxes(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                          cl_mem by, uint64_t first, uint64_t n, const void *from)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    const unsigned n_boxes = gn_image_boxes(c->size, first, n, boxes);
    cl_int result = CL_SUCCESS;
    uint64_t at = 0;
    if (by)
        result = cl->clEnqueueWriteBuffer(q->queue, by, CL_TRUE, 0, n * c->pixel_bytes, from, 0,
                                          NULL, NULL);
    for (unsigned i = 0; i < n_boxes && !result; i++) {
        const struct gn_image_box *b = &boxes[i];
        if (!by)
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

static cl_int write_pixels(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                           uint64_t first, uint64_t n, const void *from)
{
    if (!(c->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)))
        return write_boxes(v, q, c, NULL, first, n, from);
    touch_image(v, q, c, first);
    const uint64_t bytes = n * c->pixel_bytes;
    cl_mem by = between(v, q, bytes, smaller(bytes, GN_COPY_LEAST_BYTES));
    cl_int result = by ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    for (uint64_t done = 0, some; !result && done < n; done += some) {
        some = smaller(n - done, q->between_bytes / c->pixel_bytes);
        result = write_boxes(v, q, c, by, first + done, some,
                             (const unsigned char *)from + done * c->pixel_bytes);
    }
    return result;
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
