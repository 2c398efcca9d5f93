/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: properties, from a list and from a type, queries, destructor callbacks, errors. */
#include "difftest.h"

static void CL_CALLBACK on_error(const char *text, const void *info, size_t size, void *user)
{
}

static void create(void)
{
    struct env env;
    env_init(&env);
    const cl_context_properties props[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)env.platform,
                                           0};
    const cl_context_properties sync[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)env.platform,
                                          CL_CONTEXT_INTEROP_USER_SYNC, CL_TRUE, 0};
    const cl_context_properties empty[] = {0};
    int user = 0;
    cl_context context = MAKE(clCreateContext, NULL, 1, &env.device, NULL, NULL);
    info_context_all(context);
    CALL(clReleaseContext, context);
    context = MAKE(clCreateContext, props, 1, &env.device, NULL, NULL);
    info_context_all(context);
    CALL(clRetainContext, context);
    CALL(clReleaseContext, context);
    CALL(clReleaseContext, context);
    context = MAKE(clCreateContext, sync, 1, &env.device, on_error, &user);
    if (context) {
        info_context_all(context);
        CALL(clReleaseContext, context);
    }
    context = MAKE(clCreateContext, empty, 1, &env.device, NULL, NULL);
    if (context) {
        info_context_all(context);
        CALL(clReleaseContext, context);
    }
    env_fini(&env);
}

static void create_from_type(void)
{
    struct env env;
    env_init(&env);
    const cl_context_properties props[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)env.platform,
                                           0};
    const cl_device_type types[] = {CL_DEVICE_TYPE_ALL,
                                    CL_DEVICE_TYPE_DEFAULT,
                                    CL_DEVICE_TYPE_CPU,
                                    CL_DEVICE_TYPE_GPU,
                                    CL_DEVICE_TYPE_ACCELERATOR,
                                    0,
                                    1u << 20};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        cl_device_type type = types[i];
        cl_context context = MAKE(clCreateContextFromType, props, type, NULL, NULL);
        if (!context)
            continue;
        info_context_all(context);
        CALL(clReleaseContext, context);
    }
    env_fini(&env);
}

static void create_errors(void)
{
    struct env env;
    env_init(&env);
    const cl_context_properties unknown[] = {0x7777, 1, 0};
    const cl_context_properties twice[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)env.platform,
                                           CL_CONTEXT_PLATFORM, (cl_context_properties)env.platform,
                                           0};
    const cl_context_properties no_platform[] = {CL_CONTEXT_PLATFORM, 0, 0};
    cl_device_id none[2] = {NULL, NULL};
    cl_device_id same[2] = {env.device, env.device};
    int user = 0;
    MAKE(clCreateContext, NULL, 0, NULL, NULL, NULL);
    MAKE(clCreateContext, NULL, 0, &env.device, NULL, NULL);
    MAKE(clCreateContext, NULL, 1, NULL, NULL, NULL);
    MAKE(clCreateContext, NULL, 1, none, NULL, NULL);
    MAKE(clCreateContext, NULL, 1, &env.device, NULL, &user);
    MAKE(clCreateContext, unknown, 1, &env.device, NULL, NULL);
    MAKE(clCreateContext, twice, 1, &env.device, NULL, NULL);
    MAKE(clCreateContext, no_platform, 1, &env.device, NULL, NULL);
    cl_context context = MAKE(clCreateContext, NULL, 2, same, NULL, NULL);
    if (context) {
        info_context_all(context);
        CALL(clReleaseContext, context);
    }
    MAKE(clCreateContextFromType, unknown, CL_DEVICE_TYPE_ALL, NULL, NULL);
    MAKE(clCreateContextFromType, no_platform, CL_DEVICE_TYPE_ALL, NULL, NULL);
    CALL(clRetainContext, (cl_context)NULL);
    CALL(clReleaseContext, (cl_context)NULL);
    cl_uint n = 0;
    CALL(clGetContextInfo, (cl_context)NULL, CL_CONTEXT_NUM_DEVICES, sizeof(n), &n, NULL);
    CALL(clGetContextInfo, env.context, CL_CONTEXT_NUM_DEVICES, 0, &n, NULL);
    env_fini(&env);
}

