/* SPDX-License-Identifier: Apache-2.0 */
/* Event callbacks and profiling times. */
#include "difftest.h"

#include <unistd.h>

static struct latch seen;

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user)
{
    latch_hit(&seen, *(int *)user, status);
}

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Each kind is called once; their order among each other is not promised to be seen, so it is
 * sorted away. */
static void kinds(void)
{
    static const cl_int types[] = {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE};
    struct env env;
    int tags[3] = {1, 2, 3}, zero = 0;
    cl_event event = NULL;
    env_init(&env);
    latch_init(&seen);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 1, &user, &event);
    for (int i = 0; i < 3; i++)
        CALL(clSetEventCallback, event, types[i], on_event, &tags[i]);
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    CALL(clFinish, env.queue);
    bool all = latch_wait(&seen, 3);
    qsort(seen.order, 3, sizeof(int), compare_ints);
    note("all called: %s, tags %d %d %d", all ? "yes" : "no", seen.order[0], seen.order[1],
         seen.order[2]);
    /* Set on an event that is over, each is called at once. */
    for (int i = 0; i < 3; i++)
        CALL(clSetEventCallback, event, types[i], on_event, &tags[i]);
    note("called for a finished event: %s", latch_wait(&seen, 6) ? "yes" : "no");
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, user);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    int tag = 1;
    env_init(&env);
    latch_init(&seen);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clSetEventCallback, (cl_event)NULL, CL_COMPLETE, on_event, &tag);
    CALL(clSetEventCallback, user, CL_COMPLETE, NULL, &tag);
    CALL(clSetEventCallback, user, CL_QUEUED, on_event, &tag);
    CALL(clSetEventCallback, user, 77, on_event, &tag);
    CALL(clSetEventCallback, user, -1, on_event, &tag);
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    CALL(clReleaseEvent, user);
    env_fini(&env);
}

/* The specification wants the callback; PoCL 3.1 never calls it. Whoever calls it gives it a
 * negative status.
 */
static void note_failure_seen(unsigned count)
{
    usleep(50 * 1000);
    pthread_mutex_lock(&seen.lock);
    bool right = seen.count < count || (seen.count == count && seen.last_status < 0);
    pthread_mutex_unlock(&seen.lock);
    note("not called, or with a negative status: %s", right ? "yes" : "no");
}

static void of_user_events(void)
{
    struct env env;
    int tags[4] = {1, 2, 3, 4};
    env_init(&env);
    latch_init(&seen);
    cl_event good = MAKE(clCreateUserEvent, env.context),
             bad = MAKE(clCreateUserEvent, env.context);
    CALL(clSetEventCallback, good, CL_COMPLETE, on_event, &tags[0]);
    CALL(clSetUserEventStatus, good, CL_COMPLETE);
    note("called: %s, status %d", latch_wait(&seen, 1) ? "yes" : "no", seen.last_status);
    CALL(clSetEventCallback, bad, CL_COMPLETE, on_event, &tags[1]);
    CALL(clSetUserEventStatus, bad, -9);
    note_failure_seen(2);
    CALL(clReleaseEvent, good);
    CALL(clReleaseEvent, bad);
    env_fini(&env);
}

static void of_failed_commands(void)
{
    struct env env;
    int tag = 1, zero = 0;
    cl_event event = NULL;
    env_init(&env);
    latch_init(&seen);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 1, &user, &event);
    CALL(clSetEventCallback, event, CL_COMPLETE, on_event, &tag);
    CALL(clSetUserEventStatus, user, -5);
    note_failure_seen(1);
    note_event_end("fill", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, user);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

struct chain {
    struct env *env;
    cl_mem mem;
    cl_event next;
    cl_int codes[4];
};

/* From a callback a program may enqueue, set user events and query. */
static void CL_CALLBACK on_chain(cl_event event, cl_int status, void *user)
{
    struct chain *chain = user;
    int value = 0x11223344;
    cl_int now = ERRCODE_UNSET;
    chain->codes[0] =
        clEnqueueFillBuffer(chain->env->queue, chain->mem, &value, 4, 0, 64, 0, NULL, NULL);
    chain->codes[1] = clFlush(chain->env->queue);
    chain->codes[2] =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(now), &now, NULL);
    chain->codes[3] = clSetUserEventStatus(chain->next, CL_COMPLETE);
    latch_hit(&seen, now, status);
}

static void calls_inside(void)
{
    struct env env;
    cl_event event = NULL, after = NULL;
    char bytes[64] = {0};
    env_init(&env);
    latch_init(&seen);
    cl_mem mem = env_buffer(&env, 64, bytes), other = env_buffer(&env, 64, bytes);
    struct chain chain = {.env = &env, .mem = mem, .next = MAKE(clCreateUserEvent, env.context)};
    cl_command_queue second = MAKE(clCreateCommandQueue, env.context, env.device, 0);
    CALL(clEnqueueWriteBuffer, second, other, CL_FALSE, 0, 64, bytes, 1, &chain.next, &after);
    CALL(clEnqueueWriteBuffer, env.queue, other, CL_FALSE, 0, 64, bytes, 0, NULL, &event);
    CALL(clSetEventCallback, event, CL_COMPLETE, on_chain, &chain);
    CALL(clFlush, env.queue);
    note("called: %s, status %d, seen as %d", latch_wait(&seen, 1) ? "yes" : "no", seen.last_status,
         seen.order[0]);
    for (int i = 0; i < 4; i++)
        note("inside: %s", error_name(chain.codes[i]));
    note_event_end("what waited for the callback's event", after);
    CALL(clFinish, env.queue);
    env_dump_buffer(&env, "filled by the callback", mem, 64);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, after);
    CALL(clReleaseEvent, chain.next);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, other);
    CALL(clReleaseCommandQueue, second);
    env_fini(&env);
}

