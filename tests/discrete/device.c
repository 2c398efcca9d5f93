/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that checks the emulated discrete GPU from outside, through an ICD loader:
 *   device CASE [BYTES]
 * Each case is one function; discrete_test.py sets the device's options, and knows the counts that
 * it leaves. A check that fails is a line on stderr and exit status 1.
 */
#include <CL/cl.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON 0xdbu
#define MIB    (1u << 20)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "device.c:%d: not so: %s\n", __LINE__, #condition);                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == CL_SUCCESS)

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static size_t argument;

static cl_mem buffer_with(cl_mem_flags flags, size_t bytes, void *host_ptr)
{
    cl_int result;
    cl_mem mem = clCreateBuffer(context, flags, bytes, host_ptr, &result);
    CHECK(mem && !result);
    return mem;
}

static cl_mem buffer(size_t bytes)
{
    return buffer_with(CL_MEM_READ_WRITE, bytes, NULL);
}

static cl_int refusal(size_t bytes)
{
    cl_int result = CL_SUCCESS;
    CHECK(!clCreateBuffer(context, 0, bytes, NULL, &result));
    return result;
}

static cl_int fill(cl_mem mem, cl_uchar byte, size_t bytes)
{
    return clEnqueueFillBuffer(queue, mem, &byte, 1, 0, bytes, 0, NULL, NULL);
}

/* Whether all bytes of a buffer are one. */
static bool consists_of(cl_mem mem, cl_uchar byte, size_t bytes)
{
    cl_uchar *back = malloc(bytes);
    OK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, bytes, back, 0, NULL, NULL));
    bool all = true;
    for (size_t i = 0; i < bytes; i++)
        all &= back[i] == byte;
    free(back);
    return all;
}

static cl_kernel kernel(void)
{
    static const char *source =
        "kernel void set(global int *a, int n) { a[get_global_id(0)] = n; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    OK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    cl_kernel k = clCreateKernel(program, "set", NULL);
    const cl_int n = 7;
    CHECK(k);
    OK(clSetKernelArg(k, 1, sizeof n, &n));
    OK(clReleaseProgram(program));
    return k;
}

static cl_int launch(cl_kernel k, size_t n)
{
    return clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, 0, NULL, NULL);
}

/* ---- cases */

static void CL_CALLBACK native(void *args)
{
}

static void facts(void)
{
    cl_device_type type;
    cl_bool unified;
    cl_ulong bytes;
    cl_device_svm_capabilities svm;
    cl_uint n = 0;
    OK(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL));
    OK(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL));
    CHECK(type == CL_DEVICE_TYPE_GPU && !unified && !svm && bytes == argument);
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 0, NULL, &n) == CL_DEVICE_NOT_FOUND);
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 0, NULL, &n));
    CHECK(n == 1);
    CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0));
    CHECK(clEnqueueNativeKernel(queue, native, NULL, 0, 0, NULL, NULL, 0, NULL, NULL) ==
          CL_INVALID_OPERATION);
    CHECK(refusal(argument + 1) == CL_INVALID_BUFFER_SIZE);
}

