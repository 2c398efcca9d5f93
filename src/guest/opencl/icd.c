/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The five functions that an ICD loader looks up (docs/icd.md). No other code in this library may
 * refer to them by name: the loader's own functions of the same names would be found instead.
 * Called on the program's threads, possibly with the loader's locks held.
 */
#include "opencl_guest.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id *platforms,
                                                 cl_uint *num_platforms);
EXPORT void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform,
                                                               const char *func_name);
EXPORT cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform,
                                                          void *dispatch_data);

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id *platforms,
                                                 cl_uint *num_platforms)
{
    return gn_clGetPlatformIDs(num_entries, platforms, num_platforms);
}

EXPORT void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform,
                                                               const char *func_name)
{
    return gn_object_of(platform, GN_KIND_PLATFORM) && func_name ? gn_opencl_function(func_name)
                                                                 : NULL;
}

EXPORT cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform,
                                                          void *dispatch_data)
{
    struct gn_cl_root *root = gn_object_of(platform, GN_KIND_PLATFORM);
    if (!root)
        return CL_INVALID_PLATFORM;
    root->o.dispatch_data = dispatch_data;
    const struct gn_cl_devices *devices = gn_cl_devices_of(root);
    for (cl_uint i = 0; i < devices->n; i++)
        devices->all[i]->o.dispatch_data = dispatch_data;
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                                            size_t param_value_size, void *param_value,
                                            size_t *param_value_size_ret)
{
    return gn_clGetPlatformInfo(platform, param_name, param_value_size, param_value,
                                param_value_size_ret);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *func_name)
{
    return gn_clGetExtensionFunctionAddress(func_name);
}

void *CL_API_CALL gn_clGetExtensionFunctionAddress(const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"clIcdGetPlatformIDsKHR", (void *)clIcdGetPlatformIDsKHR},
        {"clIcdGetFunctionAddressForPlatformKHR", (void *)clIcdGetFunctionAddressForPlatformKHR},
        {"clIcdSetPlatformDispatchDataKHR", (void *)clIcdSetPlatformDispatchDataKHR},
        {"clGetPlatformInfo", (void *)gn_clGetPlatformInfo},
        {"clGetExtensionFunctionAddress", (void *)gn_clGetExtensionFunctionAddress},
        /* Extension functions that became core functions with the same meaning. */
        {"clCreateCommandQueueWithPropertiesKHR", (void *)gn_clCreateCommandQueueWithProperties},
        {"clGetKernelSubGroupInfoKHR", (void *)gn_clGetKernelSubGroupInfoKHR},
        {"clCreateProgramWithILKHR", (void *)gn_clCreateProgramWithIL},
    };
    const char *extension;
    for (size_t i = 0; name && i < GN_ARRAY_SIZE(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    /* A loader does not ask for these while it holds its locks, so this may attach to gantryd. */
    if (!name || !gn_opencl_extension_function(name, &extension))
        return NULL;
    const struct gn_cl_root *root = gn_first_platform();
    return root ? gn_platform_function(root, name) : NULL;
}

void *CL_API_CALL gn_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                              const char *name)
{
    const struct gn_cl_root *root = gn_object_of(platform, GN_KIND_PLATFORM);
    const char *extension;
    if (root && name && gn_opencl_extension_function(name, &extension))
        return gn_platform_function(root, name);
    return root ? gn_clGetExtensionFunctionAddress(name) : NULL;
}
