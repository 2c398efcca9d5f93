/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses memory together with its device in ways that bind it to where its vGPU is.
 *
 *     sharing svm     an allocation of shared virtual memory; says "goes", and looks at it when a
 * line has come sharing maps    a buffer is being mapped behind a user event: "goes"; the event is
 * set, and the map looked at, when a line has come
 *
 * Ends with "right", or says what was wrong; 77 and "skipped" where the device has no such memory.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

#define WORDS 65536u

static void await_line(void)
{
    char line[16];
    printf("goes\n");
    HOLDS(fgets(line, sizeof line, stdin));
}

static void svm(cl_context context, cl_device_id device, cl_command_queue queue)
{
    const cl_uint pattern = 77;
    cl_device_svm_capabilities can = 0;
    (void)clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL);
    cl_uint *p = can ? clSVMAlloc(context, CL_MEM_READ_WRITE, WORDS * 4, 0) : NULL;
    if (!p) {
        printf("skipped\n");
        exit(77);
    }
    await_line();
    MUST(clEnqueueSVMMemFill(queue, p, &pattern, sizeof pattern, WORDS * 4, 0, NULL, NULL));
    MUST(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, p, WORDS * 4, 0, NULL, NULL));
    HOLDS(p[0] == 77 && p[WORDS - 1] == 77);
    MUST(clEnqueueSVMUnmap(queue, p, 0, NULL, NULL));
    MUST(clFinish(queue));
    clSVMFree(context, p);
}

static void maps(cl_context context, cl_command_queue queue)
{
    static cl_uint first[WORDS];
    const cl_uint pattern = 78;
    cl_int r;
    cl_event gate = clCreateUserEvent(context, &r), mapped;
    MUST(r);
    cl_mem mem = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof first, first, &r);
    MUST(r);
    MUST(
        clEnqueueFillBuffer(queue, mem, &pattern, sizeof pattern, 0, sizeof first, 1, &gate, NULL));
    cl_uint *p = clEnqueueMapBuffer(queue, mem, CL_FALSE, CL_MAP_READ, 0, sizeof first, 0, NULL,
                                    &mapped, &r);
    MUST(r);
    await_line();
    MUST(clSetUserEventStatus(gate, CL_COMPLETE));
    MUST(clWaitForEvents(1, &mapped));
    HOLDS(p[0] == 78 && p[WORDS - 1] == 78);
    MUST(clEnqueueUnmapMemObject(queue, mem, p, 0, NULL, NULL));
    MUST(clFinish(queue));
    clReleaseEvent(gate), clReleaseEvent(mapped), clReleaseMemObject(mem);
}

int main(int argc, char **argv)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int r;
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    if (argc > 1 && strcmp(argv[1], "svm") == 0)
        svm(context, device, queue);
    else
        maps(context, queue);
    printf("right\n");
    return 0;
}