static void all_devices(void)
{
    struct env env;
    cl_device_id devices[8] = {0};
    cl_uint n = 0;
    env_init(&env);
    CALL(clGetDeviceIDs, env.platform, CL_DEVICE_TYPE_ALL, 8, devices, &n);
    for (cl_uint d = 0; d < n; d++)
        name_handle_once(ARG_DEVICE, devices[d]);
    cl_context context = MAKE(clCreateContext, NULL, n, devices, NULL, NULL);
    info_context_all(context);
    for (cl_uint d = 0; d < n; d++) {
        int words[4] = {1, 2, 3, 4};
        cl_command_queue queue =
            MAKE(clCreateCommandQueueWithProperties, context, devices[d], NULL);
        cl_mem mem = MAKE(clCreateBuffer, context, CL_MEM_READ_WRITE, sizeof(words), NULL);
        CALL(clEnqueueWriteBuffer, queue, mem, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL);
        memset(words, 0, sizeof(words));
        CALL(clEnqueueReadBuffer, queue, mem, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL);
        note_bytes("read", words, sizeof(words));
        CALL(clReleaseMemObject, mem);
        CALL(clReleaseCommandQueue, queue);
    }
    CALL(clReleaseContext, context);
    env_fini(&env);
}

static struct latch destroyed;

static void CL_CALLBACK on_destroy(cl_context context, void *user)
{
    latch_hit(&destroyed, *(int *)user, 0);
}

static void destructor(void)
{
    struct env env;
    int tags[3] = {1, 2, 3};
    env_init(&env);
    latch_init(&destroyed);
    cl_context context = MAKE(clCreateContext, NULL, 1, &env.device, NULL, NULL);
    cl_int code = CALL(clSetContextDestructorCallback, context, on_destroy, &tags[0]);
    CALL(clSetContextDestructorCallback, context, on_destroy, &tags[1]);
    CALL(clSetContextDestructorCallback, context, on_destroy, &tags[2]);
    CALL(clSetContextDestructorCallback, context, NULL, NULL);
    CALL(clSetContextDestructorCallback, (cl_context)NULL, on_destroy, NULL);
    CALL(clRetainContext, context);
    CALL(clReleaseContext, context);
    note("called while references are left: %u", destroyed.count);
    CALL(clReleaseContext, context);
    if (code == CL_SUCCESS) {
        bool all = latch_wait(&destroyed, 3);
        note("called %s, order %d %d %d", all ? "three times" : "too rarely", destroyed.order[0],
             destroyed.order[1], destroyed.order[2]);
    }
    env_fini(&env);
}

/* A context lives while objects made from it do. */
static void outlived(void)
{
    struct env env;
    int tag = 7;
    char bytes[16];
    env_init(&env);
    latch_init(&destroyed);
    cl_context context = MAKE(clCreateContext, NULL, 1, &env.device, NULL, NULL);
    cl_int code = CALL(clSetContextDestructorCallback, context, on_destroy, &tag);
    cl_command_queue queue = MAKE(clCreateCommandQueue, context, env.device, 0);
    cl_mem mem = MAKE(clCreateBuffer, context, CL_MEM_READ_WRITE, sizeof(bytes), NULL);
    CALL(clReleaseContext, context);
    fill_pattern(bytes, sizeof(bytes), 3);
    CALL(clEnqueueWriteBuffer, queue, mem, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL);
    info_mem_all(mem);
    note("destroyed early: %u", destroyed.count);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseCommandQueue, queue);
    if (code == CL_SUCCESS)
        note("destroyed with its last object: %s", latch_wait(&destroyed, 1) ? "yes" : "no");
    env_fini(&env);
}

static const struct diff_case context_cases[] = {
    {"create", create},
    {"create_from_type", create_from_type},
    {"create_errors", create_errors},
    {"all_devices", all_devices},
    {"destructor", destructor},
    {"outlived", outlived},
};
DIFF_FAMILY(context);
