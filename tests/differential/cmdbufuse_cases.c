/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers at work: what their commands do, the states, events and queues of a run. PoCL 3.1
 * ends the program when an event that a run waits for fails, or when a kernel that takes a sampler
 * is recorded, and departs from the specification where a kernel's arguments are set anew after it
 * was recorded, where a pending buffer is finalized, and where one without commands waits for
 * events: it is not asked.
 */
#include "cmdbuf.h"

#define NOTHING 0, NULL, NULL, NULL

static void finalize_and_run(struct env *env, cl_command_buffer_khr buffer)
{
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    CALL(clFinish, env->queue);
    cmdbuf_settle(buffer);
}

static void copies(void)
{
    struct env env;
    unsigned char bytes[256];
    const cl_ulong wide[4] = {1, 2, 3, 4};
    cl_sync_point_khr point = 77;
    cmdbuf_init(&env);
    fill_pattern(bytes, sizeof(bytes), 1);
    cl_mem a = env_buffer(&env, 256, bytes), b = env_buffer(&env, 256, bytes),
           c = env_buffer(&env, 256, bytes);
    cl_buffer_region half = {128, 64};
    cl_mem part =
        MAKE(clCreateSubBuffer, c, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &wide[0], 1, 3, 5, 0, NULL, &point, NULL);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &wide[1], 2, 20, 6, 1, &point, &point, NULL);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, wide, sizeof(wide), 64, 96, 1, &point, &point,
         NULL);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 60, 10, 100, 1, &point, &point, NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 1, &point, &point, NULL);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, b, c, V3(4, 1, 0), V3(1, 2, 1), V3(6, 3, 2), 16,
         64, 10, 50, 1, &point, &point, NULL);
    CALL(clCommandCopyBufferRectKHR, buffer, NULL, a, c, V3(0, 0, 0), V3(8, 0, 0), V3(8, 2, 1), 0,
         0, 16, 0, 1, &point, NULL, NULL);
    CALL(clCommandFillBufferKHR, buffer, NULL, part, &wide[3], 8, 8, 16, NOTHING);
    env_dump_buffer(&env, "before", c, 256);
    finalize_and_run(&env, buffer);
    env_dump_buffer(&env, "a", a, 256);
    env_dump_buffer(&env, "b", b, 256);
    env_dump_buffer(&env, "c", c, 256);
    /* Again, over what the program has written in between. */
    CALL(clEnqueueWriteBuffer, env.queue, b, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    env_dump_buffer(&env, "b again", b, 256);
    env_dump_buffer(&env, "part", part, 64);
    CALL(clFinish, env.queue);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, part);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    CALL(clReleaseMemObject, c);
    env_fini(&env);
}

static void record_launch(cl_command_buffer_khr buffer, cl_kernel kernel, cl_mem mem, cl_int k)
{
    size_t n = 16;
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, kernel, 1, NULL, &n, NULL, NOTHING);
}

static void launches(void)
{
    struct env env;
    cl_int zero = 0;
    cmdbuf_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL), other = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_kernel add = env_kernel(&env, "add"), mul = env_kernel(&env, "mul"),
              copy = env_kernel(&env, "copy");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    record_launch(buffer, add, mem, 5);
    record_launch(buffer, mul, mem, 3);
    size_t n = 16;
    CALL(clSetKernelArg, copy, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, copy, 1, sizeof(other), &other);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, copy, 1, NULL, &n, NULL, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    env_dump_buffer(&env, "not yet", mem, 64);
    for (unsigned i = 0; i < 4; i++) {
        CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
        env_dump_buffer(&env, "run", other, 64);
        cmdbuf_settle(buffer);
    }
    /* What else the queue is given comes in between. */
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 32, 0, NULL, NULL);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, mul, 1, NULL, &n, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "mem", mem, 64);
    env_dump_buffer(&env, "other", other, 64);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, add);
    CALL(clReleaseKernel, mul);
    CALL(clReleaseKernel, copy);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, other);
    env_fini(&env);
}

