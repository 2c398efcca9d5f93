/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict driver's command buffers: see strict_driver.h. What a recorded command names it does
 * not hold, and looks at when the buffer runs and when it is released: all of it must be there
 * still.
 */
#include "strict_driver_internal.h"

#define MOST_NAMED 2

struct recorded {
    void *named[MOST_NAMED]; /* memory objects, or a kernel */
    enum kind kind;
};

static struct recorded *list_of(struct thing *b)
{
    return (struct recorded *)(void *)b->memory;
}

static void look_at_named(struct thing *b)
{
    for (size_t i = 0; i < b->bytes; i++)
        for (int k = 0; k < MOST_NAMED; k++)
            (void)of(list_of(b)[i].named[k], list_of(b)[i].kind);
}

static cl_command_buffer_khr CL_API_CALL create(cl_uint n, const cl_command_queue *queues,
                                                const cl_command_buffer_properties_khr *properties,
                                                cl_int *result)
{
    struct thing *q = n == 1 && queues ? of(queues[0], QUEUE) : NULL;
    walk_pairs(properties);
    if (!q)
        return fail(result, CL_INVALID_COMMAND_QUEUE);
    return made(result, strict_new(CMDBUF, q));
}

static cl_int CL_API_CALL finalize(cl_command_buffer_khr h)
{
    struct thing *b = of(h, CMDBUF);
    FUZZ_CHECK(b && !b->status);
    b->status = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_command_buffer_khr h)
{
    struct thing *b = of(h, CMDBUF);
    FUZZ_CHECK(b);
    look_at_named(b);
    return strict_release(h, CMDBUF, CL_INVALID_COMMAND_BUFFER_KHR);
}

static cl_int CL_API_CALL run(cl_uint n, cl_command_queue *queues, cl_command_buffer_khr h,
                              cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    struct thing *b = of(h, CMDBUF);
    if (n != 1 || !b || !b->status)
        return CL_INVALID_OPERATION;
    look_at_named(b);
    return strict_queued(queues[0], n_waits, waits, event);
}

/* A command has been recorded. Its points are odd: nobody may take them for numbers of commands. */
static cl_int record(cl_command_buffer_khr h, cl_command_queue q, enum kind kind, void *a, void *b,
                     cl_uint n, const cl_sync_point_khr *waits, cl_sync_point_khr *point,
                     cl_mutable_command_khr *handle)
{
    struct thing *buffer = of(h, CMDBUF);
    FUZZ_CHECK(buffer && !buffer->status && !q && !handle && point);
    if (!n != !waits)
        return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
    for (cl_uint i = 0; i < n; i++)
        FUZZ_CHECK(waits[i] % 2 && waits[i] / 2 < buffer->bytes);
    buffer->memory = realloc(buffer->memory, (buffer->bytes + 1) * sizeof(struct recorded));
    FUZZ_CHECK(buffer->memory);
    *point = (cl_sync_point_khr)(2 * buffer->bytes + 1);
    list_of(buffer)[buffer->bytes++] = (struct recorded){{a, b}, kind};
    return CL_SUCCESS;
}

#define POINTS                                                                                     \
    cl_uint n, const cl_sync_point_khr *waits, cl_sync_point_khr *point,                           \
        cl_mutable_command_khr *handle

static cl_int CL_API_CALL barrier(cl_command_buffer_khr h, cl_command_queue q, POINTS)
{
    return record(h, q, MEM, NULL, NULL, n, waits, point, handle);
}

static cl_int CL_API_CALL copy_buffer(cl_command_buffer_khr h, cl_command_queue q, cl_mem a,
                                      cl_mem b, size_t from, size_t to, size_t bytes, POINTS)
{
    FUZZ_CHECK(a && b);
    if (!strict_inside(of(a, MEM), from, bytes) || !strict_inside(of(b, MEM), to, bytes))
        return CL_INVALID_VALUE;
    return record(h, q, MEM, a, b, n, waits, point, handle);
}

static cl_int CL_API_CALL copy_rect(cl_command_buffer_khr h, cl_command_queue q, cl_mem a, cl_mem b,
                                    const size_t *from, const size_t *to, const size_t *region,
                                    size_t a_row, size_t a_slice, size_t b_row, size_t b_slice,
                                    POINTS)
{
    size_t at, bytes;
    FUZZ_CHECK(a && b);
    if (!strict_rectangle(from, region, a_row, a_slice, &at, &bytes) ||
        !strict_inside(of(a, MEM), at, bytes) ||
        !strict_rectangle(to, region, b_row, b_slice, &at, &bytes) ||
        !strict_inside(of(b, MEM), at, bytes))
        return CL_INVALID_VALUE;
    return record(h, q, MEM, a, b, n, waits, point, handle);
}

