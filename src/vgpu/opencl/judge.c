/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides the answer to a command that has to wait for the program. A driver validates a command
 * when it is submitted, and this one is submitted later. The ring thread calls it at admission,
 * without a lock. It asks the driver about the objects, never changes one, and submits no command
 * that would have an effect.
 *
 * An empty command (no bytes, an empty region, a launch without work-items) is the exception:
 * whether it is an error depends on the driver and its version, and submitting it has no effect. So
 * it is submitted at once, to a queue of its own, only for the answer. A launch without a
 * work-group size, of a kernel that requires one, is submitted in the same way, behind an event
 * that fails: it never runs. Where a driver may accept more than the specification allows (pitches
 * that are too small), nothing is refused here: the command fails when it is submitted, if the
 * driver does not accept it.
 */
#include "opencl_host.h"
#include "vgpu/core/command_internal.h"

#include <string.h>

#define ERROR_IF(what, error)                                                                      \
    do {                                                                                           \
        if (what)                                                                                  \
            return error;                                                                          \
    } while (0)

static cl_device_id device_of(struct gn_vgpu *v, const struct gn_command *c)
{
    cl_device_id device = NULL;
    gn_cl(v)->clGetCommandQueueInfo(c->queue->object->driver, CL_QUEUE_DEVICE, sizeof device,
                                    &device, NULL);
    return device;
}

static cl_context context_of(struct gn_vgpu *v, const struct gn_command *c)
{
    cl_context context = NULL;
    gn_cl(v)->clGetCommandQueueInfo(c->queue->object->driver, CL_QUEUE_CONTEXT, sizeof context,
                                    &context, NULL);
    return context;
}

/* The driver's answer to the command submitted behind `gate`, or without one if gate is NULL. */
static int32_t submit_probe(struct gn_vgpu *v, struct gn_command *c, cl_context context,
                            const cl_event *gate)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_event event = NULL;
    cl_int result = CL_SUCCESS;
    cl_command_queue queue =
        context ? cl->clCreateCommandQueue(context, device_of(v, c), 0, &result) : NULL;
    if (!queue)
        return CL_SUCCESS;
    result = c->class->submit(v, c, queue, gate ? 1 : 0, (void *const *)gate, (void **)&event);
    if (gate)
        cl->clSetUserEventStatus(*gate, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    if (!result && event)
        cl->clReleaseEvent(event);
    cl->clReleaseCommandQueue(queue);
    return result;
}

/* The driver's answer to an empty command. */
static int32_t submit_empty(struct gn_vgpu *v, struct gn_command *c)
{
    return submit_probe(v, c, context_of(v, c), NULL);
}

/* The driver's answer to a command that must not run. */
static int32_t submit_unrunnable(struct gn_vgpu *v, struct gn_command *c)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_context context = context_of(v, c);
    cl_int result = CL_SUCCESS;
    cl_event gate =
        context && cl->clCreateUserEvent ? cl->clCreateUserEvent(context, &result) : NULL;
    if (!gate)
        return CL_SUCCESS;
    result = submit_probe(v, c, context, &gate);
    cl->clReleaseEvent(gate);
    return result;
}

static bool is_empty(const uint64_t *region)
{
    return !region[0] || !region[1] || !region[2];
}

/* ---- buffers */

static uint64_t buffer_bytes(struct gn_vgpu *v, const struct gn_vobject *o)
{
    size_t bytes = 0;
    if (o)
        gn_cl(v)->clGetMemObjectInfo(o->driver, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    return bytes;
}

/* True if two ranges of buffers share bytes, also through different objects. */
static bool is_overlap(const struct gn_vobject *a, uint64_t at, const struct gn_vobject *b,
                       uint64_t b_at, uint64_t bytes)
{
    const struct gn_mem_detail *x = a->detail, *y = b->detail;
    if (!x || !y || x->writes != y->writes)
        return false;
    at += x->origin;
    b_at += y->origin;
    return at < b_at + bytes && b_at < at + bytes;
}

int32_t gn_judge_clEnqueueReadBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueReadBuffer *w = gn_command_message(c);
    return w->size ? CL_SUCCESS : submit_empty(v, c);
}

int32_t gn_judge_clEnqueueWriteBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueWriteBuffer *w = gn_command_message(c);
    return w->size ? CL_SUCCESS : submit_empty(v, c);
}

int32_t gn_judge_clEnqueueFillBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueFillBuffer *w = gn_command_message(c);
    return w->size ? CL_SUCCESS : submit_empty(v, c);
}

