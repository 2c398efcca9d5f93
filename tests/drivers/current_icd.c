/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PoCL as a current driver: one in front of it that has what younger drivers have. $CURRENT says
 * what, as words: variables: its device has program-scope variables, and it tells the size of those
 * of a program (4 if one of them is called "counter"; else 0). unknown: it answers questions that
 * PoCL does not know with pointers of its own (as a driver does whose answers are lists of texts),
 * and takes the values of keys and names that PoCL does not know for pointers, which it follows.
 */
#include "drivers/front_icd.h"

#define VARIABLE_BYTES 64000u

static bool has(const char *what)
{
    const char *at = getenv("CURRENT");
    char word[128];
    while (at && next_word(&at, word, sizeof word))
        if (!strcmp(word, what))
            return true;
    return false;
}

static cl_int answer(const void *bytes, size_t n, size_t size, void *value, size_t *size_ret)
{
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, bytes, n);
    if (size_ret)
        *size_ret = n;
    return CL_SUCCESS;
}

/* ---- what no older driver knows */

static const char *const texts[] = {"a text", "of this process"};

/* PoCL's answer; or, where it knows no such question, and that is all that it minds, the pointers. */
static cl_int with_pointers(cl_int result, cl_int without_room, size_t size, void *value, size_t *size_ret)
{
    if (!has("unknown") || result != CL_INVALID_VALUE || without_room != CL_INVALID_VALUE)
        return result;
    return answer(texts, sizeof texts, size, value, size_ret);
}

/* A question about an object of each kind. */
#define ASK(name, call, object, info)                                                                                                      \
    static cl_int CL_API_CALL name(object o, info what, size_t size, void *value, size_t *size_ret)                                        \
    {                                                                                                                                      \
        return with_pointers(theirs->call(o, what, size, value, size_ret), theirs->call(o, what, 0, NULL, NULL), size, value, size_ret);   \
    }
/* Likewise, with something between. */
#define ASK_ABOUT(name, call, object, between, info)                                                                                       \
    static cl_int CL_API_CALL name(object o, between b, info what, size_t size, void *value, size_t *size_ret)                             \
    {                                                                                                                                      \
        return with_pointers(theirs->call(o, b, what, size, value, size_ret), theirs->call(o, b, what, 0, NULL, NULL), size, value,        \
                             size_ret);                                                                                                    \
    }
ASK(platform_info, clGetPlatformInfo, cl_platform_id, cl_platform_info)
ASK(queue_info, clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info)
ASK(mem_info, clGetMemObjectInfo, cl_mem, cl_mem_info)
ASK(image_info, clGetImageInfo, cl_mem, cl_image_info)
ASK(sampler_info, clGetSamplerInfo, cl_sampler, cl_sampler_info)
ASK(program_info, clGetProgramInfo, cl_program, cl_program_info)
ASK(kernel_info, clGetKernelInfo, cl_kernel, cl_kernel_info)
ASK_ABOUT(argument_info, clGetKernelArgInfo, cl_kernel, cl_uint, cl_kernel_arg_info)
ASK_ABOUT(group_info, clGetKernelWorkGroupInfo, cl_kernel, cl_device_id, cl_kernel_work_group_info)

/* Follows the value of each key that is none of the n. */
static void follow(const void *list, const intptr_t *keys, size_t n)
{
    const intptr_t *at = list;
    for (; has("unknown") && at && *at; at += 2) {
        size_t i = 0;
        while (i < n && keys[i] != *at)
            i++;
        if (i == n && *(volatile const char *)at[1] == 0)
            fprintf(stderr, "an empty text\n");
    }
}
#define FOLLOW(list, ...)                                                                                                                  \
    do {                                                                                                                                   \
        const intptr_t keys[] = {__VA_ARGS__};                                                                                             \
        follow(list, keys, sizeof keys / sizeof keys[0]);                                                                                  \
    } while (0)

static cl_mem CL_API_CALL create_buffer(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t size,
                                        void *host_ptr, cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreateBufferWithProperties(context, NULL, flags, size, host_ptr, result);
}

static cl_mem CL_API_CALL create_image(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
                                       const cl_image_format *format, const cl_image_desc *desc, void *host_ptr, cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreateImageWithProperties(context, NULL, flags, format, desc, host_ptr, result);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, const cl_queue_properties *properties,
                                                 cl_int *result)
{
    FOLLOW(properties, CL_QUEUE_PROPERTIES, CL_QUEUE_SIZE);
    return theirs->clCreateCommandQueueWithProperties(context, device, properties, result);
}

