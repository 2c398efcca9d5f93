/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of cl_khr_command_buffer, for programs that find them at run time and call them by
 * their own names. CL/cl_ext.h declares functions of these names too, but not here.
 */
#ifndef GN_TESTS_COMMAND_BUFFERS_H
#define GN_TESTS_COMMAND_BUFFERS_H

#define CL_NO_PROTOTYPES
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <string.h>

/* X(name): its type is name##_fn. */
#define COMMAND_BUFFER_FUNCTIONS(X)                                                                \
    X(clCreateCommandBufferKHR)                                                                    \
    X(clFinalizeCommandBufferKHR)                                                                  \
    X(clRetainCommandBufferKHR)                                                                    \
    X(clReleaseCommandBufferKHR)                                                                   \
    X(clEnqueueCommandBufferKHR)                                                                   \
    X(clCommandBarrierWithWaitListKHR)                                                             \
    X(clCommandCopyBufferKHR)                                                                      \
    X(clCommandCopyBufferRectKHR)                                                                  \
    X(clCommandCopyBufferToImageKHR)                                                               \
    X(clCommandCopyImageKHR)                                                                       \
    X(clCommandCopyImageToBufferKHR)                                                               \
    X(clCommandFillBufferKHR)                                                                      \
    X(clCommandFillImageKHR)                                                                       \
    X(clCommandNDRangeKernelKHR)                                                                   \
    X(clGetCommandBufferInfoKHR)

/* The version of the extension that the device has; 0: none. */
static inline cl_version command_buffer_version(cl_device_id device)
{
    cl_name_version list[512];
    size_t bytes = 0;
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof list, list, &bytes) !=
        CL_SUCCESS)
        return 0;
    for (size_t i = 0; i < bytes / sizeof list[0]; i++)
        if (!strcmp(list[i].name, "cl_khr_command_buffer"))
            return list[i].version;
    return 0;
}

#endif