int32_t gn_judge_clEnqueueCopyBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueCopyBuffer *w = gn_command_message(c);
    const struct gn_vobject *src = c->refs[0], *dst = c->refs[1];
    ERROR_IF(!src || !dst, CL_INVALID_MEM_OBJECT);
    if (!w->size)
        return submit_empty(v, c);
    ERROR_IF(!gn_range_ok(w->src_offset, w->size, buffer_bytes(v, src)), CL_INVALID_VALUE);
    ERROR_IF(!gn_range_ok(w->dst_offset, w->size, buffer_bytes(v, dst)), CL_INVALID_VALUE);
    return is_overlap(src, w->src_offset, dst, w->dst_offset, w->size) ? CL_MEM_COPY_OVERLAP
                                                                       : CL_SUCCESS;
}

int32_t gn_judge_clEnqueueMigrateMemObjects(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueMigrateMemObjects *w = gn_command_message(c);
    const cl_mem_migration_flags known =
        CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    (void)v;
    return !w->num_mem_objects || !c->objects || (w->flags & ~known) ? CL_INVALID_VALUE
                                                                     : CL_SUCCESS;
}

/* ---- rectangles of buffers */

struct rectangle {
    uint64_t origin[3], row_pitch, slice_pitch;
};

/* Computes the rectangle's first byte, and the bytes from it to the last. False: overflow. */
static bool span_of(const struct rectangle *r, const uint64_t *region, uint64_t *ret_start,
                    uint64_t *ret_bytes)
{
    uint64_t slices, rows;
    return gn_mul_u64(r->origin[2], r->slice_pitch, &slices) &&
           gn_mul_u64(r->origin[1], r->row_pitch, &rows) && gn_add_u64(slices, rows, ret_start) &&
           gn_add_u64(*ret_start, r->origin[0], ret_start) &&
           gn_mul_u64(region[2] - 1, r->slice_pitch, &slices) &&
           gn_mul_u64(region[1] - 1, r->row_pitch, &rows) && gn_add_u64(slices, rows, ret_bytes) &&
           gn_add_u64(*ret_bytes, region[0], ret_bytes);
}

static int32_t judge_rectangle(struct gn_vgpu *v, const struct gn_vobject *buffer,
                               struct rectangle *r, const uint64_t *region)
{
    uint64_t start, bytes;
    if (!r->row_pitch)
        r->row_pitch = region[0];
    if (!r->slice_pitch)
        r->slice_pitch = gn_times(region[1], r->row_pitch);
    ERROR_IF(r->row_pitch < region[0] || r->slice_pitch < gn_times(region[1], r->row_pitch) ||
                 r->slice_pitch % r->row_pitch,
             CL_INVALID_VALUE);
    return span_of(r, region, &start, &bytes) && gn_range_ok(start, bytes, buffer_bytes(v, buffer))
               ? CL_SUCCESS
               : CL_INVALID_VALUE;
}

/*
 * True if a line of length n at a and one at b do not overlap when both repeat every `pitch` bytes.
 */
static bool fits_beside(uint64_t a, uint64_t b, uint64_t n, uint64_t pitch)
{
    return (b >= a + n && b + n <= a + pitch) || (a >= b + n && a + n <= b + pitch);
}

/* Two rectangles of one buffer, with the same pitches. */
static bool rectangles_overlap(const struct rectangle *a, const struct rectangle *b,
                               const uint64_t *region)
{
    uint64_t at = 0, b_at = 0, bytes = 0;
    if (!span_of(a, region, &at, &bytes) || !span_of(b, region, &b_at, &bytes) ||
        at + bytes <= b_at || b_at + bytes <= at)
        return false;
    const uint64_t rows = (region[1] - 1) * a->row_pitch + region[0];
    return !fits_beside(at % a->row_pitch, b_at % a->row_pitch, region[0], a->row_pitch) &&
           !fits_beside(at % a->slice_pitch, b_at % a->slice_pitch, rows, a->slice_pitch);
}

int32_t gn_judge_clEnqueueReadBufferRect(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueReadBufferRect *w = gn_command_message(c);
    return is_empty(w->region) ? submit_empty(v, c) : CL_SUCCESS;
}

int32_t gn_judge_clEnqueueWriteBufferRect(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueWriteBufferRect *w = gn_command_message(c);
    return is_empty(w->region) ? submit_empty(v, c) : CL_SUCCESS;
}

