/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: creation with every flag, reads, writes, copies and fills with offsets, and their
 * errors. */
#include "difftest.h"

static const cl_mem_flags flag_list[] = {
    0,
    CL_MEM_READ_WRITE,
    CL_MEM_WRITE_ONLY,
    CL_MEM_READ_ONLY,
    CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
    CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY,
    CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS,
    CL_MEM_ALLOC_HOST_PTR,
    CL_MEM_COPY_HOST_PTR,
    CL_MEM_USE_HOST_PTR,
    CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR,
    CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR,
    CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR,
    CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
    CL_MEM_READ_ONLY | CL_MEM_READ_WRITE,
    CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
    CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY,
    CL_MEM_KERNEL_READ_AND_WRITE,
    CL_MEM_SVM_FINE_GRAIN_BUFFER,
    1 << 6,
    1 << 20,
};

static void create(void)
{
    static char host[4096] __attribute__((aligned(4096)));
    struct env env;
    env_init(&env);
    name_region("host", host, sizeof(host));
    fill_pattern(host, sizeof(host), 1);
    for (size_t i = 0; i < sizeof(flag_list) / sizeof(flag_list[0]); i++) {
        cl_mem_flags flags = flag_list[i];
        for (int with_host = 0; with_host < 2; with_host++) {
            void *ptr = with_host ? host : NULL;
            cl_mem mem = MAKE(clCreateBuffer, env.context, flags, 256, ptr);
            if (!mem)
                continue;
            info_mem_all(mem);
            if (with_host && !(flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)))
                env_dump_buffer(&env, "content", mem, 256);
            CALL(clReleaseMemObject, mem);
        }
    }
    env_fini(&env);
}

static void create_errors(void)
{
    struct env env;
    char host[64];
    cl_ulong most = 0;
    const cl_mem_properties unknown[] = {0x7777, 1, 0}, empty[] = {0};
    env_init(&env);
    clGetDeviceInfo(env.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
    MAKE(clCreateBuffer, (cl_context)NULL, 0, 64, NULL);
    MAKE(clCreateBuffer, env.context, 0, 0, NULL);
    MAKE(clCreateBuffer, env.context, CL_MEM_COPY_HOST_PTR, 0, host);
    size_t too_large = most + 1;
    MAKE(clCreateBuffer, env.context, 0, too_large, NULL);
    size_t huge = SIZE_MAX;
    MAKE(clCreateBuffer, env.context, 0, huge, NULL);
    MAKE(clCreateBuffer, env.context, CL_MEM_READ_WRITE, 64, host);
    MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, 64, NULL);
    cl_mem mem = MAKE(clCreateBufferWithProperties, env.context, NULL, CL_MEM_READ_WRITE, 64, NULL);
    if (mem) {
        info_mem_all(mem);
        CALL(clReleaseMemObject, mem);
    }
    mem = MAKE(clCreateBufferWithProperties, env.context, empty, CL_MEM_READ_ONLY, 64, NULL);
    if (mem) {
        info_mem_all(mem);
        CALL(clReleaseMemObject, mem);
    }
    MAKE(clCreateBufferWithProperties, env.context, unknown, CL_MEM_READ_WRITE, 64, NULL);
    MAKE(clCreateBufferWithProperties, (cl_context)NULL, NULL, CL_MEM_READ_WRITE, 64, NULL);
    CALL(clRetainMemObject, (cl_mem)NULL);
    CALL(clReleaseMemObject, (cl_mem)NULL);
    size_t size = 0;
    CALL(clGetMemObjectInfo, (cl_mem)NULL, CL_MEM_SIZE, sizeof(size), &size, NULL);
    env_fini(&env);
}

