/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of vgpu_fuzz.c: see strict_driver.h. Long because a driver's table is. */
#include "strict_driver.h"

#include "fuzz.h"
#include "opencl_pixel.h"

enum kind { PLATFORM = 1, DEVICE, CONTEXT, QUEUE, MEM, SAMPLER, PROGRAM, KERNEL, EVENT };

#define MAGIC      0x57121c7du
#define N_ARGS     6
#define ARG_BYTES  8 /* of arguments 0 to 4; argument 5 is a struct */
#define BIG_ARG    256
#define MAX_MEMORY (1u << 20)

struct thing {
    const void *dispatch;
    uint32_t magic;
    enum kind kind;
    unsigned n_refs;
    struct thing *parent; /* holds a reference */
    struct thing *device; /* a queue's */
    cl_command_queue_properties properties;
    cl_mem_object_type type;
    size_t bytes, element, width, height, depth;
    unsigned char *memory;
    int status; /* an event's */
    void(CL_CALLBACK *told)(cl_event, cl_int, void *);
    void *told_arg;
    struct thing *next; /* in the list of outstanding events */
};

static struct thing platform, devices[STRICT_N_DEVICES];
static struct thing *outstanding;
static unsigned n_left;
static bool commands_wait;
static volatile unsigned char sink;

/* Reads all of it, as a sanitizer and the memory's guards see it. */
static void read_all(const void *from, size_t n)
{
    unsigned char block[256];
    for (size_t i = 0; i < n; i += sizeof block) {
        memcpy(block, (const unsigned char *)from + i, n - i < sizeof block ? n - i : sizeof block);
        sink ^= block[0];
    }
}

static void write_all(void *to, size_t n)
{
    memset(to, 0x5d, n);
}

/* Pairs that a zero ends. */
static void walk_pairs(const uint64_t *list)
{
    while (list && list[0]) {
        read_all(list, 16);
        list += 2;
    }
}

static struct thing *of(const void *handle, enum kind kind)
{
    struct thing *t = (struct thing *)(uintptr_t)handle;
    if (!t)
        return NULL;
    FUZZ_CHECK(t->magic == MAGIC && t->kind == kind && t->n_refs);
    return t;
}

static void *new_thing(enum kind kind, struct thing *parent)
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

static void drop(struct thing *t)
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

static cl_int release(const void *handle, enum kind kind, cl_int error)
{
    struct thing *t = of(handle, kind);
    if (!t)
        return error;
    drop(t);
    return CL_SUCCESS;
}

static cl_int answer(const void *from, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value) {
        if (size < n)
            return CL_INVALID_VALUE;
        write_all(value, size);
        memcpy(value, from, n);
    }
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

static cl_int answer_number(uint64_t n, size_t bytes, size_t size, void *value, size_t *size_ret)
{
    return answer(&n, bytes, size, value, size_ret);
}

static void *fail(cl_int *result, cl_int error)
{
    if (result)
        *result = error;
    return NULL;
}

static void *made(cl_int *result, void *t)
{
    if (result)
        *result = CL_SUCCESS;
    return t;
}

