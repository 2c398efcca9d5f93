/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every clGet*Info, asked in the ways in which programs ask, its answer written down by the type
 * that the specification gives it. Reference counts are looked at in a family of their own; here
 * only that there is one.
 */
#include "difftest.h"

#include <stdarg.h>

enum info_type {
    T_BOOL,
    T_UINT,
    T_INT,
    T_ULONG,
    T_SIZE,
    T_SIZES,
    T_STRING,
    T_BITS, /* cl_bitfield */
    T_ENUM, /* cl_uint, shown in hexadecimal */
    T_HANDLE,
    T_HANDLES,
    T_PROPERTIES, /* intptr_t or cl_ulong list; handles in it by name */
    T_VERSIONS,   /* cl_name_version[] */
    T_POINTER,
    T_FORMAT,
    T_REFCOUNT,
    T_NONEMPTY,    /* a string of which only that there is one is compared */
    T_NATIVE_BITS, /* CL_DEVICE_EXECUTION_CAPABILITIES without native kernels */
    T_DEVICE,      /* one handle that is registered when first seen */
    T_BYTES,
    T_MEMORY, /* CL_DEVICE_GLOBAL_MEM_SIZE: PoCL's follows the memory that is free at the moment */
    T_OPAQUE, /* size and code only: times, statuses under way */
};

struct info {
    const char *name;
    cl_uint param;
    enum info_type type;
};

#define I(param, type)                                                                             \
    {                                                                                              \
#param, param, type                                                                        \
    }

static const struct info platform_infos[] = {
    I(CL_PLATFORM_PROFILE, T_STRING),
    I(CL_PLATFORM_VERSION, T_STRING),
    I(CL_PLATFORM_NAME, T_STRING),
    I(CL_PLATFORM_VENDOR, T_STRING),
    I(CL_PLATFORM_HOST_TIMER_RESOLUTION, T_ULONG),
    I(CL_PLATFORM_NUMERIC_VERSION, T_ENUM),
    I(CL_PLATFORM_ICD_SUFFIX_KHR, T_NONEMPTY),
};

static const struct info extension_infos[] = {
    I(CL_PLATFORM_EXTENSIONS, T_STRING),        I(CL_PLATFORM_EXTENSIONS_WITH_VERSION, T_VERSIONS),
    I(CL_DEVICE_EXTENSIONS, T_STRING),          I(CL_DEVICE_EXTENSIONS_WITH_VERSION, T_VERSIONS),
    I(CL_DEVICE_OPENCL_C_FEATURES, T_VERSIONS),
};

