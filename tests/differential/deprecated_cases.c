/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that later versions deprecated and programs go on using. */
#include "difftest.h"

static void queue_property(void)
{
    struct env env;
    env_init(&env);
    /* On no real queue: PoCL 3.1 has nothing behind this call and crashes. */
    CALL(clSetCommandQueueProperty, (cl_command_queue)NULL, CL_QUEUE_PROFILING_ENABLE, CL_TRUE,
         NULL);
    info_queue_all(env.queue);
    env_fini(&env);
}

static void markers(void)
{
    struct env env;
    cl_event event = NULL, none = NULL;
    int zero = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueMarker, env.queue, &event);
    note_event_end("marker", event);
    info_event_all(event);
    CALL(clEnqueueBarrier, env.queue);
    CALL(clFinish, env.queue);
    CALL(clEnqueueMarker, (cl_command_queue)NULL, &none);
    CALL(clEnqueueMarker, env.queue, NULL);
    CALL(clEnqueueBarrier, (cl_command_queue)NULL);
    CALL(clEnqueueWaitForEvents, (cl_command_queue)NULL, 1, &event);
    /* On no real queue: PoCL 3.1 has not implemented it and ends the process. */
    CALL(clReleaseEvent, event);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void unload(void)
{
    CALL(clUnloadPlatformCompiler, env_platform());
    note_pending("clUnloadCompiler()");
    cl_int code = clUnloadCompiler();
    note("clUnloadCompiler() -> %s", error_name(code));
}

static void images(void)
{
    struct env env;
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    static char host[4 * 8 * 8 * 4];
    env_init(&env);
    fill_pattern(host, sizeof(host), 1);
    MAKE(clCreateImage2D, (cl_context)NULL, CL_MEM_READ_WRITE, &format, 8, 8, 0, NULL);
    MAKE(clCreateImage3D, (cl_context)NULL, CL_MEM_READ_WRITE, &format, 8, 8, 4, 0, 0, NULL);
    if (!env.images)
        case_end("no images");
    cl_mem image =
        MAKE(clCreateImage2D, env.context, CL_MEM_COPY_HOST_PTR, &format, 8, 8, 32, host);
    if (image) {
        info_mem_all(image);
        info_image_all(image);
        CALL(clReleaseMemObject, image);
    }
    image =
        MAKE(clCreateImage3D, env.context, CL_MEM_COPY_HOST_PTR, &format, 8, 8, 4, 32, 256, host);
    if (image) {
        info_mem_all(image);
        info_image_all(image);
        CALL(clReleaseMemObject, image);
    }
    MAKE(clCreateImage2D, env.context, CL_MEM_READ_WRITE, NULL, 8, 8, 0, NULL);
    MAKE(clCreateImage2D, env.context, CL_MEM_READ_WRITE, &format, 0, 8, 0, NULL);
    MAKE(clCreateImage2D, env.context, CL_MEM_READ_WRITE, &format, 8, 8, 7, NULL);
    MAKE(clCreateImage2D, env.context, CL_MEM_COPY_HOST_PTR, &format, 8, 8, 0, NULL);
    MAKE(clCreateImage3D, env.context, CL_MEM_READ_WRITE, &format, 8, 8, 0, 0, 0, NULL);
    MAKE(clCreateImage3D, env.context, CL_MEM_COPY_HOST_PTR, &format, 8, 8, 4, 32, 17, host);
    env_fini(&env);
}

static const struct diff_case deprecated_cases[] = {
    {"queue_property", queue_property},
    {"markers", markers},
    {"unload", unload},
    {"images", images},
};
DIFF_FAMILY(deprecated);
