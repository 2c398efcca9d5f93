/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping buffers: every flag, blocking and not, overlapping and nested, written through and read
 * back. */
#include "difftest.h"

enum { BYTES = 8192 };

static void flavours(void)
{
    static const cl_mem_flags mems[] = {CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR,
                                        CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR};
    static const cl_map_flags maps[] = {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                        CL_MAP_WRITE_INVALIDATE_REGION};
    static char host[BYTES] __attribute__((aligned(4096)));
    struct env env;
    env_init(&env);
    name_region("host", host, sizeof(host));
    for (size_t m = 0; m < 3; m++) {
        fill_pattern(host, sizeof(host), 6);
        cl_mem mem = MAKE(clCreateBuffer, env.context, mems[m], BYTES, host);
        for (size_t i = 0; i < 4; i++) {
            cl_event mapped = NULL, unmapped = NULL;
            cl_bool blocking = i % 2 == 0;
            size_t offset = 128 * i + 4, size = 1000;
            char *ptr = MAKE(clEnqueueMapBuffer, env.queue, mem, blocking, maps[i], offset, size, 0,
                             NULL, &mapped);
            if (!ptr)
                continue;
            note_event_end("map", mapped);
            info_event_all(mapped);
            cl_uint count = 0;
            CALL(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL);
            if (maps[i] != CL_MAP_WRITE_INVALIDATE_REGION)
                note_bytes("mapped", ptr, size);
            if (maps[i] != CL_MAP_READ)
                fill_pattern(ptr, size, (unsigned)(50 + i));
            CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, &unmapped);
            note_event_end("unmap", unmapped);
            info_event_all(unmapped);
            CALL(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL);
            CALL(clReleaseEvent, mapped);
            CALL(clReleaseEvent, unmapped);
            env_dump_buffer(&env, "buffer", mem, BYTES);
        }
        CALL(clReleaseMemObject, mem);
    }
    env_fini(&env);
}

static void nested(void)
{
    struct env env;
    static char host[BYTES];
    cl_uint count = 0;
    env_init(&env);
    fill_pattern(host, sizeof(host), 6);
    cl_mem mem = env_buffer(&env, BYTES, host);
    char *a =
        MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, NULL);
    char *b =
        MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 2048, 4096, 0, NULL, NULL);
    char *c =
        MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_WRITE, 7000, 100, 0, NULL, NULL);
    char *d =
        MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, NULL);
    CALL(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL);
    note_bytes("a", a, 4096);
    note_bytes("b", b, 4096);
    note_bytes("d", d, 4096);
    memset(c, 0x77, 100);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, b, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, c, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, a, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, d, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL);
    note("count %u", count);
    env_dump_buffer(&env, "buffer", mem, BYTES);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* A mapped region written by a kernel before and after, and mapped again and again. */
static void with_kernels(void)
{
    struct env env;
    int words[512];
    env_init(&env);
    memset(words, 0, sizeof(words));
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_kernel kernel = env_kernel(&env, "add");
    size_t global = 512;
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    for (int round = 0; round < 4; round++) {
        int k = round + 1;
        CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
        CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
        cl_event mapped = NULL;
        int *ptr = MAKE(clEnqueueMapBuffer, env.queue, mem, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE,
                        256, 1024, 0, NULL, &mapped);
        CALL(clFlush, env.queue);
        CALL(clWaitForEvents, 1, &mapped);
        note_bytes("mapped", ptr, 32);
        for (int i = 0; i < 256; i += 2)
            ptr[i] += 100;
        CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
        CALL(clReleaseEvent, mapped);
    }
    env_dump_buffer(&env, "buffer", mem, sizeof(words));
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    char host[64] = {0};
    env_init(&env);
    cl_mem mem = env_buffer(&env, 64, host), other = env_buffer(&env, 64, host);
    MAKE(clEnqueueMapBuffer, (cl_command_queue)NULL, mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL,
         NULL);
    MAKE(clEnqueueMapBuffer, env.queue, (cl_mem)NULL, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL);
    MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 0, 0, NULL, NULL);
    MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 65, 0, NULL, NULL);
    MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 60, 8, 0, NULL, NULL);
    MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION,
         0, 64, 0, NULL, NULL);
    MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, 1 << 10, 0, 64, 0, NULL, NULL);
    char *ptr =
        MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, (cl_command_queue)NULL, mem, ptr, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, (cl_mem)NULL, ptr, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, NULL, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, host, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, other, ptr, 0, NULL, NULL);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
    CALL(clReleaseMemObject, mem);
    CALL(clReleaseMemObject, other);
    env_fini(&env);
}

/* The pointer comes at the call, the data with the event. */
static void behind_user_event(void)
{
    struct env env;
    int words[64], more[64];
    cl_event mapped = NULL;
    env_init(&env);
    for (int i = 0; i < 64; i++)
        words[i] = i, more[i] = 1000 + i;
    cl_mem mem = env_buffer(&env, sizeof(words), words);
    cl_event user = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueWriteBuffer, env.queue, mem, CL_FALSE, 0, sizeof(more), more, 1, &user, NULL);
    int *ptr = MAKE(clEnqueueMapBuffer, env.queue, mem, CL_FALSE, CL_MAP_READ, 0, sizeof(words), 0,
                    NULL, &mapped);
    note("pointer at once: %s", ptr ? "yes" : "no");
    CALL(clSetUserEventStatus, user, CL_COMPLETE);
    note_event_end("map", mapped);
    note_bytes("mapped", ptr, sizeof(words));
    CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseEvent, mapped);
    CALL(clReleaseEvent, user);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static const struct diff_case map_cases[] = {
    {"flavours", flavours},
    {"nested", nested},
    {"with_kernels", with_kernels},
    {"errors", errors},
    {"behind_user_event", behind_user_event},
};
DIFF_FAMILY(map);
