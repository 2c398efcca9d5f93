/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks about an object of each kind what only a younger driver knows, and gives
 * pointers of its own for the values of keys that nobody else knows. Each is refused as the
 * specification says, no answer comes, and the device goes on: "right".
 *
 *     unknown
 */
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moves/must.h"

/* Lists of texts and numbers (SPIR-V), capabilities of what is not offered, and nobody's. */
static const cl_uint questions[] = {0,      1,      0x12b9, 0x12ba, 0x12bb,     0x1076,    0x4190,
                                    0x4194, 0x5000, 0x7777, 0xdead, 0x7fffffff, 0xffffffff};
#define N_QUESTIONS (sizeof questions / sizeof questions[0])

static int n_wrong;

static void expect(const char *what, cl_uint question, cl_int is, cl_int should)
{
    if (is == should)
        return;
    printf("%s %#x: %d and not %d\n", what, question, is, should);
    n_wrong++;
}

#define REFUSES(call, ...)                                                                         \
    for (size_t i = 0; i < N_QUESTIONS; i++) {                                                     \
        unsigned char answer[64], none[64];                                                        \
        size_t n = 77;                                                                             \
        memset(answer, 0xa5, sizeof answer);                                                       \
        memset(none, 0xa5, sizeof none);                                                           \
        expect(#call, questions[i], call(__VA_ARGS__, questions[i], sizeof answer, answer, &n),    \
               CL_INVALID_VALUE);                                                                  \
        expect(#call " without room", questions[i], call(__VA_ARGS__, questions[i], 0, NULL, &n),  \
               CL_INVALID_VALUE);                                                                  \
        if (n != 77 || memcmp(answer, none, sizeof none) != 0)                                     \
            expect(#call " answers", questions[i], 0, 1);                                          \
    }

int main(void)
{
    static const char *source = "kernel void k(global int *a) { a[0] = 42; }";
    static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    static const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    char *own = calloc(1, 64);
    cl_platform_id platform;
    cl_device_id device;
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &r);
    MUST(r);
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &r);
    MUST(r);
    cl_sampler sampler =
        clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &r);
    MUST(r);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "k", &r);
    MUST(r);
    cl_event event;
    MUST(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    MUST(clWaitForEvents(1, &event));

    REFUSES(clGetPlatformInfo, platform)
    REFUSES(clGetDeviceInfo, device)
    REFUSES(clGetContextInfo, context)
    REFUSES(clGetCommandQueueInfo, queue)
    REFUSES(clGetMemObjectInfo, buffer)
    REFUSES(clGetImageInfo, image)
    REFUSES(clGetSamplerInfo, sampler)
    REFUSES(clGetProgramInfo, program)
    REFUSES(clGetProgramBuildInfo, program, device)
    REFUSES(clGetKernelInfo, kernel)
    REFUSES(clGetKernelArgInfo, kernel, 0)
    REFUSES(clGetKernelWorkGroupInfo, kernel, device)
    REFUSES(clGetEventInfo, event)

    const cl_mem_properties of_memory[] = {0x8000, (cl_mem_properties)(uintptr_t)own, 0};
    const cl_mem_properties address[] = {0x5000, 1, 0};
    const cl_queue_properties of_queue[] = {CL_QUEUE_PROPERTIES, 0, 0x418c,
                                            (cl_queue_properties)(uintptr_t)own, 0};
    const cl_sampler_properties of_sampler[] = {0x8000, (cl_sampler_properties)(uintptr_t)own, 0};
    const cl_context_properties of_context[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0x40b0,
                                                (cl_context_properties)own, 0};
    const cl_device_partition_property of_parts[] = {0x4052, (cl_device_partition_property)own, 0};
    expect("clCreateBufferWithProperties", 0x8000,
           (clCreateBufferWithProperties(context, of_memory, 0, 64, NULL, &r), r),
           CL_INVALID_PROPERTY);
    expect("clCreateBufferWithProperties", 0x5000,
           (clCreateBufferWithProperties(context, address, 0, 64, NULL, &r), r),
           CL_INVALID_PROPERTY);
    expect("clCreateImageWithProperties", 0x8000,
           (clCreateImageWithProperties(context, of_memory, 0, &format, &desc, NULL, &r), r),
           CL_INVALID_PROPERTY);
    expect("clCreateCommandQueueWithProperties", 0x418c,
           (clCreateCommandQueueWithProperties(context, device, of_queue, &r), r),
           CL_INVALID_VALUE);
    expect("clCreateSamplerWithProperties", 0x8000,
           (clCreateSamplerWithProperties(context, of_sampler, &r), r), CL_INVALID_VALUE);
    expect("clCreateContext", 0x40b0, (clCreateContext(of_context, 1, &device, NULL, NULL, &r), r),
           CL_INVALID_PROPERTY);
    expect("clCreateContextFromType", 0x40b0,
           (clCreateContextFromType(of_context, CL_DEVICE_TYPE_ALL, NULL, NULL, &r), r),
           CL_INVALID_PROPERTY);
    expect("clCreateSubDevices", 0x4052,
           clCreateSubDevices(device, of_parts, 0, NULL, &(cl_uint){0}), CL_INVALID_VALUE);
    expect("clCreateSubBuffer", 0x8000, (clCreateSubBuffer(buffer, 0, 0x8000, own, &r), r),
           CL_INVALID_VALUE);
    expect("clSetKernelExecInfo", 0x4203, clSetKernelExecInfo(kernel, 0x4203, sizeof own, &own),
           CL_INVALID_VALUE);
    /* A device without pipes says so first. */
    clCreatePipe(context, 0, 16, 8,
                 (const cl_pipe_properties[]){0x8000, (cl_pipe_properties)own, 0}, &r);
    if (r != CL_INVALID_OPERATION)
        expect("clCreatePipe", 0x8000, r, CL_INVALID_VALUE);

    int answer = 0;
    MUST(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &(size_t){1}, NULL, 0, NULL, NULL));
    MUST(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof answer, &answer, 0, NULL, NULL));
    expect("the kernel's answer", 0, answer, 42);
    free(own);
    if (!n_wrong)
        puts("right");
    return n_wrong ? 1 : 0;
}