/* Sizes and offsets around words, cache lines, pages and message sizes, blocking and not. */
static void read_write(void)
{
    static const size_t sizes[] = {1, 3, 63, 64, 65, 4095, 4096, 4097, 65536, 1000003};
    enum { TOTAL = 1 << 20 };
    struct env env;
    unsigned char *host = malloc(TOTAL), *back = malloc(TOTAL);
    env_init(&env);
    memset(host, 0, TOTAL);
    cl_mem mem = env_buffer(&env, TOTAL, host);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i], offset = i * 17;
        cl_bool blocking = i % 2 ? CL_TRUE : CL_FALSE;
        cl_event written = NULL, read = NULL;
        fill_pattern(host, TOTAL, (unsigned)i);
        memset(back, 0, TOTAL);
        CALL(clEnqueueWriteBuffer, env.queue, mem, blocking, offset, size, host, 0, NULL, &written);
        CALL(clEnqueueReadBuffer, env.queue, mem, blocking, offset, size, back, 1, &written, &read);
        note_event_end("read", read);
        note("  the same: %s", memcmp(host, back, size) ? "no" : "yes");
        note_bytes("read back", back, size);
        info_event_all(written);
        CALL(clReleaseEvent, written);
        CALL(clReleaseEvent, read);
    }
    env_dump_buffer(&env, "all of it", mem, TOTAL);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

/* Data is taken at the call or before its event completes; many writes in flight keep their own. */
static void write_burst(void)
{
    enum { N = 200, EACH = 512 };
    struct env env;
    static unsigned char host[N][EACH];
    int failed = 0;
    env_init(&env);
    cl_mem mem = env_buffer(&env, N * EACH, NULL);
    for (int i = 0; i < N; i++) {
        fill_pattern(host[i], EACH, (unsigned)i);
        failed += clEnqueueWriteBuffer(env.queue, mem, CL_FALSE, (size_t)i * EACH, EACH, host[i], 0,
                                       NULL, NULL) != 0;
    }
    CALL(clFinish, env.queue);
    note("failed: %d", failed);
    env_dump_buffer(&env, "buffer", mem, N * EACH);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void read_write_errors(void)
{
    struct env env;
    char host[256] = {0};
    cl_event event = NULL;
    cl_mem no_mem = NULL;
    cl_command_queue no_queue = NULL;
    cl_int code;
    env_init(&env);
    cl_mem mem = env_buffer(&env, 256, host);
    cl_context other = clCreateContext(NULL, 1, &env.device, NULL, NULL, &code);
    name_handle(ARG_CONTEXT, other);
    cl_mem foreign = MAKE(clCreateBuffer, other, 0, 256, NULL);
    CALL(clEnqueueReadBuffer, no_queue, mem, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, no_mem, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 16, NULL, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 0, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 257, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 250, 16, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 256, 1, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, SIZE_MAX, 2, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, foreign, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 257, host, 0, NULL, &event);
    CALL(clEnqueueWriteBuffer, no_queue, mem, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, no_mem, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, mem, CL_TRUE, 0, 16, NULL, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, mem, CL_TRUE, 0, 0, host, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, mem, CL_TRUE, 0, 257, host, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, mem, CL_TRUE, 250, 16, host, 0, NULL, NULL);
    CALL(clEnqueueWriteBuffer, env.queue, foreign, CL_TRUE, 0, 16, host, 0, NULL, NULL);
    CALL(clReleaseMemObject, foreign);
    CALL(clReleaseContext, other);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void host_access(void)
{
    static const cl_mem_flags flags[] = {CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY,
                                         CL_MEM_HOST_NO_ACCESS};
    struct env env;
    char host[64] = {0};
    env_init(&env);
    for (size_t i = 0; i < 3; i++) {
        cl_mem mem = MAKE(clCreateBuffer, env.context, flags[i], 64, NULL);
        CALL(clEnqueueWriteBuffer, env.queue, mem, CL_TRUE, 0, 64, host, 0, NULL, NULL);
        CALL(clEnqueueReadBuffer, env.queue, mem, CL_TRUE, 0, 64, host, 0, NULL, NULL);
        CALL(clEnqueueReadBufferRect, env.queue, mem, CL_TRUE, V3(0, 0, 0), V3(0, 0, 0),
             V3(4, 4, 1), 0, 0, 0, 0, host, 0, NULL, NULL);
        CALL(clEnqueueWriteBufferRect, env.queue, mem, CL_TRUE, V3(0, 0, 0), V3(0, 0, 0),
             V3(4, 4, 1), 0, 0, 0, 0, host, 0, NULL, NULL);
        void *ptr =
            MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL);
        if (ptr)
            CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
        ptr = MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_WRITE, 0, 64, 0, NULL, NULL);
        if (ptr)
            CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
        CALL(clFinish, env.queue);
        CALL(clReleaseMemObject, mem);
    }
    env_fini(&env);
}