int32_t gn_judge_clEnqueueCopyBufferRect(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueCopyBufferRect *w = gn_command_message(c);
    struct rectangle src = {.row_pitch = w->src_row_pitch, .slice_pitch = w->src_slice_pitch};
    struct rectangle dst = {.row_pitch = w->dst_row_pitch, .slice_pitch = w->dst_slice_pitch};
    ERROR_IF(!c->refs[0] || !c->refs[1], CL_INVALID_MEM_OBJECT);
    ERROR_IF(w->present != 7, CL_INVALID_VALUE);
    if (is_empty(w->region))
        return submit_empty(v, c);
    memcpy(src.origin, w->src_origin, sizeof src.origin);
    memcpy(dst.origin, w->dst_origin, sizeof dst.origin);
    int32_t result = judge_rectangle(v, c->refs[0], &src, w->region);
    if (!result)
        result = judge_rectangle(v, c->refs[1], &dst, w->region);
    if (result || c->refs[0] != c->refs[1])
        return result;
    ERROR_IF(src.row_pitch != dst.row_pitch || src.slice_pitch != dst.slice_pitch,
             CL_INVALID_VALUE);
    return rectangles_overlap(&src, &dst, w->region) ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

/* ---- images */

static bool is_inside(struct gn_vgpu *v, const struct gn_vobject *image, const uint64_t *origin,
                      const uint64_t *region)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_mem_object_type type = 0;
    size_t width = 0, height = 0, depth = 0, layers = 0;
    cl->clGetMemObjectInfo(image->driver, CL_MEM_TYPE, sizeof type, &type, NULL);
    cl->clGetImageInfo(image->driver, CL_IMAGE_WIDTH, sizeof width, &width, NULL);
    cl->clGetImageInfo(image->driver, CL_IMAGE_HEIGHT, sizeof height, &height, NULL);
    cl->clGetImageInfo(image->driver, CL_IMAGE_DEPTH, sizeof depth, &depth, NULL);
    cl->clGetImageInfo(image->driver, CL_IMAGE_ARRAY_SIZE, sizeof layers, &layers, NULL);
    const uint64_t rows = type == CL_MEM_OBJECT_IMAGE1D_ARRAY ? layers : height;
    const uint64_t slices = type == CL_MEM_OBJECT_IMAGE2D_ARRAY ? layers : depth;
    return gn_range_ok(origin[0], region[0], width) &&
           gn_range_ok(origin[1], region[1], rows ? rows : 1) &&
           gn_range_ok(origin[2], region[2], slices ? slices : 1);
}

/* For images with mip levels an origin also selects the level. */
static bool has_levels(struct gn_vgpu *v, const struct gn_vobject *image)
{
    cl_uint levels = 0;
    return !gn_cl(v)->clGetImageInfo(image->driver, CL_IMAGE_NUM_MIP_LEVELS, sizeof levels, &levels,
                                     NULL) &&
           levels > 1;
}

static int32_t judge_image(struct gn_vgpu *v, const struct gn_vobject *image,
                           const uint64_t *origin, const uint64_t *region)
{
    return has_levels(v, image) || is_inside(v, image, origin, region) ? CL_SUCCESS
                                                                       : CL_INVALID_VALUE;
}

int32_t gn_judge_clEnqueueReadImage(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueReadImage *w = gn_command_message(c);
    return is_empty(w->region) ? submit_empty(v, c) : CL_SUCCESS;
}

int32_t gn_judge_clEnqueueWriteImage(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueWriteImage *w = gn_command_message(c);
    return is_empty(w->region) ? submit_empty(v, c) : CL_SUCCESS;
}

int32_t gn_judge_clEnqueueFillImage(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueFillImage *w = gn_command_message(c);
    ERROR_IF(!c->refs[0], CL_INVALID_MEM_OBJECT);
    ERROR_IF(w->present != 3 || !gn_command_bytes(c, &w->fill_color), CL_INVALID_VALUE);
    return is_empty(w->region) ? submit_empty(v, c)
                               : judge_image(v, c->refs[0], w->origin, w->region);
}

static bool boxes_overlap(const uint64_t *a, const uint64_t *b, const uint64_t *region)
{
    for (int i = 0; i < 3; i++)
        if (a[i] + region[i] <= b[i] || b[i] + region[i] <= a[i])
            return false;
    return true;
}

