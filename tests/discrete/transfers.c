/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes of buffers and images: they cross the bus. PoCL copies the bytes itself, behind
 * the transfer's gate. Called on the program's threads.
 */
#include "discrete.h"

struct transfer {
    struct dg_gate *gate;
    struct dg_crossing crossing;
    cl_event *event; /* the driver's argument */
    cl_event own;
    cl_bool blocking; /* the driver's argument */
    bool waits;       /* here, since a gate opens only after the command is enqueued */
};

static cl_int begin(struct transfer *t, cl_command_queue queue, cl_mem mem,
                    enum dg_direction direction, uint64_t bytes, cl_bool blocking, cl_uint *n,
                    const cl_event **waits, cl_event *event)
{
    const cl_int result = dg_object_use(mem);
    if (result)
        return result;
    *t = (struct transfer){.crossing = {.mem = mem, .direction = direction, .bytes = bytes},
                           .event = event,
                           .blocking = blocking};
    t->gate = dg_gate_make(queue, &t->crossing, n, waits);
    if (t->gate && blocking) {
        t->waits = true;
        t->blocking = CL_FALSE;
        if (!event)
            t->event = &t->own;
    }
    return CL_SUCCESS;
}

static cl_int end(struct transfer *t, cl_int result)
{
    dg_gate_close(t->gate, NULL, result);
    if (result)
        return result;
    dg_state_transferred(t->crossing.direction, t->crossing.bytes);
    if (t->waits)
        result = driver->clWaitForEvents(1, t->event);
    if (t->own)
        driver->clReleaseEvent(t->own);
    return result;
}

static uint64_t region_bytes(const size_t *region, size_t element)
{
    return region ? (uint64_t)region[0] * region[1] * region[2] * element : 0;
}

static uint64_t image_bytes(cl_mem image, const size_t *region)
{
    size_t element = 0;
    driver->clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL);
    return region_bytes(region, element);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    struct transfer t;
    const cl_int result = begin(&t, queue, mem, DG_FROM_DEVICE, size, blocking, &n, &waits, event);
    return result ? result
                  : end(&t, driver->clEnqueueReadBuffer(queue, mem, t.blocking, offset, size, to, n,
                                                        waits, t.event));
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint n,
                                       const cl_event *waits, cl_event *event)
{
    struct transfer t;
    const cl_int result = begin(&t, queue, mem, DG_TO_DEVICE, size, blocking, &n, &waits, event);
    return result ? result
                  : end(&t, driver->clEnqueueWriteBuffer(queue, mem, t.blocking, offset, size, from,
                                                         n, waits, t.event));
}

static cl_int CL_API_CALL read_rect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                    const size_t *origin, const size_t *host_origin,
                                    const size_t *region, size_t row, size_t slice, size_t host_row,
                                    size_t host_slice, void *to, cl_uint n, const cl_event *waits,
                                    cl_event *event)
{
    struct transfer t;
    const cl_int result =
        begin(&t, queue, mem, DG_FROM_DEVICE, region_bytes(region, 1), blocking, &n, &waits, event);
    return result
               ? result
               : end(&t, driver->clEnqueueReadBufferRect(queue, mem, t.blocking, origin,
                                                         host_origin, region, row, slice, host_row,
                                                         host_slice, to, n, waits, t.event));
}

static cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                     const size_t *origin, const size_t *host_origin,
                                     const size_t *region, size_t row, size_t slice,
                                     size_t host_row, size_t host_slice, const void *from,
                                     cl_uint n, const cl_event *waits, cl_event *event)
{
    struct transfer t;
    const cl_int result =
        begin(&t, queue, mem, DG_TO_DEVICE, region_bytes(region, 1), blocking, &n, &waits, event);
    return result
               ? result
               : end(&t, driver->clEnqueueWriteBufferRect(queue, mem, t.blocking, origin,
                                                          host_origin, region, row, slice, host_row,
                                                          host_slice, from, n, waits, t.event));
}

static cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                     const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n, const cl_event *waits,
                                     cl_event *event)
{
    struct transfer t;
    const cl_int result = begin(&t, queue, mem, DG_FROM_DEVICE, image_bytes(mem, region), blocking,
                                &n, &waits, event);
    return result ? result
                  : end(&t, driver->clEnqueueReadImage(queue, mem, t.blocking, origin, region, row,
                                                       slice, to, n, waits, t.event));
}

static cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                      const size_t *origin, const size_t *region, size_t row,
                                      size_t slice, const void *from, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    struct transfer t;
    const cl_int result =
        begin(&t, queue, mem, DG_TO_DEVICE, image_bytes(mem, region), blocking, &n, &waits, event);
    return result ? result
                  : end(&t, driver->clEnqueueWriteImage(queue, mem, t.blocking, origin, region, row,
                                                        slice, from, n, waits, t.event));
}

void dg_replace_transfers(cl_icd_dispatch *table)
{
    table->clEnqueueReadBuffer = read_buffer;
    table->clEnqueueWriteBuffer = write_buffer;
    table->clEnqueueReadBufferRect = read_rect;
    table->clEnqueueWriteBufferRect = write_rect;
    table->clEnqueueReadImage = read_image;
    table->clEnqueueWriteImage = write_image;
}
