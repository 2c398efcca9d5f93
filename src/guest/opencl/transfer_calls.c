/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of reads and writes: their checks, and the layout of their data. Arguments that
 * the specification rejects but a driver may accept (unusual pitches, empty regions) are passed to
 * the driver unchanged. Called on the program's threads.
 */
#include "opencl_guest.h"
#include "transfer.h"

#include <string.h>

#define READ_FORBIDDEN  (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)
#define WRITE_FORBIDDEN (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

/* The checks of every transfer; on success sets *ret_q and t->mem. */
static cl_int check_transfer(cl_command_queue command_queue, cl_mem mem, bool image,
                             const void *ptr, cl_uint n, const cl_event *waits,
                             struct gn_transfer *t, struct gn_cl_queue **ret_q)
{
    struct gn_cl_queue *q = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    struct gn_cl_mem *m = gn_object_of_session(&q->o, mem, GN_KIND_MEM);
    if (!m || (m->type == CL_MEM_OBJECT_BUFFER) == image || m->type == CL_MEM_OBJECT_PIPE)
        return CL_INVALID_MEM_OBJECT;
    cl_int result = gn_command_begin(&q->o, n, waits);
    if (result)
        return result;
    if (!ptr)
        return CL_INVALID_VALUE;
    if (m->flags & (t->write ? WRITE_FORBIDDEN : READ_FORBIDDEN))
        return CL_INVALID_OPERATION;
    t->mem = m;
    *ret_q = q;
    return CL_SUCCESS;
}

static cl_int buffer(cl_command_queue command_queue, cl_mem mem, bool write, cl_bool blocking,
                     size_t offset, size_t size, const void *ptr, cl_uint n, const cl_event *waits,
                     cl_event *event)
{
    struct gn_transfer t = {
        .kind = GN_TRANSFER_BUFFER, .write = write, .origin = {offset}, .region = {size, 1, 1}};
    struct gn_cl_queue *q;
    cl_int result = check_transfer(command_queue, mem, false, ptr, n, waits, &t, &q);
    if (result)
        return result;
    if (!gn_range_ok(offset, size, t.mem->size))
        return CL_INVALID_VALUE;
    t.host = (struct gn_layout){(char *)ptr, size, 1, 1, size, size, false};
    t.type = write ? CL_COMMAND_WRITE_BUFFER : CL_COMMAND_READ_BUFFER;
    t.doubt = t.mem->context != q->context ? GN_ASK(CL_INVALID_CONTEXT)
              : t.mem->source || !size     ? GN_ASK(CL_SUCCESS)
                                           : GN_SURE;
    return gn_transfer(q, &t, blocking, n, waits, event);
}

