/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PoCL as a current driver: one in front of it that has what younger drivers have. $CURRENT says
 * what, as words: variables: its device has program-scope variables, and it tells the size of those
 * of a program (4 if one of them is called "counter"; else 0). unknown: it answers questions that
 * PoCL does not know with pointers of its own (as a driver does whose answers are lists of texts),
 * and takes the values of keys and names that PoCL does not know for pointers, which it follows.
 * system: any pointer may be given to it, and clEnqueueSVMMemFill crashes all the same on one that
 * clSVMAlloc has not returned. strict: all of its functions for shared memory do. foreign: it runs
 * no native kernels.
 */
#include "drivers/front_icd.h"

#include <pthread.h>

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

/* ---- shared virtual memory */

static struct {
    pthread_mutex_t lock;
    struct {
        char *at;
        size_t bytes;
    } all[1024];
    size_t n;
} allocated = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment)
{
    char *at = theirs->clSVMAlloc(context, flags, size, alignment);
    pthread_mutex_lock(&allocated.lock);
    if (at && allocated.n < sizeof allocated.all / sizeof allocated.all[0]) {
        allocated.all[allocated.n].at = at;
        allocated.all[allocated.n++].bytes = size;
    }
    pthread_mutex_unlock(&allocated.lock);
    return at;
}

static bool is_own(const char *at)
{
    bool own = false;
    pthread_mutex_lock(&allocated.lock);
    for (size_t i = 0; i < allocated.n; i++)
        own |= at >= allocated.all[i].at && at < allocated.all[i].at + allocated.all[i].bytes;
    pthread_mutex_unlock(&allocated.lock);
    return own;
}

/* What such a driver makes of a pointer that it has not handed out. */
static void look_up(const char *word, const void *at)
{
    if (has(word) && at && !is_own(at)) {
        fprintf(stderr, "current_icd: a pointer of somebody else's\n");
        abort();
    }
}

static void CL_API_CALL svm_free(cl_context context, void *at)
{
    look_up("system", at);
    look_up("strict", at);
    pthread_mutex_lock(&allocated.lock);
    for (size_t i = 0; i < allocated.n; i++)
        if (allocated.all[i].at == at)
            allocated.all[i--] = allocated.all[--allocated.n];
    pthread_mutex_unlock(&allocated.lock);
    theirs->clSVMFree(context, at);
}

static cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocking, void *dst,
                                   const void *src, size_t size, cl_uint n, const cl_event *waits,
                                   cl_event *event)
{
    look_up("strict", dst);
    look_up("strict", src);
    return theirs->clEnqueueSVMMemcpy(queue, blocking, dst, src, size, n, waits, event);
}

static cl_int CL_API_CALL svm_fill(cl_command_queue queue, void *at, const void *pattern,
                                   size_t pattern_size, size_t size, cl_uint n,
                                   const cl_event *waits, cl_event *event)
{
    look_up("system", at);
    look_up("strict", at);
    return theirs->clEnqueueSVMMemFill(queue, at, pattern, pattern_size, size, n, waits, event);
}

static cl_int CL_API_CALL svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                  void *at, size_t size, cl_uint n, const cl_event *waits,
                                  cl_event *event)
{
    look_up("strict", at);
    return theirs->clEnqueueSVMMap(queue, blocking, flags, at, size, n, waits, event);
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue queue, void *at, cl_uint n,
                                    const cl_event *waits, cl_event *event)
{
    look_up("strict", at);
    return theirs->clEnqueueSVMUnmap(queue, at, n, waits, event);
}

static cl_int CL_API_CALL svm_migrate(cl_command_queue queue, cl_uint n_all, const void **all,
                                      const size_t *sizes, cl_mem_migration_flags flags, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    for (cl_uint i = 0; i < n_all; i++)
        look_up("strict", all[i]);
    return theirs->clEnqueueSVMMigrateMem(queue, n_all, all, sizes, flags, n, waits, event);
}

static cl_int CL_API_CALL svm_argument(cl_kernel kernel, cl_uint index, const void *at)
{
    look_up("strict", at);
    return theirs->clSetKernelArgSVMPointer(kernel, index, at);
}

/* ---- what no older driver knows */

static const char *const texts[] = {"a text", "of this process"};

/* PoCL's answer; or, where it knows no such question, and that is all that it minds, the pointers.
 */
static cl_int with_pointers(cl_int result, cl_int without_room, size_t size, void *value,
                            size_t *size_ret)
{
    if (!has("unknown") || result != CL_INVALID_VALUE || without_room != CL_INVALID_VALUE)
        return result;
    return answer(texts, sizeof texts, size, value, size_ret);
}

/* A question about an object of each kind. */
#define ASK(name, call, object, info)                                                              \
    static cl_int CL_API_CALL name(object o, info what, size_t size, void *value,                  \
                                   size_t *size_ret)                                               \
    {                                                                                              \
        return with_pointers(theirs->call(o, what, size, value, size_ret),                         \
                             theirs->call(o, what, 0, NULL, NULL), size, value, size_ret);         \
    }
