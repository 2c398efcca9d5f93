/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts, exactly: fresh, retained and released, with objects made from them. */
#include "difftest.h"

#define COUNT_OF(fn, object, param)                                                                \
    count_of(#fn, object, fn(object, param, sizeof(count), &count, NULL))

static cl_uint count;

static void count_of(const char *fn, const void *object, cl_int code)
{
    note("%s(%s) count -> %s %u", fn, handle_name(object), error_name(code), count);
}

/* Only what the program itself does to the object is looked at: a driver may count its own
 * references too. */
static void retained(void)
{
    struct env env;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    COUNT_OF(clGetMemObjectInfo, mem, CL_MEM_REFERENCE_COUNT);
    CALL(clRetainMemObject, mem);
    COUNT_OF(clGetMemObjectInfo, mem, CL_MEM_REFERENCE_COUNT);
    CALL(clReleaseMemObject, mem);
    COUNT_OF(clGetMemObjectInfo, mem, CL_MEM_REFERENCE_COUNT);
    cl_event event = MAKE(clCreateUserEvent, env.context);
    COUNT_OF(clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT);
    CALL(clRetainEvent, event);
    COUNT_OF(clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT);
    CALL(clReleaseEvent, event);
    COUNT_OF(clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT);
    CALL(clSetUserEventStatus, event, CL_COMPLETE);
    CALL(clReleaseEvent, event);
    cl_command_queue queue = MAKE(clCreateCommandQueue, env.context, env.device, 0);
    COUNT_OF(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT);
    CALL(clRetainCommandQueue, queue);
    COUNT_OF(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT);
    CALL(clReleaseCommandQueue, queue);
    COUNT_OF(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT);
    CALL(clReleaseCommandQueue, queue);
    cl_sampler sampler =
        MAKE(clCreateSampler, env.context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST);
    if (sampler) {
        COUNT_OF(clGetSamplerInfo, sampler, CL_SAMPLER_REFERENCE_COUNT);
        CALL(clRetainSampler, sampler);
        COUNT_OF(clGetSamplerInfo, sampler, CL_SAMPLER_REFERENCE_COUNT);
        CALL(clReleaseSampler, sampler);
        CALL(clReleaseSampler, sampler);
    }
    cl_kernel kernel = env_kernel(&env, "add");
    COUNT_OF(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    CALL(clRetainKernel, kernel);
    COUNT_OF(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    CALL(clReleaseKernel, kernel);
    COUNT_OF(clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Contexts and programs, whose own objects may count: how retain and release move the count. */
static void moves(void)
{
    struct env env;
    cl_uint before = 0, up = 0, down = 0;
    env_init(&env);
    env_program(&env);
    clGetContextInfo(env.context, CL_CONTEXT_REFERENCE_COUNT, sizeof(before), &before, NULL);
    CALL(clRetainContext, env.context);
    clGetContextInfo(env.context, CL_CONTEXT_REFERENCE_COUNT, sizeof(up), &up, NULL);
    CALL(clReleaseContext, env.context);
    clGetContextInfo(env.context, CL_CONTEXT_REFERENCE_COUNT, sizeof(down), &down, NULL);
    note("context: up by %d, down by %d", (int)(up - before), (int)(up - down));
    clGetProgramInfo(env.program, CL_PROGRAM_REFERENCE_COUNT, sizeof(before), &before, NULL);
    CALL(clRetainProgram, env.program);
    clGetProgramInfo(env.program, CL_PROGRAM_REFERENCE_COUNT, sizeof(up), &up, NULL);
    CALL(clReleaseProgram, env.program);
    clGetProgramInfo(env.program, CL_PROGRAM_REFERENCE_COUNT, sizeof(down), &down, NULL);
    note("program: up by %d, down by %d", (int)(up - before), (int)(up - down));
    env_fini(&env);
}

static const struct diff_case refcount_cases[] = {
    {"retained", retained},
    {"moves", moves},
};
DIFF_FAMILY(refcount);
