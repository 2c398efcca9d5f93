/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libOpenCL.so that shows all devices as GPUs to a program that asks for those, and is Debian's loader in
 * all else: found by name in LD_LIBRARY_PATH by a program that dlopens it (x264). It gives the native
 * reference for `present-as=gpu`.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint n,
                                               cl_device_id *devices, cl_uint *ret_n)
{
    cl_int (*real)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);

    *(void **)&real = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clGetDeviceIDs");
    return real(platform, type == CL_DEVICE_TYPE_GPU ? CL_DEVICE_TYPE_ALL : type, n, devices, ret_n);
}