static void shapes(void)
{
    struct env env;
    cl_uint k = 2;
    cmdbuf_init(&env);
    cl_mem a = env_buffer(&env, 4096, NULL), b = env_buffer(&env, 1024, NULL),
           c = env_buffer(&env, 1024, NULL);
    cl_uint zero = 0;
    CALL(clEnqueueFillBuffer, env.queue, a, &zero, 4, 0, 4096, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, b, &zero, 4, 0, 1024, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, c, &zero, 4, 0, 1024, 0, NULL, NULL);
    cl_kernel ids = env_kernel(&env, "ids"), sum = env_kernel(&env, "local_sum"),
              fixed = env_kernel(&env, "fixed");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clSetKernelArg, ids, 0, sizeof(a), &a);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, ids, 3, V3(1, 2, 3), V3(8, 4, 2),
         V3(4, 2, 1), NOTHING);
    CALL(clSetKernelArg, sum, 0, sizeof(b), &b);
    CALL(clSetKernelArg, sum, 1, 8 * sizeof(cl_uint), NULL);
    CALL(clSetKernelArg, sum, 2, 8, NULL);
    CALL(clSetKernelArg, sum, 3, sizeof(k), &k);
    size_t n = 64, local = 8;
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, sum, 1, NULL, &n, &local, NOTHING);
    CALL(clSetKernelArg, fixed, 0, sizeof(c), &c);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, fixed, 2, NULL, V2(8, 4), V2(4, 2),
         NOTHING);
    finalize_and_run(&env, buffer);
    env_dump_buffer(&env, "ids", a, 256);
    env_dump_buffer(&env, "sums", b, 32);
    env_dump_buffer(&env, "fixed", c, 128);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, ids);
    CALL(clReleaseKernel, sum);
    CALL(clReleaseKernel, fixed);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    CALL(clReleaseMemObject, c);
    env_fini(&env);
}

static void images(void)
{
    struct env env;
    static const cl_uint color[4] = {1, 2, 3, 4};
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    unsigned char bytes[256], got[256] = {0};
    cl_sync_point_khr point = 0;
    cmdbuf_init(&env);
    if (!env.images)
        case_end("no images");
    fill_pattern(bytes, sizeof(bytes), 2);
    cl_mem a = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    cl_mem b = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    cl_mem in = env_buffer(&env, 256, bytes), out = env_buffer(&env, 256, bytes);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandCopyBufferToImageKHR, buffer, NULL, in, a, 0, V3(0, 0, 0), V3(8, 8, 1), 0, NULL,
         &point, NULL);
    CALL(clCommandFillImageKHR, buffer, NULL, a, color, V3(2, 1, 0), V3(3, 4, 1), 1, &point, &point,
         NULL);
    CALL(clCommandCopyImageKHR, buffer, NULL, a, b, V3(0, 0, 0), V3(0, 0, 0), V3(8, 8, 1), 1,
         &point, &point, NULL);
    CALL(clCommandCopyImageToBufferKHR, buffer, NULL, b, out, V3(1, 1, 0), V3(6, 5, 1), 16, 1,
         &point, &point, NULL);
    finalize_and_run(&env, buffer);
    CALL(clEnqueueReadImage, env.queue, b, CL_TRUE, V3(0, 0, 0), V3(8, 8, 1), 0, 0, got, 0, NULL,
         NULL);
    note_bytes("image", got, sizeof(got));
    env_dump_buffer(&env, "out", out, 256);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    CALL(clReleaseMemObject, in);
    CALL(clReleaseMemObject, out);
    env_fini(&env);
}

static void image_kernel(void)
{
    struct env env;
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 4};
    cmdbuf_init(&env);
    if (!env.images)
        case_end("no images");
    cl_mem image = MAKE(clCreateImage, env.context, CL_MEM_READ_WRITE, &format, &desc, NULL);
    cl_mem out = env_buffer(&env, 64, NULL);
    cl_kernel dims = env_kernel(&env, "image_dims");
    size_t one = 1;
    CALL(clSetKernelArg, dims, 0, sizeof(image), &image);
    CALL(clSetKernelArg, dims, 1, sizeof(out), &out);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, dims, 1, NULL, &one, NULL, NOTHING);
    finalize_and_run(&env, buffer);
    env_dump_buffer(&env, "dims", out, 16);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, dims);
    CALL(clReleaseMemObject, image);
    CALL(clReleaseMemObject, out);
    env_fini(&env);
}

