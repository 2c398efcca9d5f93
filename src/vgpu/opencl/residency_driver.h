/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_RESIDENCY_DRIVER_H
#define GN_OPENCL_RESIDENCY_DRIVER_H

/* For the tests of residency.c: a driver of buffers and images that counts and may refuse. */
#include "opencl_host.h"
#include "residency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef BYTES
#define BYTES 64u
#endif
#define COLUMNS 4u
#define ROWS    8u
#define PIXEL   (BYTES / COLUMNS / ROWS)

/* A memory object. */
struct memory {
    struct memory *parent;
    size_t offset, bytes;
    cl_mem_flags flags;
    cl_mem_object_type type;
    cl_uint levels; /* of an image */
    size_t row_pitch;
    unsigned char at[BYTES];
};

static char some_object;
static struct {
    int n_alive, n_created, n_contexts; /* contexts: references that the vGPU has taken */
    size_t read_bytes;                  /* by the vGPU */
    bool refuses_buffers, refuses_parts, refuses_reads, refuses_writes;
} driver;

static struct memory *create(struct memory *parent, size_t offset, size_t bytes, cl_mem_flags flags)
{
    struct memory *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m = (struct memory){.parent = parent,
                         .offset = offset,
                         .bytes = bytes,
                         .flags = flags,
                         .type = CL_MEM_OBJECT_BUFFER};
    driver.n_alive++;
    driver.n_created++;
    return m;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *result)
{
    (void)context;
    assert_null(host);
    *result = driver.refuses_buffers ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
    return driver.refuses_buffers ? NULL : (cl_mem)create(NULL, 0, bytes, flags);
}

static cl_mem CL_API_CALL create_part(cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type,
                                      const void *info, cl_int *result)
{
    const cl_buffer_region *region = info;
    assert_int_equal(type, CL_BUFFER_CREATE_TYPE_REGION);
    *result = driver.refuses_parts ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    return driver.refuses_parts
               ? NULL
               : (cl_mem)create((struct memory *)mem, region->origin, region->size, flags);
}

static struct memory *create_picture(cl_uint levels)
{
    struct memory *m = create(NULL, 0, BYTES, CL_MEM_READ_WRITE);
    m->type = CL_MEM_OBJECT_IMAGE2D;
    m->levels = levels;
    m->row_pitch = COLUMNS * PIXEL;
    return m;
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host, cl_int *result)
{
    (void)context;
    assert_int_equal(host != NULL, (flags & CL_MEM_COPY_HOST_PTR) != 0);
    assert_int_equal(host != NULL, desc->image_row_pitch != 0);
    assert_null(desc->mem_object);
    assert_int_equal(format->image_channel_data_type, CL_UNSIGNED_INT16);
    assert_int_equal(desc->image_type, CL_MEM_OBJECT_IMAGE2D);
    assert_true(desc->image_width == COLUMNS && desc->image_height == ROWS);
    *result = driver.refuses_buffers ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
    if (driver.refuses_buffers)
        return NULL;
    struct memory *m = create_picture(0);
    if (host)
        m->row_pitch = desc->image_row_pitch;
    return (cl_mem)m;
}