/* ---- platform, devices, contexts, queues */

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info what, size_t size, void *value, size_t *size_ret)
{
    (void)what;
    return of(p, PLATFORM) ? answer("strict", 7, size, value, size_ret) : CL_INVALID_PLATFORM;
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *n_ret)
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

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value, size_t *size_ret)
{
    struct thing *t = of(d, DEVICE);
    if (!t)
        return CL_INVALID_DEVICE;
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer_number(CL_DEVICE_TYPE_CPU, sizeof(cl_device_type), size, value, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
        return answer_number(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER, sizeof(cl_bitfield), size, value,
                             size_ret);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer_number(MAX_MEMORY, sizeof(cl_ulong), size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        return answer(&t->parent, sizeof t->parent, size, value, size_ret);
    default:
        return answer("a device", 9, size, value, size_ret);
    }
}

static cl_int CL_API_CALL sub_devices(cl_device_id d, const cl_device_partition_property *properties, cl_uint n, cl_device_id *ids,
                                      cl_uint *n_ret)
{
    struct thing *t = of(d, DEVICE);
    cl_uint made_here = 0;
    if (!t)
        return CL_INVALID_DEVICE;
    if (!properties)
        return CL_INVALID_VALUE;
    if (properties[0] == CL_DEVICE_PARTITION_BY_COUNTS) {
        for (const cl_device_partition_property *p = properties + 1; *p != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; p++)
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
        ids[i] = new_thing(DEVICE, t);
    if (n_ret)
        *n_ret = made_here;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_device(cl_device_id d)
{
    /* Root devices are not counted. */
    return d == strict_device(0) || d == strict_device(1) ? CL_SUCCESS : release(d, DEVICE, CL_INVALID_DEVICE);
}

static bool devices_good(cl_uint n, const cl_device_id *ids)
{
    for (cl_uint i = 0; i < n; i++)
        if (!ids || !of(ids[i], DEVICE))
            return false;
    return n || !ids;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *arg,
                                             cl_int *result)
{
    walk_pairs((const uint64_t *)properties);
    if (!n || !devices_good(n, ids))
        return fail(result, CL_INVALID_DEVICE);
    if (notify)
        notify("a word", NULL, 0, arg);
    return made(result, new_thing(CONTEXT, NULL));
}

static cl_int CL_API_CALL release_context(cl_context c)
{
    return release(c, CONTEXT, CL_INVALID_CONTEXT);
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info what, size_t size, void *value, size_t *size_ret)
{
    cl_device_id ids[2] = {strict_device(0), strict_device(1)};
    (void)what;
    return of(c, CONTEXT) ? answer(ids, sizeof ids, size, value, size_ret) : CL_INVALID_CONTEXT;
}

static cl_command_queue CL_API_CALL create_queue(cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *result)
{
    struct thing *context = of(c, CONTEXT), *device = of(d, DEVICE);
    if (!context || !device)
        return fail(result, context ? CL_INVALID_DEVICE : CL_INVALID_CONTEXT);
    struct thing *q = new_thing(QUEUE, context);
    q->device = device;
    q->properties = properties;
    return made(result, q);
}

static cl_command_queue CL_API_CALL create_queue_with(cl_context c, cl_device_id d, const cl_queue_properties *properties, cl_int *result)
{
    walk_pairs(properties);
    return create_queue(c, d, properties && properties[0] == CL_QUEUE_PROPERTIES ? properties[1] : 0, result);
}

static cl_int CL_API_CALL queue_info(cl_command_queue h, cl_command_queue_info what, size_t size, void *value, size_t *size_ret)
{
    struct thing *q = of(h, QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    if (what == CL_QUEUE_DEVICE)
        return answer(&q->device, sizeof q->device, size, value, size_ret);
    return answer_number(q->properties, sizeof q->properties, size, value, size_ret);
}

static cl_int CL_API_CALL release_queue(cl_command_queue q)
{
    return release(q, QUEUE, CL_INVALID_COMMAND_QUEUE);
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
    return of(q, QUEUE) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

static cl_int CL_API_CALL set_queue_property(cl_command_queue q, cl_command_queue_properties p, cl_bool on,
                                             cl_command_queue_properties *old)
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

static struct thing *new_mem(struct thing *context, cl_mem_flags flags, size_t bytes, const void *host, cl_int *result)
{
    const cl_mem_flags from_host = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    if ((flags & CL_MEM_USE_HOST_PTR) && (flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)))
        return fail(result, CL_INVALID_VALUE);
    if (!bytes || bytes > MAX_MEMORY)
        return fail(result, CL_INVALID_BUFFER_SIZE);
    if (!host != !(flags & from_host))
        return fail(result, CL_INVALID_HOST_PTR);
    struct thing *m = new_thing(MEM, context);
    m->bytes = bytes;
    m->type = CL_MEM_OBJECT_BUFFER;
    if (host)
        read_all(host, bytes);
    return made(result, m);
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    return context ? (cl_mem)new_mem(context, flags, bytes, host, result) : fail(result, CL_INVALID_CONTEXT);
}

static cl_mem CL_API_CALL create_buffer_with(cl_context c, const cl_mem_properties *properties, cl_mem_flags flags, size_t bytes,
                                             void *host, cl_int *result)
{
    walk_pairs(properties);
    return create_buffer(c, flags, bytes, host, result);
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem b, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *result)
{
    struct thing *buffer = of(b, MEM);
    const cl_buffer_region *r = info;
    (void)flags;
    if (!buffer || !r || type != CL_BUFFER_CREATE_TYPE_REGION)
        return fail(result, CL_INVALID_VALUE);
    read_all(r, sizeof *r);
    if (!r->size || r->origin > buffer->bytes || r->size > buffer->bytes - r->origin)
        return fail(result, CL_INVALID_VALUE);
    struct thing *m = new_thing(MEM, buffer);
    m->bytes = r->size;
    m->type = CL_MEM_OBJECT_BUFFER;
    return made(result, m);
}

static cl_mem CL_API_CALL create_image(cl_context c, cl_mem_flags flags, const cl_image_format *format, const cl_image_desc *desc,
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
    if (row < width * element || row > MAX_MEMORY || row % element || slice > MAX_MEMORY || (!host && desc->image_row_pitch && !source))
        return fail(result, CL_INVALID_IMAGE_DESCRIPTOR);
    /* As the specification counts what host_ptr must hold. */
    size_t bytes = desc->image_type == CL_MEM_OBJECT_IMAGE1D || desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER ? row
                   : desc->image_type == CL_MEM_OBJECT_IMAGE2D                                                   ? row * height
                   : lines                                                                                       ? slice * height
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

static cl_mem CL_API_CALL create_image_with(cl_context c, const cl_mem_properties *properties, cl_mem_flags flags,
                                            const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *result)
{
    walk_pairs(properties);
    return create_image(c, flags, format, desc, host, result);
}

static cl_mem CL_API_CALL create_pipe(cl_context c, cl_mem_flags flags, cl_uint packet, cl_uint n, const cl_pipe_properties *properties,
                                      cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    walk_pairs((const uint64_t *)properties);
    if (!context)
        return fail(result, CL_INVALID_CONTEXT);
    struct thing *m =
        new_mem(context, flags & ~(cl_mem_flags)(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR), (uint64_t)packet * n, NULL, result);
    if (m)
        m->type = CL_MEM_OBJECT_PIPE;
    return (cl_mem)m;
}

static cl_int CL_API_CALL image_formats(cl_context c, cl_mem_flags flags, cl_mem_object_type type, cl_uint n, cl_image_format *formats,
                                        cl_uint *n_ret)
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

static cl_int CL_API_CALL mem_info(cl_mem h, cl_mem_info what, size_t size, void *value, size_t *size_ret)
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

static cl_int CL_API_CALL image_info(cl_mem h, cl_image_info what, size_t size, void *value, size_t *size_ret)
{
    struct thing *m = of(h, MEM);
    (void)what;
    return m && m->element ? answer_number(m->element, sizeof(size_t), size, value, size_ret) : CL_INVALID_MEM_OBJECT;
}

static cl_int CL_API_CALL release_mem(cl_mem m)
{
    return release(m, MEM, CL_INVALID_MEM_OBJECT);
}

static cl_sampler CL_API_CALL create_sampler(cl_context c, cl_bool normalized, cl_addressing_mode a, cl_filter_mode f, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    (void)normalized, (void)a, (void)f;
    return context ? made(result, new_thing(SAMPLER, context)) : fail(result, CL_INVALID_CONTEXT);
}

static cl_sampler CL_API_CALL create_sampler_with(cl_context c, const cl_sampler_properties *properties, cl_int *result)
{
    walk_pairs(properties);
    return create_sampler(c, 0, 0, 0, result);
}

static cl_int CL_API_CALL sampler_info(cl_sampler s, cl_sampler_info what, size_t size, void *value, size_t *size_ret)
{
    (void)what;
    return of(s, SAMPLER) ? answer_number(1, 4, size, value, size_ret) : CL_INVALID_SAMPLER;
}

static cl_int CL_API_CALL release_sampler(cl_sampler s)
{
    return release(s, SAMPLER, CL_INVALID_SAMPLER);
}

/* ---- programs and kernels */

static cl_program CL_API_CALL program_with_source(cl_context c, cl_uint n, const char **strings, const size_t *lengths, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !n || !strings)
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n; i++)
        read_all(strings[i], lengths && lengths[i] ? lengths[i] : strlen(strings[i]));
    return made(result, new_thing(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_binary(cl_context c, cl_uint n, const cl_device_id *ids, const size_t *lengths,
                                                  const unsigned char **binaries, cl_int *status, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !n || !ids || !lengths || !binaries || !devices_good(n, ids))
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n; i++) {
        if (!lengths[i] || !binaries[i])
            return fail(result, CL_INVALID_VALUE);
        read_all(binaries[i], lengths[i]);
        if (status)
            status[i] = CL_SUCCESS;
    }
    return made(result, new_thing(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_builtin(cl_context c, cl_uint n, const cl_device_id *ids, const char *names, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !names || !devices_good(n, ids))
        return fail(result, CL_INVALID_VALUE);
    read_all(names, strlen(names) + 1);
    return made(result, new_thing(PROGRAM, context));
}

static cl_program CL_API_CALL program_with_il(cl_context c, const void *il, size_t n, cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    if (!context || !il || !n)
        return fail(result, CL_INVALID_VALUE);
    read_all(il, n);
    return made(result, new_thing(PROGRAM, context));
}

static cl_int CL_API_CALL build(cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
                                void(CL_CALLBACK *notify)(cl_program, void *), void *arg)
{
    FUZZ_CHECK(!notify && !arg);
    if (options)
        read_all(options, strlen(options) + 1);
    return of(p, PROGRAM) && devices_good(n, ids) ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

static cl_int CL_API_CALL compile(cl_program p, cl_uint n, const cl_device_id *ids, const char *options, cl_uint n_headers,
                                  const cl_program *headers, const char **names, void(CL_CALLBACK *notify)(cl_program, void *), void *arg)
{
    if (!n_headers != !headers || !n_headers != !names)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n_headers; i++) {
        if (!of(headers[i], PROGRAM))
            return CL_INVALID_PROGRAM;
        read_all(names[i], strlen(names[i]) + 1);
    }
    return build(p, n, ids, options, notify, arg);
}

static cl_program CL_API_CALL link_program(cl_context c, cl_uint n, const cl_device_id *ids, const char *options, cl_uint n_programs,
                                           const cl_program *programs, void(CL_CALLBACK *notify)(cl_program, void *), void *arg,
                                           cl_int *result)
{
    struct thing *context = of(c, CONTEXT);
    (void)notify, (void)arg;
    if (options)
        read_all(options, strlen(options) + 1);
    if (!context || !devices_good(n, ids) || !n_programs || !programs)
        return fail(result, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < n_programs; i++)
        if (!of(programs[i], PROGRAM))
            return fail(result, CL_INVALID_PROGRAM);
    return made(result, new_thing(PROGRAM, context));
}

static cl_int CL_API_CALL unload_compiler(cl_platform_id p)
{
    return of(p, PLATFORM) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

static cl_int CL_API_CALL program_release_callback(cl_program p, void(CL_CALLBACK *told)(cl_program, void *), void *arg)
{
    (void)arg;
    return of(p, PROGRAM) && told ? CL_SUCCESS : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL specialization(cl_program p, cl_uint id, size_t size, const void *value)
{
    (void)id;
    if (!of(p, PROGRAM) || !value)
        return CL_INVALID_VALUE;
    read_all(value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL program_info(cl_program p, cl_program_info what, size_t size, void *value, size_t *size_ret)
{
    static const size_t sizes[2] = {100, 50};
    if (!of(p, PROGRAM))
        return CL_INVALID_PROGRAM;
    if (what == CL_PROGRAM_NUM_DEVICES)
        return answer_number(2, sizeof(cl_uint), size, value, size_ret);
    if (what == CL_PROGRAM_BINARY_SIZES)
        return answer(sizes, sizeof sizes, size, value, size_ret);
    if (what == CL_PROGRAM_BINARIES) {
        unsigned char **into = value;
        if (into && size < sizeof sizes)
            return CL_INVALID_VALUE;
        for (int i = 0; into && i < 2; i++)
            if (into[i])
                write_all(into[i], sizes[i]);
        if (size_ret)
            *size_ret = sizeof sizes;
        return CL_SUCCESS;
    }
    return answer("text", 5, size, value, size_ret);
}

static cl_int CL_API_CALL build_info(cl_program p, cl_device_id d, cl_program_build_info what, size_t size, void *value, size_t *size_ret)
{
    (void)what;
    return of(p, PROGRAM) && of(d, DEVICE) ? answer("a log", 6, size, value, size_ret) : CL_INVALID_PROGRAM;
}

static cl_int CL_API_CALL release_program(cl_program p)
{
    return release(p, PROGRAM, CL_INVALID_PROGRAM);
}

static cl_kernel CL_API_CALL create_kernel(cl_program p, const char *name, cl_int *result)
{
    struct thing *program = of(p, PROGRAM);
    if (!program || !name)
        return fail(result, CL_INVALID_VALUE);
    read_all(name, strlen(name) + 1);
    return made(result, new_thing(KERNEL, program));
}

static cl_int CL_API_CALL create_kernels(cl_program p, cl_uint n, cl_kernel *kernels, cl_uint *n_ret)
{
    struct thing *program = of(p, PROGRAM);
    if (!program || (kernels && n < 3))
        return CL_INVALID_VALUE;
    for (int i = 0; kernels && i < 3; i++)
        kernels[i] = new_thing(KERNEL, program);
    if (n_ret)
        *n_ret = 3;
    return CL_SUCCESS;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel k, cl_int *result)
{
    struct thing *kernel = of(k, KERNEL);
    return kernel ? made(result, new_thing(KERNEL, kernel->parent)) : fail(result, CL_INVALID_KERNEL);
}

static cl_int CL_API_CALL set_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
    if (!of(k, KERNEL))
        return CL_INVALID_KERNEL;
    if (index >= N_ARGS)
        return CL_INVALID_ARG_INDEX;
    if (index == 1) /* local memory */
        return value || !size ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
    if (!value)
        return CL_INVALID_ARG_VALUE;
    if (size != (index == N_ARGS - 1 ? BIG_ARG : ARG_BYTES))
        return CL_INVALID_ARG_SIZE;
    read_all(value, size);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_arg_svm(cl_kernel k, cl_uint index, const void *value)
{
    (void)value;
    return of(k, KERNEL) && index < N_ARGS ? CL_SUCCESS : CL_INVALID_ARG_INDEX;
}

static cl_int CL_API_CALL exec_info(cl_kernel k, cl_kernel_exec_info what, size_t size, const void *value)
{
    if (!of(k, KERNEL) || !value || !size)
        return CL_INVALID_VALUE;
    read_all(value, size);
    for (size_t i = 0; what == CL_KERNEL_EXEC_INFO_SVM_PTRS && i < size / sizeof(void *); i++) {
        const void *p = ((void *const *)value)[i];
        if (p)
            read_all(p, 1);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel k, cl_kernel_info what, size_t size, void *value, size_t *size_ret)
{
    if (!of(k, KERNEL))
        return CL_INVALID_KERNEL;
    if (what == CL_KERNEL_NUM_ARGS)
        return answer_number(N_ARGS, sizeof(cl_uint), size, value, size_ret);
    return answer("kernel", 7, size, value, size_ret);
}

static cl_int CL_API_CALL kernel_arg_info(cl_kernel k, cl_uint index, cl_kernel_arg_info what, size_t size, void *value, size_t *size_ret)
{
    static const char *const types[N_ARGS] = {"float*", "float*", "image2d_t", "sampler_t", "queue_t", "struct"};
    if (!of(k, KERNEL) || index >= N_ARGS)
        return CL_INVALID_ARG_INDEX;
    switch (what) {
    case CL_KERNEL_ARG_TYPE_NAME:
        return answer(types[index], strlen(types[index]) + 1, size, value, size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        return answer_number(0, sizeof(cl_bitfield), size, value, size_ret);
    default:
        return answer_number(index ? CL_KERNEL_ARG_ADDRESS_LOCAL : CL_KERNEL_ARG_ADDRESS_GLOBAL, 4, size, value, size_ret);
    }
}

static cl_int CL_API_CALL work_group_info(cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t size, void *value,
                                          size_t *size_ret)
{
    (void)what;
    return of(k, KERNEL) && (!d || of(d, DEVICE)) ? answer_number(64, 8, size, value, size_ret) : CL_INVALID_KERNEL;
}

static cl_int CL_API_CALL sub_group_info(cl_kernel k, cl_device_id d, cl_kernel_sub_group_info what, size_t in_size, const void *in,
                                         size_t size, void *value, size_t *size_ret)
{
    if (in)
        read_all(in, in_size);
    return work_group_info(k, d, what, size, value, size_ret);
}

static cl_int CL_API_CALL release_kernel(cl_kernel k)
{
    return release(k, KERNEL, CL_INVALID_KERNEL);
}

/* ---- events and commands */

static void tell(struct thing *e)
{
    void(CL_CALLBACK * told)(cl_event, cl_int, void *) = e->told;
    e->told = NULL;
    if (told)
        told((cl_event)e, e->status, e->told_arg);
}

bool strict_driver_end(unsigned which, int status)
{
    struct thing **at = &outstanding;
    unsigned n = 0;
    for (struct thing *e = outstanding; e; e = e->next)
        n++;
    if (!n)
        return false;
    for (which %= n; which; which--)
        at = &(*at)->next;
    struct thing *e = *at;
    *at = e->next;
    e->status = status;
    tell(e);
    drop(e);
    return true;
}

/* A command has been taken: its wait list is looked at, its event made. */
static cl_int queued(cl_command_queue h, cl_uint n, const cl_event *waits, cl_event *event)
{
    struct thing *q = of(h, QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    if (!n != !waits)
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < n; i++)
        if (!of(waits[i], EVENT))
            return CL_INVALID_EVENT_WAIT_LIST;
    if (!event)
        return CL_SUCCESS;
    struct thing *e = new_thing(EVENT, q);
    if (commands_wait) {
        e->status = CL_SUBMITTED;
        e->n_refs++;
        e->next = outstanding;
        outstanding = e;
    }
    *event = (cl_event)e;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
    while (strict_driver_end(0, CL_COMPLETE))
        continue;
    return flush(q);
}

static cl_int CL_API_CALL event_callback(cl_event h, cl_int type, void(CL_CALLBACK *told)(cl_event, cl_int, void *), void *arg)
{
    struct thing *e = of(h, EVENT);
    FUZZ_CHECK(e && type == CL_COMPLETE && told && !e->told);
    e->told = told;
    e->told_arg = arg;
    if (e->status <= CL_COMPLETE)
        tell(e);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event h, cl_event_info what, size_t size, void *value, size_t *size_ret)
{
    struct thing *e = of(h, EVENT);
    FUZZ_CHECK(e && what == CL_EVENT_COMMAND_EXECUTION_STATUS);
    return answer(&e->status, sizeof e->status, size, value, size_ret);
}

static cl_int CL_API_CALL profiling_info(cl_event h, cl_profiling_info what, size_t size, void *value, size_t *size_ret)
{
    FUZZ_CHECK(of(h, EVENT));
    return answer_number(what, 8, size, value, size_ret);
}

static cl_int CL_API_CALL retain_event(cl_event e)
{
    of(e, EVENT)->n_refs++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event e)
{
    return release(e, EVENT, CL_INVALID_EVENT);
}

static bool inside(struct thing *buffer, size_t offset, size_t n)
{
    return buffer && buffer->type == CL_MEM_OBJECT_BUFFER && n && offset <= buffer->bytes && n <= buffer->bytes - offset;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem b, cl_bool blocking, size_t offset, size_t n, void *to, cl_uint n_waits,
                                      const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!inside(of(b, MEM), offset, n) || !to)
        return CL_INVALID_VALUE;
    cl_int result = queued(q, n_waits, waits, event);
    if (!result)
        write_all(to, n);
    return result;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem b, cl_bool blocking, size_t offset, size_t n, const void *from,
                                       cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!inside(of(b, MEM), offset, n) || !from)
        return CL_INVALID_VALUE;
    read_all(from, n);
    return queued(q, n_waits, waits, event);
}

/* The bytes that a rectangle covers, counted from its origin's own; false: no good rectangle. */
static bool rectangle(const size_t *origin, const size_t *region, size_t row, size_t slice, size_t *ret_from, size_t *ret_bytes)
{
    const size_t big = 1u << 20;
    if (!origin || !region)
        return false;
    read_all(origin, 24);
    read_all(region, 24);
    for (int i = 0; i < 3; i++)
        if (!region[i] || region[i] > big || origin[i] > big)
            return false;
    row = row ? row : region[0];
    if (row < region[0] || row > big)
        return false;
    slice = slice ? slice : row * region[1];
    if (slice < row * region[1] || slice % row || slice > big * 64)
        return false;
    *ret_from = origin[2] * slice + origin[1] * row + origin[0];
    *ret_bytes = (region[2] - 1) * slice + (region[1] - 1) * row + region[0];
    return true;
}

static cl_int rect(cl_command_queue q, cl_mem b, const size_t *buffer_origin, const size_t *host_origin, const size_t *region, size_t b_row,
                   size_t b_slice, size_t h_row, size_t h_slice, void *to, const void *from, cl_uint n_waits, const cl_event *waits,
                   cl_event *event)
{
    size_t b_from, b_bytes, h_from, h_bytes;
    if (!rectangle(buffer_origin, region, b_row, b_slice, &b_from, &b_bytes) ||
        !rectangle(host_origin, region, h_row, h_slice, &h_from, &h_bytes) || !inside(of(b, MEM), b_from, b_bytes) || (!to && !from))
        return CL_INVALID_VALUE;
    cl_int result = queued(q, n_waits, waits, event);
    if (!result && to)
        write_all((char *)to + h_from, h_bytes);
    if (!result && from)
        read_all((const char *)from + h_from, h_bytes);
    return result;
}

static cl_int CL_API_CALL read_rect(cl_command_queue q, cl_mem b, cl_bool blocking, const size_t *buffer_origin, const size_t *host_origin,
                                    const size_t *region, size_t b_row, size_t b_slice, size_t h_row, size_t h_slice, void *to,
                                    cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    return rect(q, b, buffer_origin, host_origin, region, b_row, b_slice, h_row, h_slice, to, NULL, n_waits, waits, event);
}

static cl_int CL_API_CALL write_rect(cl_command_queue q, cl_mem b, cl_bool blocking, const size_t *buffer_origin, const size_t *host_origin,
                                     const size_t *region, size_t b_row, size_t b_slice, size_t h_row, size_t h_slice, const void *from,
                                     cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    return rect(q, b, buffer_origin, host_origin, region, b_row, b_slice, h_row, h_slice, NULL, from, n_waits, waits, event);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue q, cl_mem b, const void *pattern, size_t pattern_bytes, size_t offset, size_t n,
                                      cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    if (!pattern || !pattern_bytes || pattern_bytes > 128 || (pattern_bytes & (pattern_bytes - 1)) || !inside(of(b, MEM), offset, n))
        return CL_INVALID_VALUE;
    read_all(pattern, pattern_bytes);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue q, cl_mem a, cl_mem b, size_t from, size_t to, size_t n, cl_uint n_waits,
                                      const cl_event *waits, cl_event *event)
{
    return inside(of(a, MEM), from, n) && inside(of(b, MEM), to, n) ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL copy_rect(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from, const size_t *to, const size_t *region,
                                    size_t a_row, size_t a_slice, size_t b_row, size_t b_slice, cl_uint n_waits, const cl_event *waits,
                                    cl_event *event)
{
    size_t at, n;
    if (!rectangle(from, region, a_row, a_slice, &at, &n) || !inside(of(a, MEM), at, n) ||
        !rectangle(to, region, b_row, b_slice, &at, &n) || !inside(of(b, MEM), at, n))
        return CL_INVALID_VALUE;
    return queued(q, n_waits, waits, event);
}

static bool in_image(struct thing *m, const size_t *origin, const size_t *region)
{
    if (!m || !m->element || !origin || !region)
        return false;
    const size_t size[3] = {m->width, m->height, m->depth};
    read_all(origin, 24);
    read_all(region, 24);
    for (int i = 0; i < 3; i++)
        if (!region[i] || origin[i] > size[i] || region[i] > size[i] - origin[i])
            return false;
    return true;
}

/* Row by row, each where the pitches put it. */
static cl_int image_rows(struct thing *m, const size_t *region, size_t row, size_t slice, char *to, const char *from)
{
    bool lines = m->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t bytes = region[0] * m->element;
    if ((row && row < bytes) || row > MAX_MEMORY || slice > MAX_MEMORY)
        return CL_INVALID_VALUE;
    row = row ? row : bytes;
    if (slice && slice < (lines ? row : row * region[1]))
        return CL_INVALID_VALUE;
    if (lines)
        row = slice ? slice : row;
    slice = lines ? 0 : slice ? slice : row * region[1];
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++) {
            if (to)
                write_all(to + z * slice + y * row, bytes);
            else
                read_all(from + z * slice + y * row, bytes);
        }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_image(cl_command_queue q, cl_mem h, cl_bool blocking, const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(!blocking);
    if (!of(q, QUEUE) || !in_image(m, origin, region) || !to)
        return CL_INVALID_VALUE;
    cl_int result = image_rows(m, region, row, slice, to, NULL);
    return result ? result : queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL write_image(cl_command_queue q, cl_mem h, cl_bool blocking, const size_t *origin, const size_t *region,
                                      size_t row, size_t slice, const void *from, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(!blocking);
    if (!of(q, QUEUE) || !in_image(m, origin, region) || !from)
        return CL_INVALID_VALUE;
    cl_int result = image_rows(m, region, row, slice, NULL, from);
    return result ? result : queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL fill_image(cl_command_queue q, cl_mem h, const void *color, const size_t *origin, const size_t *region,
                                     cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    if (!color || !in_image(of(h, MEM), origin, region))
        return CL_INVALID_VALUE;
    read_all(color, 16);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL copy_image(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from, const size_t *to, const size_t *region,
                                     cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    return in_image(of(a, MEM), from, region) && in_image(of(b, MEM), to, region) ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL image_to_buffer(cl_command_queue q, cl_mem a, cl_mem b, const size_t *from, const size_t *region, size_t to,
                                          cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    return in_image(of(a, MEM), from, region) && inside(of(b, MEM), to, 1) ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL buffer_to_image(cl_command_queue q, cl_mem a, cl_mem b, size_t from, const size_t *to, const size_t *region,
                                          cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    return in_image(of(b, MEM), to, region) && inside(of(a, MEM), from, 1) ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
}

static void *CL_API_CALL map_buffer(cl_command_queue q, cl_mem b, cl_bool blocking, cl_map_flags flags, size_t offset, size_t n,
                                    cl_uint n_waits, const cl_event *waits, cl_event *event, cl_int *result)
{
    struct thing *m = of(b, MEM);
    (void)flags, (void)blocking;
    *result = inside(m, offset, n) ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
    if (*result)
        return NULL;
    if (!m->memory)
        m->memory = calloc(1, m->bytes);
    FUZZ_CHECK(m->memory);
    return m->memory + offset;
}

static void *CL_API_CALL map_image(cl_command_queue q, cl_mem h, cl_bool blocking, cl_map_flags flags, const size_t *origin,
                                   const size_t *region, size_t *row, size_t *slice, cl_uint n_waits, const cl_event *waits,
                                   cl_event *event, cl_int *result)
{
    struct thing *m = of(h, MEM);
    (void)flags, (void)blocking;
    *result = in_image(m, origin, region) && row ? queued(q, n_waits, waits, event) : CL_INVALID_VALUE;
    if (*result)
        return NULL;
    *row = 64;
    if (slice)
        *slice = 64;
    if (!m->memory)
        m->memory = calloc(1, m->bytes);
    return m->memory;
}

static cl_int CL_API_CALL unmap(cl_command_queue q, cl_mem h, void *at, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    struct thing *m = of(h, MEM);
    FUZZ_CHECK(m && m->memory && (unsigned char *)at >= m->memory && (unsigned char *)at < m->memory + m->bytes);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL migrate(cl_command_queue q, cl_uint n, const cl_mem *all, cl_mem_migration_flags flags, cl_uint n_waits,
                                  const cl_event *waits, cl_event *event)
{
    (void)flags;
    if (!n || !all)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n; i++)
        if (!of(all[i], MEM))
            return CL_INVALID_MEM_OBJECT;
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL launch(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset, const size_t *global,
                                 const size_t *local, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    if (!of(k, KERNEL) || dim < 1 || dim > 3 || !global)
        return CL_INVALID_WORK_DIMENSION;
    read_all(global, dim * sizeof *global);
    if (offset)
        read_all(offset, dim * sizeof *offset);
    if (local)
        read_all(local, dim * sizeof *local);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL task(cl_command_queue q, cl_kernel k, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    return of(k, KERNEL) ? queued(q, n_waits, waits, event) : CL_INVALID_KERNEL;
}

/* ---- shared virtual memory: addresses are the window's, which lies over what the test has mapped */

static void *CL_API_CALL svm_alloc(cl_context c, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    (void)flags, (void)alignment;
    return of(c, CONTEXT) && size && size <= MAX_MEMORY ? malloc(1) : NULL;
}

static void CL_API_CALL svm_free(cl_context c, void *p)
{
    FUZZ_CHECK(of(c, CONTEXT));
    free(p);
}

static cl_int CL_API_CALL svm_copy(cl_command_queue q, cl_bool blocking, void *to, const void *from, size_t n, cl_uint n_waits,
                                   const cl_event *waits, cl_event *event)
{
    FUZZ_CHECK(!blocking);
    if (!to || !from)
        return CL_INVALID_VALUE;
    read_all(from, n);
    write_all(to, n);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_fill(cl_command_queue q, void *to, const void *pattern, size_t pattern_bytes, size_t n, cl_uint n_waits,
                                   const cl_event *waits, cl_event *event)
{
    if (!pattern_bytes || pattern_bytes > 128 || n % pattern_bytes)
        return CL_INVALID_VALUE;
    read_all(pattern, pattern_bytes);
    for (size_t i = 0; i < n; i += pattern_bytes)
        memcpy((char *)to + i, pattern, pattern_bytes);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_map(cl_command_queue q, cl_bool blocking, cl_map_flags flags, void *at, size_t n, cl_uint n_waits,
                                  const cl_event *waits, cl_event *event)
{
    (void)flags;
    FUZZ_CHECK(!blocking);
    read_all(at, n);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue q, void *at, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    read_all(at, 1);
    return queued(q, n_waits, waits, event);
}

static cl_int CL_API_CALL svm_migrate(cl_command_queue q, cl_uint n, const void **at, const size_t *sizes, cl_mem_migration_flags flags,
                                      cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    (void)flags;
    if (!n || !at)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < n; i++)
        read_all(at[i], sizes && sizes[i] ? sizes[i] : 1);
    return queued(q, n_waits, waits, event);
}

const cl_icd_dispatch strict_driver = {
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = device_ids,
    .clGetDeviceInfo = device_info,
    .clCreateSubDevices = sub_devices,
    .clReleaseDevice = release_device,
    .clCreateContext = create_context,
    .clReleaseContext = release_context,
    .clGetContextInfo = context_info,
    .clCreateCommandQueue = create_queue,
    .clCreateCommandQueueWithProperties = create_queue_with,
    .clGetCommandQueueInfo = queue_info,
    .clReleaseCommandQueue = release_queue,
    .clSetCommandQueueProperty = set_queue_property,
    .clSetDefaultDeviceCommandQueue = set_default_queue,
    .clGetDeviceAndHostTimer = both_timers,
    .clGetHostTimer = host_timer,
    .clFlush = flush,
    .clFinish = finish,
    .clCreateBuffer = create_buffer,
    .clCreateBufferWithProperties = create_buffer_with,
    .clCreateSubBuffer = create_sub_buffer,
    .clCreateImage = create_image,
    .clCreateImageWithProperties = create_image_with,
    .clCreatePipe = create_pipe,
    .clGetSupportedImageFormats = image_formats,
    .clGetMemObjectInfo = mem_info,
    .clGetImageInfo = image_info,
    .clReleaseMemObject = release_mem,
    .clCreateSampler = create_sampler,
    .clCreateSamplerWithProperties = create_sampler_with,
    .clGetSamplerInfo = sampler_info,
    .clReleaseSampler = release_sampler,
    .clCreateProgramWithSource = program_with_source,
    .clCreateProgramWithBinary = program_with_binary,
    .clCreateProgramWithBuiltInKernels = program_with_builtin,
    .clCreateProgramWithIL = program_with_il,
    .clBuildProgram = build,
    .clCompileProgram = compile,
    .clLinkProgram = link_program,
    .clUnloadPlatformCompiler = unload_compiler,
    .clSetProgramReleaseCallback = program_release_callback,
    .clSetProgramSpecializationConstant = specialization,
    .clGetProgramInfo = program_info,
    .clGetProgramBuildInfo = build_info,
    .clReleaseProgram = release_program,
    .clCreateKernel = create_kernel,
    .clCreateKernelsInProgram = create_kernels,
    .clCloneKernel = clone_kernel,
    .clSetKernelArg = set_arg,
    .clSetKernelArgSVMPointer = set_arg_svm,
    .clSetKernelExecInfo = exec_info,
    .clGetKernelInfo = kernel_info,
    .clGetKernelArgInfo = kernel_arg_info,
    .clGetKernelWorkGroupInfo = work_group_info,
    .clGetKernelSubGroupInfo = sub_group_info,
    .clGetKernelSubGroupInfoKHR = sub_group_info,
    .clReleaseKernel = release_kernel,
    .clSetEventCallback = event_callback,
    .clGetEventInfo = event_info,
    .clGetEventProfilingInfo = profiling_info,
    .clRetainEvent = retain_event,
    .clReleaseEvent = release_event,
    .clEnqueueReadBuffer = read_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueReadBufferRect = read_rect,
    .clEnqueueWriteBufferRect = write_rect,
    .clEnqueueFillBuffer = fill_buffer,
    .clEnqueueCopyBuffer = copy_buffer,
    .clEnqueueCopyBufferRect = copy_rect,
    .clEnqueueReadImage = read_image,
    .clEnqueueWriteImage = write_image,
    .clEnqueueFillImage = fill_image,
    .clEnqueueCopyImage = copy_image,
    .clEnqueueCopyImageToBuffer = image_to_buffer,
    .clEnqueueCopyBufferToImage = buffer_to_image,
    .clEnqueueMapBuffer = map_buffer,
    .clEnqueueMapImage = map_image,
    .clEnqueueUnmapMemObject = unmap,
    .clEnqueueMigrateMemObjects = migrate,
    .clEnqueueNDRangeKernel = launch,
    .clEnqueueTask = task,
    .clEnqueueMarker = NULL, /* holes are allowed */
    .clEnqueueMarkerWithWaitList = queued,
    .clEnqueueBarrierWithWaitList = queued,
    .clSVMAlloc = svm_alloc,
    .clSVMFree = svm_free,
    .clEnqueueSVMMemcpy = svm_copy,
    .clEnqueueSVMMemFill = svm_fill,
    .clEnqueueSVMMap = svm_map,
    .clEnqueueSVMUnmap = svm_unmap,
    .clEnqueueSVMMigrateMem = svm_migrate,
};

cl_platform_id strict_platform(void)
{
    return (cl_platform_id)&platform;
}

cl_device_id strict_device(unsigned i)
{
    return (cl_device_id)&devices[i];
}

void strict_driver_start(bool later)
{
    platform = (struct thing){.dispatch = &strict_driver, .magic = MAGIC, .kind = PLATFORM, .n_refs = 1u << 30};
    for (int i = 0; i < STRICT_N_DEVICES; i++)
        devices[i] = (struct thing){.dispatch = &strict_driver, .magic = MAGIC, .kind = DEVICE, .n_refs = 1u << 30};
    outstanding = NULL;
    n_left = 0;
    commands_wait = later;
}

unsigned strict_driver_n_left(void)
{
    return n_left;
}
