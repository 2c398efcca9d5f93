/* SPDX-License-Identifier: Apache-2.0 */
/* Command queues: every way to make one, hints, queries, flush and finish, errors. */
#include "difftest.h"

static void create(void)
{
    struct env env;
    env_init(&env);
    for (cl_command_queue_properties bits = 0; bits < 4; bits++) {
        cl_command_queue queue = MAKE(clCreateCommandQueue, env.context, env.device, bits);
        if (!queue)
            continue;
        info_queue_all(queue);
        CALL(clFlush, queue);
        CALL(clFinish, queue);
        CALL(clReleaseCommandQueue, queue);
    }
    env_fini(&env);
}

static void create_with_properties(void)
{
    struct env env;
    env_init(&env);
    const cl_queue_properties lists[][7] = {
        {0},
        {CL_QUEUE_PROPERTIES, 0, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE,
         0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
         CL_QUEUE_SIZE, 1024, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE, 0},
        {CL_QUEUE_PROPERTIES, 0, CL_QUEUE_SIZE, 1024, 0},
        {CL_QUEUE_PROPERTIES, 1 << 20, 0},
        {0x7777, 1, 0},
        {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR, 0},
        {CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR, CL_QUEUE_THROTTLE_KHR,
         CL_QUEUE_THROTTLE_LOW_KHR, 0},
        {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_THROTTLE_KHR,
         CL_QUEUE_THROTTLE_HIGH_KHR, 0},
        {CL_QUEUE_PRIORITY_KHR, 0x99, 0},
    };
    cl_command_queue_properties on_device = 0;
    clGetDeviceInfo(env.device, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, sizeof(on_device), &on_device,
                    NULL);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        /* PoCL ends the process when asked for a queue on a device that has none. */
        if (lists[i][0] == CL_QUEUE_PROPERTIES && (lists[i][1] & CL_QUEUE_ON_DEVICE) && !on_device)
            continue;
        note("list %zu", i);
        cl_command_queue queue =
            MAKE(clCreateCommandQueueWithProperties, env.context, env.device, lists[i]);
        if (!queue)
            continue;
        info_queue_all(queue);
        CALL(clReleaseCommandQueue, queue);
    }
    cl_command_queue queue =
        MAKE(clCreateCommandQueueWithProperties, env.context, env.device, NULL);
    if (queue) {
        info_queue_all(queue);
        CALL(clRetainCommandQueue, queue);
        CALL(clReleaseCommandQueue, queue);
        CALL(clReleaseCommandQueue, queue);
    }
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    cl_command_queue none = NULL;
    cl_uint n = 0;
    env_init(&env);
    MAKE(clCreateCommandQueue, (cl_context)NULL, env.device, 0);
    MAKE(clCreateCommandQueue, env.context, (cl_device_id)NULL, 0);
    MAKE(clCreateCommandQueue, env.context, env.device, 1 << 20);
    MAKE(clCreateCommandQueueWithProperties, (cl_context)NULL, env.device, NULL);
    MAKE(clCreateCommandQueueWithProperties, env.context, (cl_device_id)NULL, NULL);
    CALL(clRetainCommandQueue, none);
    CALL(clReleaseCommandQueue, none);
    CALL(clFlush, none);
    CALL(clFinish, none);
    CALL(clGetCommandQueueInfo, none, CL_QUEUE_REFERENCE_COUNT, sizeof(n), &n, NULL);
    CALL(clGetCommandQueueInfo, env.queue, CL_QUEUE_REFERENCE_COUNT, 1, &n, NULL);
    CALL(clGetCommandQueueInfo, env.queue, 0, sizeof(n), &n, NULL);
    env_fini(&env);
}

/* Releasing the last reference flushes: the work is done all the same. */
static void release_with_work(void)
{
    struct env env;
    int words[256];
    cl_event done = NULL;
    env_init(&env);
    memset(words, 0, sizeof(words));
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    int k = 3;
    size_t global = 256;
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    cl_command_queue queue = MAKE(clCreateCommandQueue, env.context, env.device, 0);
    CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 0, NULL, &done);
    CALL(clReleaseCommandQueue, queue);
    CALL(clReleaseKernel, kernel);
    note_event_end("second launch", done);
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clReleaseEvent, done);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void many(void)
{
    struct env env;
    cl_command_queue queues[64];
    int value = 0, ok = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(value), &value);
    for (int i = 0; i < 64; i++) {
        cl_int code;
        queues[i] = clCreateCommandQueue(env.context, env.device, i & 2, &code);
        value = i;
        ok += code == CL_SUCCESS && clEnqueueWriteBuffer(queues[i], mem, CL_TRUE, 0, sizeof(value),
                                                         &value, 0, NULL, NULL) == CL_SUCCESS;
    }
    note("64 queues used: %d", ok);
    env_dump_buffer(&env, "buffer", mem, sizeof(value));
    for (int i = 0; i < 64; i++)
        ok -= clReleaseCommandQueue(queues[i]) == CL_SUCCESS;
    note("not released: %d", ok);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case queue_cases[] = {
    {"create", create}, {"create_with_properties", create_with_properties},
    {"errors", errors}, {"release_with_work", release_with_work},
    {"many", many},
};
DIFF_FAMILY(queue);
