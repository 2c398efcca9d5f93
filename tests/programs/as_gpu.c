/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libOpenCL.so for a program that dlopens it (x264), found by name in LD_LIBRARY_PATH; in all else it is Debian's loader.
 *
 * It shows all devices as GPUs to who asks for those: the native reference for `present-as=gpu`. And memory that is made without contents
 * is zero: x264 reads what nothing has written (oclgrind --uninitialized names its kernel downscale2), so that what it encodes may
 * depend on what lay in the driver's memory before.
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

static cl_mem_flags with_contents(cl_mem_flags flags, size_t bytes, void **host)
{
    if (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR))
        return flags;
    *host = calloc(1, bytes);
    return flags | CL_MEM_COPY_HOST_PTR;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *ret)
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

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
                                                size_t height, size_t pitch, void *host, cl_int *ret)
{
    cl_mem (*create)(cl_context, cl_mem_flags, const cl_image_format *, size_t, size_t, size_t, void *, cl_int *);
    void *given = host;

    *(void **)&create = real("clCreateImage2D");
    /* 16 bytes: the largest pixel there is. */
    flags = with_contents(flags, width * height * 16, &host);
    cl_mem mem = create(context, flags, format, width, height, pitch, host, ret);
    if (host != given)
        free(host);
    return mem;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n,
                                               cl_device_id *devices, cl_uint *ret_n)
{
    cl_int (*get)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);

    *(void **)&get = real("clGetDeviceIDs");
    return get(platform, type == CL_DEVICE_TYPE_GPU ? CL_DEVICE_TYPE_ALL : type, n, devices, ret_n);
}
