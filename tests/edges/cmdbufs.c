/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers where a driver may do worse than the specification says: what is refused here
 * before a driver reads through NULL, what a recorded launch remembers, the states, lists and
 * limits. And one that ends its driver.
 */
#include "command_buffers.h"
#include "edge.h"

#include <semaphore.h>

#define DEFINE(name) static name##_fn name;
COMMAND_BUFFER_FUNCTIONS(DEFINE)

#define NOTHING 0, NULL, NULL, NULL
#define N       16u
#define MOST    16384u /* commands of one buffer */

/* False: the device has no command buffers, and the case says so. */
static bool open_with_buffers(struct edge *e, cl_command_queue_properties properties)
{
    edge_open(e, properties);
    if (!command_buffer_version(e->device)) {
        edge_close(e);
        return false;
    }
#define FIND(name)                                                                                 \
    name = (name##_fn)(uintptr_t)clGetExtensionFunctionAddressForPlatform(e->platform, #name);     \
    CHECK(name);
    COMMAND_BUFFER_FUNCTIONS(FIND)
    return true;
}

static cl_command_buffer_khr make(cl_command_queue queue,
                                  const cl_command_buffer_properties_khr *properties)
{
    cl_int rc;
    cl_command_buffer_khr b = clCreateCommandBufferKHR(1, &queue, properties, &rc);
    NEED(rc);
    CHECK(b);
    return b;
}

static cl_command_buffer_state_khr state_of(cl_command_buffer_khr b)
{
    cl_command_buffer_state_khr state = 99;
    NEED(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_STATE_KHR, sizeof state, &state, NULL));
    return state;
}

static void zero(const struct edge *e, cl_mem m)
{
    const cl_uint nothing = 0;
    NEED(clEnqueueFillBuffer(e->queue, m, &nothing, sizeof nothing, 0, N * sizeof nothing, 0, NULL,
                             NULL));
}

static void holds(const struct edge *e, cl_mem m, cl_uint value)
{
    cl_uint x[N];
    NEED(clEnqueueReadBuffer(e->queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (cl_uint i = 0; i < N; i++)
        CHECK(x[i] == value);
}

static cl_int record(cl_command_buffer_khr b, cl_kernel k)
{
    const size_t n = N;
    return clCommandNDRangeKernelKHR(b, NULL, NULL, k, 1, NULL, &n, NULL, NOTHING);
}

/* A launch is what it was when it was recorded, whatever becomes of its kernel's arguments, in
 * whatever state it runs. */
static void remembers(const struct edge *e)
{
    cl_mem a = edge_buffer(e, N * 4), b = edge_buffer(e, N * 4);
    cl_kernel k = edge_kernel(e, "add");
    cl_command_buffer_khr buffer = make(e->queue, NULL);
    zero(e, a);
    zero(e, b);
    for (cl_uint v = 1; v <= 4; v++) {
        edge_set_add(k, v % 2 ? a : b, v * 10);
        NEED(record(buffer, k));
    }
    edge_set_add(k, a, 1000);
    NEED(clFinalizeCommandBufferKHR(buffer));
    for (cl_uint i = 1; i <= 3; i++) {
        NEED(clEnqueueCommandBufferKHR(0, NULL, buffer, 0, NULL, NULL));
        holds(e, a, i * 40);
        holds(e, b, i * 60);
        NEED(clFinish(e->queue));
    }
    edge_launch(e->queue, k, N, 0, NULL, NULL);
    holds(e, a, 1120);
    NEED(clReleaseCommandBufferKHR(buffer));
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(a));
    NEED(clReleaseMemObject(b));
}

/* Lists as they were given, and no place that is too small for an answer. */
static void answers(const struct edge *e)
{
    const cl_command_buffer_properties_khr given[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                      CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    cl_command_buffer_khr b = make(e->queue, given), plain = make(e->queue, NULL);
    cl_command_buffer_properties_khr list[4] = {7, 7, 7, 7};
    cl_command_queue queue = NULL;
    cl_uint n;
    size_t size = 0;
    NEED(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR, sizeof list, list,
                                   &size));
    CHECK(size == sizeof given && !memcmp(list, given, sizeof given) && list[3] == 7);
    CHECK(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR, sizeof given - 1,
                                    list, NULL) == CL_INVALID_VALUE);
    NEED(clGetCommandBufferInfoKHR(plain, CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR, sizeof list, list,
                                   &size));
    CHECK(!size);
    NEED(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_QUEUES_KHR, sizeof queue, &queue, &size));
    CHECK(size == sizeof queue && queue == e->queue);
    CHECK(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_QUEUES_KHR, sizeof queue - 1, &queue,
                                    NULL) == CL_INVALID_VALUE);
    CHECK(clGetCommandBufferInfoKHR(b, CL_COMMAND_BUFFER_STATE_KHR, sizeof n - 1, &n, NULL) ==
          CL_INVALID_VALUE);
    NEED(clReleaseCommandBufferKHR(b));
    NEED(clReleaseCommandBufferKHR(plain));
}

