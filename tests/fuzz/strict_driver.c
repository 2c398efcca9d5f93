/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of vgpu_fuzz.c: its table, and all objects but programs and kernels. See
 * strict_driver.h. */
#include "strict_driver_internal.h"

#include "opencl_pixel.h"

static struct thing platform, devices[STRICT_N_DEVICES];
static unsigned n_left;
volatile unsigned char strict_sink;
cl_icd_dispatch strict_driver;

void *strict_new(enum kind kind, struct thing *parent)
{
    struct thing *t = calloc(1, sizeof *t);
    FUZZ_CHECK(t);
    t->dispatch = &strict_driver;
    t->magic = MAGIC;
    t->kind = kind;
    t->n_refs = 1;
    t->parent = parent;
    if (parent)
        parent->n_refs++;
    n_left++;
    return t;
}

void strict_drop(struct thing *t)
{
    while (t && --t->n_refs == 0) {
        struct thing *parent = t->parent;
        t->magic = 0;
        free(t->memory);
        free(t);
        n_left--;
        t = parent;
    }
}

cl_int strict_release(const void *handle, enum kind kind, cl_int error)
{
    struct thing *t = of(handle, kind);
    if (!t)
        return error;
    strict_drop(t);
    return CL_SUCCESS;
}

/* ---- platform, devices, contexts, queues */

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info what, size_t size,
                                        void *value, size_t *size_ret)
{
    (void)what;
    return of(p, PLATFORM) ? answer("strict", 7, size, value, size_ret) : CL_INVALID_PLATFORM;
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n,
                                     cl_device_id *ids, cl_uint *n_ret)
{
    (void)type;
    if (!of(p, PLATFORM))
        return CL_INVALID_PLATFORM;
    if ((ids && !n) || (!ids && !n_ret))
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; ids && i < n && i < STRICT_N_DEVICES; i++)
        ids[i] = strict_device(i);
    if (n_ret)
        *n_ret = STRICT_N_DEVICES;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    static const cl_name_version extensions[] = {
        {CL_MAKE_VERSION(0, 9, 0), CL_KHR_COMMAND_BUFFER_EXTENSION_NAME}};
    struct thing *t = of(d, DEVICE);
    if (!t)
        return CL_INVALID_DEVICE;
    switch (what) {
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return answer(extensions, sizeof extensions, size, value, size_ret);
    case CL_DEVICE_TYPE:
        return answer_number(CL_DEVICE_TYPE_CPU, sizeof(cl_device_type), size, value, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
        return answer_number(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER,
                             sizeof(cl_bitfield), size, value, size_ret);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer_number(MAX_MEMORY, sizeof(cl_ulong), size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        return answer(&t->parent, sizeof t->parent, size, value, size_ret);
    default:
        return answer("a device", 9, size, value, size_ret);
    }
}

static cl_int CL_API_CALL sub_devices(cl_device_id d,
                                      const cl_device_partition_property *properties, cl_uint n,
                                      cl_device_id *ids, cl_uint *n_ret)
{
    struct thing *t = of(d, DEVICE);
    cl_uint made_here = 0;
    if (!t)
        return CL_INVALID_DEVICE;
    if (!properties)
        return CL_INVALID_VALUE;
    if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS) {
        for (const cl_device_partition_property *p = properties + 1;
             *p != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; p++)
            made_here++;
        read_all(properties, (made_here + 3) * sizeof *properties);
    } else if (properties[0]) {
        read_all(properties, 3 * sizeof *properties);
        made_here = 2;
    }
    if (!made_here || made_here > 64)
        return CL_INVALID_VALUE;
    if (ids && n < made_here)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; ids && i < made_here; i++)
        ids[i] = strict_new(DEVICE, t);
    if (n_ret)
        *n_ret = made_here;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_device(cl_device_id d)
{
    /* Root devices are not counted. */
    return d == strict_device(0) || d == strict_device(1)
               ? CL_SUCCESS
               : strict_release(d, DEVICE, CL_INVALID_DEVICE);
}

bool strict_devices_good(cl_uint n, const cl_device_id *ids)
{
    for (cl_uint i = 0; i < n; i++)
        if (!ids || !of(ids[i], DEVICE))
            return false;
    return n || !ids;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *ids,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *arg, cl_int *result)
{
    walk_pairs((const uint64_t *)properties);
    if (!n || !strict_devices_good(n, ids))
        return fail(result, CL_INVALID_DEVICE);
    if (notify)
        notify("a word", NULL, 0, arg);
    return made(result, strict_new(CONTEXT, NULL));
}

