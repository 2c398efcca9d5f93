/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libOpenCL.so for a program that dlopens it (x264), found by name in LD_LIBRARY_PATH; in all
 * else it is Debian's loader.
 *
 * It shows all devices as GPUs to who asks for those: the native reference for `present-as=gpu`.
 * And what x264 reads without having written it is always zero, so that what it encodes depends on
 * its input alone:
 * - memory that is made without contents (oclgrind --uninitialized names its kernel downscale2);
 * - local memory: its kernel hierarchical_motion counts on four work-items that write at the same
 * moment. Where they run one after the other the first one, whose result counts, reads what the
 * kernel before has left there, and that is another one behind a move.
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>

static void *real(const char *name)
{
    return dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), name);
}

/* A kernel that leaves nothing in local memory. x264 has one context and one device. */
static cl_kernel wiper(cl_command_queue queue)
{
    static const char *source =
        "kernel void wipe(local volatile ulong *all, ulong n) { for (ulong i = 0; i < n; i++) "
        "all[i] = 0; }";
    static cl_kernel wipe;
    cl_context context;
    cl_device_id device;
    cl_ulong bytes;

    if (wipe)
        return wipe;
    if (clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) !=
            CL_SUCCESS ||
        clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS ||
        clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
        return NULL;
    cl_ulong n = bytes / sizeof n;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
    wipe = clCreateKernel(program, "wipe", NULL);
    clSetKernelArg(wipe, 0, n * sizeof n, NULL);
    clSetKernelArg(wipe, 1, sizeof n, &n);
    return wipe;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                       cl_uint n, const size_t *offset,
                                                       const size_t *global, const size_t *local,
                                                       cl_uint n_wait, const cl_event *wait,
                                                       cl_event *event)
{
    cl_int (*enqueue)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                      const size_t *, cl_uint, const cl_event *, cl_event *);
    const size_t one = 1;

    *(void **)&enqueue = real("clEnqueueNDRangeKernel");
    cl_int r = enqueue(queue, wiper(queue), 1, NULL, &one, &one, 0, NULL, NULL);
    return r != CL_SUCCESS ? r
                           : enqueue(queue, kernel, n, offset, global, local, n_wait, wait, event);
}

static cl_mem_flags with_contents(cl_mem_flags flags, size_t bytes, void **host)
{
    if (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR))
        return flags;
    *host = calloc(1, bytes);
    return flags | CL_MEM_COPY_HOST_PTR;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                               void *host, cl_int *ret)
{
    cl_mem (*create)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    void *given = host;

    *(void **)&create = real("clCreateBuffer");
    flags = with_contents(flags, size, &host);
    cl_mem mem = create(context, flags, size, host, ret);
    if (host != given)
        free(host);
    return mem;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *format, size_t width,
                                                size_t height, size_t pitch, void *host,
                                                cl_int *ret)
{
    cl_mem (*create)(cl_context, cl_mem_flags, const cl_image_format *, size_t, size_t, size_t,
                     void *, cl_int *);
    void *given = host;

    *(void **)&create = real("clCreateImage2D");
    /* 16 bytes: the largest pixel there is. */
    flags = with_contents(flags, width * height * 16, &host);
    cl_mem mem = create(context, flags, format, width, height, pitch, host, ret);
    if (host != given)
        free(host);
    return mem;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                                               cl_uint n, cl_device_id *devices, cl_uint *ret_n)
{
    cl_int (*get)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);

    *(void **)&get = real("clGetDeviceIDs");
    return get(platform, type == CL_DEVICE_TYPE_GPU ? CL_DEVICE_TYPE_ALL : type, n, devices, ret_n);
}