static void capacity(void)
{
    cl_mem a = buffer(4 * MIB), b = buffer(3 * MIB);
    cl_buffer_region half = {0, MIB};
    cl_mem part = clCreateSubBuffer(a, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, NULL);
    CHECK(part);
    CHECK(refusal(MIB + 1) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(clReleaseMemObject(a));
    /* The part keeps its whole. */
    CHECK(refusal(4 * MIB) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(clReleaseMemObject(part));
    a = buffer(4 * MIB);
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    /* So does an image over a buffer, and no longer than it is there. */
    const cl_image_desc line = {
        .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 1024, .buffer = a};
    cl_mem image = clCreateImage(context, 0, &format, &line, NULL, NULL);
    CHECK(image);
    OK(clReleaseMemObject(a));
    CHECK(refusal(4 * MIB) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(clReleaseMemObject(image));
    a = buffer(4 * MIB);
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 512, .image_height = 513};
    cl_int result;
    CHECK(!clCreateImage(context, 0, &format, &desc, NULL, &result));
    CHECK(result == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
}

static void lazy(void)
{
    cl_mem a = buffer(4 * MIB), b = buffer(4 * MIB), c = buffer(4 * MIB);
    OK(fill(a, 1, 4 * MIB));
    OK(fill(b, 2, 4 * MIB));
    CHECK(fill(c, 3, 4 * MIB) == CL_OUT_OF_RESOURCES);
    cl_kernel k = kernel();
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &c));
    CHECK(launch(k, 4) == CL_OUT_OF_RESOURCES);
    OK(clFinish(queue));
    OK(clReleaseMemObject(a));
    OK(launch(k, 4));
    CHECK(consists_of(b, 2, 4 * MIB));
    OK(clReleaseMemObject(b));
    OK(clReleaseMemObject(c));
    OK(clReleaseKernel(k));
}

static void fail(void)
{
    cl_mem a = buffer(64), b = buffer(64);
    CHECK(refusal(64) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    cl_mem c = buffer(64);
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseMemObject(c));
}

/* Holds memory until it is told to end; "refused" if there is none. */
static void hold(void)
{
    cl_int result;
    cl_mem mem = clCreateBuffer(context, 0, argument, NULL, &result);
    CHECK(mem ? !result : result == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    puts(mem ? "holds" : "refused");
    fflush(stdout);
    if (mem)
        getchar();
    if (mem)
        OK(clReleaseMemObject(mem));
}

static void bus(void)
{
    cl_mem a = buffer(4 * MIB), b = buffer(4 * MIB);
    cl_command_queue other = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
    char *bytes = malloc(4 * MIB);
    cl_event writes[2], first;
    memset(bytes, 5, 4 * MIB);
    /* Two queues, one bus; a write that waits does not hold it. */
    cl_event gate = clCreateUserEvent(context, NULL);
    OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, 4 * MIB, bytes, 1, &gate, &writes[0]));
    OK(clEnqueueWriteBuffer(other, b, CL_FALSE, 0, 4 * MIB, bytes, 0, NULL, &first));
    OK(clFlush(other));
    OK(clWaitForEvents(1, &first));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clEnqueueWriteBuffer(other, b, CL_FALSE, 0, MIB, bytes, 0, NULL, &writes[1]));
    OK(clWaitForEvents(2, writes));
    CHECK(consists_of(a, 5, 4 * MIB));
    OK(clEnqueueReadBuffer(other, b, CL_TRUE, 0, MIB, bytes, 0, NULL, NULL));
    void *at = clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ, 0, 2 * MIB, 0, NULL, NULL, NULL);
    OK(clEnqueueUnmapMemObject(queue, a, at, 0, NULL, NULL));
    OK(clFinish(queue));
    free(bytes);
}

static void poison(void)
{
    cl_mem a = buffer(MIB);
    CHECK(consists_of(a, POISON, MIB));
    OK(fill(a, 1, MIB));
    OK(clFinish(queue));
    OK(clReleaseMemObject(a));
    a = buffer(MIB);
    CHECK(consists_of(a, POISON, MIB));
    OK(clReleaseMemObject(a));
}

static void *map(cl_mem mem, cl_map_flags flags, size_t offset, size_t bytes)
{
    cl_int result;
    void *at =
        clEnqueueMapBuffer(queue, mem, CL_TRUE, flags, offset, bytes, 0, NULL, NULL, &result);
    CHECK(at && !result);
    return at;
}

static void unmap(cl_mem mem, void *at)
{
    OK(clEnqueueUnmapMemObject(queue, mem, at, 0, NULL, NULL));
    OK(clFinish(queue));
}