static cl_int CL_API_CALL release_context(cl_context c)
{
    return strict_release(c, CONTEXT, CL_INVALID_CONTEXT);
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info what, size_t size, void *value,
                                       size_t *size_ret)
{
    cl_device_id ids[2] = {strict_device(0), strict_device(1)};
    (void)what;
    return of(c, CONTEXT) ? answer(ids, sizeof ids, size, value, size_ret) : CL_INVALID_CONTEXT;
}

static cl_command_queue CL_API_CALL create_queue(cl_context c, cl_device_id d,
                                                 cl_command_queue_properties properties,
                                                 cl_int *result)
{
    struct thing *context = of(c, CONTEXT), *device = of(d, DEVICE);
    if (!context || !device)
        return fail(result, context ? CL_INVALID_DEVICE : CL_INVALID_CONTEXT);
    struct thing *q = strict_new(QUEUE, context);
    q->device = device;
    q->properties = properties;
    return made(result, q);
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context c, cl_device_id d,
                                                      const cl_queue_properties *properties,
                                                      cl_int *result)
{
    walk_pairs(properties);
    return create_queue(
        c, d, properties && properties[0] == CL_QUEUE_PROPERTIES ? properties[1] : 0, result);
}

static cl_int CL_API_CALL queue_info(cl_command_queue h, cl_command_queue_info what, size_t size,
                                     void *value, size_t *size_ret)
{
    struct thing *q = of(h, QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    if (what == CL_QUEUE_CONTEXT)
        return answer(&q->parent, sizeof q->parent, size, value, size_ret);
    if (what == CL_QUEUE_DEVICE)
        return answer(&q->device, sizeof q->device, size, value, size_ret);
    return answer_number(q->properties, sizeof q->properties, size, value, size_ret);
}

static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
    return strict_release(q, QUEUE, CL_INVALID_COMMAND_QUEUE);
}