int32_t gn_judge_clEnqueueCopyImage(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueCopyImage *w = gn_command_message(c);
    const struct gn_vobject *src = c->refs[0], *dst = c->refs[1];
    cl_image_format from = {0}, to = {0};
    ERROR_IF(!src || !dst, CL_INVALID_MEM_OBJECT);
    ERROR_IF(w->present != 7, CL_INVALID_VALUE);
    if (is_empty(w->region))
        return submit_empty(v, c);
    gn_cl(v)->clGetImageInfo(src->driver, CL_IMAGE_FORMAT, sizeof from, &from, NULL);
    gn_cl(v)->clGetImageInfo(dst->driver, CL_IMAGE_FORMAT, sizeof to, &to, NULL);
    ERROR_IF(memcmp(&from, &to, sizeof from) != 0, CL_IMAGE_FORMAT_MISMATCH);
    int32_t result = judge_image(v, src, w->src_origin, w->region);
    if (!result)
        result = judge_image(v, dst, w->dst_origin, w->region);
    if (!result && src == dst && !has_levels(v, src) &&
        boxes_overlap(w->src_origin, w->dst_origin, w->region))
        result = CL_MEM_COPY_OVERLAP;
    return result;
}

/* Checks a region of an image, and as many bytes of a buffer. */
static int32_t judge_both(struct gn_vgpu *v, struct gn_command *c, const struct gn_vobject *image,
                          const uint64_t *origin, const uint64_t *region,
                          const struct gn_vobject *buffer, uint64_t offset)
{
    ERROR_IF(!image || !buffer || !image->detail, CL_INVALID_MEM_OBJECT);
    if (is_empty(region))
        return submit_empty(v, c);
    const uint64_t bytes =
        gn_times(gn_product(region), ((const struct gn_mem_detail *)image->detail)->element_bytes);
    ERROR_IF(!gn_range_ok(offset, bytes, buffer_bytes(v, buffer)), CL_INVALID_VALUE);
    return judge_image(v, image, origin, region);
}

int32_t gn_judge_clEnqueueCopyImageToBuffer(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueCopyImageToBuffer *w = gn_command_message(c);
    ERROR_IF(w->present != 3, CL_INVALID_VALUE);
    return judge_both(v, c, c->refs[0], w->src_origin, w->region, c->refs[1], w->dst_offset);
}

int32_t gn_judge_clEnqueueCopyBufferToImage(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_clEnqueueCopyBufferToImage *w = gn_command_message(c);
    ERROR_IF(w->present != 3, CL_INVALID_VALUE);
    return judge_both(v, c, c->refs[1], w->dst_origin, w->region, c->refs[0], w->src_offset);
}

/* ---- launches */

/* True if all work-groups must have the same size. Unknown counts as false. */
static bool is_uniform(struct gn_vgpu *v, cl_device_id device)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    cl_bool support = CL_TRUE;
    char version[64] = "";
    if (!cl->clGetDeviceInfo(device, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, sizeof support,
                             &support, NULL))
        return !support;
    cl->clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
    return strncmp(version, "OpenCL 1.", 9) == 0;
}

static int32_t judge_groups(struct gn_vgpu *v, struct gn_command *c, cl_kernel kernel)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    const cl_device_id device = device_of(v, c);
    const cl_icd_dispatch *cl = gn_cl(v);
    size_t required[3] = {0}, sides[3] = {0}, most = 0;
    uint64_t items = 1;
    cl->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required,
                                 required, NULL);
    cl->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                 NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sides, sides, NULL);
    const bool given = w->present & 4, fixed = required[0] && required[1] && required[2];
    for (uint32_t i = 0; i < 3; i++) {
        const bool in = i < w->work_dim;
        const uint64_t local = !in ? 1 : given ? w->local_work_size[i] : fixed ? required[i] : 1;
        ERROR_IF(!local || (fixed && local != required[i]), CL_INVALID_WORK_GROUP_SIZE);
        ERROR_IF(in && w->global_work_size[i] % local && (fixed || is_uniform(v, device)),
                 CL_INVALID_WORK_GROUP_SIZE);
        items = gn_times(items, local);
    }
    ERROR_IF(most && items > most, CL_INVALID_WORK_GROUP_SIZE);
    for (uint32_t i = 0; given && i < w->work_dim; i++)
        ERROR_IF(sides[i] && w->local_work_size[i] > sides[i], CL_INVALID_WORK_ITEM_SIZE);
    return fixed && !given ? submit_unrunnable(v, c) : CL_SUCCESS;
}

int32_t gn_judge_Launch(struct gn_vgpu *v, struct gn_command *c)
{
    const struct gn_wire_Launch *w = gn_command_message(c);
    bool empty = !(w->present & 2);
    ERROR_IF(!c->refs[0], CL_INVALID_KERNEL);
    ERROR_IF(!w->work_dim || w->work_dim > 3, CL_INVALID_WORK_DIMENSION);
    for (uint32_t i = 0; i < w->work_dim; i++)
        empty |= !w->global_work_size[i];
    return empty ? submit_empty(v, c) : judge_groups(v, c, c->refs[0]->driver);
}