static void shared_memory(void)
{
    struct env env;
    cl_int k = 7;
    size_t n = 16;
    cl_device_svm_capabilities svm = 0;
    cmdbuf_init(&env);
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL);
    if (!(svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
        case_end("no memory to share");
    cl_int *x = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0);
    memset(x, 0, 64);
    cl_kernel add = env_kernel(&env, "add");
    CALL(clSetKernelArgSVMPointer, add, 0, x);
    CALL(clSetKernelArg, add, 1, sizeof(k), &k);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, add, 1, NULL, &n, NULL, NOTHING);
    finalize_and_run(&env, buffer);
    note_bytes("shared", x, 64);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note_bytes("shared", x, 64);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, add);
    CALL_VOID(clSVMFree, env.context, x);
    env_fini(&env);
}

static void prints(void)
{
    struct env env;
    cl_int k = 3;
    size_t n = 4;
    cl_device_command_buffer_capabilities_khr can = 0;
    cmdbuf_init(&env);
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(can), &can,
         NULL);
    if (!(can & CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR))
        case_end("recorded kernels do not print");
    cl_kernel hello = env_kernel(&env, "hello");
    CALL(clSetKernelArg, hello, 0, sizeof(k), &k);
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, hello, 1, NULL, &n, NULL, NOTHING);
    start_capture();
    finalize_and_run(&env, buffer);
    note_captured("a run");
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note_captured("another run");
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, hello);
    env_fini(&env);
}

/* A buffer whose only command fills `mem`. */
static cl_command_buffer_khr filler(cl_command_queue queue, cl_command_buffer_flags_khr flags,
                                    cl_mem mem, cl_uint value)
{
    cl_command_buffer_khr buffer = cmdbuf_make(queue, flags);
    CALL(clCommandFillBufferKHR, buffer, NULL, mem, &value, 4, 0, 64, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    return buffer;
}

static void states(void)
{
    struct env env;
    cl_event event = NULL, refused = NULL;
    cl_uint zero = 0;
    cmdbuf_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_command_buffer_khr buffer = filler(env.queue, 0, mem, 9);
    cl_event gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 1, &gate, &event);
    CALL(clFlush, env.queue);
    cmdbuf_note_state(buffer);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, &refused);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
    cmdbuf_note_state(buffer);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    note_event_end("run", event);
    cmdbuf_settle(buffer);
    env_dump_buffer(&env, "mem", mem, 64);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, &event);
    note_event_end("run", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void simultaneous(void)
{
    struct env env;
    cl_event events[3] = {0};
    cl_int zero = 0;
    cl_device_command_buffer_capabilities_khr can = 0;
    cmdbuf_init(&env);
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(can), &can,
         NULL);
    if (!(can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR))
        case_end("not at the same time");
    cl_mem mem = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_kernel add = env_kernel(&env, "add");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    record_launch(buffer, add, mem, 5);
    CALL(clFinalizeCommandBufferKHR, buffer);
    cl_event gate = MAKE(clCreateUserEvent, env.context);
    for (unsigned i = 0; i < 3; i++) {
        cl_event event = NULL;
        CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, i ? 0 : 1, i ? NULL : &gate, &event);
        events[i] = event;
    }
    CALL(clFlush, env.queue);
    cmdbuf_note_state(buffer);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    for (unsigned i = 0; i < 3; i++)
        note_event_end("run", events[i]);
    cmdbuf_settle(buffer);
    env_dump_buffer(&env, "mem", mem, 64);
    for (unsigned i = 0; i < 3; i++)
        CALL(clReleaseEvent, events[i]);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, add);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void events(void)
{
    struct env env;
    static struct latch latch;
    cl_event event = NULL, after = NULL;
    cl_ulong times[4] = {0};
    cl_uint zero = 0;
    cmdbuf_init(&env);
    latch_init(&latch);
    cl_mem mem = env_buffer(&env, 64, NULL), copied = env_buffer(&env, 64, NULL);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_PROFILING_ENABLE);
    cl_command_buffer_khr buffer = filler(queue, 0, mem, 4);
    CALL(clEnqueueFillBuffer, queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_event gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 1, &gate, &event);
    CALL(clEnqueueCopyBuffer, env.queue, mem, copied, 0, 0, 64, 1, &event, &after);
    info_event_all(event);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    CALL(clFlush, queue);
    note_event_end("after the run", after);
    info_event_all(event);
    env_dump_buffer(&env, "copied", copied, 64);
    for (cl_uint i = 0; i < 4; i++) {
        cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i,
                                              sizeof(times[i]), &times[i], NULL);
        note("clGetEventProfilingInfo(%u) -> %s", i, error_name(code));
    }
    note("in order: %s",
         times[0] && times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3] ? "yes"
                                                                                          : "no");
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, after);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseCommandQueue, queue);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, copied);
    env_fini(&env);
}

