/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated device's answers to queries, and its refusals: a GPU with memory of its own,
 * without shared virtual memory and native kernels. Called on any thread.
 */
#include "discrete.h"

/* The type to ask PoCL for: its processor plays the GPU, and there is no processor. */
static cl_device_type type_of_driver(cl_device_type type)
{
    if (type == CL_DEVICE_TYPE_ALL || type == CL_DEVICE_TYPE_DEFAULT)
        return type;
    const cl_device_type both = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU;
    const cl_device_type others = type & ~both;
    return others | (type & CL_DEVICE_TYPE_GPU ? CL_DEVICE_TYPE_CPU : 0) |
           (type & CL_DEVICE_TYPE_CPU ? CL_DEVICE_TYPE_GPU : 0);
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint n,
                                     cl_device_id *devices, cl_uint *ret_n)
{
    return driver->clGetDeviceIDs(platform, type_of_driver(type), n, devices, ret_n);
}

static cl_context CL_API_CALL context_of_type(const cl_context_properties *properties,
                                              cl_device_type type,
                                              void(CL_CALLBACK *notify)(const char *, const void *,
                                                                        size_t, void *),
                                              void *data, cl_int *result)
{
    return driver->clCreateContextFromType(properties, type_of_driver(type), notify, data, result);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    cl_int result = driver->clGetDeviceInfo(device, what, size, value, size_ret);
    if (result || !value)
        return result;
    switch (what) {
    case CL_DEVICE_TYPE: {
        cl_device_type *type = value;
        if (*type & CL_DEVICE_TYPE_CPU)
            *type = (*type & ~(cl_device_type)CL_DEVICE_TYPE_CPU) | CL_DEVICE_TYPE_GPU;
        break;
    }
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        *(cl_bool *)value = CL_FALSE;
        break;
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        *(cl_ulong *)value = dg_options.capacity_bytes;
        break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        if (*(cl_ulong *)value > dg_options.capacity_bytes)
            *(cl_ulong *)value = dg_options.capacity_bytes;
        break;
    case CL_DEVICE_SVM_CAPABILITIES:
        *(cl_device_svm_capabilities *)value = 0;
        break;
    case CL_DEVICE_EXECUTION_CAPABILITIES:
        *(cl_device_exec_capabilities *)value &=
            ~(cl_device_exec_capabilities)CL_EXEC_NATIVE_KERNEL;
        break;
    default:
        break;
    }
    return result;
}

/* ---- calls that the device refuses */

static cl_int CL_API_CALL native_kernel(cl_command_queue queue, void(CL_CALLBACK *call)(void *),
                                        void *args, size_t size, cl_uint n_mems, const cl_mem *mems,
                                        const void **places, cl_uint n, const cl_event *waits,
                                        cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static void *CL_API_CALL svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment)
{
    return NULL;
}

static void CL_API_CALL svm_free(cl_context context, void *at)
{
}

static cl_int CL_API_CALL
svm_enqueue_free(cl_command_queue queue, cl_uint n_pointers, void *pointers[],
                 void(CL_CALLBACK *call)(cl_command_queue, cl_uint, void *[], void *), void *data,
                 cl_uint n, const cl_event *waits, cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocking, void *to,
                                   const void *from, size_t size, cl_uint n, const cl_event *waits,
                                   cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_fill(cl_command_queue queue, void *at, const void *pattern,
                                   size_t pattern_size, size_t size, cl_uint n,
                                   const cl_event *waits, cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                  void *at, size_t size, cl_uint n, const cl_event *waits,
                                  cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue queue, void *at, cl_uint n,
                                    const cl_event *waits, cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_migrate(cl_command_queue queue, cl_uint n_pointers,
                                      const void **pointers, const size_t *sizes,
                                      cl_mem_migration_flags flags, cl_uint n,
                                      const cl_event *waits, cl_event *event)
{
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL svm_argument(cl_kernel kernel, cl_uint index, const void *at)
{
    return CL_INVALID_OPERATION;
}

void dg_replace_devices(cl_icd_dispatch *table)
{
    table->clGetDeviceIDs = device_ids;
    table->clCreateContextFromType = context_of_type;
    table->clGetDeviceInfo = device_info;
    table->clEnqueueNativeKernel = native_kernel;
    table->clSVMAlloc = svm_alloc;
    table->clSVMFree = svm_free;
    table->clEnqueueSVMFree = svm_enqueue_free;
    table->clEnqueueSVMMemcpy = svm_copy;
    table->clEnqueueSVMMemFill = svm_fill;
    table->clEnqueueSVMMap = svm_map;
    table->clEnqueueSVMUnmap = svm_unmap;
    table->clEnqueueSVMMigrateMem = svm_migrate;
    table->clSetKernelArgSVMPointer = svm_argument;
}