static cl_sampler CL_API_CALL create_sampler(cl_context context, const cl_sampler_properties *properties, cl_int *result)
{
    FOLLOW(properties, CL_SAMPLER_NORMALIZED_COORDS, CL_SAMPLER_ADDRESSING_MODE, CL_SAMPLER_FILTER_MODE);
    return theirs->clCreateSamplerWithProperties(context, properties, result);
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user_data,
                                             cl_int *result)
{
    FOLLOW(properties, CL_CONTEXT_PLATFORM, CL_CONTEXT_INTEROP_USER_SYNC);
    return theirs->clCreateContext(properties, n, devices, notify, user_data, result);
}

static cl_mem CL_API_CALL create_pipe(cl_context context, cl_mem_flags flags, cl_uint packet_size, cl_uint max_packets,
                                      const cl_pipe_properties *properties, cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreatePipe(context, flags, packet_size, max_packets, properties, result);
}

static cl_int CL_API_CALL create_parts(cl_device_id device, const cl_device_partition_property *properties, cl_uint n,
                                       cl_device_id *devices, cl_uint *ret_n)
{
    FOLLOW(properties, CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS, CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN);
    return theirs->clCreateSubDevices(device, properties, n, devices, ret_n);
}

static cl_mem CL_API_CALL create_part(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *result)
{
    const intptr_t list[] = {type, (intptr_t)info, 0};
    FOLLOW(list, CL_BUFFER_CREATE_TYPE_REGION);
    return theirs->clCreateSubBuffer(buffer, flags, type, info, result);
}

static cl_int CL_API_CALL exec_info(cl_kernel kernel, cl_kernel_exec_info what, size_t size, const void *value)
{
    if (size >= sizeof(intptr_t)) {
        const intptr_t list[] = {what, *(const intptr_t *)value, 0};
        FOLLOW(list, CL_KERNEL_EXEC_INFO_SVM_PTRS, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM);
    }
    return theirs->clSetKernelExecInfo(kernel, what, size, value);
}

/* ---- program-scope variables */

/* PoCL's binaries hold the names of what they declare. */
static bool has_counter(cl_program program)
{
    size_t bytes = 0;
    bool found = false;
    if (theirs->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) || !bytes)
        return false;
    unsigned char *binary = malloc(bytes);
    if (binary && !theirs->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL))
        found = memmem(binary, bytes, "counter", strlen("counter")) != NULL;
    free(binary);
    return found;
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    if (!has("variables") || what != CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)
        return with_pointers(theirs->clGetProgramBuildInfo(program, device, what, size, value, size_ret),
                             theirs->clGetProgramBuildInfo(program, device, what, 0, NULL, NULL), size, value, size_ret);
    const size_t bytes = has_counter(program) ? 4 : 0;
    return answer(&bytes, sizeof bytes, size, value, size_ret);
}

/* ---- devices */

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *size_ret)
{
    const size_t variables = VARIABLE_BYTES;
    if (what == CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE && has("variables"))
        return answer(&variables, sizeof variables, size, value, size_ret);
    return with_pointers(theirs->clGetDeviceInfo(device, what, size, value, size_ret), theirs->clGetDeviceInfo(device, what, 0, NULL, NULL),
                         size, value, size_ret);
}

static void replace_calls(void)
{
    ours.clGetProgramBuildInfo = build_info;
    ours.clGetDeviceInfo = device_info;
    ours.clGetPlatformInfo = platform_info;
    ours.clGetCommandQueueInfo = queue_info;
    ours.clGetMemObjectInfo = mem_info;
    ours.clGetImageInfo = image_info;
    ours.clGetSamplerInfo = sampler_info;
    ours.clGetProgramInfo = program_info;
    ours.clGetKernelInfo = kernel_info;
    ours.clGetKernelArgInfo = argument_info;
    ours.clGetKernelWorkGroupInfo = group_info;
    ours.clCreateBufferWithProperties = create_buffer;
    ours.clCreateImageWithProperties = create_image;
    ours.clCreateCommandQueueWithProperties = create_queue;
    ours.clCreateSamplerWithProperties = create_sampler;
    ours.clCreateContext = create_context;
    ours.clCreatePipe = create_pipe;
    ours.clCreateSubDevices = create_parts;
    ours.clCreateSubBuffer = create_part;
    ours.clSetKernelExecInfo = exec_info;
}