static void host_pointer(void)
{
    cl_uchar host[4096];
    cl_mem_flags flags;
    void *given;
    memset(host, 1, sizeof host);
    cl_mem a = buffer_with(CL_MEM_USE_HOST_PTR, sizeof host, host);
    OK(clGetMemObjectInfo(a, CL_MEM_FLAGS, sizeof flags, &flags, NULL));
    OK(clGetMemObjectInfo(a, CL_MEM_HOST_PTR, sizeof given, &given, NULL));
    CHECK(flags == CL_MEM_USE_HOST_PTR && given == host);
    /* Neither side sees the other's stores without a map. */
    memset(host, 2, sizeof host);
    CHECK(consists_of(a, 1, sizeof host));
    OK(fill(a, 3, sizeof host));
    OK(clFinish(queue));
    CHECK(host[0] == 2 && host[4095] == 2);
    cl_uchar *at = map(a, CL_MAP_READ | CL_MAP_WRITE, 1024, 1024);
    CHECK(at == host + 1024 && at[0] == 3 && at[1023] == 3 && host[1023] == 2 && host[2048] == 2);
    memset(at, 4, 1024);
    CHECK(consists_of(a, 3, sizeof host));
    unmap(a, at);
    CHECK(at[0] == 4);
    cl_uchar back[4096];
    OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
    CHECK(back[1023] == 3 && back[1024] == 4 && back[2047] == 4 && back[2048] == 3);
    OK(clReleaseMemObject(a));
}

static void maps(void)
{
    cl_mem a = buffer(4096);
    OK(fill(a, 1, 4096));
    cl_uchar *at = map(a, CL_MAP_WRITE, 0, 1024);
    CHECK(at[0] == 1 && at[1023] == 1);
    memset(at, 2, 1024);
    CHECK(consists_of(a, 1, 4096));
    unmap(a, at);
    CHECK(at[0] == POISON && at[1023] == POISON);
    /* The unmap of a read map writes nothing back; a map that invalidates reads nothing. */
    at = map(a, CL_MAP_READ, 0, 4096);
    CHECK(at[1023] == 2 && at[1024] == 1);
    memset(at, 9, 4096);
    unmap(a, at);
    at = map(a, CL_MAP_WRITE_INVALIDATE_REGION, 4000, 96);
    CHECK(at[0] == POISON);
    memset(at, 3, 96);
    unmap(a, at);
    cl_uchar back[4096];
    OK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
    CHECK(back[1023] == 2 && back[1024] == 1 && back[3999] == 1 && back[4000] == 3);
    OK(clReleaseMemObject(a));
}

static void images(void)
{
    const cl_image_format format = {CL_R, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = 4,
                                .image_height = 3,
                                .image_row_pitch = 8};
    cl_uchar host[24];
    size_t pitch = 0;
    cl_int result;
    for (size_t i = 0; i < sizeof host; i++)
        host[i] = (cl_uchar)i;
    cl_mem image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, host, &result);
    CHECK(image && !result);
    const size_t origin[] = {1, 1, 0}, region[] = {2, 2, 1}, zero[3] = {0}, all[] = {4, 3, 1};
    cl_uchar *at = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin,
                                     region, &pitch, NULL, 0, NULL, NULL, &result);
    CHECK(at && !result && at[0] == 9 && at[1] == 10 && at[pitch] == 17 && at[pitch + 1] == 18);
    at[0] = 99;
    at[pitch + 1] = 98;
    unmap(image, at);
    cl_uchar back[12];
    const cl_uchar right[] = {0, 1, 2, 3, 8, 99, 10, 11, 16, 17, 98, 19};
    OK(clEnqueueReadImage(queue, image, CL_TRUE, zero, all, 0, 0, back, 0, NULL, NULL));
    CHECK(!memcmp(back, right, sizeof back));
    OK(clReleaseMemObject(image));
}

