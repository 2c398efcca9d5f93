/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that khronos_like.c runs through a loader's tables. It makes one object of every
 * kind, looks at every handle that comes back from a call, a query or a callback, and checks one
 * result.
 */
#include "khronos_like.h"

#include <CL/cl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N 256

static const char *const source =
    "__kernel void add(__global int *a, int b) { a[get_global_id(0)] += b; }";

struct callback {
    pthread_mutex_t lock;
    pthread_cond_t called;
    cl_event event;
    cl_program program;
};

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user)
{
    struct callback *c = user;
    pthread_mutex_lock(&c->lock);
    c->event = event;
    pthread_cond_signal(&c->called);
    pthread_mutex_unlock(&c->lock);
}

static void CL_CALLBACK on_build(cl_program program, void *user)
{
    struct callback *c = user;
    pthread_mutex_lock(&c->lock);
    c->program = program;
    pthread_cond_signal(&c->called);
    pthread_mutex_unlock(&c->lock);
}

/* A handle that a query returns must be the one that the program has. */
#define SAME_HANDLE(call, object, name, expected)                                                  \
    do {                                                                                           \
        void *handle_ = NULL;                                                                      \
        CHECK(table_for(v, object)->call(object, name, sizeof(handle_), &handle_, NULL) ==         \
              CL_SUCCESS);                                                                         \
        if (handle_ != (void *)(expected))                                                         \
            fail("%s does not return the handle that the program has", #name);                     \
    } while (0)

static void sub_devices(const struct vendor *v, cl_device_id device)
{
    const cl_device_partition_property by_counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    const cl_icd_dispatch *cl = table_for(v, device);
    cl_uint room = 0;
    cl_device_id parts[2];

    CHECK(cl->clGetDeviceInfo(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof(room), &room,
                              NULL) == CL_SUCCESS);
    if (room < 2 || cl->clCreateSubDevices(device, by_counts, 2, parts, NULL) != CL_SUCCESS)
        return;
    for (int i = 0; i < 2; i++) {
        check_object(v, parts[i], "a sub-device");
        SAME_HANDLE(clGetDeviceInfo, parts[i], CL_DEVICE_PARENT_DEVICE, device);
        SAME_HANDLE(clGetDeviceInfo, parts[i], CL_DEVICE_PLATFORM, v->platform);
        CHECK(table_for(v, parts[i])->clReleaseDevice(parts[i]) == CL_SUCCESS);
    }
}

/* Entry points of interoperations that are not there refuse, in the shape of their own prototype.
 */
static void interop_refuses(const struct vendor *v, cl_context context, cl_command_queue queue,
                            cl_platform_id platform)
{
    typedef cl_int (*devices_fn)(cl_platform_id, cl_uint, void *, cl_uint, cl_uint, cl_device_id *,
                                 cl_uint *);
    typedef cl_mem (*buffer_fn)(cl_context, cl_mem_flags, void *, cl_int *);
    typedef cl_int (*acquire_fn)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
                                 const cl_event *, cl_event *);
    const cl_icd_dispatch *cl = table_for(v, context);
    cl_int err = CL_SUCCESS;
    devices_fn devices;
    buffer_fn buffer;
    acquire_fn acquire;

    if (!v->own)
        return;
    CHECK(cl->clCreateFromGLBuffer(context, CL_MEM_READ_WRITE, 1, &err) == NULL &&
          err == CL_INVALID_OPERATION);
    CHECK(cl->clCreateFromGLBuffer(context, CL_MEM_READ_WRITE, 1, NULL) == NULL);
    CHECK(cl->clEnqueueAcquireGLObjects(queue, 0, NULL, 0, NULL, NULL) == CL_INVALID_OPERATION);
    memcpy(&devices, &cl->clGetDeviceIDsFromD3D10KHR, sizeof(devices));
    CHECK(devices(platform, 0, NULL, 0, 0, NULL, NULL) == CL_INVALID_OPERATION);
    memcpy(&buffer, &cl->clCreateFromD3D11BufferKHR, sizeof(buffer));
    err = CL_SUCCESS;
    CHECK(buffer(context, CL_MEM_READ_WRITE, NULL, &err) == NULL && err == CL_INVALID_OPERATION);
    memcpy(&acquire, &cl->clEnqueueAcquireDX9MediaSurfacesKHR, sizeof(acquire));
    CHECK(acquire(queue, 0, NULL, 0, NULL, NULL) == CL_INVALID_OPERATION);
}

static cl_program build(const struct vendor *v, cl_context context, cl_device_id device,
                        struct callback *c)
{
    const cl_icd_dispatch *cl = table_for(v, context);
    const char *text = source;
    cl_int err;
    cl_program program = cl->clCreateProgramWithSource(context, 1, &text, NULL, &err);

    CHECK(err == CL_SUCCESS);
    check_object(v, program, "a program");
    SAME_HANDLE(clGetProgramInfo, program, CL_PROGRAM_CONTEXT, context);
    SAME_HANDLE(clGetProgramInfo, program, CL_PROGRAM_DEVICES, device);
    CHECK(cl->clBuildProgram(program, 1, &device, "", on_build, c) == CL_SUCCESS);
    pthread_mutex_lock(&c->lock);
    while (!c->program)
        pthread_cond_wait(&c->called, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->program != program)
        fail("the build callback got another handle than the program's");
    return program;
}

