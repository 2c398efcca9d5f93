/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL program that holds its vGPU: makes a queue, says so, and ends when its stdin does. */
#include <CL/cl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int rc;
    char byte;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 3;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    cl_command_queue queue = rc ? NULL : clCreateCommandQueue(context, device, 0, &rc);
    if (rc || clFinish(queue))
        return 4;
    puts("holding");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
