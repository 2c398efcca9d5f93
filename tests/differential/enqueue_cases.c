/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: sizes and offsets in one to three dimensions, tasks, markers and barriers, everything
 * that may be wrong. */
#include "difftest.h"

static void ranges(void)
{
    static const struct {
        cl_uint dims;
        size_t offset[3], global[3], local[3];
        bool has_offset, has_local;
    } launches[] = {
        {1, {0}, {64}, {0}, false, false},
        {1, {0}, {64}, {16}, false, true},
        {1, {0}, {1}, {1}, false, true},
        {1, {7}, {33}, {0}, true, false},
        {1, {1000}, {64}, {8}, true, true},
        {2, {0}, {8, 8}, {0}, false, false},
        {2, {3, 5}, {8, 8}, {4, 2}, true, true},
        {2, {0, 1}, {1, 64}, {1, 8}, true, true},
        {3, {0}, {4, 4, 4}, {0}, false, false},
        {3, {1, 2, 3}, {4, 4, 4}, {2, 2, 2}, true, true},
        {3, {0}, {2, 3, 5}, {2, 3, 5}, false, true},
    };
    struct env env;
    unsigned zero[64] = {0};
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(zero), zero);
    cl_kernel kernel = env_kernel(&env, "ids");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
        cl_event event = NULL;
        const size_t *offset = launches[i].has_offset ? launches[i].offset : NULL;
        const size_t *local = launches[i].has_local ? launches[i].local : NULL;
        cl_uint dims = launches[i].dims;
        CALL(clEnqueueFillBuffer, env.queue, mem, zero, 4, 0, sizeof(zero), 0, NULL, NULL);
        CALL(clEnqueueNDRangeKernel, env.queue, kernel, dims, offset, launches[i].global, local, 0,
             NULL, &event);
        note_event_end("launch", event);
        info_event_all(event);
        env_dump_buffer(&env, "ids", mem, sizeof(zero));
        CALL(clReleaseEvent, event);
    }
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void groups(void)
{
    struct env env;
    size_t global = 24, local = 6, offset = 6;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 24 * 16, NULL);
    cl_kernel kernel = env_kernel(&env, "groups");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    env_dump_buffer(&env, "groups", mem, 24 * 16);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, &offset, &global, &local, 0, NULL, NULL);
    env_dump_buffer(&env, "groups with offset", mem, 24 * 16);
    /* The driver's own choice of a size for NULL: the same one through any path. */
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "groups of its choice", mem, 24 * 16);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    int k = 1;
    size_t global[4] = {64, 4, 4, 4}, zero[3] = {0, 0, 0}, local[3] = {16, 1, 1},
           odd[3] = {7, 1, 1};
    size_t big[3] = {1 << 20, 1, 1}, high[3] = {SIZE_MAX - 8, 0, 0};
    cl_event event = NULL;
    cl_int code;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 4096, NULL);
    cl_kernel kernel = env_kernel(&env, "add"), fixed = env_kernel(&env, "fixed"),
              fresh = env_kernel(&env, "mul");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clSetKernelArg, fixed, 0, sizeof(mem), &mem);
    CALL(clEnqueueNDRangeKernel, (cl_command_queue)NULL, kernel, 1, NULL, global, NULL, 0, NULL,
         NULL);
    /* No NULL kernel: PoCL 3.1 crashes. */
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 0, NULL, global, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 4, NULL, global, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, NULL, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, zero, NULL, 0, NULL, &event);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, global, odd, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, big, big, 0, NULL, NULL);
    cl_kernel empty =
        env_kernel(&env, "empty"); /* PoCL launches it all the same, so it must touch nothing */
    CALL(clEnqueueNDRangeKernel, env.queue, empty, 1, high, global, local, 0, NULL, NULL);
    CALL(clReleaseKernel, empty);
    /* No count without a list, nor a list with a NULL event: PoCL 3.1 crashes. */
    CALL(clEnqueueNDRangeKernel, env.queue, fresh, 1, NULL, global, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, fixed, 1, NULL, global, local, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, fixed, 2, NULL, global, NULL, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, fixed, 2, NULL, V2(8, 4), V2(4, 2), 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, fixed, 2, NULL, V2(8, 4), V2(2, 4), 0, NULL, NULL);
    CALL(clFinish, env.queue);
    cl_context other = clCreateContext(NULL, 1, &env.device, NULL, NULL, &code);
    name_handle(ARG_CONTEXT, other);
    cl_command_queue elsewhere = MAKE(clCreateCommandQueue, other, env.device, 0);
    CALL(clEnqueueNDRangeKernel, elsewhere, kernel, 1, NULL, global, NULL, 0, NULL, NULL);
    CALL(clReleaseCommandQueue, elsewhere);
    CALL(clReleaseContext, other);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseKernel, fixed);
    CALL(clReleaseKernel, fresh);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void zero_local(void)
{
    struct env env;
    size_t global = 64, local = 0;
    env_init(&env);
    cl_kernel kernel = env_kernel(&env, "empty");
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseKernel, kernel);
    env_fini(&env);
}

