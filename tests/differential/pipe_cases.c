/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, where the device has them, and what is said where it has not. */
#include "difftest.h"

static void create(void)
{
    static const cl_pipe_properties unknown[] = {0x7777, 1, 0}, empty[] = {0};
    struct env env;
    cl_bool support = CL_FALSE;
    env_init(&env);
    clGetDeviceInfo(env.device, CL_DEVICE_PIPE_SUPPORT, sizeof(support), &support, NULL);
    note("pipes: %s", support ? "yes" : "no");
    MAKE(clCreatePipe, (cl_context)NULL, 0, 16, 8, NULL);
    MAKE(clCreatePipe, env.context, 0, 0, 8, NULL);
    MAKE(clCreatePipe, env.context, 0, 16, 0, NULL);
    MAKE(clCreatePipe, env.context, 0, 0x7fffffff, 8, NULL);
    MAKE(clCreatePipe, env.context, 0, 16, 8, unknown);
    MAKE(clCreatePipe, env.context, CL_MEM_USE_HOST_PTR, 16, 8, NULL);
    static const cl_mem_flags flags[] = {0, CL_MEM_READ_WRITE, CL_MEM_HOST_NO_ACCESS,
                                         CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS};
    for (size_t i = 0; i < 4; i++) {
        cl_mem pipe = MAKE(clCreatePipe, env.context, flags[i], 16, 8, i == 1 ? empty : NULL);
        if (!pipe)
            continue;
        info_mem_all(pipe);
        info_pipe_all(pipe);
        CALL(clReleaseMemObject, pipe);
    }
    env_fini(&env);
}

static void info_errors(void)
{
    struct env env;
    cl_uint word = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, NULL);
    CALL(clGetPipeInfo, (cl_mem)NULL, CL_PIPE_PACKET_SIZE, sizeof(word), &word, NULL);
    info_pipe_all(mem); /* a buffer is no pipe */
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case pipe_cases[] = {
    {"create", create},
    {"info_errors", info_errors},
};
DIFF_FAMILY(pipe);