static cl_int CL_API_CALL release_mem(cl_mem mem)
{
    assert_non_null(mem);
    driver.n_alive--;
    free(mem);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL mem_info(cl_mem mem, cl_mem_info name, size_t size, void *value,
                                   size_t *size_ret)
{
    const struct memory *m = (const struct memory *)mem;
    (void)size, (void)size_ret;
    assert_non_null(mem);
    if (name == CL_MEM_TYPE)
        *(cl_mem_object_type *)value = m->type;
    else if (name == CL_MEM_FLAGS)
        *(cl_mem_flags *)value = m->flags;
    else if (name == CL_MEM_SIZE)
        *(size_t *)value = m->bytes;
    else if (name == CL_MEM_OFFSET)
        *(size_t *)value = m->offset;
    else if (name == CL_MEM_CONTEXT)
        *(cl_context *)value = (cl_context)&some_object;
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL image_info(cl_mem mem, cl_image_info name, size_t size, void *value,
                                     size_t *size_ret)
{
    (void)size_ret;
    memset(value, 0, size);
    if (name == CL_IMAGE_FORMAT)
        *(cl_image_format *)value = (cl_image_format){CL_R, CL_UNSIGNED_INT16};
    else if (name == CL_IMAGE_WIDTH)
        *(size_t *)value = COLUMNS;
    else if (name == CL_IMAGE_HEIGHT)
        *(size_t *)value = ROWS;
    else if (name == CL_IMAGE_ROW_PITCH)
        *(size_t *)value = ((const struct memory *)mem)->row_pitch;
    else if (name == CL_IMAGE_NUM_MIP_LEVELS)
        *(cl_uint *)value = ((const struct memory *)mem)->levels;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL context_info(cl_context context, cl_context_info name, size_t size,
                                       void *value, size_t *size_ret)
{
    (void)context, (void)size;
    if (size_ret)
        *size_ret = sizeof(cl_device_id);
    if (value && name == CL_CONTEXT_NUM_DEVICES)
        *(cl_uint *)value = 1;
    else if (value)
        *(cl_device_id *)value = (cl_device_id)&some_object;
    return CL_SUCCESS;
}

/* Its memory is the host's, so it does not hash. */
static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info name, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)device, (void)size_ret;
    assert_int_equal(name, CL_DEVICE_HOST_UNIFIED_MEMORY);
    assert_int_equal(size, sizeof(cl_bool));
    *(cl_bool *)value = CL_TRUE;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_context(cl_context context)
{
    (void)context;
    driver.n_contexts++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    (void)context;
    driver.n_contexts--;
    return CL_SUCCESS;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties,
                                                 cl_int *result)
{
    (void)context, (void)device, (void)properties, (void)result;
    return (cl_command_queue)&some_object;
}

static cl_int CL_API_CALL queue_done(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocks, size_t at,
                                      size_t bytes, void *to, cl_uint n, const cl_event *waits,
                                      cl_event *event)
{
    (void)queue, (void)blocks, (void)n, (void)waits, (void)event;
    memcpy(to, ((const struct memory *)mem)->at + at, bytes);
    driver.read_bytes += bytes;
    return driver.refuses_reads ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                       size_t at, size_t bytes, const void *from, cl_uint n,
                                       const cl_event *waits, cl_event *event)
{
    (void)queue, (void)blocks, (void)n, (void)waits, (void)event;
    if (driver.refuses_writes)
        return CL_OUT_OF_RESOURCES;
    memcpy(((struct memory *)mem)->at + at, from, bytes);
    return CL_SUCCESS;
}

/* Copies the rows of a box of the image, which lie without padding in host memory. */
static void copy_box(struct memory *m, const size_t *origin, const size_t *region,
                     unsigned char *host, bool out)
{
    const size_t n = region[0] * PIXEL;
    for (size_t y = 0; y < region[1]; y++) {
        unsigned char *row = m->at + ((origin[1] + y) * COLUMNS + origin[0]) * PIXEL;
        memcpy(out ? host + y * n : row, out ? row : host + y * n, n);
    }
}

static cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                     const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n, const cl_event *waits,
                                     cl_event *event)
{
    (void)queue, (void)blocks, (void)row, (void)slice, (void)n, (void)waits, (void)event;
    copy_box((struct memory *)mem, origin, region, to, true);
    driver.read_bytes += region[0] * region[1] * PIXEL;
    return driver.refuses_reads ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                      const size_t *origin, const size_t *region, size_t row,
                                      size_t slice, const void *from, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    (void)queue, (void)blocks, (void)row, (void)slice, (void)n, (void)waits, (void)event;
    copy_box((struct memory *)mem, origin, region, (unsigned char *)(uintptr_t)from, false);
    return driver.refuses_writes ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem mem, cl_bool blocks,
                                    cl_map_flags flags, size_t at, size_t bytes, cl_uint n,
                                    const cl_event *waits, cl_event *event, cl_int *result)
{
    (void)queue, (void)blocks, (void)flags, (void)bytes, (void)n, (void)waits;
    *event = (cl_event)&some_object;
    *result = CL_SUCCESS;
    return ((struct memory *)mem)->at + at;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem mem, void *at, cl_uint n,
                                const cl_event *waits, cl_event *event)
{
    (void)queue, (void)mem, (void)at, (void)n, (void)waits, (void)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    (void)event;
    return CL_SUCCESS;
}

static struct _cl_icd_dispatch table = {.clCreateBuffer = create_buffer,
                                        .clEnqueueMapBuffer = map_buffer,
                                        .clEnqueueUnmapMemObject = unmap,
                                        .clReleaseEvent = release_event,
                                        .clCreateSubBuffer = create_part,
                                        .clReleaseMemObject = release_mem,
                                        .clCreateImage = create_image,
                                        .clGetMemObjectInfo = mem_info,
                                        .clGetImageInfo = image_info,
                                        .clEnqueueReadImage = read_image,
                                        .clEnqueueWriteImage = write_image,
                                        .clGetContextInfo = context_info,
                                        .clGetDeviceInfo = device_info,
                                        .clRetainContext = retain_context,
                                        .clReleaseContext = release_context,
                                        .clCreateCommandQueue = create_queue,
                                        .clReleaseCommandQueue = queue_done,
                                        .clFinish = queue_done,
                                        .clEnqueueReadBuffer = read_buffer,
                                        .clEnqueueWriteBuffer = write_buffer};

#endif