/* Likewise, with something between. */
#define ASK_ABOUT(name, call, object, between, info)                                               \
    static cl_int CL_API_CALL name(object o, between b, info what, size_t size, void *value,       \
                                   size_t *size_ret)                                               \
    {                                                                                              \
        return with_pointers(theirs->call(o, b, what, size, value, size_ret),                      \
                             theirs->call(o, b, what, 0, NULL, NULL), size, value, size_ret);      \
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
#define FOLLOW(list, ...)                                                                          \
    do {                                                                                           \
        const intptr_t keys[] = {__VA_ARGS__};                                                     \
        follow(list, keys, sizeof keys / sizeof keys[0]);                                          \
    } while (0)

static cl_mem CL_API_CALL create_buffer(cl_context context, const cl_mem_properties *properties,
                                        cl_mem_flags flags, size_t size, void *host_ptr,
                                        cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreateBufferWithProperties(context, NULL, flags, size, host_ptr, result);
}

static cl_mem CL_API_CALL create_image(cl_context context, const cl_mem_properties *properties,
                                       cl_mem_flags flags, const cl_image_format *format,
                                       const cl_image_desc *desc, void *host_ptr, cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreateImageWithProperties(context, NULL, flags, format, desc, host_ptr,
                                               result);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 const cl_queue_properties *properties,
                                                 cl_int *result)
{
    FOLLOW(properties, CL_QUEUE_PROPERTIES, CL_QUEUE_SIZE);
    return theirs->clCreateCommandQueueWithProperties(context, device, properties, result);
}

static cl_sampler CL_API_CALL create_sampler(cl_context context,
                                             const cl_sampler_properties *properties,
                                             cl_int *result)
{
    FOLLOW(properties, CL_SAMPLER_NORMALIZED_COORDS, CL_SAMPLER_ADDRESSING_MODE,
           CL_SAMPLER_FILTER_MODE);
    return theirs->clCreateSamplerWithProperties(context, properties, result);
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user_data, cl_int *result)
{
    FOLLOW(properties, CL_CONTEXT_PLATFORM, CL_CONTEXT_INTEROP_USER_SYNC);
    return theirs->clCreateContext(properties, n, devices, notify, user_data, result);
}

static cl_mem CL_API_CALL create_pipe(cl_context context, cl_mem_flags flags, cl_uint packet_size,
                                      cl_uint max_packets, const cl_pipe_properties *properties,
                                      cl_int *result)
{
    FOLLOW(properties, 0);
    return theirs->clCreatePipe(context, flags, packet_size, max_packets, properties, result);
}

static cl_int CL_API_CALL create_parts(cl_device_id device,
                                       const cl_device_partition_property *properties, cl_uint n,
                                       cl_device_id *devices, cl_uint *ret_n)
{
    FOLLOW(properties, CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS,
           CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN);
    return theirs->clCreateSubDevices(device, properties, n, devices, ret_n);
}

static cl_mem CL_API_CALL create_part(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                      const void *info, cl_int *result)
{
    const intptr_t list[] = {type, (intptr_t)info, 0};
    FOLLOW(list, CL_BUFFER_CREATE_TYPE_REGION);
    return theirs->clCreateSubBuffer(buffer, flags, type, info, result);
}

static cl_int CL_API_CALL exec_info(cl_kernel kernel, cl_kernel_exec_info what, size_t size,
                                    const void *value)
{
    if (what == CL_KERNEL_EXEC_INFO_SVM_PTRS)
        for (size_t i = 0; value && i < size / sizeof(void *); i++)
            look_up("strict", ((void *const *)value)[i]);
    else if (size >= sizeof(intptr_t)) {
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
    if (theirs->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) ||
        !bytes)
        return false;
    unsigned char *binary = malloc(bytes);
    if (binary &&
        !theirs->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL))
        found = memmem(binary, bytes, "counter", strlen("counter")) != NULL;
    free(binary);
    return found;
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device,
                                     cl_program_build_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    if (!has("variables") || what != CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)
        return with_pointers(
            theirs->clGetProgramBuildInfo(program, device, what, size, value, size_ret),
            theirs->clGetProgramBuildInfo(program, device, what, 0, NULL, NULL), size, value,
            size_ret);
    const size_t bytes = has_counter(program) ? 4 : 0;
    return answer(&bytes, sizeof bytes, size, value, size_ret);
}

/* ---- devices */

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    const size_t variables = VARIABLE_BYTES;
    if (what == CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE && has("variables"))
        return answer(&variables, sizeof variables, size, value, size_ret);
    if (what == CL_DEVICE_SVM_CAPABILITIES && has("system")) {
        cl_device_svm_capabilities all = 0;
        theirs->clGetDeviceInfo(device, what, sizeof all, &all, NULL);
        all |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
        return answer(&all, sizeof all, size, value, size_ret);
    }
    if (what == CL_DEVICE_EXECUTION_CAPABILITIES && has("foreign")) {
        const cl_device_exec_capabilities kernels = CL_EXEC_KERNEL;
        return answer(&kernels, sizeof kernels, size, value, size_ret);
    }
    return with_pointers(theirs->clGetDeviceInfo(device, what, size, value, size_ret),
                         theirs->clGetDeviceInfo(device, what, 0, NULL, NULL), size, value,
                         size_ret);
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
    ours.clSVMAlloc = svm_alloc;
    ours.clSVMFree = svm_free;
    ours.clEnqueueSVMMemcpy = svm_copy;
    ours.clEnqueueSVMMemFill = svm_fill;
    ours.clEnqueueSVMMap = svm_map;
    ours.clEnqueueSVMUnmap = svm_unmap;
    ours.clEnqueueSVMMigrateMem = svm_migrate;
    ours.clSetKernelArgSVMPointer = svm_argument;
}