static void task(void)
{
    struct env env;
    int k = 9, words[4] = {0};
    cl_event event = NULL;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clEnqueueTask, env.queue, kernel, 0, NULL, NULL);
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueTask, env.queue, kernel, 0, NULL, &event);
    note_event_end("task", event);
    /* Some drivers make a task a launch of one item, event and all: see clEnqueueTask. */
    cl_command_type type = 0;
    CALL_CODE(clGetEventInfo, event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL);
    note("type is a task's or a launch's: %s",
         type == CL_COMMAND_TASK || type == CL_COMMAND_NDRANGE_KERNEL ? "yes" : "no");
    CALL(clReleaseEvent, event);
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clEnqueueTask, (cl_command_queue)NULL, kernel, 0, NULL, NULL);
    /* No NULL kernel: PoCL 3.1 crashes. */
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void markers(void)
{
    struct env env;
    cl_event event = NULL;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    int zero = 0;
    CALL(clEnqueueMarkerWithWaitList, env.queue, 0, NULL, &event);
    note_event_end("marker on an empty queue", event);
    info_event_all(event);
    cl_event first = event, second = NULL;
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueMarkerWithWaitList, env.queue, 1, &first, &second);
    note_event_end("marker after an event", second);
    CALL(clEnqueueBarrierWithWaitList, env.queue, 1, &second, &event);
    note_event_end("barrier", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueBarrierWithWaitList, env.queue, 0, NULL, NULL);
    CALL(clEnqueueMarkerWithWaitList, env.queue, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clEnqueueMarkerWithWaitList, (cl_command_queue)NULL, 0, NULL, NULL);
    CALL(clEnqueueBarrierWithWaitList, (cl_command_queue)NULL, 0, NULL, NULL);
    CALL(clReleaseEvent, first);
    CALL(clReleaseEvent, second);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Order of an in-order queue over thousands of launches, more than any ring holds. */
static void order(void)
{
    struct env env;
    int words[4] = {1, 2, 3, 4}, failed = 0;
    size_t global = 4;
    env_init(&env);
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel add = env_kernel(&env, "add"), mul = env_kernel(&env, "mul");
    CALL(clSetKernelArg, add, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, mul, 0, sizeof(mem), &mem);
    for (int i = 0; i < 3000; i++) {
        int k = i % 7 + 1;
        cl_kernel kernel = i % 3 ? add : mul;
        failed += clSetKernelArg(kernel, 1, sizeof(k), &k) != CL_SUCCESS;
        failed += clEnqueueNDRangeKernel(env.queue, kernel, 1, NULL, &global, NULL, 0, NULL,
                                         NULL) != CL_SUCCESS;
        if (i % 500 == 0)
            failed += clFlush(env.queue) != CL_SUCCESS;
    }
    CALL(clFinish, env.queue);
    note("3000 launches, failed: %d", failed);
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clReleaseKernel, add);
    CALL(clReleaseKernel, mul);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case enqueue_cases[] = {
    {"ranges", ranges}, {"groups", groups},   {"errors", errors}, {"zero_local", zero_local},
    {"task", task},     {"markers", markers}, {"order", order},
};
DIFF_FAMILY(enqueue);