static const struct info device_infos[] = {
    I(CL_DEVICE_TYPE, T_BITS),
    I(CL_DEVICE_VENDOR_ID, T_ENUM),
    I(CL_DEVICE_MAX_COMPUTE_UNITS, T_UINT),
    I(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, T_UINT),
    I(CL_DEVICE_MAX_WORK_GROUP_SIZE, T_SIZE),
    I(CL_DEVICE_MAX_WORK_ITEM_SIZES, T_SIZES),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, T_UINT),
    I(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, T_UINT),
    I(CL_DEVICE_MAX_CLOCK_FREQUENCY, T_UINT),
    I(CL_DEVICE_ADDRESS_BITS, T_UINT),
    I(CL_DEVICE_MAX_READ_IMAGE_ARGS, T_UINT),
    I(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, T_UINT),
    I(CL_DEVICE_MAX_MEM_ALLOC_SIZE, T_ULONG),
    I(CL_DEVICE_IMAGE2D_MAX_WIDTH, T_SIZE),
    I(CL_DEVICE_IMAGE2D_MAX_HEIGHT, T_SIZE),
    I(CL_DEVICE_IMAGE3D_MAX_WIDTH, T_SIZE),
    I(CL_DEVICE_IMAGE3D_MAX_HEIGHT, T_SIZE),
    I(CL_DEVICE_IMAGE3D_MAX_DEPTH, T_SIZE),
    I(CL_DEVICE_IMAGE_SUPPORT, T_BOOL),
    I(CL_DEVICE_MAX_PARAMETER_SIZE, T_SIZE),
    I(CL_DEVICE_MAX_SAMPLERS, T_UINT),
    I(CL_DEVICE_MEM_BASE_ADDR_ALIGN, T_UINT),
    I(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, T_UINT),
    I(CL_DEVICE_SINGLE_FP_CONFIG, T_BITS),
    I(CL_DEVICE_DOUBLE_FP_CONFIG, T_BITS),
    I(CL_DEVICE_HALF_FP_CONFIG, T_BITS),
    I(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, T_ENUM),
    I(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, T_UINT),
    I(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, T_ULONG),
    I(CL_DEVICE_GLOBAL_MEM_SIZE, T_MEMORY),
    I(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, T_ULONG),
    I(CL_DEVICE_MAX_CONSTANT_ARGS, T_UINT),
    I(CL_DEVICE_LOCAL_MEM_TYPE, T_ENUM),
    I(CL_DEVICE_LOCAL_MEM_SIZE, T_ULONG),
    I(CL_DEVICE_ERROR_CORRECTION_SUPPORT, T_BOOL),
    I(CL_DEVICE_PROFILING_TIMER_RESOLUTION, T_SIZE),
    I(CL_DEVICE_ENDIAN_LITTLE, T_BOOL),
    I(CL_DEVICE_AVAILABLE, T_BOOL),
    I(CL_DEVICE_COMPILER_AVAILABLE, T_BOOL),
    I(CL_DEVICE_EXECUTION_CAPABILITIES, T_NATIVE_BITS),
    I(CL_DEVICE_QUEUE_PROPERTIES, T_BITS),
    I(CL_DEVICE_NAME, T_STRING),
    I(CL_DEVICE_VENDOR, T_STRING),
    I(CL_DRIVER_VERSION, T_STRING),
    I(CL_DEVICE_PROFILE, T_STRING),
    I(CL_DEVICE_VERSION, T_STRING),
    I(CL_DEVICE_PLATFORM, T_HANDLE),
    I(CL_DEVICE_HOST_UNIFIED_MEMORY, T_BOOL),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, T_UINT),
    I(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, T_UINT),
    I(CL_DEVICE_OPENCL_C_VERSION, T_STRING),
    I(CL_DEVICE_LINKER_AVAILABLE, T_BOOL),
    I(CL_DEVICE_BUILT_IN_KERNELS, T_STRING),
    I(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, T_SIZE),
    I(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, T_SIZE),
    I(CL_DEVICE_PARENT_DEVICE, T_HANDLE),
    I(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, T_UINT),
    I(CL_DEVICE_PARTITION_PROPERTIES, T_PROPERTIES),
    I(CL_DEVICE_PARTITION_AFFINITY_DOMAIN, T_BITS),
    I(CL_DEVICE_PARTITION_TYPE, T_PROPERTIES),
    I(CL_DEVICE_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, T_BOOL),
    I(CL_DEVICE_PRINTF_BUFFER_SIZE, T_SIZE),
    I(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, T_UINT),
    I(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, T_UINT),
    I(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, T_UINT),
    I(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, T_SIZE),
    I(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, T_BITS),
    I(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, T_UINT),
    I(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, T_UINT),
    I(CL_DEVICE_MAX_ON_DEVICE_QUEUES, T_UINT),
    I(CL_DEVICE_MAX_ON_DEVICE_EVENTS, T_UINT),
    I(CL_DEVICE_SVM_CAPABILITIES, T_BITS),
    I(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, T_SIZE),
    I(CL_DEVICE_MAX_PIPE_ARGS, T_UINT),
    I(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, T_UINT),
    I(CL_DEVICE_PIPE_MAX_PACKET_SIZE, T_UINT),
    I(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, T_UINT),
    I(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, T_UINT),
    I(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, T_UINT),
    I(CL_DEVICE_IL_VERSION, T_STRING),
    I(CL_DEVICE_MAX_NUM_SUB_GROUPS, T_UINT),
    I(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, T_BOOL),
    I(CL_DEVICE_NUMERIC_VERSION, T_ENUM),
    I(CL_DEVICE_ILS_WITH_VERSION, T_VERSIONS),
    I(CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, T_VERSIONS),
    I(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, T_BITS),
    I(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, T_BITS),
    I(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, T_BOOL),
    I(CL_DEVICE_OPENCL_C_ALL_VERSIONS, T_VERSIONS),
    I(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, T_SIZE),
    I(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, T_BOOL),
    I(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, T_BOOL),
    I(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, T_BITS),
    I(CL_DEVICE_PIPE_SUPPORT, T_BOOL),
    I(CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, T_STRING),
};