static void refuses_memory(const struct edge *e, cl_command_buffer_khr b, cl_mem m)
{
    const size_t at[3] = {0, 0, 0}, region[3] = {4, 1, 1};
    CHECK(clCommandCopyBufferRectKHR(b, NULL, NULL, m, at, at, region, 0, 0, 0, 0, NOTHING) ==
          CL_INVALID_MEM_OBJECT);
    CHECK(clCommandCopyBufferRectKHR(b, NULL, m, NULL, at, at, region, 0, 0, 0, 0, NOTHING) ==
          CL_INVALID_MEM_OBJECT);
    CHECK(clCommandCopyImageToBufferKHR(b, NULL, m, NULL, at, region, 0, NOTHING) ==
          CL_INVALID_MEM_OBJECT);
    CHECK(clCommandCopyBufferKHR(b, NULL, (cl_mem)e->queue, m, 0, 0, 4, NOTHING) ==
          CL_INVALID_MEM_OBJECT);
    CHECK(clCommandCopyBufferKHR(b, NULL, (cl_mem)b, m, 0, 0, 4, NOTHING) == CL_INVALID_MEM_OBJECT);
}

static void refuses_launches(const struct edge *e, cl_command_buffer_khr b, cl_mem m)
{
    const size_t n = N, odd = 5, many[4] = {N, 1, 1, 1};
    const cl_ulong unknown[] = {0x1234, 1, 0}, no_property[] = {0};
    cl_kernel k = edge_kernel(e, "add");
    cl_int rc;
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, NULL, 1, NULL, &n, NULL, NOTHING) ==
          CL_INVALID_KERNEL);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, (cl_kernel)m, 1, NULL, &n, NULL, NOTHING) ==
          CL_INVALID_KERNEL);
    CHECK(record(b, k) == CL_INVALID_KERNEL_ARGS);
    NEED(clSetKernelArg(k, 0, sizeof m, &m));
    CHECK(record(b, k) == CL_INVALID_KERNEL_ARGS);
    edge_set_add(k, m, 1);
    CHECK(clCommandNDRangeKernelKHR(b, e->queue, NULL, k, 1, NULL, &n, NULL, NOTHING) ==
          CL_INVALID_COMMAND_QUEUE);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, unknown, k, 1, NULL, &n, NULL, NOTHING) ==
          CL_INVALID_VALUE);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, k, 0, NULL, &n, NULL, NOTHING) ==
          CL_INVALID_WORK_DIMENSION);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, k, 4, NULL, many, NULL, NOTHING) ==
          CL_INVALID_WORK_DIMENSION);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, k, UINT32_MAX, NULL, many, NULL, NOTHING) ==
          CL_INVALID_WORK_DIMENSION);
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, k, 1, NULL, &n, &odd, NOTHING) ==
          CL_INVALID_WORK_GROUP_SIZE);
    cl_mutable_command_khr handle;
    CHECK(clCommandNDRangeKernelKHR(b, NULL, NULL, k, 1, NULL, &n, NULL, 0, NULL, NULL, &handle) ==
          CL_INVALID_VALUE);
    struct edge other;
    edge_open(&other, 0);
    cl_mem foreign = edge_buffer(&other, N * 4);
    cl_kernel foreign_kernel = edge_kernel(&other, "add");
    edge_set_add(foreign_kernel, foreign, 1);
    CHECK(record(b, foreign_kernel) == CL_INVALID_CONTEXT);
    NEED(clReleaseKernel(foreign_kernel));
    NEED(clReleaseMemObject(foreign));
    edge_close(&other);
    CHECK(!clCreateCommandBufferKHR(1, &(cl_command_queue){NULL}, NULL, &rc) &&
          rc == CL_INVALID_COMMAND_QUEUE);
    CHECK(!clCreateCommandBufferKHR(1, &(cl_command_queue){(cl_command_queue)m}, NULL, &rc) &&
          rc == CL_INVALID_COMMAND_QUEUE);
    /* After all of these, one that is right. */
    NEED(clCommandNDRangeKernelKHR(b, NULL, no_property, k, 1, NULL, &n, NULL, NOTHING));
    NEED(clReleaseKernel(k));
}

