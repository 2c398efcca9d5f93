/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of the emulated device: they lie in the arena in the layout that PoCL uses for them, which
 * it is asked for by an image over the program's own memory, or over none. Images over buffers
 * share the memory of these. Called on any thread.
 */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

static cl_mem of_driver(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
                        const cl_image_format *format, const cl_image_desc *desc, void *host_ptr,
                        cl_int *result)
{
    return properties ? driver->clCreateImageWithProperties(context, properties, flags, format,
                                                            desc, host_ptr, result)
                      : driver->clCreateImage(context, flags, format, desc, host_ptr, result);
}

static size_t image_number(cl_mem image, cl_image_info what)
{
    size_t n = 0;
    driver->clGetImageInfo(image, what, sizeof n, &n, NULL);
    return n;
}

/* Rows, and the planes or layers behind each other. */
static void fill(unsigned char *to, const unsigned char *from, cl_mem image,
                 const cl_image_desc *desc)
{
    const size_t row_bytes = desc->image_width * image_number(image, CL_IMAGE_ELEMENT_SIZE),
                 row_pitch = image_number(image, CL_IMAGE_ROW_PITCH),
                 slice_pitch = image_number(image, CL_IMAGE_SLICE_PITCH);
    const cl_mem_object_type type = desc->image_type;
    const bool flat = type == CL_MEM_OBJECT_IMAGE1D || type == CL_MEM_OBJECT_IMAGE1D_ARRAY ||
                      type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
    const size_t n_rows = flat ? 1 : desc->image_height;
    const size_t n_slices =
        type == CL_MEM_OBJECT_IMAGE3D ? desc->image_depth
        : type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY
            ? desc->image_array_size
            : 1;
    for (size_t z = 0; z < n_slices; z++)
        for (size_t y = 0; y < n_rows; y++)
            memcpy(to + z * slice_pitch + y * row_pitch, from + z * slice_pitch + y * row_pitch,
                   row_bytes);
    dg_state_transferred(DG_TO_DEVICE, n_slices * n_rows * row_bytes);
}

/* An image in another object's memory. */
static cl_mem over(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
                   const cl_image_format *format, const cl_image_desc *desc, void *host_ptr,
                   cl_int *result)
{
    cl_mem handle = of_driver(context, properties, flags, format, desc, host_ptr, result);
    return handle ? dg_object_enter_part(handle, desc->mem_object, 0, flags, result) : NULL;
}

static cl_mem CL_API_CALL create_image_with(cl_context context, const cl_mem_properties *properties,
                                            cl_mem_flags flags, const cl_image_format *format,
                                            const cl_image_desc *desc, void *host_ptr,
                                            cl_int *result)
{
    cl_int r;
    size_t bytes = 0;
    if (desc && desc->mem_object)
        return over(context, properties, flags, format, desc, host_ptr, result);
    /* PoCL refuses arguments that cannot be right. */
    if (!desc || !dg_host_flags_right(flags, host_ptr))
        return of_driver(context, properties, flags, format, desc, host_ptr, result);
    const cl_mem_flags as_given = host_ptr ? dg_device_flags(flags) : flags;
    cl_mem handle = of_driver(context, properties, as_given, format, desc, host_ptr, &r);
    struct dg_memory *m = NULL;
    if (handle) {
        cl_image_desc in_arena = *desc;
        driver->clGetMemObjectInfo(handle, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        in_arena.image_row_pitch = image_number(handle, CL_IMAGE_ROW_PITCH);
        in_arena.image_slice_pitch = image_number(handle, CL_IMAGE_SLICE_PITCH);
        driver->clReleaseMemObject(handle);
        m = dg_memory_create(bytes, &r);
        handle = m ? of_driver(context, properties, dg_device_flags(flags), format, &in_arena,
                               m->base, &r)
                   : NULL;
    }
    if (!handle) {
        if (m)
            dg_memory_destroy(m);
        if (result)
            *result = r;
        return NULL;
    }
    dg_state_add(DG_CREATIONS, 1);
    if (host_ptr)
        fill(m->base, host_ptr, handle, desc);
    if (flags & CL_MEM_USE_HOST_PTR)
        m->shadow = m->host_ptr = host_ptr;
    return dg_object_enter(handle, m, flags, result);
}

static cl_mem CL_API_CALL create_image(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host_ptr, cl_int *result)
{
    return create_image_with(context, NULL, flags, format, desc, host_ptr, result);
}

static cl_mem CL_API_CALL create_2d(cl_context context, cl_mem_flags flags,
                                    const cl_image_format *format, size_t width, size_t height,
                                    size_t row_pitch, void *host_ptr, cl_int *result)
{
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = width,
                                .image_height = height,
                                .image_row_pitch = row_pitch};
    return create_image(context, flags, format, &desc, host_ptr, result);
}

static cl_mem CL_API_CALL create_3d(cl_context context, cl_mem_flags flags,
                                    const cl_image_format *format, size_t width, size_t height,
                                    size_t depth, size_t row_pitch, size_t slice_pitch,
                                    void *host_ptr, cl_int *result)
{
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
                                .image_width = width,
                                .image_height = height,
                                .image_depth = depth,
                                .image_row_pitch = row_pitch,
                                .image_slice_pitch = slice_pitch};
    return create_image(context, flags, format, &desc, host_ptr, result);
}

void dg_replace_images(cl_icd_dispatch *table)
{
    table->clCreateImage = create_image;
    table->clCreateImageWithProperties = create_image_with;
    table->clCreateImage2D = create_2d;
    table->clCreateImage3D = create_3d;
}