static const struct info context_infos[] = {
    I(CL_CONTEXT_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_CONTEXT_DEVICES, T_HANDLES),
    I(CL_CONTEXT_PROPERTIES, T_PROPERTIES),
    I(CL_CONTEXT_NUM_DEVICES, T_UINT),
};

static const struct info queue_infos[] = {
    I(CL_QUEUE_CONTEXT, T_HANDLE),
    I(CL_QUEUE_DEVICE, T_HANDLE),
    I(CL_QUEUE_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_QUEUE_PROPERTIES, T_BITS),
    I(CL_QUEUE_SIZE, T_UINT),
    I(CL_QUEUE_DEVICE_DEFAULT, T_HANDLE),
    I(CL_QUEUE_PROPERTIES_ARRAY, T_PROPERTIES),
};

static const struct info mem_infos[] = {
    I(CL_MEM_TYPE, T_ENUM),
    I(CL_MEM_FLAGS, T_BITS),
    I(CL_MEM_SIZE, T_SIZE),
    I(CL_MEM_HOST_PTR, T_POINTER),
    I(CL_MEM_MAP_COUNT, T_UINT),
    I(CL_MEM_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_MEM_CONTEXT, T_HANDLE),
    I(CL_MEM_ASSOCIATED_MEMOBJECT, T_HANDLE),
    I(CL_MEM_OFFSET, T_SIZE),
    I(CL_MEM_USES_SVM_POINTER, T_BOOL),
    I(CL_MEM_PROPERTIES, T_PROPERTIES),
};

static const struct info image_infos[] = {
    I(CL_IMAGE_FORMAT, T_FORMAT),    I(CL_IMAGE_ELEMENT_SIZE, T_SIZE),
    I(CL_IMAGE_ROW_PITCH, T_SIZE),   I(CL_IMAGE_SLICE_PITCH, T_SIZE),
    I(CL_IMAGE_WIDTH, T_SIZE),       I(CL_IMAGE_HEIGHT, T_SIZE),
    I(CL_IMAGE_DEPTH, T_SIZE),       I(CL_IMAGE_ARRAY_SIZE, T_SIZE),
    I(CL_IMAGE_BUFFER, T_HANDLE),    I(CL_IMAGE_NUM_MIP_LEVELS, T_UINT),
    I(CL_IMAGE_NUM_SAMPLES, T_UINT),
};

static const struct info pipe_infos[] = {
    I(CL_PIPE_PACKET_SIZE, T_UINT),
    I(CL_PIPE_MAX_PACKETS, T_UINT),
    I(CL_PIPE_PROPERTIES, T_PROPERTIES),
};

static const struct info sampler_infos[] = {
    I(CL_SAMPLER_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_SAMPLER_CONTEXT, T_HANDLE),
    I(CL_SAMPLER_NORMALIZED_COORDS, T_BOOL),
    I(CL_SAMPLER_ADDRESSING_MODE, T_ENUM),
    I(CL_SAMPLER_FILTER_MODE, T_ENUM),
    I(CL_SAMPLER_MIP_FILTER_MODE, T_ENUM),
    I(CL_SAMPLER_LOD_MIN, T_BYTES),
    I(CL_SAMPLER_LOD_MAX, T_BYTES),
    I(CL_SAMPLER_PROPERTIES, T_PROPERTIES),
};

static const struct info program_infos[] = {
    I(CL_PROGRAM_REFERENCE_COUNT, T_REFCOUNT),
    I(CL_PROGRAM_CONTEXT, T_HANDLE),
    I(CL_PROGRAM_NUM_DEVICES, T_UINT),
    I(CL_PROGRAM_DEVICES, T_HANDLES),
    I(CL_PROGRAM_SOURCE, T_STRING),
    I(CL_PROGRAM_NUM_KERNELS, T_SIZE),
    I(CL_PROGRAM_KERNEL_NAMES, T_STRING),
    I(CL_PROGRAM_IL, T_BYTES),
    I(CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT, T_BOOL),
    I(CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT, T_BOOL),
};

