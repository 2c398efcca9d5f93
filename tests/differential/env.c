/* SPDX-License-Identifier: Apache-2.0 */
/* What most cases start from: a context and a queue on the platform's first device, the kernels,
 * patterns, latches. */
#include "difftest.h"

#include <time.h>
#include <unistd.h>

/* Drivers that tear down in exit handlers can fail there in ways that say nothing about a call, so
 * the case ends without them; a case about exit says so itself. */
_Noreturn void case_end(const char *why)
{
    note("%s", why);
    fflush(NULL);
    _exit(0);
}

cl_platform_id env_platform(void)
{
    cl_platform_id platforms[16] = {0};
    cl_uint n = 0;
    cl_int code = clGetPlatformIDs(16, platforms, &n);
    if (code != CL_SUCCESS || diff_platform_index >= n) {
        note("no platform %u: %s", diff_platform_index, error_name(code));
        case_end("end");
    }
    name_handle_once(ARG_PLATFORM, platforms[diff_platform_index]);
    char text[256] = "";
    int major = 1, minor = 0;
    clGetPlatformInfo(platforms[diff_platform_index], CL_PLATFORM_VERSION, sizeof(text), text,
                      NULL);
    if (sscanf(text, "OpenCL %d.%d", &major, &minor) == 2)
        rec_set_version(10 * major + minor);
    cl_device_id devices[16] = {0};
    if (clGetDeviceIDs(platforms[diff_platform_index], CL_DEVICE_TYPE_ALL, 16, devices, &n) ==
        CL_SUCCESS)
        for (cl_uint d = 0; d < n && d < 16; d++)
            name_handle_once(ARG_DEVICE, devices[d]);
    return platforms[diff_platform_index];
}

static _Noreturn void setup_failed(const char *what, cl_int code)
{
    note("setup failed: %s %s", what, error_name(code));
    case_end("end");
}

void env_init(struct env *env)
{
    memset(env, 0, sizeof(*env));
    env->platform = env_platform();
    cl_int code = clGetDeviceIDs(env->platform, CL_DEVICE_TYPE_ALL, 1, &env->device, NULL);
    if (code != CL_SUCCESS)
        setup_failed("clGetDeviceIDs", code);
    name_handle_once(ARG_DEVICE, env->device);
    env->context = clCreateContext(NULL, 1, &env->device, NULL, NULL, &code);
    if (!env->context)
        setup_failed("clCreateContext", code);
    name_handle(ARG_CONTEXT, env->context);
    env->queue = clCreateCommandQueue(env->context, env->device, 0, &code);
    if (!env->queue)
        setup_failed("clCreateCommandQueue", code);
    name_handle(ARG_QUEUE, env->queue);
    cl_bool images = CL_FALSE;
    clGetDeviceInfo(env->device, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, NULL);
    env->images = images;
}

int env_device_version(const struct env *env)
{
    char text[256] = "";
    int major = 1, minor = 0;
    clGetDeviceInfo(env->device, CL_DEVICE_VERSION, sizeof(text), text, NULL);
    if (sscanf(text, "OpenCL %d.%d", &major, &minor) != 2)
        return 10;
    return 10 * major + minor;
}

cl_program env_program(struct env *env)
{
    if (env->program)
        return env->program;
    cl_int code = CL_SUCCESS;
    const char *source = kernels_source;
    env->program = clCreateProgramWithSource(env->context, 1, &source, NULL, &code);
    if (!env->program)
        setup_failed("clCreateProgramWithSource", code);
    name_handle(ARG_PROGRAM, env->program);
    code = clBuildProgram(env->program, 0, NULL, "-cl-kernel-arg-info", NULL, NULL);
    if (code != CL_SUCCESS)
        setup_failed("clBuildProgram", code);
    return env->program;
}

cl_kernel env_kernel(struct env *env, const char *name)
{
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(env_program(env), name, &code);
    if (!kernel)
        setup_failed(name, code);
    name_handle(ARG_KERNEL, kernel);
    return kernel;
}

void env_fini(struct env *env)
{
    if (env->program)
        CALL(clReleaseProgram, env->program);
    CALL(clReleaseCommandQueue, env->queue);
    CALL(clReleaseContext, env->context);
}

cl_mem env_buffer(struct env *env, size_t size, const void *bytes)
{
    cl_int code = CL_SUCCESS;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (bytes ? CL_MEM_COPY_HOST_PTR : 0);
    cl_mem buffer = clCreateBuffer(env->context, flags, size, (void *)(uintptr_t)bytes, &code);
    if (!buffer)
        setup_failed("clCreateBuffer", code);
    name_handle(ARG_MEM, buffer);
    return buffer;
}

void env_dump_buffer(struct env *env, const char *what, cl_mem buffer, size_t size)
{
    void *bytes = calloc(1, size);
    cl_int code = clEnqueueReadBuffer(env->queue, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        note("  %s: cannot be read, %s", what, error_name(code));
    else
        note_bytes(what, bytes, size);
    free(bytes);
}

void fill_pattern(void *bytes, size_t size, unsigned seed)
{
    unsigned char *at = bytes;
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = (unsigned char)(state >> 24);
    }
}

void note_event_end(const char *what, cl_event event)
{
    cl_int code = clWaitForEvents(1, &event);
    cl_int status = ERRCODE_UNSET;
    cl_int info =
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    note("  %s (%s): wait %s, query %s, status %d", what, handle_name(event), error_name(code),
         error_name(info), status);
}

void latch_init(struct latch *latch)
{
    memset(latch, 0, sizeof(*latch));
    pthread_mutex_init(&latch->lock, NULL);
    pthread_cond_init(&latch->changed, NULL);
}

void latch_hit(struct latch *latch, int tag, cl_int status)
{
    pthread_mutex_lock(&latch->lock);
    if (latch->count < sizeof(latch->order) / sizeof(latch->order[0]))
        latch->order[latch->count] = tag;
    latch->count++;
    latch->last_status = status;
    pthread_cond_broadcast(&latch->changed);
    pthread_mutex_unlock(&latch->lock);
}

bool latch_wait(struct latch *latch, unsigned n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&latch->lock);
    int error = 0;
    while (latch->count < n && !error)
        error = pthread_cond_timedwait(&latch->changed, &latch->lock, &until);
    bool reached = latch->count >= n;
    pthread_mutex_unlock(&latch->lock);
    return reached;
}