static cl_int CL_API_CALL to_image(cl_command_buffer_khr h, cl_command_queue q, cl_mem a, cl_mem b,
                                   size_t from, const size_t *to, const size_t *region, POINTS)
{
    FUZZ_CHECK(a && b);
    if (!strict_in_image(of(b, MEM), to, region) || !strict_inside(of(a, MEM), from, 1))
        return CL_INVALID_VALUE;
    return record(h, q, MEM, a, b, n, waits, point, handle);
}

static cl_int CL_API_CALL copy_image(cl_command_buffer_khr h, cl_command_queue q, cl_mem a,
                                     cl_mem b, const size_t *from, const size_t *to,
                                     const size_t *region, POINTS)
{
    FUZZ_CHECK(a && b);
    if (!strict_in_image(of(a, MEM), from, region) || !strict_in_image(of(b, MEM), to, region))
        return CL_INVALID_VALUE;
    return record(h, q, MEM, a, b, n, waits, point, handle);
}

static cl_int CL_API_CALL to_buffer(cl_command_buffer_khr h, cl_command_queue q, cl_mem a, cl_mem b,
                                    const size_t *from, const size_t *region, size_t to, POINTS)
{
    FUZZ_CHECK(a && b);
    if (!strict_in_image(of(a, MEM), from, region) || !strict_inside(of(b, MEM), to, 1))
        return CL_INVALID_VALUE;
    return record(h, q, MEM, a, b, n, waits, point, handle);
}

static cl_int CL_API_CALL fill_buffer(cl_command_buffer_khr h, cl_command_queue q, cl_mem a,
                                      const void *pattern, size_t pattern_bytes, size_t offset,
                                      size_t bytes, POINTS)
{
    FUZZ_CHECK(a);
    if (!pattern || !pattern_bytes || pattern_bytes > 128 ||
        (pattern_bytes & (pattern_bytes - 1)) || !strict_inside(of(a, MEM), offset, bytes))
        return CL_INVALID_VALUE;
    read_all(pattern, pattern_bytes);
    return record(h, q, MEM, a, NULL, n, waits, point, handle);
}

static cl_int CL_API_CALL fill_image(cl_command_buffer_khr h, cl_command_queue q, cl_mem a,
                                     const void *color, const size_t *origin, const size_t *region,
                                     POINTS)
{
    FUZZ_CHECK(a);
    if (!color || !strict_in_image(of(a, MEM), origin, region))
        return CL_INVALID_VALUE;
    read_all(color, 16);
    return record(h, q, MEM, a, NULL, n, waits, point, handle);
}

static cl_int CL_API_CALL launch(cl_command_buffer_khr h, cl_command_queue q,
                                 const cl_ndrange_kernel_command_properties_khr *properties,
                                 cl_kernel k, cl_uint dim, const size_t *offset,
                                 const size_t *global, const size_t *local, POINTS)
{
    FUZZ_CHECK(of(k, KERNEL) && dim >= 1 && dim <= 3);
    walk_pairs(properties);
    if (!global)
        return CL_INVALID_GLOBAL_WORK_SIZE;
    read_all(global, dim * sizeof *global);
    if (offset)
        read_all(offset, dim * sizeof *offset);
    if (local)
        read_all(local, dim * sizeof *local);
    return record(h, q, KERNEL, k, NULL, n, waits, point, handle);
}

static void *CL_API_CALL find(cl_platform_id p, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } all[] = {
#define FUNCTION(name, function) {#name, (void *)(uintptr_t)(function)}
        FUNCTION(clCreateCommandBufferKHR, create),
        FUNCTION(clFinalizeCommandBufferKHR, finalize),
        FUNCTION(clReleaseCommandBufferKHR, release),
        FUNCTION(clEnqueueCommandBufferKHR, run),
        FUNCTION(clCommandBarrierWithWaitListKHR, barrier),
        FUNCTION(clCommandCopyBufferKHR, copy_buffer),
        FUNCTION(clCommandCopyBufferRectKHR, copy_rect),
        FUNCTION(clCommandCopyBufferToImageKHR, to_image),
        FUNCTION(clCommandCopyImageKHR, copy_image),
        FUNCTION(clCommandCopyImageToBufferKHR, to_buffer),
        FUNCTION(clCommandFillBufferKHR, fill_buffer),
        FUNCTION(clCommandFillImageKHR, fill_image),
        FUNCTION(clCommandNDRangeKernelKHR, launch),
#undef FUNCTION
    };
    FUZZ_CHECK(of(p, PLATFORM));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name))
            return all[i].function;
    return NULL;
}

void strict_recorded(cl_icd_dispatch *table)
{
    table->clGetExtensionFunctionAddressForPlatform = find;
}