static const struct info build_infos[] = {
    I(CL_PROGRAM_BUILD_STATUS, T_INT),
    I(CL_PROGRAM_BUILD_OPTIONS, T_STRING),
    I(CL_PROGRAM_BUILD_LOG, T_STRING),
    I(CL_PROGRAM_BINARY_TYPE, T_ENUM),
    I(CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE, T_SIZE),
};

static const struct info kernel_infos[] = {
    I(CL_KERNEL_FUNCTION_NAME, T_STRING),     I(CL_KERNEL_NUM_ARGS, T_UINT),
    I(CL_KERNEL_REFERENCE_COUNT, T_REFCOUNT), I(CL_KERNEL_CONTEXT, T_HANDLE),
    I(CL_KERNEL_PROGRAM, T_HANDLE),
};

/* On their own: oclgrind answers with memory that nobody wrote. */
static const struct info kernel_attribute_infos[] = {
    I(CL_KERNEL_ATTRIBUTES, T_STRING),
};

static const struct info kernel_arg_infos[] = {
    I(CL_KERNEL_ARG_ADDRESS_QUALIFIER, T_ENUM),
    I(CL_KERNEL_ARG_ACCESS_QUALIFIER, T_ENUM),
    I(CL_KERNEL_ARG_TYPE_NAME, T_STRING),
    I(CL_KERNEL_ARG_TYPE_QUALIFIER, T_BITS),
    I(CL_KERNEL_ARG_NAME, T_STRING),
};

static const struct info workgroup_infos[] = {
    I(CL_KERNEL_WORK_GROUP_SIZE, T_SIZE),   I(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, T_SIZES),
    I(CL_KERNEL_LOCAL_MEM_SIZE, T_ULONG),   I(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, T_SIZE),
    I(CL_KERNEL_PRIVATE_MEM_SIZE, T_ULONG), I(CL_KERNEL_GLOBAL_WORK_SIZE, T_SIZES),
};

