/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects and samplers: buffers, sub-buffers, images, pipes. The contents of host_ptr are
 * sent at creation; memory that must stay at the program's own address (CL_MEM_USE_HOST_PTR) is
 * synchronized by maps and unmaps. Called on the program's threads. Never waits for a command.
 */
#include "guest/session/session_ops.h"
#include "home.h"
#include "opencl_guest.h"
#include "opencl_pixel.h"

#include <stdlib.h>
#include <string.h>

#define HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define ACCESS      (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_PTR    (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

static struct gn_cl_mem *mem_new(struct gn_object *parent, struct gn_cl_context *context)
{
    struct gn_cl_mem *m = (void *)gn_object_new(parent->session, GN_KIND_MEM, parent);
    if (!m)
        return NULL;
    m->context = context;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void mem_drop(struct gn_cl_mem *m)
{
    pthread_mutex_destroy(&m->lock);
    free(m->given);
    gn_object_drop(&m->o);
}

/* Copies the program's memory to a block of the data area, *ret_ref. Returns a CL error. */
static cl_int stage(struct gn_session *s, bool beside, const void *host_ptr, uint64_t bytes,
                    struct gn_block *block, struct gn_area_ref *ret_ref)
{
    *ret_ref = (struct gn_area_ref){GN_SPAN_NULL, 0, 0};
    block->segment = GN_NO_BLOCK;
    if (!host_ptr || !bytes)
        return CL_SUCCESS;
    if (gn_block_alloc(s, GN_AREA_PASSING, bytes, block))
        return gn_session_lost(s) ? CL_OUT_OF_RESOURCES : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    *ret_ref = gn_block_ref(block, 0);
    if (beside)
        return gn_data_ship(s, ret_ref, host_ptr, bytes) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
    memcpy(block->base, host_ptr, bytes);
    return CL_SUCCESS;
}

/* After a failure: the rest must not be sent, since the program may reuse its memory. */
static void unstage(struct gn_session *s, bool beside, const void *host_ptr, uint64_t bytes)
{
    if (beside && host_ptr)
        gn_data_forget(s, host_ptr, bytes);
}

/* Flags with the specification's defaults, for queries. */
static cl_mem_flags derived_flags(cl_mem_flags flags)
{
    return flags & ACCESS ? flags : flags | CL_MEM_READ_WRITE;
}

static cl_mem create_buffer(cl_context context, const cl_mem_properties *properties,
                            cl_mem_flags flags, size_t size, void *host_ptr, cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    const cl_mem_flags host = flags & HOST_PTR;
    struct gn_area_ref ref;
    struct gn_block block;
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    struct gn_cl_mem *m = mem_new(&c->o, c);
    if (!m)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    m->given = gn_copy_list(properties, &m->n_given);
    enum gn_svm_place place = host_ptr && (host & CL_MEM_USE_HOST_PTR)
                                  ? gn_svm_find(c->o.session->detail, host_ptr, size)
                                  : GN_SVM_NOT;
    m->svm = place == GN_SVM_INSIDE;
    cl_bool at_home = CL_FALSE;
    cl_mem_flags told_flags = 0;
    const bool beside = gn_data_begin(c->o.session);
    bool entered = !properties && gn_home_wanted(c, flags, size, host_ptr) &&
                   gn_session_enter_home(c->o.session);
    bool home = entered && !gn_block_alloc(c->o.session, GN_AREA_HOME, size, &block);
    /* Does not read contents that the driver will reject together with the flags. */
    bool wanted = host_ptr && !m->svm && (host & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) &&
                  !((host & CL_MEM_USE_HOST_PTR) && host != CL_MEM_USE_HOST_PTR);
    cl_int result = CL_SUCCESS;
    if (home) {
        ref = gn_block_ref(&block, 0);
        if (host_ptr && beside)
            result =
                gn_data_ship(c->o.session, &ref, host_ptr, size) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
        else if (host_ptr)
            memcpy(block.base, host_ptr, size);
    } else if (place == GN_SVM_BEYOND) {
        result = CL_INVALID_BUFFER_SIZE;
        block.segment = GN_NO_BLOCK;
    } else {
        result = stage(c->o.session, beside, wanted ? host_ptr : NULL, size, &block, &ref);
    }
    if (!result)
        result = gn_send_Buffer(c->o.session, &m->o, context, properties, flags, size,
                                host_ptr != NULL, &ref, ref.segment == GN_SPAN_NULL ? 0 : size,
                                m->svm ? (uintptr_t)host_ptr : 0, home, &at_home, &told_flags);
    if (entered)
        gn_session_leave_home(c->o.session);
    if (!result && home && at_home) {
        m->far = beside;
        m->home = m->far ? NULL : block.base;
        m->home_block = block;
    } else {
        if (!result && home)
            gn_home_refused(c);
        if (result)
            unstage(c->o.session, beside, host_ptr, size);
        gn_block_free(c->o.session, &block);
    }
    gn_data_end(c->o.session, beside);
    if (result) {
        mem_drop(m);
        return gn_refuse(errcode_ret, result);
    }
    m->type = CL_MEM_OBJECT_BUFFER;
    m->flags = derived_flags(flags);
    m->told_flags = told_flags;
    m->size = size;
    m->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL;
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_mem)m;
}