/* None of what is refused leaves anything in the buffer. */
static void refuses(const struct edge *e)
{
    cl_mem m = edge_buffer(e, N * 4);
    cl_command_buffer_khr b = make(e->queue, NULL);
    cl_sync_point_khr point = 77;
    zero(e, m);
    refuses_memory(e, b, m);
    refuses_launches(e, b, m);
    NEED(clCommandBarrierWithWaitListKHR(b, NULL, 0, NULL, &point, NULL));
    CHECK(point == 2);
    NEED(clFinalizeCommandBufferKHR(b));
    NEED(clEnqueueCommandBufferKHR(0, NULL, b, 0, NULL, NULL));
    holds(e, m, 1);
    NEED(clReleaseCommandBufferKHR(b));
    NEED(clReleaseMemObject(m));
}

static sem_t reported;

static void CL_CALLBACK ended(cl_event event, cl_int status, void *arg)
{
    (void)event;
    (void)status;
    CHECK(state_of(arg) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    sem_post(&reported);
}

/* Pending until its run is over, however that ends, and not a moment longer. `full`: with a command
 * in it. */
static void states(const struct edge *e, bool full)
{
    cl_mem m = edge_buffer(e, N * 4);
    cl_command_buffer_khr b = make(e->queue, NULL);
    const cl_uint value = 3;
    cl_event run;
    cl_int rc, status;
    sem_init(&reported, 0, 0);
    zero(e, m);
    if (full)
        NEED(
            clCommandFillBufferKHR(b, NULL, m, &value, sizeof value, 0, N * sizeof value, NOTHING));
    CHECK(state_of(b) == CL_COMMAND_BUFFER_STATE_RECORDING_KHR);
    NEED(clFinalizeCommandBufferKHR(b));
    for (int i = 0; i < 40; i++) {
        const bool fails = i % 4 == 3;
        cl_event gate = clCreateUserEvent(e->context, &rc);
        NEED(rc);
        NEED(clEnqueueCommandBufferKHR(0, NULL, b, 1, &gate, &run));
        NEED(clSetEventCallback(run, CL_COMPLETE, ended, b));
        NEED(clFlush(e->queue));
        CHECK(state_of(b) == CL_COMMAND_BUFFER_STATE_PENDING_KHR);
        (void)clFinalizeCommandBufferKHR(b);
        CHECK(state_of(b) == CL_COMMAND_BUFFER_STATE_PENDING_KHR);
        CHECK(clEnqueueCommandBufferKHR(0, NULL, b, 0, NULL, NULL) == CL_INVALID_OPERATION);
        NEED(clGetEventInfo(run, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
        CHECK(status > CL_COMPLETE);
        NEED(clSetUserEventStatus(gate, fails ? -5 : CL_COMPLETE));
        CHECK(clWaitForEvents(1, &run) ==
              (fails ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS));
        CHECK(state_of(b) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
        sem_wait(&reported);
        NEED(clReleaseEvent(run));
        NEED(clReleaseEvent(gate));
    }
    holds(e, m, full ? value : 0);
    NEED(clReleaseCommandBufferKHR(b));
    NEED(clReleaseMemObject(m));
    sem_destroy(&reported);
}

/* So many commands and no more; and the buffer is as good as any other. */
static void limit(const struct edge *e)
{
    cl_command_buffer_khr b = make(e->queue, NULL);
    cl_mem m = edge_buffer(e, N * 4);
    cl_sync_point_khr point = 0;
    zero(e, m);
    for (cl_uint i = 1; i < MOST; i++)
        NEED(clCommandBarrierWithWaitListKHR(b, NULL, 0, NULL, NULL, NULL));
    const cl_uint value = 5;
    NEED(clCommandFillBufferKHR(b, NULL, m, &value, sizeof value, 0, N * sizeof value, 0, NULL,
                                &point, NULL));
    CHECK(point == MOST);
    CHECK(clCommandBarrierWithWaitListKHR(b, NULL, 0, NULL, &point, NULL) == CL_OUT_OF_RESOURCES);
    NEED(clFinalizeCommandBufferKHR(b));
    NEED(clEnqueueCommandBufferKHR(0, NULL, b, 0, NULL, NULL));
    holds(e, m, value);
    NEED(clReleaseCommandBufferKHR(b));
    NEED(clReleaseMemObject(m));
}

int case_cmdbufs(int argc, char **argv)
{
    struct edge e;
    (void)argc;
    (void)argv;
    if (!open_with_buffers(&e, 0))
        return 0;
    remembers(&e);
    answers(&e);
    refuses(&e);
    states(&e, true);
    states(&e, false);
    limit(&e);
    edge_close(&e);
    if (!open_with_buffers(&e, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
        return 0;
    states(&e, true);
    edge_close(&e);
    edge_whole_life();
    return 0;
}

/* What can still be done with command buffers of a vGPU that is gone. */
static void after_loss(const struct edge *e, cl_command_buffer_khr open, cl_command_buffer_khr ran,
                       cl_event run)
{
    cl_int rc, status;
    cl_uint n;
    CHECK(clWaitForEvents(1, &run) < 0);
    NEED(clGetEventInfo(run, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status == CL_OUT_OF_RESOURCES);
    CHECK(state_of(ran) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    CHECK(state_of(open) == CL_COMMAND_BUFFER_STATE_RECORDING_KHR);
    CHECK(clEnqueueCommandBufferKHR(0, NULL, ran, 0, NULL, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueCommandBufferKHR(0, NULL, ran, 0, NULL, &run) == CL_OUT_OF_RESOURCES);
    CHECK(state_of(ran) == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR);
    CHECK(clCommandBarrierWithWaitListKHR(open, NULL, 0, NULL, NULL, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(clFinalizeCommandBufferKHR(open) == CL_OUT_OF_RESOURCES);
    CHECK(!clCreateCommandBufferKHR(1, &e->queue, NULL, &rc) && rc == CL_OUT_OF_RESOURCES);
    NEED(clRetainCommandBufferKHR(ran));
    NEED(clGetCommandBufferInfoKHR(ran, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR, sizeof n, &n, NULL));
    CHECK(n == 2);
    NEED(clReleaseCommandBufferKHR(ran));
}

/*
 * A recorded launch of a kernel with a sampler, on which a driver may end its process (PoCL 3.1).
 * Says "recorded" or "lost", and then looks at a run that was pending, and at what can be done
 * after a loss.
 */
int case_cmdbuf_dies(int argc, char **argv)
{
    static const char *text =
        "kernel void k(global uint4 *x, read_only image2d_t i, sampler_t s) { x[0] = "
        "read_imageui(i, s, (int2)(0)); }";
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    struct edge e;
    cl_event run;
    cl_int rc;
    (void)argc;
    (void)argv;
    if (!open_with_buffers(&e, 0)) {
        edge_say("recorded");
        return 0;
    }
    cl_program program = clCreateProgramWithSource(e.context, 1, &text, NULL, &rc);
    NEED(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    cl_kernel k = clCreateKernel(program, "k", &rc);
    cl_mem m = edge_buffer(&e, N * 4),
           image = clCreateImage(e.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &rc);
    cl_sampler sampler =
        clCreateSampler(e.context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &rc);
    NEED(clSetKernelArg(k, 0, sizeof m, &m));
    NEED(clSetKernelArg(k, 1, sizeof image, &image));
    NEED(clSetKernelArg(k, 2, sizeof(cl_sampler), &sampler));
    cl_command_buffer_khr ran = make(e.queue, NULL), open = make(e.queue, NULL);
    NEED(clFinalizeCommandBufferKHR(ran));
    cl_event gate = clCreateUserEvent(e.context, &rc);
    NEED(rc);
    NEED(clEnqueueCommandBufferKHR(0, NULL, ran, 1, &gate, &run));
    NEED(clFlush(e.queue));
    rc = record(open, k);
    if (rc == CL_SUCCESS) {
        NEED(clSetUserEventStatus(gate, CL_COMPLETE));
        NEED(clWaitForEvents(1, &run));
        NEED(clFinalizeCommandBufferKHR(open));
        NEED(clEnqueueCommandBufferKHR(0, NULL, open, 0, NULL, NULL));
        NEED(clFinish(e.queue));
        edge_say("recorded");
    } else {
        CHECK(rc == CL_OUT_OF_RESOURCES);
        after_loss(&e, open, ran, run);
        edge_say("lost");
    }
    NEED(clReleaseCommandBufferKHR(open));
    NEED(clReleaseCommandBufferKHR(ran));
    NEED(clReleaseEvent(run));
    NEED(clReleaseEvent(gate));
    NEED(clReleaseKernel(k));
    NEED(clReleaseProgram(program));
    NEED(clReleaseSampler(sampler));
    NEED(clReleaseMemObject(image));
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}