static void copy(void)
{
    struct env env;
    char host[1024], zero[1024] = {0};
    cl_event event = NULL;
    cl_mem no_mem = NULL;
    env_init(&env);
    fill_pattern(host, sizeof(host), 5);
    cl_mem a = env_buffer(&env, sizeof(host), host), b = env_buffer(&env, sizeof(host), zero);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 0, 0, 1024, 0, NULL, &event);
    note_event_end("copy", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    env_dump_buffer(&env, "b", b, sizeof(host));
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 13, 700, 100, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, b, a, 1023, 0, 1, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, a, 0, 512, 512, 0, NULL, NULL);
    env_dump_buffer(&env, "a", a, sizeof(host));
    env_dump_buffer(&env, "b", b, sizeof(host));
    CALL(clEnqueueCopyBuffer, (cl_command_queue)NULL, a, b, 0, 0, 16, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, no_mem, b, 0, 0, 16, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, no_mem, 0, 0, 16, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 0, 0, 0, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 1000, 0, 100, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 0, 1000, 100, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, b, 0, 0, 1025, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, a, 0, 10, 100, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, a, 10, 0, 100, 0, NULL, NULL);
    CALL(clEnqueueCopyBuffer, env.queue, a, a, 0, 0, 100, 0, NULL, NULL);
    CALL(clReleaseMemObject, a);
    CALL(clReleaseMemObject, b);
    env_fini(&env);
}

static void fill(void)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 128};
    struct env env;
    char pattern[256], zero[2048] = {0};
    cl_event event = NULL;
    env_init(&env);
    fill_pattern(pattern, sizeof(pattern), 9);
    cl_mem mem = env_buffer(&env, sizeof(zero), zero);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        CALL(clEnqueueFillBuffer, env.queue, mem, pattern, size, size, 512, 0, NULL, &event);
        note_event_end("fill", event);
        info_event_all(event);
        CALL(clReleaseEvent, event);
        env_dump_buffer(&env, "mem", mem, sizeof(zero));
    }
    CALL(clEnqueueFillBuffer, (cl_command_queue)NULL, mem, pattern, 4, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, (cl_mem)NULL, pattern, 4, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, NULL, 4, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 0, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 3, 0, 63, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 256, 0, 512, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 4, 2, 64, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 4, 0, 62, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 4, 0, 4096, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 4, 2048, 4, 0, NULL, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, pattern, 4, 0, 0, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static void migrate(void)
{
    struct env env;
    char host[64];
    cl_event event = NULL;
    env_init(&env);
    fill_pattern(host, sizeof(host), 2);
    cl_mem mems[2] = {env_buffer(&env, 64, host), env_buffer(&env, 64, host)};
    cl_mem bad[2] = {mems[0], NULL};
    CALL(clEnqueueMigrateMemObjects, env.queue, 2, mems, 0, 0, NULL, &event);
    note_event_end("migrate", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueMigrateMemObjects, env.queue, 2, mems, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    env_dump_buffer(&env, "kept", mems[0], 64);
    CALL(clEnqueueMigrateMemObjects, env.queue, 1, mems, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
         NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, (cl_command_queue)NULL, 2, mems, 0, 0, NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, env.queue, 0, mems, 0, 0, NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, env.queue, 2, NULL, 0, 0, NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, env.queue, 0, NULL, 0, 0, NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, env.queue, 2, bad, 0, 0, NULL, NULL);
    CALL(clEnqueueMigrateMemObjects, env.queue, 2, mems, 1 << 10, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseMemObject, mems[0]);
    CALL(clReleaseMemObject, mems[1]);
    env_fini(&env);
}

/* With CL_MEM_USE_HOST_PTR the program's memory is the buffer's storage whenever it is mapped. */
static void use_host_ptr(void)
{
    static int host[1024] __attribute__((aligned(4096)));
    struct env env;
    env_init(&env);
    for (int i = 0; i < 1024; i++)
        host[i] = i;
    name_region("host", host, sizeof(host));
    cl_mem mem = MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, sizeof(host), host);
    info_mem_all(mem);
    cl_kernel kernel = env_kernel(&env, "add");
    int k = 1000;
    size_t global = 1024;
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    void *ptr = MAKE(clEnqueueMapBuffer, env.queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 64,
                     1024, 0, NULL, NULL);
    note_bytes("mapped", ptr, 1024);
    note_bytes("host under the mapping", host + 16, 1024);
    ((int *)ptr)[0] = -5;
    CALL(clEnqueueUnmapMemObject, env.queue, mem, ptr, 0, NULL, NULL);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    env_dump_buffer(&env, "buffer", mem, sizeof(host));
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, mem);
    env_fini(&env);
}