static void images_and_samplers(const struct vendor *v, cl_context context, cl_device_id device)
{
    const cl_icd_dispatch *cl = table_for(v, context);
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
    cl_bool supported = CL_FALSE;
    cl_int err;

    CHECK(cl->clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(supported), &supported,
                              NULL) == CL_SUCCESS);
    if (!supported)
        return;
    cl_mem image = cl->clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, image, "an image");
    SAME_HANDLE(clGetMemObjectInfo, image, CL_MEM_CONTEXT, context);
    CHECK(table_for(v, image)->clReleaseMemObject(image) == CL_SUCCESS);
    cl_sampler sampler =
        cl->clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, sampler, "a sampler");
    SAME_HANDLE(clGetSamplerInfo, sampler, CL_SAMPLER_CONTEXT, context);
    CHECK(table_for(v, sampler)->clReleaseSampler(sampler) == CL_SUCCESS);
}

static void launch(const struct vendor *v, cl_context context, cl_command_queue queue,
                   cl_program program, struct callback *c)
{
    const cl_icd_dispatch *cl = table_for(v, context);
    const size_t global = N;
    const cl_buffer_region half = {0, N / 2 * sizeof(cl_int)};
    const cl_int addend = 42;
    cl_int in[N], out[N];
    cl_int err;
    cl_event event;

    for (int i = 0; i < N; i++)
        in[i] = i * 3;
    cl_mem buffer =
        cl->clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(in), in, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, buffer, "a buffer");
    cl_mem part = table_for(v, buffer)->clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                                          &half, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, part, "a sub-buffer");
    SAME_HANDLE(clGetMemObjectInfo, part, CL_MEM_ASSOCIATED_MEMOBJECT, buffer);

    cl_kernel kernel = table_for(v, program)->clCreateKernel(program, "add", &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, kernel, "a kernel");
    SAME_HANDLE(clGetKernelInfo, kernel, CL_KERNEL_PROGRAM, program);
    CHECK(table_for(v, kernel)->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer) == CL_SUCCESS);
    CHECK(table_for(v, kernel)->clSetKernelArg(kernel, 1, sizeof(addend), &addend) == CL_SUCCESS);

    cl_event gate = cl->clCreateUserEvent(context, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, gate, "a user event");
    CHECK(table_for(v, queue)->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 1,
                                                      &gate, &event) == CL_SUCCESS);
    check_object(v, event, "an event");
    SAME_HANDLE(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, queue);
    SAME_HANDLE(clGetEventInfo, event, CL_EVENT_CONTEXT, context);
    CHECK(table_for(v, event)->clSetEventCallback(event, CL_COMPLETE, on_event, c) == CL_SUCCESS);
    CHECK(table_for(v, gate)->clSetUserEventStatus(gate, CL_COMPLETE) == CL_SUCCESS);
    CHECK(table_for(v, event)->clWaitForEvents(1, &event) == CL_SUCCESS);
    pthread_mutex_lock(&c->lock);
    while (!c->event)
        pthread_cond_wait(&c->called, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->event != event)
        fail("the event callback got another handle than the event's");

    CHECK(table_for(v, queue)->clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(out), out, 0,
                                                   NULL, NULL) == CL_SUCCESS);
    for (int i = 0; i < N; i++)
        CHECK(out[i] == i * 3 + 42);

    CHECK(table_for(v, event)->clReleaseEvent(event) == CL_SUCCESS);
    CHECK(table_for(v, gate)->clReleaseEvent(gate) == CL_SUCCESS);
    CHECK(table_for(v, kernel)->clReleaseKernel(kernel) == CL_SUCCESS);
    CHECK(table_for(v, part)->clReleaseMemObject(part) == CL_SUCCESS);
    CHECK(table_for(v, buffer)->clReleaseMemObject(buffer) == CL_SUCCESS);
}

void run_program(const struct vendor *v)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)v->platform, 0};
    static struct callback
        callbacks[32]; /* one a round; never reused, since a driver may still hold it */
    static unsigned round;
    struct callback *c = &callbacks[round++];
    cl_device_id device;
    cl_int err;

    CHECK(round <= 32 && pthread_mutex_init(&c->lock, NULL) == 0 &&
          pthread_cond_init(&c->called, NULL) == 0);
    CHECK(table_for(v, v->platform)
              ->clGetDeviceIDs(v->platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS);
    SAME_HANDLE(clGetDeviceInfo, device, CL_DEVICE_PLATFORM, v->platform);
    sub_devices(v, device);

    cl_context context =
        table_for(v, device)->clCreateContext(properties, 1, &device, NULL, NULL, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, context, "a context");
    SAME_HANDLE(clGetContextInfo, context, CL_CONTEXT_DEVICES, device);
    cl_command_queue queue =
        table_for(v, context)
            ->clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &err);
    CHECK(err == CL_SUCCESS);
    check_object(v, queue, "a command queue");
    SAME_HANDLE(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT, context);
    SAME_HANDLE(clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE, device);

    cl_program program = build(v, context, device, c);
    launch(v, context, queue, program, c);
    images_and_samplers(v, context, device);
    interop_refuses(v, context, queue, v->platform);

    CHECK(table_for(v, program)->clReleaseProgram(program) == CL_SUCCESS);
    CHECK(table_for(v, queue)->clFinish(queue) == CL_SUCCESS);
    CHECK(table_for(v, queue)->clReleaseCommandQueue(queue) == CL_SUCCESS);
    CHECK(table_for(v, context)->clReleaseContext(context) == CL_SUCCESS);
}
