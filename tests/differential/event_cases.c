/* SPDX-License-Identifier: Apache-2.0 */
/* Events: queries, waiting, user events and what becomes of those that wait for a failed one,
 * profiling, callbacks. */
#include "difftest.h"

static void user(void)
{
    struct env env;
    env_init(&env);
    cl_event event = MAKE(clCreateUserEvent, env.context);
    info_event_all(event);
    CALL(clSetUserEventStatus, event, 1);
    CALL(clSetUserEventStatus, event, CL_QUEUED);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    info_event_all(event);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL(clSetUserEventStatus, event, -1);
    CALL(clWaitForEvents, 1, &event);
    CALL(clRetainEvent, event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, event);
    event = MAKE(clCreateUserEvent, env.context);
    CALL(clSetUserEventStatus, event, -42);
    info_event_all(event);
    CALL(clWaitForEvents, 1, &event);
    CALL(clReleaseEvent, event);
    event = MAKE(clCreateUserEvent, env.context);
    CALL(clReleaseEvent, event); /* never set: nobody waits */
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    cl_event none = NULL, two[2] = {NULL, NULL};
    cl_int status = 0;
    cl_int code;
    env_init(&env);
    MAKE(clCreateUserEvent, (cl_context)NULL);
    CALL(clSetUserEventStatus, none, CL_COMPLETE);
    CALL(clWaitForEvents, 0, NULL);
    CALL(clWaitForEvents, 1, NULL);
    CALL(clWaitForEvents, 1, &none);
    CALL(clRetainEvent, none);
    CALL(clReleaseEvent, none);
    CALL(clGetEventInfo, none, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    cl_ulong time = 0;
    CALL_CODE(clGetEventProfilingInfo, none, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL);
    CALL(clSetEventCallback, none, CL_COMPLETE, NULL, NULL);
    cl_event marker = NULL;
    CALL(clEnqueueMarkerWithWaitList, env.queue, 0, NULL, &marker);
    CALL(clFinish, env.queue);
    CALL(clSetUserEventStatus, marker, CL_COMPLETE); /* not a user event */
    cl_event user_event = MAKE(clCreateUserEvent, env.context);
    CALL(clSetUserEventStatus, user_event, CL_COMPLETE);
    two[0] = user_event;
    cl_context other = clCreateContext(NULL, 1, &env.device, NULL, NULL, &code);
    name_handle(ARG_CONTEXT, other);
    two[1] = MAKE(clCreateUserEvent, other);
    CALL(clSetUserEventStatus, two[1], CL_COMPLETE);
    CALL(clWaitForEvents, 2, two);
    CALL(clReleaseEvent, two[1]);
    CALL(clReleaseContext, other);
    CALL(clReleaseEvent, user_event);
    CALL(clReleaseEvent, marker);
    env_fini(&env);
}

static void wait_for_null(void)
{
    struct env env;
    cl_event two[2] = {NULL, NULL};
    env_init(&env);
    two[0] = MAKE(clCreateUserEvent, env.context);
    CALL(clSetUserEventStatus, two[0], CL_COMPLETE);
    CALL(clWaitForEvents, 2, two);
    CALL(clReleaseEvent, two[0]);
    env_fini(&env);
}

/* Behind a user event and without a flush, which waits for it in drivers that run commands in the
 * caller. */
static void gate_unflushed(void)
{
    struct env env;
    int words[4] = {1, 2, 3, 4};
    cl_event write = NULL;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_event event = MAKE(clCreateUserEvent, env.context);
    int value = 9;
    CALL(clEnqueueFillBuffer, env.queue, mem, &value, 4, 0, 8, 1, &event, &write);
    info_event_all(event);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL(clFinish, env.queue);
    info_event_all(write);
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, write);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Work behind a user event does not start before it, and starts after it. */
static void gate(void)
{
    struct env env;
    int k = 1, words[4] = {0};
    size_t global = 4;
    cl_event launch = NULL, read = NULL;
    cl_int status = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    cl_event event = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 1, &event, &launch);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_FALSE, 0, sizeof(words), words, 0, NULL, &read);
    CALL(clFlush, env.queue);
    clGetEventInfo(launch, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    note("launch waits: %s", status == CL_QUEUED || status == CL_SUBMITTED ? "yes" : "no");
    clGetEventInfo(read, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    note("read waits: %s", status == CL_QUEUED || status == CL_SUBMITTED ? "yes" : "no");
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL(clWaitForEvents, 1, &read);
    note_bytes("read", words, sizeof(words));
    note_event_end("launch", launch);
    info_event_all(launch);
    info_event_all(read);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, launch);
    CALL(clReleaseEvent, read);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* A negative status reaches all that wait, directly and in a chain, on every kind of queue. */
static void failure_spreads(void)
{
    for (cl_command_queue_properties bits = 0; bits < 2; bits++) {
        struct env env;
        int k = 1, words[4] = {0};
        size_t global = 4;
        cl_event launch = NULL, next = NULL, marker = NULL;
        env_init(&env);
        cl_command_queue queue = MAKE(clCreateCommandQueue, env.context, env.device, bits);
        if (!queue)
            continue;
        cl_mem mem = env_buffer(&env, sizeof(words), words);
        cl_kernel kernel = env_kernel(&env, "add");
        CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
        CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
        cl_event event = MAKE(clCreateUserEvent, env.context);
        CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 1, &event, &launch);
        CALL(clEnqueueWriteBuffer, queue, mem, CL_FALSE, 0, sizeof(words), words, 1, &launch,
             &next);
        CALL(clEnqueueMarkerWithWaitList, queue, 1, &next, &marker);
        CALL(clSetUserEventStatus, event, -77);
        note_event_end("launch", launch);
        note_event_end("write", next);
        note_event_end("marker", marker);
        /* Nothing is enqueued behind an event that has failed already: in PoCL 3.1 it would wait
         * for ever. */
        CALL(clFinish, queue);
        env_dump_buffer(&env, "untouched", mem, sizeof(words));
        CALL(clReleaseEvent, event);
        CALL(clReleaseEvent, launch);
        CALL(clReleaseEvent, next);
        CALL(clReleaseEvent, marker);
        CALL(clReleaseKernel, kernel);
        CALL(clReleaseMemObject, mem);
        CALL(clReleaseCommandQueue, queue);
        env_fini(&env);
    }
}

