/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that bring nothing across the bus: launches, fills, copies in device memory, markers. A
 * launch looks at its arguments first. Called on the program's threads.
 */
#include "discrete.h"

#include <stddef.h>

#define GATE() struct dg_gate *gate = dg_gate_make(queue, NULL, &n, &waits)

static cl_int use_both(cl_mem a, cl_mem b)
{
    const cl_int result = dg_object_use(a);
    return result ? result : dg_object_use(b);
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint n, const cl_event *waits, cl_event *event)
{
    cl_int result = dg_kernel_use(kernel);
    if (result)
        return result;
    GATE();
    result = dg_gate_close(gate, NULL,
                           driver->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global,
                                                          local, n, waits, event));
    if (!result)
        dg_state_add(DG_LAUNCHES, 1);
    return result;
}

static cl_int CL_API_CALL task(cl_command_queue queue, cl_kernel kernel, cl_uint n,
                               const cl_event *waits, cl_event *event)
{
    cl_int result = dg_kernel_use(kernel);
    if (result)
        return result;
    GATE();
    result = dg_gate_close(gate, NULL, driver->clEnqueueTask(queue, kernel, n, waits, event));
    if (!result)
        dg_state_add(DG_LAUNCHES, 1);
    return result;
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                      size_t from_offset, size_t to_offset, size_t size, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    const cl_int result = use_both(from, to);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size,
                                                     n, waits, event));
}

static cl_int CL_API_CALL copy_rect(cl_command_queue queue, cl_mem from, cl_mem to,
                                    const size_t *from_origin, const size_t *to_origin,
                                    const size_t *region, size_t from_row, size_t from_slice,
                                    size_t to_row, size_t to_slice, cl_uint n,
                                    const cl_event *waits, cl_event *event)
{
    const cl_int result = use_both(from, to);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin,
                                                         region, from_row, from_slice, to_row,
                                                         to_slice, n, waits, event));
}

static cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem from, cl_mem to,
                                     const size_t *from_origin, const size_t *to_origin,
                                     const size_t *region, cl_uint n, const cl_event *waits,
                                     cl_event *event)
{
    const cl_int result = use_both(from, to);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region,
                                                    n, waits, event));
}

static cl_int CL_API_CALL copy_image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                               const size_t *origin, const size_t *region,
                                               size_t offset, cl_uint n, const cl_event *waits,
                                               cl_event *event)
{
    const cl_int result = use_both(from, to);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset,
                                                            n, waits, event));
}

static cl_int CL_API_CALL copy_buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to,
                                               size_t offset, const size_t *origin,
                                               const size_t *region, cl_uint n,
                                               const cl_event *waits, cl_event *event)
{
    const cl_int result = use_both(from, to);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region,
                                                            n, waits, event));
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem mem, const void *pattern,
                                      size_t pattern_size, size_t offset, size_t size, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    const cl_int result = dg_object_use(mem);
    if (result)
        return result;
    GATE();
    return dg_gate_close(gate, NULL,
                         driver->clEnqueueFillBuffer(queue, mem, pattern, pattern_size, offset,
                                                     size, n, waits, event));
}

static cl_int CL_API_CALL fill_image(cl_command_queue queue, cl_mem mem, const void *color,
                                     const size_t *origin, const size_t *region, cl_uint n,
                                     const cl_event *waits, cl_event *event)
{
    const cl_int result = dg_object_use(mem);
    if (result)
        return result;
    GATE();
    return dg_gate_close(
        gate, NULL, driver->clEnqueueFillImage(queue, mem, color, origin, region, n, waits, event));
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint n_mems, const cl_mem *mems,
                                  cl_mem_migration_flags flags, cl_uint n, const cl_event *waits,
                                  cl_event *event)
{
    cl_int result = CL_SUCCESS;
    for (cl_uint i = 0; mems && i < n_mems && !result; i++)
        result = dg_object_use(mems[i]);
    if (result)
        return result;
    GATE();
    return dg_gate_close(
        gate, NULL,
        driver->clEnqueueMigrateMemObjects(queue, n_mems, mems, flags, n, waits, event));
}

void dg_replace_commands(cl_icd_dispatch *table)
{
    table->clEnqueueNDRangeKernel = launch;
    table->clEnqueueTask = task;
    table->clEnqueueCopyBuffer = copy_buffer;
    table->clEnqueueCopyBufferRect = copy_rect;
    table->clEnqueueCopyImage = copy_image;
    table->clEnqueueCopyImageToBuffer = copy_image_to_buffer;
    table->clEnqueueCopyBufferToImage = copy_buffer_to_image;
    table->clEnqueueFillBuffer = fill_buffer;
    table->clEnqueueFillImage = fill_image;
    table->clEnqueueMigrateMemObjects = migrate;
}