static cl_int CL_API_CALL set_queue_property(cl_command_queue q, cl_command_queue_properties p,
                                             cl_bool on, cl_command_queue_properties *old)
{
    (void)p, (void)on;
    if (old)
        *old = 0;
    return of(q, QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

static cl_int CL_API_CALL set_default_queue(cl_context c, cl_device_id d, cl_command_queue q)
{
    return of(c, CONTEXT) && of(d, DEVICE) && of(q, QUEUE) ? CL_SUCCESS : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL both_timers(cl_device_id d, cl_ulong *device, cl_ulong *host)
{
    if (!of(d, DEVICE) || !device || !host)
        return CL_INVALID_VALUE;
    *device = *host = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL host_timer(cl_device_id d, cl_ulong *host)
{
    if (!of(d, DEVICE) || !host)
        return CL_INVALID_VALUE;
    *host = 1;
    return CL_SUCCESS;
}

/* ---- memory objects */

static struct thing *new_mem(struct thing *context, cl_mem_flags flags, size_t bytes,
                             const void *host, cl_int *result)
{
    const cl_mem_flags from_host = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    if ((flags & CL_MEM_USE_HOST_PTR) && (flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)))
        return fail(result, CL_INVALID_VALUE);
    if (!bytes || bytes > MAX_MEMORY)
        return fail(result, CL_INVALID_BUFFER_SIZE);
    if (!host != !(flags & from_host))
        return fail(result, CL_INVALID_HOST_PTR);
    struct thing *m = strict_new(MEM, context);
    m->bytes = bytes;
    m->type = CL_MEM_OBJECT_BUFFER;
    if (host)
        read_all(host, bytes);
    return made(result, m);
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host,
                                        cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    return context ? (cl_mem)new_mem(context, flags, bytes, host, result)
                   : fail(result, CL_INVALID_CONTEXT);
}

static cl_mem CL_API_CALL create_buffer_with(cl_context c, const cl_mem_properties *properties,
                                             cl_mem_flags flags, size_t bytes, void *host,
                                             cl_int *result)
{
    walk_pairs(properties);
    return create_buffer(c, flags, bytes, host, result);
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem b, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *info,
                                            cl_int *result)
{
    struct thing *buffer = of(b, MEM);
    const cl_buffer_region *r = info;
    (void)flags;
    if (!buffer || !r || type != CL_BUFFER_CREATE_TYPE_REGION)
        return fail(result, CL_INVALID_VALUE);
    read_all(r, sizeof *r);
    if (!r->size || r->origin > buffer->bytes || r->size > buffer->bytes - r->origin)
        return fail(result, CL_INVALID_VALUE);
    struct thing *m = strict_new(MEM, buffer);
    m->bytes = r->size;
    m->type = CL_MEM_OBJECT_BUFFER;
    return made(result, m);
}

static cl_mem CL_API_CALL create_image(cl_context c, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc,
                                       void *host, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !format || !desc)
        return fail(result, CL_INVALID_IMAGE_DESCRIPTOR);
    size_t element = gn_pixel_bytes(format);
    if (!element)
        return fail(result, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    struct thing *source = of(desc->mem_object, MEM);
    size_t width = desc->image_width, height = 1, depth = 1;
    switch (desc->image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        break;
    case CL_MEM_OBJECT_IMAGE2D:
        height = desc->image_height;
        break;
    case CL_MEM_OBJECT_IMAGE3D:
        height = desc->image_height;
        depth = desc->image_depth;
        break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        height = desc->image_array_size;
        break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        height = desc->image_height;
        depth = desc->image_array_size;
        break;
    default:
        return fail(result, CL_INVALID_IMAGE_DESCRIPTOR);
    }
    if (!width || !height || !depth || width > 4096 || height > 4096 || depth > 4096)
        return fail(result, CL_INVALID_IMAGE_SIZE);
    if (source && host)
        return fail(result, CL_INVALID_IMAGE_DESCRIPTOR);
    size_t row = desc->image_row_pitch ? desc->image_row_pitch : width * element;
    bool lines = desc->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t slice = desc->image_slice_pitch ? desc->image_slice_pitch : lines ? row : row * height;
    if (row < width * element || row > MAX_MEMORY || row % element || slice > MAX_MEMORY ||
        (!host && desc->image_row_pitch && !source))
        return fail(result, CL_INVALID_IMAGE_DESCRIPTOR);
    /* As the specification counts what host_ptr must hold. */
    size_t bytes = desc->image_type == CL_MEM_OBJECT_IMAGE1D ||
                           desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER
                       ? row
                   : desc->image_type == CL_MEM_OBJECT_IMAGE2D ? row * height
                   : lines                                     ? slice * height
                                                               : slice * depth;
    struct thing *m = new_mem(source ? source : context, flags, bytes, host, result);
    if (!m)
        return NULL;
    m->type = desc->image_type;
    m->element = element;
    m->width = width;
    m->height = height;
    m->depth = depth;
    return (cl_mem)m;
}

static cl_mem CL_API_CALL create_image_with(cl_context c, const cl_mem_properties *properties,
                                            cl_mem_flags flags, const cl_image_format *format,
                                            const cl_image_desc *desc, void *host, cl_int *result)
{
    walk_pairs(properties);
    return create_image(c, flags, format, desc, host, result);
}

static cl_mem CL_API_CALL create_pipe(cl_context c, cl_mem_flags flags, cl_uint packet, cl_uint n,
                                      const cl_pipe_properties *properties, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    walk_pairs((const uint64_t *)properties);
    if (!context)
        return fail(result, CL_INVALID_CONTEXT);
    struct thing *m =
        new_mem(context, flags & ~(cl_mem_flags)(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR),
                (uint64_t)packet * n, NULL, result);
    if (m)
        m->type = CL_MEM_OBJECT_PIPE;
    return (cl_mem)m;
}

static cl_int CL_API_CALL image_formats(cl_context c, cl_mem_flags flags, cl_mem_object_type type,
                                        cl_uint n, cl_image_format *formats, cl_uint *n_ret)
{
    (void)flags, (void)type;
    if (!of(c, CONTEXT) || (formats && !n))
        return CL_INVALID_VALUE;
    if (formats)
        write_all(formats, n * sizeof *formats);
    if (n_ret)
        *n_ret = 7;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL mem_info(cl_mem h, cl_mem_info what, size_t size, void *value,
                                   size_t *size_ret)
{
    struct thing *m = of(h, MEM), *whole = NULL;
    if (!m)
        return CL_INVALID_MEM_OBJECT;
    if (m->parent && m->parent->kind == MEM)
        whole = m->parent;
    switch (what) {
    case CL_MEM_TYPE:
        return answer_number(m->type, sizeof m->type, size, value, size_ret);
    case CL_MEM_SIZE:
        return answer_number(m->bytes, sizeof(size_t), size, value, size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return answer(&whole, sizeof whole, size, value, size_ret);
    default:
        return answer_number(0, sizeof(void *), size, value, size_ret);
    }
}

static cl_int CL_API_CALL image_info(cl_mem h, cl_image_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    struct thing *m = of(h, MEM);
    (void)what;
    return m && m->element ? answer_number(m->element, sizeof(size_t), size, value, size_ret)
                           : CL_INVALID_MEM_OBJECT;
}

static cl_int CL_API_CALL release_mem(cl_mem m)
{
    return strict_release(m, MEM, CL_INVALID_MEM_OBJECT);
}

static cl_sampler CL_API_CALL create_sampler(cl_context c, cl_bool normalized, cl_addressing_mode a,
                                             cl_filter_mode f, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    (void)normalized, (void)a, (void)f;
    return context ? made(result, strict_new(SAMPLER, context)) : fail(result, CL_INVALID_CONTEXT);
}

static cl_sampler CL_API_CALL create_sampler_with(cl_context c,
                                                  const cl_sampler_properties *properties,
                                                  cl_int *result)
{
    walk_pairs(properties);
    return create_sampler(c, 0, 0, 0, result);
}

static cl_int CL_API_CALL sampler_info(cl_sampler s, cl_sampler_info what, size_t size, void *value,
                                       size_t *size_ret)
{
    (void)what;
    return of(s, SAMPLER) ? answer_number(1, 4, size, value, size_ret) : CL_INVALID_SAMPLER;
}

static cl_int CL_API_CALL release_sampler(cl_sampler s)
{
    return strict_release(s, SAMPLER, CL_INVALID_SAMPLER);
}

cl_platform_id strict_platform(void)
{
    return (cl_platform_id)&platform;
}

cl_device_id strict_device(unsigned i)
{
    return (cl_device_id)&devices[i];
}

static void fill_table(void)
{
    strict_driver.clGetPlatformInfo = platform_info;
    strict_driver.clGetDeviceIDs = device_ids;
    strict_driver.clGetDeviceInfo = device_info;
    strict_driver.clCreateSubDevices = sub_devices;
    strict_driver.clReleaseDevice = release_device;
    strict_driver.clCreateContext = create_context;
    strict_driver.clReleaseContext = release_context;
    strict_driver.clGetContextInfo = context_info;
    strict_driver.clCreateCommandQueue = create_queue;
    strict_driver.clCreateCommandQueueWithProperties = create_queue_with;
    strict_driver.clGetCommandQueueInfo = queue_info;
    strict_driver.clReleaseCommandQueue = release_queue;
    strict_driver.clSetCommandQueueProperty = set_queue_property;
    strict_driver.clSetDefaultDeviceCommandQueue = set_default_queue;
    strict_driver.clGetDeviceAndHostTimer = both_timers;
    strict_driver.clGetHostTimer = host_timer;
    strict_driver.clCreateBuffer = create_buffer;
    strict_driver.clCreateBufferWithProperties = create_buffer_with;
    strict_driver.clCreateSubBuffer = create_sub_buffer;
    strict_driver.clCreateImage = create_image;
    strict_driver.clCreateImageWithProperties = create_image_with;
    strict_driver.clCreatePipe = create_pipe;
    strict_driver.clGetSupportedImageFormats = image_formats;
    strict_driver.clGetMemObjectInfo = mem_info;
    strict_driver.clGetImageInfo = image_info;
    strict_driver.clReleaseMemObject = release_mem;
    strict_driver.clCreateSampler = create_sampler;
    strict_driver.clCreateSamplerWithProperties = create_sampler_with;
    strict_driver.clGetSamplerInfo = sampler_info;
    strict_driver.clReleaseSampler = release_sampler;
    strict_programs(&strict_driver);
    strict_commands(&strict_driver);
    strict_recorded(&strict_driver);
}

void strict_driver_start(bool later)
{
    fill_table();
    platform = (struct thing){
        .dispatch = &strict_driver, .magic = MAGIC, .kind = PLATFORM, .n_refs = 1u << 30};
    for (int i = 0; i < STRICT_N_DEVICES; i++)
        devices[i] = (struct thing){
            .dispatch = &strict_driver, .magic = MAGIC, .kind = DEVICE, .n_refs = 1u << 30};
    n_left = 0;
    strict_commands_start(later);
}

unsigned strict_driver_n_left(void)
{
    return n_left;
}