static void many_live(void)
{
    enum { N = 10000 };
    static cl_event events[N];
    struct env env;
    int bad = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    for (int i = 0; i < N; i++)
        bad += clEnqueueFillBuffer(env.queue, mem, &i, 4, 0, 64, 0, NULL, &events[i]) != CL_SUCCESS;
    CALL(clFinish, env.queue);
    bad += clWaitForEvents(N, events) != CL_SUCCESS;
    for (int i = 0; i < N; i++) {
        cl_int status = ERRCODE_UNSET;
        bad += clGetEventInfo(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                              NULL);
        bad += status != CL_COMPLETE;
        bad += clReleaseEvent(events[i]) != CL_SUCCESS;
    }
    note("10000 live events, wrong: %d", bad);
    env_dump_buffer(&env, "last fill", mem, 64);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Two queues, each waiting for the other's events in turn. */
static void across_queues(void)
{
    struct env env;
    int words[16];
    size_t global = 16;
    cl_event last = NULL;
    env_init(&env);
    for (int i = 0; i < 16; i++)
        words[i] = i;
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_command_queue other = MAKE(clCreateCommandQueue, env.context, env.device, 0);
    cl_kernel add = env_kernel(&env, "add"), mul = env_kernel(&env, "mul");
    CALL(clSetKernelArg, add, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, mul, 0, sizeof(mem), &mem);
    for (int i = 0; i < 10; i++) {
        int k = i + 2;
        cl_kernel kernel = i % 2 ? mul : add;
        cl_command_queue queue = i % 2 ? other : env.queue;
        cl_uint n = last ? 1 : 0;
        cl_event event = NULL, *wait = last ? &last : NULL;
        CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
        CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, n, wait, &event);
        CALL(clFlush, queue);
        if (last)
            CALL(clReleaseEvent, last);
        last = event;
    }
    note_event_end("last", last);
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clReleaseEvent, last);
    CALL(clReleaseKernel, add);
    CALL(clReleaseKernel, mul);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseCommandQueue, other);
    env_fini(&env);
}

static const struct diff_case event_cases[] = {
    {"user", user},
    {"errors", errors},
    {"wait_for_null", wait_for_null},
    {"gate_unflushed", gate_unflushed},
    {"gate", gate},
    {"failure_spreads", failure_spreads},
    {"many_live", many_live},
    {"across_queues", across_queues},
};
DIFF_FAMILY(event);

/* ---- out of order ---- */

/* A graph with one right answer: eight buffers through layers that wait for each other by events
 * alone. */