static void enqueue_errors(void)
{
    struct env env;
    cl_event event = NULL;
    cl_command_buffer_khr none = NULL;
    cl_command_queue no_queue = NULL;
    cmdbuf_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_command_buffer_khr buffer = filler(env.queue, 0, mem, 4);
    cl_command_queue twice[2] = {env.queue, env.queue};
    cl_command_queue loose =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_context context = MAKE(clCreateContext, NULL, 1, &env.device, NULL, NULL);
    cl_command_queue foreign = MAKE(clCreateCommandQueue, context, env.device, 0);
    cl_event gate = MAKE(clCreateUserEvent, context);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, none, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 1, NULL, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 0, &env.queue, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 2, twice, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 1, &no_queue, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 1, &loose, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 1, &foreign, buffer, 0, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 1, NULL, &event);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, &gate, &event);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 1, &gate, &event);
    cmdbuf_note_state(buffer);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseCommandQueue, foreign);
    CALL(clReleaseCommandQueue, loose);
    CALL(clReleaseContext, context);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void other_queue(void)
{
    struct env env;
    cl_event event = NULL;
    cl_uint zero = 0;
    cl_command_queue shown = NULL;
    cmdbuf_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_command_queue queue = MAKE(clCreateCommandQueue, env.context, env.device, 0);
    cl_command_buffer_khr buffer = filler(env.queue, 0, mem, 6);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clEnqueueCommandBufferKHR, 1, &queue, buffer, 0, NULL, &event);
    CALL(clFinish, queue);
    CALL(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, sizeof(shown), &shown, NULL);
    note("  queue %s", handle_name(shown));
    note_event_end("run", event);
    cmdbuf_settle(buffer);
    env_dump_buffer(&env, "mem", mem, 64);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueCommandBufferKHR, 1, &env.queue, buffer, 0, NULL, &event);
    note_event_end("run", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseCommandQueue, queue);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void out_of_order(void)
{
    struct env env;
    cl_int zero = 0, k = 1;
    size_t n = 16;
    cl_device_command_buffer_capabilities_khr can = 0;
    cl_sync_point_khr points[5] = {0};
    cl_event event = NULL;
    cmdbuf_init(&env);
    CALL(clGetDeviceInfo, env.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof(can), &can,
         NULL);
    if (!(can & CL_COMMAND_BUFFER_CAPABILITY_OUT_OF_ORDER_KHR))
        case_end("in order only");
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem a = env_buffer(&env, 64, NULL), b = env_buffer(&env, 64, NULL);
    cl_kernel add = env_kernel(&env, "add");
    cl_command_buffer_khr buffer = cmdbuf_make(queue, 0);
    CALL(clCommandFillBufferKHR, buffer, NULL, a, &zero, 4, 0, 64, 0, NULL, &points[0], NULL);
    CALL(clCommandFillBufferKHR, buffer, NULL, b, &zero, 4, 0, 64, 0, NULL, &points[1], NULL);
    CALL(clSetKernelArg, add, 0, sizeof(a), &a);
    CALL(clSetKernelArg, add, 1, sizeof(k), &k);
    CALL(clCommandNDRangeKernelKHR, buffer, NULL, NULL, add, 1, NULL, &n, NULL, 1, points,
         &points[2], NULL);
    CALL(clCommandCopyBufferKHR, buffer, NULL, a, b, 0, 16, 16, 2, &points[1], &points[3], NULL);
    CALL(clCommandBarrierWithWaitListKHR, buffer, NULL, 0, NULL, &points[4], NULL);
    CALL(clCommandCopyBufferKHR, buffer, NULL, b, a, 16, 0, 4, 1, &points[4], NULL, NULL);
    CALL(clFinalizeCommandBufferKHR, buffer);
    for (unsigned i = 0; i < 3; i++) {
        CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, &event);
        note_event_end("run", event);
        cmdbuf_settle(buffer);
        CALL(clReleaseEvent, event);
        env_dump_buffer(&env, "a", a, 64);
        env_dump_buffer(&env, "b", b, 64);
    }
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, add);
    CALL(clReleaseCommandQueue, queue);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

