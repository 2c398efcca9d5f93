/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers: views that share their parent's bytes, flags inherited and refused, alignment,
 * lifetime. */
#include "difftest.h"

static size_t alignment(const struct env *env)
{
    cl_uint bits = 0;
    clGetDeviceInfo(env->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL);
    return bits / 8;
}

static void create(void)
{
    static char host[8192] __attribute__((aligned(4096)));
    static const cl_mem_flags flags[] = {0,
                                         CL_MEM_READ_WRITE,
                                         CL_MEM_READ_ONLY,
                                         CL_MEM_WRITE_ONLY,
                                         CL_MEM_HOST_READ_ONLY,
                                         CL_MEM_HOST_NO_ACCESS,
                                         CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
                                         CL_MEM_USE_HOST_PTR,
                                         CL_MEM_COPY_HOST_PTR,
                                         CL_MEM_ALLOC_HOST_PTR};
    static const cl_mem_flags parents[] = {CL_MEM_READ_WRITE,      CL_MEM_READ_ONLY,
                                           CL_MEM_WRITE_ONLY,      CL_MEM_HOST_READ_ONLY,
                                           CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_NO_ACCESS};
    struct env env;
    env_init(&env);
    size_t align = alignment(&env);
    cl_buffer_region region = {align, 256};
    for (size_t p = 0; p < sizeof(parents) / sizeof(parents[0]); p++) {
        cl_mem parent = MAKE(clCreateBuffer, env.context, parents[p], sizeof(host), NULL);
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
            cl_mem sub =
                MAKE(clCreateSubBuffer, parent, flags[i], CL_BUFFER_CREATE_TYPE_REGION, &region);
            if (!sub)
                continue;
            info_mem_all(sub);
            CALL(clReleaseMemObject, sub);
        }
        CALL(clReleaseMemObject, parent);
    }
    name_region("host", host, sizeof(host));
    cl_mem parent = MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, sizeof(host), host);
    cl_mem sub = MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region);
    if (sub) {
        info_mem_all(sub);
        CALL(clReleaseMemObject, sub);
    }
    CALL(clReleaseMemObject, parent);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    env_init(&env);
    size_t align = alignment(&env);
    cl_mem parent = env_buffer(&env, 4096, NULL);
    cl_buffer_region good = {align, 128}, empty = {0, 0}, beyond = {4096, 1},
                     across = {align, 4096}, crooked = {1, 64}, huge = {align, SIZE_MAX};
    MAKE(clCreateSubBuffer, (cl_mem)NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, &good);
    MAKE(clCreateSubBuffer, parent, 0, 0, &good);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &empty);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &across);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &crooked);
    MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &huge);
    cl_mem sub = MAKE(clCreateSubBuffer, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &good);
    MAKE(clCreateSubBuffer, sub, 0, CL_BUFFER_CREATE_TYPE_REGION, &good);
    char host[256];
    CALL(clEnqueueReadBuffer, env.queue, sub, CL_TRUE, 0, 129, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, sub, CL_TRUE, 128, 1, host, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, sub, parent, 0, align, 64, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, parent, sub, align + 32, 0, 64, 0, NULL, NULL);
    CALL(clReleaseMemObject, sub);
    CALL(clReleaseMemObject, parent);
    env_fini(&env);
}

static void share(void)
{
    struct env env;
    int words[1024], part[64];
    env_init(&env);
    size_t align = alignment(&env);
    for (int i = 0; i < 1024; i++)
        words[i] = i;
    cl_mem parent = env_buffer(&env, sizeof(words), words);
    cl_buffer_region first = {align, sizeof(part)}, second = {4 * align, sizeof(part)};
    cl_mem a =
        MAKE(clCreateSubBuffer, parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &first);
    cl_mem b =
        MAKE(clCreateSubBuffer, parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &second);
    CALL(clEnqueueReadBuffer, env.queue, a, CL_TRUE, 0, sizeof(part), part, 0, NULL, NULL);
    note_bytes("a", part, sizeof(part));
    fill_pattern(part, sizeof(part), 8);
    CALL(clEnqueueWriteBuffer, env.queue, b, CL_TRUE, 4, 100, part, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 128, 160, 64, 0, NULL, NULL);
    int seven = 7;
    CALL(clEnqueueFillBuffer, env.queue, a, &seven, 4, 8, 16, 0, NULL, NULL);
    cl_kernel kernel = env_kernel(&env, "add");
    int k = 10000;
    size_t global = 64;
    CALL(clSetKernelArg, kernel, 0, sizeof(a), &a);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    int *ptr = MAKE(clEnqueueMapBuffer, env.queue, b, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 16, 64,
                    0, NULL, NULL);
    note_bytes("mapped", ptr, 64);
    ptr[3] = -3;
    CALL(clEnqueueUnmapMemObject, env.queue, b, ptr, 0, NULL, NULL);
    env_dump_buffer(&env, "parent", parent, sizeof(words));
    /* A view keeps its parent's bytes alive. */
    CALL(clReleaseMemObject, parent);
    env_dump_buffer(&env, "a", a, sizeof(part));
    info_mem_all(b);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

static const struct diff_case subbuffer_cases[] = {
    {"create", create},
    {"errors", errors},
    {"share", share},
};
DIFF_FAMILY(subbuffer);