/* Results, and the order of commands, in a queue of either kind. */
static void asynchronous(void)
{
    const cl_queue_properties any[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                       0};
    cl_command_queue out_of_order = clCreateCommandQueueWithProperties(context, device, any, NULL);
    cl_mem a = buffer(4096), b = buffer(4096);
    cl_event filled, copied;
    const cl_uchar six = 6;
    OK(fill(a, 5, 4096));
    OK(clEnqueueCopyBuffer(queue, a, b, 0, 0, 4096, 0, NULL, NULL));
    OK(fill(a, 1, 4096));
    CHECK(consists_of(b, 5, 4096));
    OK(clEnqueueFillBuffer(out_of_order, a, &six, 1, 0, 4096, 0, NULL, &filled));
    OK(clEnqueueCopyBuffer(out_of_order, a, b, 0, 0, 4096, 1, &filled, &copied));
    OK(clWaitForEvents(1, &copied));
    CHECK(consists_of(b, 6, 4096));
    /* A command fails with its wait list. */
    cl_event gate = clCreateUserEvent(context, NULL), ends;
    cl_int status;
    OK(clEnqueueFillBuffer(out_of_order, a, &six, 1, 0, 4096, 1, &gate, &ends));
    OK(clSetUserEventStatus(gate, -7));
    CHECK(clWaitForEvents(1, &ends) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clGetEventInfo(ends, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status < 0);
}

static _Atomic int n_destroyed;

static void CL_CALLBACK destroyed(cl_mem mem, void *data)
{
    atomic_fetch_add(&n_destroyed, 1);
}

/* So late that it does not come. */
static void late(void)
{
    cl_mem a = buffer(4 * MIB);
    OK(clSetMemObjectDestructorCallback(a, destroyed, NULL));
    OK(clReleaseMemObject(a));
    CHECK(refusal(4 * MIB) == CL_MEM_OBJECT_ALLOCATION_FAILURE && n_destroyed == 0);
}

static void late_but_not_never(void)
{
    cl_mem a = buffer(4 * MIB);
    OK(clSetMemObjectDestructorCallback(a, destroyed, NULL));
    OK(clReleaseMemObject(a));
    while (!clCreateBuffer(context, 0, 4 * MIB, NULL, NULL)) {
    }
    CHECK(n_destroyed == 1);
}

static void retain(void)
{
    cl_kernel k = kernel();
    cl_mem a = buffer(4 * MIB), b = buffer(64);
    cl_uint n = 0;
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &a));
    OK(clGetMemObjectInfo(a, CL_MEM_REFERENCE_COUNT, sizeof n, &n, NULL));
    CHECK(n == 1);
    OK(clReleaseMemObject(a));
    CHECK(refusal(4 * MIB) == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(launch(k, 4));
    OK(clFinish(queue));
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &b));
    a = buffer(4 * MIB);
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &a));
    OK(clReleaseMemObject(a));
    OK(clReleaseKernel(k));
    OK(clReleaseMemObject(buffer(4 * MIB)));
}

static void launches(void)
{
    cl_kernel k = kernel();
    cl_mem a = buffer(64);
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &a));
    for (int i = 0; i < 3; i++)
        OK(launch(k, 4));
    OK(clFinish(queue));
}

static void released(void)
{
    cl_kernel k = kernel();
    cl_mem a = buffer(64);
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &a));
    OK(clReleaseMemObject(a));
    (void)launch(k, 4);
    exit(3);
}

/* Another object in its place, with its handle perhaps, is another object. */
static void replaced(void)
{
    cl_kernel k = kernel();
    cl_mem a = buffer(64);
    OK(clSetKernelArg(k, 0, sizeof(cl_mem), &a));
    OK(clReleaseMemObject(a));
    (void)buffer(64);
    (void)launch(k, 4);
    exit(3);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"facts", facts},
             {"capacity", capacity},
             {"lazy", lazy},
             {"fail", fail},
             {"hold", hold},
             {"bus", bus},
             {"poison", poison},
             {"host_pointer", host_pointer},
             {"maps", maps},
             {"images", images},
             {"asynchronous", asynchronous},
             {"late", late},
             {"late_but_not_never", late_but_not_never},
             {"retain", retain},
             {"launches", launches},
             {"released", released},
             {"replaced", replaced}};

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    argument = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
    CHECK(context && queue);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "device.c: no case %s\n", argv[1]);
    return 2;
}