static struct latch freed;

static void CL_CALLBACK on_free(cl_mem mem, void *user)
{
    latch_hit(&freed, *(int *)user, 0);
}

static void destructor(void)
{
    static char host[128] __attribute__((aligned(128)));
    struct env env;
    int tags[3] = {1, 2, 3};
    env_init(&env);
    latch_init(&freed);
    cl_mem mem = MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, sizeof(host), host);
    for (int i = 0; i < 3; i++)
        CALL(clSetMemObjectDestructorCallback, mem, on_free, &tags[i]);
    CALL(clSetMemObjectDestructorCallback, mem, NULL, NULL);
    CALL(clSetMemObjectDestructorCallback, (cl_mem)NULL, on_free, NULL);
    CALL(clEnqueueFillBuffer, env.queue, mem, &tags[0], 4, 0, 128, 0, NULL, NULL);
    CALL(clRetainMemObject, mem);
    CALL(clReleaseMemObject, mem);
    CALL(clFinish, env.queue);
    note("called while a reference is left: %u", freed.count);
    CALL(clReleaseMemObject, mem);
    bool all = latch_wait(&freed, 3);
    note("called %s, order %d %d %d", all ? "three times" : "too rarely", freed.order[0],
         freed.order[1], freed.order[2]);
    env_fini(&env);
}

static void many(void)
{
    enum { N = 1000 };
    struct env env;
    static cl_mem mems[N];
    int bad = 0;
    env_init(&env);
    for (int i = 0; i < N; i++) {
        cl_int code;
        mems[i] = clCreateBuffer(env.context, CL_MEM_COPY_HOST_PTR, sizeof(i), &i, &code);
        bad += code != CL_SUCCESS;
    }
    for (int i = 0; i < N; i++) {
        int value = -1;
        bad += clEnqueueReadBuffer(env.queue, mems[i], CL_TRUE, 0, sizeof(value), &value, 0, NULL,
                                   NULL) != CL_SUCCESS;
        bad += value != i;
    }
    for (int i = 0; i < N; i++)
        bad += clReleaseMemObject(mems[i]) != CL_SUCCESS;
    note("1000 buffers, wrong: %d", bad);
    env_fini(&env);
}

static const struct diff_case buffer_cases[] = {
    {"create", create},
    {"create_errors", create_errors},
    {"read_write", read_write},
    {"write_burst", write_burst},
    {"read_write_errors", read_write_errors},
    {"host_access", host_access},
    {"copy", copy},
    {"fill", fill},
    {"migrate", migrate},
    {"use_host_ptr", use_host_ptr},
    {"destructor", destructor},
    {"many", many},
};
DIFF_FAMILY(buffer);