/* The event may be gone for the program before its callback comes. */
static void released_before(void)
{
    struct env env;
    static int tags[100];
    int zero = 0;
    env_init(&env);
    latch_init(&seen);
    cl_mem mem = env_buffer(&env, 64, NULL);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    for (int i = 0; i < 100; i++) {
        cl_event event = NULL;
        tags[i] = i;
        clEnqueueFillBuffer(env.queue, mem, &zero, 4, 0, 64, 1, &user, &event);
        clSetEventCallback(event, CL_COMPLETE, on_event, &tags[i]);
        clReleaseEvent(event);
    }
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    CALL(clFinish, env.queue);
    note("hundred called: %s", latch_wait(&seen, 100) ? "yes" : "no");
    CALL(clReleaseEvent, user);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case callback_cases[] = {
    {"kinds", kinds},
    {"errors", errors},
    {"of_user_events", of_user_events},
    {"of_failed_commands", of_failed_commands},
    {"calls_inside", calls_inside},
    {"released_before", released_before},
};
DIFF_FAMILY(callback);

/* ---- profiling ---- */

static const struct {
    const char *name;
    cl_profiling_info param;
} times[] = {
    {"CL_PROFILING_COMMAND_QUEUED", CL_PROFILING_COMMAND_QUEUED},
    {"CL_PROFILING_COMMAND_SUBMIT", CL_PROFILING_COMMAND_SUBMIT},
    {"CL_PROFILING_COMMAND_START", CL_PROFILING_COMMAND_START},
    {"CL_PROFILING_COMMAND_END", CL_PROFILING_COMMAND_END},
    {"CL_PROFILING_COMMAND_COMPLETE", CL_PROFILING_COMMAND_COMPLETE},
};

static void note_times(const char *what, cl_event event)
{
    cl_ulong t[5] = {0};
    note("times of %s", what);
    for (int i = 0; i < 5; i++) {
        size_t size = 0;
        cl_int code = clGetEventProfilingInfo(event, times[i].param, sizeof(t[0]), &t[i], &size);
        note("clGetEventProfilingInfo(%s, %s) -> %s size %zu, set: %s", handle_name(event),
             times[i].name, error_name(code), code == CL_SUCCESS ? size : 0, t[i] ? "yes" : "no");
    }
    note("queued <= submit <= start <= end: %s",
         t[0] <= t[1] && t[1] <= t[2] && t[2] <= t[3] ? "yes" : "no");
}

static void available(void)
{
    struct env env;
    char bytes[64] = {0};
    int k = 0;
    size_t global = 16, size = 0;
    cl_event event = NULL, earlier = NULL;
    cl_ulong time = 0, end = 0, queued = 0;
    env_init(&env);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_PROFILING_ENABLE);
    cl_mem mem = env_buffer(&env, 64, bytes);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, queue, kernel, 1, NULL, &global, NULL, 0, NULL, &earlier);
    CALL(clFinish, queue);
    note_times("a launch", earlier);
    CALL(clEnqueueReadBuffer, queue, mem, CL_TRUE, 0, 64, bytes, 0, NULL, &event);
    note_times("a read", event);
    clGetEventProfilingInfo(earlier, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL);
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof(queued), &queued, NULL);
    note("times go on from one command to the next: %s", queued >= end ? "yes" : "no");
    CALL_CODE(clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END, 4, &time, NULL);
    CALL_CODE(clGetEventProfilingInfo, event, 0, sizeof(time), &time, NULL);
    CALL_CODE(clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END, 0, NULL, &size);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, earlier);
    CALL(clEnqueueMarkerWithWaitList, queue, 0, NULL, &event);
    CALL(clFinish, queue);
    note_times("a marker", event);
    CALL(clReleaseEvent, event);
    void *ptr = MAKE(clEnqueueMapBuffer, queue, mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, &event);
    note_times("a map", event);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueUnmapMemObject, queue, mem, ptr, 0, NULL, &event);
    CALL(clFinish, queue);
    note_times("an unmap", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseCommandQueue, queue);
    env_fini(&env);
}

static void not_available(void)
{
    struct env env;
    char bytes[64] = {0};
    cl_event event = NULL;
    cl_ulong time = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, bytes);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 64, bytes, 0, NULL, &event);
    for (int i = 0; i < 5; i++)
        CALL_CODE(clGetEventProfilingInfo, event, times[i].param, sizeof(time), &time, NULL);
    CALL(clReleaseEvent, event);
    event = MAKE(clCreateUserEvent, env.context);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL_CODE(clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL);
    CALL(clReleaseEvent, event);
    /* On a profiling queue, but not over yet. */
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_PROFILING_ENABLE);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueReadBuffer, queue, mem, CL_FALSE, 0, 64, bytes, 1, &user, &event);
    CALL_CODE(clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL);
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    CALL(clFinish, queue);
    note_times("the read", event);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, user);
    CALL(clReleaseCommandQueue, queue);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case profiling_cases[] = {
    {"available", available},
    {"not_available", not_available},
};
DIFF_FAMILY(profiling);