/* What was recorded lives on in the buffer, and the buffer in its run. */
static void released(void)
{
    struct env env;
    cl_int zero = 0;
    cl_event event = NULL;
    cmdbuf_init(&env);
    cl_mem hidden = env_buffer(&env, 64, NULL), mem = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, hidden, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_kernel add = env_kernel(&env, "add");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, 0);
    record_launch(buffer, add, hidden, 5);
    CALL(clCommandCopyBufferKHR, buffer, NULL, hidden, mem, 0, 0, 64, NOTHING);
    CALL(clFinalizeCommandBufferKHR, buffer);
    CALL(clReleaseMemObject, hidden);
    CALL(clReleaseKernel, add);
    CALL(clReleaseProgram, env.program);
    env.program = NULL;
    for (unsigned i = 0; i < 2; i++) {
        CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 0, NULL, NULL);
        env_dump_buffer(&env, "mem", mem, 64);
        cmdbuf_settle(buffer);
    }
    cl_event gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueCommandBufferKHR, 0, NULL, buffer, 1, &gate, &event);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    note_event_end("run", event);
    env_dump_buffer(&env, "mem", mem, 64);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* More commands than a request has room for, and more runs than a queue holds. */
static void many(void)
{
    struct env env;
    cl_int zero = 0, code = CL_SUCCESS;
    size_t n = 16;
    cmdbuf_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    cl_kernel add = env_kernel(&env, "add");
    cl_command_buffer_khr buffer = cmdbuf_make(env.queue, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR);
    record_launch(buffer, add, mem, 1);
    for (unsigned i = 0; i < 200 && !code; i++)
        code = clCommandNDRangeKernelKHR(buffer, NULL, NULL, add, 1, NULL, &n, NULL, NOTHING);
    note("recorded: %s", error_name(code));
    CALL(clFinalizeCommandBufferKHR, buffer);
    for (unsigned i = 0; i < 50 && !code; i++)
        code = clEnqueueCommandBufferKHR(0, NULL, buffer, 0, NULL, NULL);
    note("enqueued: %s", error_name(code));
    env_dump_buffer(&env, "mem", mem, 64);
    CALL(clFinish, env.queue);
    cmdbuf_settle(buffer);
    CALL(clReleaseCommandBufferKHR, buffer);
    CALL(clReleaseKernel, add);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case cmdbufuse_cases[] = {
    {"copies", copies},
    {"launches", launches},
    {"shapes", shapes},
    {"images", images},
    {"image_kernel", image_kernel},
    {"shared_memory", shared_memory},
    {"prints", prints},
    {"states", states},
    {"simultaneous", simultaneous},
    {"events", events},
    {"enqueue_errors", enqueue_errors},
    {"other_queue", other_queue},
    {"out_of_order", out_of_order},
    {"released", released},
    {"many", many},
};
DIFF_FAMILY(cmdbufuse);