cl_int CL_API_CALL gn_clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer_,
                                          cl_bool blocking_read, size_t offset, size_t size,
                                          void *ptr, cl_uint num_events_in_wait_list,
                                          const cl_event *event_wait_list, cl_event *event)
{
    return buffer(command_queue, buffer_, false, blocking_read, offset, size, ptr,
                  num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer_,
                                           cl_bool blocking_write, size_t offset, size_t size,
                                           const void *ptr, cl_uint num_events_in_wait_list,
                                           const cl_event *event_wait_list, cl_event *event)
{
    return buffer(command_queue, buffer_, true, blocking_write, offset, size, ptr,
                  num_events_in_wait_list, event_wait_list, event);
}

/* Fills in the default pitches of a rectangle; false when they violate the specification. */
static bool fill_in_pitches(const size_t *origin, const size_t *region, size_t *row, size_t *slice,
                            uint64_t *ret_end, uint64_t *ret_start, bool *ret_odd)
{
    uint64_t start, end, tail;
    if (!*row)
        *row = region[0];
    if (!*slice)
        *slice = region[1] * *row;
    *ret_odd = *row < region[0] || *slice < region[1] * *row || (*row && *slice % *row);
    if (!gn_mul_u64(origin[2], *slice, &start) || !gn_mul_u64(origin[1], *row, &tail) ||
        !gn_add_u64(start, tail, &start) || !gn_add_u64(start, origin[0], &start))
        return false;
    end = start;
    if (region[0] && region[1] && region[2] &&
        (!gn_mul_u64(region[2] - 1, *slice, &end) || !gn_mul_u64(region[1] - 1, *row, &tail) ||
         !gn_add_u64(end, tail, &end) || !gn_add_u64(end, region[0], &end) ||
         !gn_add_u64(end, start, &end)))
        return false;
    *ret_start = start;
    *ret_end = end;
    return true;
}

static cl_int rect(cl_command_queue command_queue, cl_mem mem, bool write, cl_bool blocking,
                   const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
                   size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
                   size_t host_slice_pitch, const void *ptr, cl_uint n, const cl_event *waits,
                   cl_event *event)
{
    struct gn_transfer t = {.kind = GN_TRANSFER_RECT, .write = write};
    struct gn_cl_queue *q;
    uint64_t start, end, host_start, host_end;
    cl_int result = check_transfer(command_queue, mem, false, ptr, n, waits, &t, &q);
    if (result)
        return result;
    if (!buffer_origin || !host_origin || !region)
        return CL_INVALID_VALUE;
    const size_t given_row_pitch = host_row_pitch, given_slice_pitch = host_slice_pitch;
    bool odd, odd_host, empty = !region[0] || !region[1] || !region[2];
    t.buffer_row_pitch = buffer_row_pitch;
    t.buffer_slice_pitch = buffer_slice_pitch;
    if (!fill_in_pitches(buffer_origin, region, &buffer_row_pitch, &buffer_slice_pitch, &end,
                         &start, &odd) ||
        end > t.mem->size ||
        !fill_in_pitches(host_origin, region, &host_row_pitch, &host_slice_pitch, &host_end,
                         &host_start, &odd_host))
        return CL_INVALID_VALUE;
    if (odd_host) {
        /* The driver judges these pitches, so it gets them, and data with this layout. */
        t.area_row_pitch = given_row_pitch;
        t.area_slice_pitch = given_slice_pitch;
    }
    memcpy(t.origin, buffer_origin, sizeof t.origin);
    memcpy(t.region, region, sizeof t.region);
    t.host = (struct gn_layout){(char *)ptr + host_start, region[0],        region[1], region[2],
                                host_row_pitch,           host_slice_pitch, odd_host};
    t.type = write ? CL_COMMAND_WRITE_BUFFER_RECT : CL_COMMAND_READ_BUFFER_RECT;
    t.doubt = t.mem->context != q->context ? GN_ASK(CL_INVALID_CONTEXT)
              : empty                      ? GN_ASK(CL_SUCCESS)
              : odd || odd_host            ? GN_ASK(CL_INVALID_VALUE)
              : t.mem->source              ? GN_ASK(CL_SUCCESS)
                                           : GN_SURE;
    return gn_transfer(q, &t, blocking, n, waits, event);
}

cl_int CL_API_CALL gn_clEnqueueReadBufferRect(cl_command_queue command_queue, cl_mem buffer_,
                                              cl_bool blocking_read, const size_t *buffer_origin,
                                              const size_t *host_origin, const size_t *region,
                                              size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                              size_t host_row_pitch, size_t host_slice_pitch,
                                              void *ptr, cl_uint num_events_in_wait_list,
                                              const cl_event *event_wait_list, cl_event *event)
{
    return rect(command_queue, buffer_, false, blocking_read, buffer_origin, host_origin, region,
                buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
                num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueWriteBufferRect(cl_command_queue command_queue, cl_mem buffer_,
                                               cl_bool blocking_write, const size_t *buffer_origin,
                                               const size_t *host_origin, const size_t *region,
                                               size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                               size_t host_row_pitch, size_t host_slice_pitch,
                                               const void *ptr, cl_uint num_events_in_wait_list,
                                               const cl_event *event_wait_list, cl_event *event)
{
    return rect(command_queue, buffer_, true, blocking_write, buffer_origin, host_origin, region,
                buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
                num_events_in_wait_list, event_wait_list, event);
}

bool gn_inside_image(const struct gn_cl_mem *m, const size_t *origin, const size_t *region)
{
    for (uint32_t i = 0; m->extent[0] && i < 3; i++)
        if (!gn_range_ok(origin[i], region[i], m->extent[i]))
            return false;
    return true;
}

static cl_int image(cl_command_queue command_queue, cl_mem mem, bool write, cl_bool blocking,
                    const size_t *origin, const size_t *region, size_t row_pitch,
                    size_t slice_pitch, const void *ptr, cl_uint n, const cl_event *waits,
                    cl_event *event)
{
    struct gn_transfer t = {.kind = GN_TRANSFER_IMAGE, .write = write, .doubt = GN_ASK(CL_SUCCESS)};
    struct gn_cl_queue *q;
    cl_int result = check_transfer(command_queue, mem, true, ptr, n, waits, &t, &q);
    if (result)
        return result;
    if (!origin || !region || !gn_inside_image(t.mem, origin, region))
        return CL_INVALID_VALUE;
    size_t row = region[0] * t.mem->element_bytes;
    bool rows_are_slices = t.mem->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t least_row = row_pitch ? row_pitch : row,
           least_slice = rows_are_slices ? least_row : least_row * region[1];
    bool odd = least_row < row || (slice_pitch && slice_pitch < least_slice);
    if (odd) {
        /* The driver judges these pitches, so it gets them, and data with this layout. */
        t.area_row_pitch = row_pitch;
        t.area_slice_pitch = slice_pitch;
    }
    if (t.mem->context != q->context)
        t.doubt = GN_ASK(CL_INVALID_CONTEXT);
    row_pitch = least_row;
    if (!slice_pitch)
        slice_pitch = least_slice;
    memcpy(t.origin, origin, sizeof t.origin);
    memcpy(t.region, region, sizeof t.region);
    /* The layers of a 1D image array are its second dimension, one slice pitch apart. */
    t.host = rows_are_slices ? (struct gn_layout){(char *)ptr, row,         region[1],
                                                  region[2],   slice_pitch, slice_pitch * region[1],
                                                  odd}
                             : (struct gn_layout){(char *)ptr, row,         region[1], region[2],
                                                  row_pitch,   slice_pitch, odd};
    t.type = write ? CL_COMMAND_WRITE_IMAGE : CL_COMMAND_READ_IMAGE;
    return gn_transfer(q, &t, blocking, n, waits, event);
}

cl_int CL_API_CALL gn_clEnqueueReadImage(cl_command_queue command_queue, cl_mem image_,
                                         cl_bool blocking_read, const size_t *origin,
                                         const size_t *region, size_t row_pitch, size_t slice_pitch,
                                         void *ptr, cl_uint num_events_in_wait_list,
                                         const cl_event *event_wait_list, cl_event *event)
{
    return image(command_queue, image_, false, blocking_read, origin, region, row_pitch,
                 slice_pitch, ptr, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueWriteImage(cl_command_queue command_queue, cl_mem image_,
                                          cl_bool blocking_write, const size_t *origin,
                                          const size_t *region, size_t input_row_pitch,
                                          size_t input_slice_pitch, const void *ptr,
                                          cl_uint num_events_in_wait_list,
                                          const cl_event *event_wait_list, cl_event *event)
{
    return image(command_queue, image_, true, blocking_write, origin, region, input_row_pitch,
                 input_slice_pitch, ptr, num_events_in_wait_list, event_wait_list, event);
}