static void layers(void)
{
    enum { N = 8, LAYERS = 6, WORDS = 256 };
    struct env env;
    cl_mem mems[N];
    cl_event events[LAYERS][N];
    static int words[WORDS];
    size_t global = WORDS;
    env_init(&env);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (!queue)
        case_end("no out-of-order queue");
    for (int i = 0; i < N; i++) {
        for (int w = 0; w < WORDS; w++)
            words[w] = i * 1000 + w;
        mems[i] = env_buffer(&env, sizeof(words), words);
    }
    cl_kernel add = env_kernel(&env, "add"), copy = env_kernel(&env, "copy");
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < N; i++) {
            cl_event wait[2] = {NULL, NULL};
            cl_uint n = 0;
            if (l > 0) {
                wait[n++] = events[l - 1][i];
                wait[n++] = events[l - 1][i ^ (1 << ((l - 1) % 3))];
            }
            if (l % 2 == 0) {
                int k = l * 10 + i;
                clSetKernelArg(add, 0, sizeof(cl_mem), &mems[i]);
                clSetKernelArg(add, 1, sizeof(k), &k);
                CALL(clEnqueueNDRangeKernel, queue, add, 1, NULL, &global, NULL, n, n ? wait : NULL,
                     &events[l][i]);
            } else if (i % 2 == 0) {
                clSetKernelArg(copy, 0, sizeof(cl_mem), &mems[i]);
                clSetKernelArg(copy, 1, sizeof(cl_mem), &mems[i ^ (1 << ((l - 1) % 3))]);
                /* Even ones write into their partner; the partner's own turn is a marker on the
                 * same waits.
                 */
                CALL(clEnqueueMarkerWithWaitList, queue, n, wait, &events[l][i]);
            } else {
                CALL(clEnqueueCopyBuffer, queue, mems[i], mems[i], 0, 512, 512, n, n ? wait : NULL,
                     &events[l][i]);
            }
        }
    CALL(clEnqueueBarrierWithWaitList, queue, 0, NULL, NULL);
    CALL(clFinish, queue);
    for (int i = 0; i < N; i++)
        env_dump_buffer(&env, "buffer", mems[i], sizeof(words));
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < N; i++)
            clReleaseEvent(events[l][i]);
    for (int i = 0; i < N; i++)
        clReleaseMemObject(mems[i]);
    CALL(clReleaseKernel, add);
    CALL(clReleaseKernel, copy);
    CALL(clReleaseCommandQueue, queue);
    env_fini(&env);
}

/* Behind a user event things wait; beside it they do not. */
static void overtaking(void)
{
    struct env env;
    int words[4] = {0}, k = 1;
    size_t global = 4;
    cl_event held = NULL, free_event = NULL, marker = NULL;
    cl_int status = 0;
    env_init(&env);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (!queue)
        case_end("no out-of-order queue");
    cl_mem a = env_buffer(&env, sizeof(words), words), b = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    cl_event user_event = MAKE(clCreateUserEvent, env.context);
    CALL(clSetKernelArg, kernel, 0, sizeof(a), &a);
    CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 1, &user_event, &held);
    CALL(clSetKernelArg, kernel, 0, sizeof(b), &b);
    CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 0, NULL, &free_event);
    CALL(clFlush, queue);
    note_event_end("free one", free_event);
    clGetEventInfo(held, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    note("held one waits: %s", status == CL_QUEUED || status == CL_SUBMITTED ? "yes" : "no");
    env_dump_buffer(&env, "b", b, sizeof(words));
    /* A marker waits for all before it. */
    CALL(clEnqueueMarkerWithWaitList, queue, 0, NULL, &marker);
    CALL(clFlush, queue);
    clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    note("marker waits: %s", status == CL_COMPLETE ? "no" : "yes");
    CALL(clSetUserEventStatus, user_event, CL_COMPLETE);
    note_event_end("marker", marker);
    note_event_end("held one", held);
    env_dump_buffer(&env, "a", a, sizeof(words));
    CALL(clReleaseEvent, user_event);
    CALL(clReleaseEvent, held);
    CALL(clReleaseEvent, free_event);
    CALL(clReleaseEvent, marker);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    CALL(clReleaseCommandQueue, queue);
    env_fini(&env);
}

/* Barriers alone order an out-of-order queue. */
static void barriers(void)
{
    struct env env;
    int words[64] = {0};
    size_t global = 64;
    env_init(&env);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (!queue)
        case_end("no out-of-order queue");
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel add = env_kernel(&env, "add"), mul = env_kernel(&env, "mul");
    CALL(clSetKernelArg, add, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, mul, 0, sizeof(mem), &mem);
    for (int i = 0; i < 50; i++) {
        int k = i % 5 + 1;
        clSetKernelArg(i % 2 ? mul : add, 1, sizeof(k), &k);
        clEnqueueNDRangeKernel(queue, i % 2 ? mul : add, 1, NULL, &global, NULL, 0, NULL, NULL);
        clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL);
    }
    CALL(clEnqueueReadBuffer, queue, mem, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL);
    note_bytes("after 50", words, sizeof(words));
    CALL(clReleaseKernel, add);
    CALL(clReleaseKernel, mul);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseCommandQueue, queue);
    env_fini(&env);
}

static const struct diff_case graph_cases[] = {
    {"layers", layers},
    {"overtaking", overtaking},
    {"barriers", barriers},
};
DIFF_FAMILY(graph);