static const struct info event_infos[] = {
    I(CL_EVENT_COMMAND_QUEUE, T_HANDLE),     I(CL_EVENT_COMMAND_TYPE, T_ENUM),
    I(CL_EVENT_REFERENCE_COUNT, T_REFCOUNT), I(CL_EVENT_COMMAND_EXECUTION_STATUS, T_INT),
    I(CL_EVENT_CONTEXT, T_HANDLE),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One query, whatever its family: the object (and device or index) is in the closure. */
struct question {
    const char *fn;
    const void *object, *device;
    cl_uint index;
    bool has_index;
};

typedef cl_int (*ask_fn)(const struct question *q, cl_uint param, size_t size, void *value,
                         size_t *ret);

static cl_int ask_platform(const struct question *q, cl_uint param, size_t size, void *value,
                           size_t *ret)
{
    return clGetPlatformInfo((cl_platform_id)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_device(const struct question *q, cl_uint param, size_t size, void *value,
                         size_t *ret)
{
    return clGetDeviceInfo((cl_device_id)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_context(const struct question *q, cl_uint param, size_t size, void *value,
                          size_t *ret)
{
    return clGetContextInfo((cl_context)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_queue(const struct question *q, cl_uint param, size_t size, void *value,
                        size_t *ret)
{
    return clGetCommandQueueInfo((cl_command_queue)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_mem(const struct question *q, cl_uint param, size_t size, void *value,
                      size_t *ret)
{
    return clGetMemObjectInfo((cl_mem)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_image(const struct question *q, cl_uint param, size_t size, void *value,
                        size_t *ret)
{
    return clGetImageInfo((cl_mem)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_pipe(const struct question *q, cl_uint param, size_t size, void *value,
                       size_t *ret)
{
    return clGetPipeInfo((cl_mem)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_sampler(const struct question *q, cl_uint param, size_t size, void *value,
                          size_t *ret)
{
    return clGetSamplerInfo((cl_sampler)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_program(const struct question *q, cl_uint param, size_t size, void *value,
                          size_t *ret)
{
    return clGetProgramInfo((cl_program)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_build(const struct question *q, cl_uint param, size_t size, void *value,
                        size_t *ret)
{
    return clGetProgramBuildInfo((cl_program)(uintptr_t)q->object,
                                 (cl_device_id)(uintptr_t)q->device, param, size, value, ret);
}

static cl_int ask_kernel(const struct question *q, cl_uint param, size_t size, void *value,
                         size_t *ret)
{
    return clGetKernelInfo((cl_kernel)(uintptr_t)q->object, param, size, value, ret);
}

static cl_int ask_kernel_arg(const struct question *q, cl_uint param, size_t size, void *value,
                             size_t *ret)
{
    return clGetKernelArgInfo((cl_kernel)(uintptr_t)q->object, q->index, param, size, value, ret);
}

static cl_int ask_workgroup(const struct question *q, cl_uint param, size_t size, void *value,
                            size_t *ret)
{
    return clGetKernelWorkGroupInfo((cl_kernel)(uintptr_t)q->object,
                                    (cl_device_id)(uintptr_t)q->device, param, size, value, ret);
}

static cl_int ask_event(const struct question *q, cl_uint param, size_t size, void *value,
                        size_t *ret)
{
    return clGetEventInfo((cl_event)(uintptr_t)q->object, param, size, value, ret);
}

#define TEXT_BYTES 131072
static char text[TEXT_BYTES];
static size_t text_used;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text + text_used, TEXT_BYTES - text_used, format, list);
    va_end(list);
    if (n > 0)
        text_used += (size_t)n;
    if (text_used >= TEXT_BYTES)
        text_used = TEXT_BYTES - 1;
}

static void add_string(const char *value, size_t size)
{
    add("\"");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c == 0 && i + 1 == size)
            break; /* the terminator belongs there; one in the middle or a missing one shows */
        if (c == '\n')
            add("\\n");
        else if (c < ' ' || c == '"' || c == '\\')
            add("\\x%02x", c);
        else
            add("%c", c);
    }
    add("\"%s", size == 0 || value[size - 1] ? " unterminated" : "");
}

static void add_list_value(uint64_t value)
{
    if (value && handle_known((const void *)(uintptr_t)value))
        add(" %s", handle_name((const void *)(uintptr_t)value));
    else
        add(" 0x%llx", (unsigned long long)value);
}

const char *format_names(const cl_image_format *format)
{
    static char names[4][32];
    static unsigned next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof(names[0]), "order %x type %x", format->image_channel_order,
             format->image_channel_data_type);
    return name;
}

static void add_value(enum info_type type, const void *value, size_t size)
{
    uint32_t word = 0;
    uint64_t quad = 0;
    memcpy(&word, value, size < 4 ? size : 4);
    memcpy(&quad, value, size < 8 ? size : 8);
    switch (type) {
    case T_BOOL:
        add("%s", word == 1 ? "true" : word == 0 ? "false" : "neither");
        break;
    case T_UINT:
        add("%u", word);
        break;
    case T_INT:
        add("%d", (int)word);
        break;
    case T_ULONG:
    case T_SIZE:
        add("%llu", (unsigned long long)quad);
        break;
    case T_SIZES:
        for (size_t i = 0; i + 8 <= size; i += 8) {
            memcpy(&quad, (const char *)value + i, 8);
            add("%s%llu", i ? " " : "", (unsigned long long)quad);
        }
        break;
    case T_STRING:
        add_string(value, size);
        break;
    case T_ENUM:
        add("0x%x", word);
        break;
    case T_BITS:
        add("0x%llx", (unsigned long long)quad);
        break;
    case T_NATIVE_BITS:
        add("0x%llx", (unsigned long long)(quad & ~(uint64_t)CL_EXEC_NATIVE_KERNEL));
        break;
    case T_HANDLE:
    case T_DEVICE:
        add("%s", handle_name((const void *)(uintptr_t)quad));
        break;
    case T_HANDLES:
        for (size_t i = 0; i + 8 <= size; i += 8) {
            memcpy(&quad, (const char *)value + i, 8);
            add(" %s", handle_name((const void *)(uintptr_t)quad));
        }
        break;
    case T_PROPERTIES:
        for (size_t i = 0; i + 8 <= size; i += 8) {
            memcpy(&quad, (const char *)value + i, 8);
            add_list_value(quad);
        }
        break;
    case T_VERSIONS:
        for (size_t i = 0; i + sizeof(cl_name_version) <= size; i += sizeof(cl_name_version)) {
            cl_name_version one;
            memcpy(&one, (const char *)value + i, sizeof(one));
            add(" %.64s=0x%x", one.name, one.version);
        }
        break;
    case T_POINTER:
        add("%s", pointer_name((const void *)(uintptr_t)quad));
        break;
    case T_FORMAT: {
        cl_image_format format;
        memcpy(&format, value, sizeof(format));
        add("%s", format_names(&format));
        break;
    }
    case T_REFCOUNT:
        add("at least 1: %s", word >= 1 ? "yes" : "no");
        break;
    case T_NONEMPTY:
        add("non-empty: %s", size > 1 ? "yes" : "no");
        break;
    case T_BYTES:
        for (size_t i = 0; i < size && i < 32; i++)
            add("%02x", ((const unsigned char *)value)[i]);
        break;
    case T_MEMORY:
        add("64 MiB or more: %s", quad >= (uint64_t)64 << 20 ? "yes" : "no");
        break;
    case T_OPAQUE:
        add("(varies)");
        break;
    }
}

static void ask_one(ask_fn ask, const struct question *q, const struct info *info)
{
    size_t size = 999999, ret = 999999;
    text_used = 0;
    if (q->has_index)
        add("%s(%s, %u, %s)", q->fn, handle_name(q->object), q->index, info->name);
    else
        add("%s(%s, %s)", q->fn, handle_name(q->object), info->name);
    note_pending(text);
    cl_int code = ask(q, info->param, 0, NULL, &size);
    add(" -> %s", error_name(code));
    if (code != CL_SUCCESS) {
        note("%s", text);
        return;
    }
    bool hide_size = info->type == T_NONEMPTY;
    if (!hide_size)
        add(" size %zu", size);
    if (size == 0) { /* nothing to fetch; PoCL 3.1 crashes when asked to (properties of a context
                        made without any) */
        note("%s", text);
        return;
    }
    if (size > 1 << 20) {
        note("%s, not fetched", text);
        return;
    }
    unsigned char *value = malloc(size + 64);
    memset(value, 0xa5, size + 64);
    note_pending(text);
    code = ask(q, info->param, size, value, &ret);
    if (code != CL_SUCCESS || ret != size)
        add("; value: %s size %zu", error_name(code), ret);
    if (code == CL_SUCCESS) {
        add(" = ");
        add_value(info->type, value, size);
    }
    for (size_t i = size; i < size + 64; i++)
        if (value[i] != 0xa5) {
            add("; wrote past the end");
            break;
        }
    unsigned char *larger = malloc(size + 64);
    memset(larger, 0xa5, size + 64);
    note_pending(text);
    code = ask(q, info->param, size + 64, larger, NULL);
    bool varies = info->type == T_OPAQUE || info->type == T_REFCOUNT || info->type == T_MEMORY;
    add("; larger: %s%s", error_name(code),
        varies || !memcmp(value, larger, size) ? "" : " and another value");
    free(larger);
    memset(value, 0xa5, size);
    note_pending(text);
    code = ask(q, info->param, size - 1, value, NULL);
    add("; smaller: %s", error_name(code));
    free(value);
    note("%s", text);
}

static void ask_all(ask_fn ask, const struct question *q, const struct info *infos, size_t n)
{
    if (!rec_in_version(q->fn)) {
        note("%s: not in this version", q->fn);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ask_one(ask, q, &infos[i]);
    static const struct info unknown = {"0xdead", 0xdead, T_OPAQUE};
    ask_one(ask, q, &unknown);
    cl_int code = ask(q, infos[0].param, 0, NULL, NULL);
    note("%s(%s, %s, 0, NULL, NULL) -> %s", q->fn, handle_name(q->object), infos[0].name,
         error_name(code));
}

static void ask_named(ask_fn ask, const struct question *q, const struct info *infos, size_t n,
                      const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(infos[i].name, name)) {
            ask_one(ask, q, &infos[i]);
            return;
        }
    abort();
}

void info_platform_all(cl_platform_id platform)
{
    ask_all(ask_platform, &(struct question){.fn = "clGetPlatformInfo", .object = platform},
            platform_infos, COUNT(platform_infos));
}

void info_platform(cl_platform_id platform, const char *param)
{
    ask_named(ask_platform, &(struct question){.fn = "clGetPlatformInfo", .object = platform},
              extension_infos, COUNT(extension_infos), param);
}

void info_device_all(cl_device_id device)
{
    ask_all(ask_device, &(struct question){.fn = "clGetDeviceInfo", .object = device}, device_infos,
            COUNT(device_infos));
}

void info_device(cl_device_id device, const char *param)
{
    bool extension = strstr(param, "EXTENSIONS") || strstr(param, "FEATURES");
    ask_named(ask_device, &(struct question){.fn = "clGetDeviceInfo", .object = device},
              extension ? extension_infos : device_infos,
              extension ? COUNT(extension_infos) : COUNT(device_infos), param);
}

void info_context_all(cl_context context)
{
    ask_all(ask_context, &(struct question){.fn = "clGetContextInfo", .object = context},
            context_infos, COUNT(context_infos));
}

void info_queue_all(cl_command_queue queue)
{
    ask_all(ask_queue, &(struct question){.fn = "clGetCommandQueueInfo", .object = queue},
            queue_infos, COUNT(queue_infos));
}

void info_mem_all(cl_mem mem)
{
    ask_all(ask_mem, &(struct question){.fn = "clGetMemObjectInfo", .object = mem}, mem_infos,
            COUNT(mem_infos));
}

void info_image_all(cl_mem image)
{
    ask_all(ask_image, &(struct question){.fn = "clGetImageInfo", .object = image}, image_infos,
            COUNT(image_infos));
}

void info_pipe_all(cl_mem pipe)
{
    ask_all(ask_pipe, &(struct question){.fn = "clGetPipeInfo", .object = pipe}, pipe_infos,
            COUNT(pipe_infos));
}

void info_sampler_all(cl_sampler sampler)
{
    ask_all(ask_sampler, &(struct question){.fn = "clGetSamplerInfo", .object = sampler},
            sampler_infos, COUNT(sampler_infos));
}

void info_program_all(cl_program program)
{
    ask_all(ask_program, &(struct question){.fn = "clGetProgramInfo", .object = program},
            program_infos, COUNT(program_infos));
}

void info_build_all(cl_program program, cl_device_id device)
{
    ask_all(ask_build,
            &(struct question){.fn = "clGetProgramBuildInfo", .object = program, .device = device},
            build_infos, COUNT(build_infos));
}

void info_kernel_all(cl_kernel kernel)
{
    ask_all(ask_kernel, &(struct question){.fn = "clGetKernelInfo", .object = kernel}, kernel_infos,
            COUNT(kernel_infos));
}

void info_kernel_attributes(cl_kernel kernel)
{
    ask_all(ask_kernel, &(struct question){.fn = "clGetKernelInfo", .object = kernel},
            kernel_attribute_infos, COUNT(kernel_attribute_infos));
}

void info_kernel_arg_all(cl_kernel kernel, cl_uint index)
{
    ask_all(ask_kernel_arg,
            &(struct question){
                .fn = "clGetKernelArgInfo", .object = kernel, .index = index, .has_index = true},
            kernel_arg_infos, COUNT(kernel_arg_infos));
}

void info_workgroup_all(cl_kernel kernel, cl_device_id device)
{
    ask_all(
        ask_workgroup,
        &(struct question){.fn = "clGetKernelWorkGroupInfo", .object = kernel, .device = device},
        workgroup_infos, COUNT(workgroup_infos));
}

void info_event_all(cl_event event)
{
    ask_all(ask_event, &(struct question){.fn = "clGetEventInfo", .object = event}, event_infos,
            COUNT(event_infos));
}