cl_mem CL_API_CALL gn_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                     void *host_ptr, cl_int *errcode_ret)
{
    return create_buffer(context, NULL, flags, size, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL gn_clCreateBufferWithProperties(cl_context context,
                                                   const cl_mem_properties *properties,
                                                   cl_mem_flags flags, size_t size, void *host_ptr,
                                                   cl_int *errcode_ret)
{
    return create_buffer(context, properties, flags, size, host_ptr, errcode_ret);
}

/*
 * The flags to tell of a part of `source` that was made with `flags`, where the driver says
 * `driver_flags`. An inherited access is the one that the program was told of the source: the
 * driver's own source may have other flags since a migration made it again without its contents.
 */
static cl_mem_flags part_flags(const struct gn_cl_mem *source, cl_mem_flags flags,
                               cl_mem_flags driver_flags)
{
    return flags & ACCESS ? driver_flags
                          : (driver_flags & ~(cl_mem_flags)ACCESS) | (source->told_flags & ACCESS);
}

cl_int gn_made_clCreateSubBuffer(struct gn_object *made, cl_mem buffer, cl_mem_flags flags,
                                 cl_buffer_create_type buffer_create_type,
                                 const void *buffer_create_info)
{
    struct gn_cl_mem *m = (void *)made, *source = (void *)buffer;
    const cl_buffer_region *region = buffer_create_info;
    (void)buffer_create_type;
    pthread_mutex_init(&m->lock, NULL);
    m->context = source->context;
    m->type = CL_MEM_OBJECT_BUFFER;
    m->source = source;
    m->offset = region->origin;
    m->size = region->size;
    m->flags = flags & ACCESS ? flags : flags | (source->flags & ACCESS);
    if (!(flags & HOST_ACCESS))
        m->flags |= source->flags & HOST_ACCESS;
    m->flags |= source->flags & HOST_PTR;
    m->host_ptr = source->host_ptr ? source->host_ptr + region->origin : NULL;
    m->home = source->home ? source->home + region->origin : NULL;
    m->svm = source->svm;
    cl_mem_flags driver_flags = 0;
    cl_int result = gn_send_clGetMemObjectInfo(made->session, (cl_mem)made, CL_MEM_FLAGS,
                                               sizeof driver_flags, &driver_flags, NULL);
    m->told_flags = part_flags(source, flags, driver_flags);
    return result;
}

cl_int gn_made_clCreatePipe(struct gn_object *made, cl_context context, cl_mem_flags flags,
                            cl_uint pipe_packet_size, cl_uint pipe_max_packets,
                            const cl_pipe_properties *properties)
{
    struct gn_cl_mem *m = (void *)made;
    (void)pipe_packet_size;
    (void)pipe_max_packets;
    pthread_mutex_init(&m->lock, NULL);
    m->context = (void *)context;
    m->type = CL_MEM_OBJECT_PIPE;
    m->flags = derived_flags(flags);
    m->given = gn_copy_list(properties, &m->n_given);
    return CL_SUCCESS;
}

/* ---- images */

/* Size of the data at host_ptr, with the given or default pitches. */
static uint64_t image_bytes(const cl_image_desc *d, size_t element, size_t *row, size_t *slice)
{
    *row = d->image_row_pitch ? d->image_row_pitch : d->image_width * element;
    switch (d->image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        *slice = 0;
        return *row;
    case CL_MEM_OBJECT_IMAGE2D:
        *slice = 0;
        return *row * d->image_height;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        *slice = d->image_slice_pitch ? d->image_slice_pitch : *row;
        return *slice * d->image_array_size;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        *slice = d->image_slice_pitch ? d->image_slice_pitch : *row * d->image_height;
        return *slice * d->image_array_size;
    default:
        *slice = d->image_slice_pitch ? d->image_slice_pitch : *row * d->image_height;
        return *slice * d->image_depth;
    }
}

static cl_mem create_image(cl_context context, const cl_mem_properties *properties,
                           cl_mem_flags flags, const cl_image_format *format,
                           const cl_image_desc *desc, void *host_ptr, cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    const cl_mem_flags host = flags & HOST_PTR;
    struct gn_cl_mem *source = NULL;
    struct gn_area_ref ref;
    struct gn_block block;
    uint64_t bytes = 0;
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    if (desc && desc->mem_object) {
        source = gn_object_of_session(&c->o, desc->mem_object, GN_KIND_MEM);
        if (!source)
            return gn_refuse(errcode_ret, CL_INVALID_IMAGE_DESCRIPTOR);
    }
    struct gn_cl_mem *m = mem_new(source ? &source->o : &c->o, c);
    if (!m)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    if (desc && format) {
        size_t element = gn_pixel_bytes(format);
        bytes = image_bytes(desc, element, &m->row_pitch, &m->slice_pitch);
        m->element_bytes = element;
        m->type = desc->image_type;
        bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY,
             layers = m->type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
        bool flat = m->type == CL_MEM_OBJECT_IMAGE1D || m->type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
        m->extent[0] = desc->num_mip_levels > 1 ? 0 : desc->image_width;
        m->extent[1] = lines ? desc->image_array_size : flat ? 1 : desc->image_height;
        m->extent[2] = layers                             ? desc->image_array_size
                       : m->type == CL_MEM_OBJECT_IMAGE3D ? desc->image_depth
                                                          : 1;
    }
    m->given = gn_copy_list(properties, &m->n_given);
    bool wanted = host_ptr && (host & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) &&
                  !((host & CL_MEM_USE_HOST_PTR) && host != CL_MEM_USE_HOST_PTR);
    const bool beside = gn_data_begin(c->o.session);
    cl_int result = stage(c->o.session, beside, wanted ? host_ptr : NULL, bytes, &block, &ref);
    if (!result)
        result = gn_send_Image(c->o.session, &m->o, context, properties, flags, format, desc,
                               (cl_mem)source, host_ptr != NULL, &ref,
                               ref.segment == GN_SPAN_NULL ? 0 : bytes, &m->told_flags);
    if (result)
        unstage(c->o.session, beside, host_ptr, bytes);
    gn_data_end(c->o.session, beside);
    gn_block_free(c->o.session, &block);
    if (result) {
        mem_drop(m);
        return gn_refuse(errcode_ret, result);
    }
    m->source = source;
    m->flags = derived_flags(flags);
    if (source && !(flags & ACCESS))
        m->flags = (flags & ~(cl_mem_flags)ACCESS) | (source->flags & ACCESS);
    if (source && !(flags & HOST_ACCESS))
        m->flags |= source->flags & HOST_ACCESS;
    if (source) {
        m->flags |= source->flags & HOST_PTR;
        m->told_flags = part_flags(source, flags, m->told_flags);
    }
    m->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : source ? source->host_ptr : NULL;
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_mem)m;
}

cl_mem CL_API_CALL gn_clCreateImage(cl_context context, cl_mem_flags flags,
                                    const cl_image_format *image_format,
                                    const cl_image_desc *image_desc, void *host_ptr,
                                    cl_int *errcode_ret)
{
    return create_image(context, NULL, flags, image_format, image_desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL gn_clCreateImageWithProperties(cl_context context,
                                                  const cl_mem_properties *properties,
                                                  cl_mem_flags flags,
                                                  const cl_image_format *image_format,
                                                  const cl_image_desc *image_desc, void *host_ptr,
                                                  cl_int *errcode_ret)
{
    return create_image(context, properties, flags, image_format, image_desc, host_ptr,
                        errcode_ret);
}

cl_mem CL_API_CALL gn_clCreateImage2D(cl_context context, cl_mem_flags flags,
                                      const cl_image_format *image_format, size_t image_width,
                                      size_t image_height, size_t image_row_pitch, void *host_ptr,
                                      cl_int *errcode_ret)
{
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_row_pitch = image_row_pitch};
    return create_image(context, NULL, flags, image_format, &desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL gn_clCreateImage3D(cl_context context, cl_mem_flags flags,
                                      const cl_image_format *image_format, size_t image_width,
                                      size_t image_height, size_t image_depth,
                                      size_t image_row_pitch, size_t image_slice_pitch,
                                      void *host_ptr, cl_int *errcode_ret)
{
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_depth = image_depth,
                          .image_row_pitch = image_row_pitch,
                          .image_slice_pitch = image_slice_pitch};
    return create_image(context, NULL, flags, image_format, &desc, host_ptr, errcode_ret);
}

/* ---- queries */

cl_int gn_local_clGetMemObjectInfo(cl_mem memobj, cl_mem_info param_name, size_t param_value_size,
                                   void *param_value, size_t *param_value_size_ret)
{
    struct gn_cl_mem *m = gn_object_of(memobj, GN_KIND_MEM);
    switch (param_name) {
    case CL_MEM_FLAGS: {
        cl_mem_flags flags = m->told_flags;
        cl_int result = CL_SUCCESS;
        if (m->type == CL_MEM_OBJECT_PIPE)
            result = gn_send_clGetMemObjectInfo(m->o.session, memobj, param_name, sizeof flags,
                                                &flags, NULL);
        /* The driver's object may be a copy, or in the data area. */
        flags = (flags & ~(cl_mem_flags)HOST_PTR) | (m->flags & HOST_PTR);
        return result ? result
                      : gn_answer(&flags, sizeof flags, param_value_size, param_value,
                                  param_value_size_ret);
    }
    case CL_MEM_HOST_PTR:
        return gn_answer(&m->host_ptr, sizeof m->host_ptr, param_value_size, param_value,
                         param_value_size_ret);
    case CL_MEM_MAP_COUNT: {
        pthread_mutex_lock(&m->lock);
        cl_uint n = m->n_maps;
        pthread_mutex_unlock(&m->lock);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_MEM_REFERENCE_COUNT: {
        cl_uint n = atomic_load_explicit(&m->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_MEM_CONTEXT:
        return gn_answer(&m->context, sizeof m->context, param_value_size, param_value,
                         param_value_size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return gn_answer(&m->source, sizeof m->source, param_value_size, param_value,
                         param_value_size_ret);
    case CL_MEM_PROPERTIES:
        return gn_answer(m->given, m->n_given * sizeof *m->given, param_value_size, param_value,
                         param_value_size_ret);
    default: {
        cl_bool svm = m->svm ? CL_TRUE : CL_FALSE;
        return gn_answer(&svm, sizeof svm, param_value_size, param_value, param_value_size_ret);
    }
    }
}

cl_int gn_local_clGetImageInfo(cl_mem image, cl_image_info param_name, size_t param_value_size,
                               void *param_value, size_t *param_value_size_ret)
{
    struct gn_cl_mem *m = gn_object_of(image, GN_KIND_MEM);
    (void)param_name;
    if (m->type == CL_MEM_OBJECT_BUFFER || m->type == CL_MEM_OBJECT_PIPE)
        return CL_INVALID_MEM_OBJECT;
    struct gn_cl_mem *buffer =
        m->source && m->source->type == CL_MEM_OBJECT_BUFFER ? m->source : NULL;
    return gn_answer(&buffer, sizeof buffer, param_value_size, param_value, param_value_size_ret);
}

cl_int CL_API_CALL gn_clSetMemObjectDestructorCallback(
    cl_mem memobj, void(CL_CALLBACK *pfn_notify)(cl_mem, void *), void *user_data)
{
    struct gn_cl_mem *m = gn_object_of(memobj, GN_KIND_MEM);
    if (!m)
        return CL_INVALID_MEM_OBJECT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    return gn_add_destructor(&m->destructors, (void *)pfn_notify, user_data);
}

/* ---- samplers */

cl_int gn_local_clGetSamplerInfo(cl_sampler sampler, cl_sampler_info param_name,
                                 size_t param_value_size, void *param_value,
                                 size_t *param_value_size_ret)
{
    struct gn_cl_sampler *s = gn_object_of(sampler, GN_KIND_SAMPLER);
    if (param_name == CL_SAMPLER_CONTEXT)
        return gn_answer(&s->o.parent, sizeof s->o.parent, param_value_size, param_value,
                         param_value_size_ret);
    cl_uint n = atomic_load_explicit(&s->o.n_refs, memory_order_relaxed);
    return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
}
