/* SPDX-License-Identifier: Apache-2.0 */
/* Shared virtual memory: both kinds of buffers, as arguments and through pointers, every enqueued
 * operation, errors. */
#include "difftest.h"

enum { BYTES = 4096 };

static cl_device_svm_capabilities offered(struct env *env)
{
    cl_device_svm_capabilities caps = 0;
    if (clGetDeviceInfo(env->device, CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps, NULL) !=
        CL_SUCCESS)
        caps = 0;
    note("SVM capabilities 0x%llx", (unsigned long long)caps);
    return caps;
}

static void alloc(void)
{
    static const struct {
        cl_svm_mem_flags flags;
        size_t size;
        cl_uint alignment;
    } tries[] = {
        {CL_MEM_READ_WRITE, BYTES, 0},
        {CL_MEM_READ_WRITE, BYTES, 64},
        {CL_MEM_READ_WRITE, BYTES, 128},
        {CL_MEM_READ_WRITE, BYTES, 3},
        {CL_MEM_READ_WRITE, BYTES, 1 << 30},
        {CL_MEM_READ_ONLY, BYTES, 0},
        {CL_MEM_WRITE_ONLY, BYTES, 0},
        {0, BYTES, 0},
        {CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0},
        {CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, BYTES, 0},
        {CL_MEM_READ_WRITE | CL_MEM_SVM_ATOMICS, BYTES, 0},
        {CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, BYTES, 0},
        {CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, BYTES, 0},
        {CL_MEM_READ_WRITE, 0, 0},
        {CL_MEM_READ_WRITE, 1, 0},
        {CL_MEM_READ_WRITE, SIZE_MAX, 0},
    };
    struct env env;
    env_init(&env);
    offered(&env);
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        cl_svm_mem_flags flags = tries[i].flags;
        size_t size = tries[i].size;
        cl_uint alignment = tries[i].alignment;
        void *ptr = CALL_PTR(clSVMAlloc, env.context, flags, size, alignment);
        if (!ptr)
            continue;
        if (alignment)
            note("aligned: %s", (uintptr_t)ptr % alignment ? "no" : "yes");
        CALL_VOID(clSVMFree, env.context, ptr);
    }
    CALL_PTR(clSVMAlloc, (cl_context)NULL, CL_MEM_READ_WRITE, BYTES, 0);
    CALL_VOID(clSVMFree, env.context, NULL);
    env_fini(&env);
}

static void operations(void)
{
    struct env env;
    cl_event event = NULL;
    int pattern[4] = {1, 2, 3, 4};
    static char host[BYTES];
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = CALL_PTR(clSVMAlloc, env.context, CL_MEM_READ_WRITE, BYTES, 0);
    char *b = CALL_PTR(clSVMAlloc, env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    name_region("b", b, BYTES);
    CALL(clEnqueueSVMMemFill, env.queue, a, pattern, sizeof(pattern), BYTES, 0, NULL, &event);
    note_event_end("fill", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, b + 128, a, 1024, 0, NULL, &event);
    note_event_end("memcpy", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    fill_pattern(host, sizeof(host), 3);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a + 100, host, 333, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, host, a, 1000, 0, NULL, NULL);
    note_bytes("copied out", host, 1000);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, a, BYTES, 0, NULL,
         &event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    note_bytes("a", a, BYTES);
    memset(a + 2000, 0x66, 96);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, &event);
    note_event_end("unmap", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueSVMMap, env.queue, CL_FALSE, CL_MAP_READ, b + 128, 1024, 0, NULL, &event);
    note_event_end("map", event);
    note_bytes("b", b + 128, 1024);
    CALL(clReleaseEvent, event);
    CALL(clEnqueueSVMUnmap, env.queue, b + 128, 0, NULL, NULL);
    const void *pointers[2] = {a, b};
    size_t sizes[2] = {BYTES, 0};
    if (env_device_version(&env) >= 21) {
        CALL(clEnqueueSVMMigrateMem, env.queue, 2, pointers, sizes, 0, 0, NULL, &event);
        note_event_end("migrate", event);
        info_event_all(event);
        CALL(clReleaseEvent, event);
        CALL(clEnqueueSVMMigrateMem, env.queue, 2, pointers, NULL, CL_MIGRATE_MEM_OBJECT_HOST, 0,
             NULL, NULL);
    }
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, host, a, BYTES, 0, NULL, NULL);
    note_bytes("a at the end", host, BYTES);
    CALL_VOID(clSVMFree, env.context, a);
    CALL_VOID(clSVMFree, env.context, b);
    env_fini(&env);
}

static void arguments(void)
{
    struct env env;
    int k = 5;
    size_t global = 256;
    env_init(&env);
    cl_device_svm_capabilities caps = offered(&env);
    if (!(caps & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    int *a = CALL_PTR(clSVMAlloc, env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    int zero = 0;
    CALL(clEnqueueSVMMemFill, env.queue, a, &zero, 4, BYTES, 0, NULL, NULL);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArgSVMPointer, kernel, 0, a);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    void *list[1] = {a};
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list), list);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clSetKernelArgSVMPointer, kernel, 0, a + 64); /* into the middle */
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, BYTES, 0, NULL, NULL);
    note_bytes("a", a, BYTES);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    if (caps & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) {
        int *fine = CALL_PTR(clSVMAlloc, env.context,
                             CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0);
        name_region("fine", fine, BYTES);
        for (int i = 0; i < BYTES / 4; i++)
            fine[i] = i;
        CALL(clSetKernelArgSVMPointer, kernel, 0, fine);
        CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
        CALL(clFinish, env.queue);
        note_bytes("fine, without mapping", fine, BYTES);
        CALL_VOID(clSVMFree, env.context, fine);
    }
    CALL(clSetKernelArgSVMPointer, (cl_kernel)NULL, 0, a);
    CALL(clSetKernelArgSVMPointer, kernel, 9, a);
    CALL(clSetKernelArgSVMPointer, kernel, 1, a);
    CALL(clSetKernelArgSVMPointer, kernel, 0, NULL);
    CALL(clSetKernelExecInfo, (cl_kernel)NULL, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list), list);
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(list), NULL);
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 3, list);
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, list);
    cl_bool system = CL_TRUE;
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(system),
         &system);
    system = CL_FALSE;
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(system),
         &system);
    CALL(clReleaseKernel, kernel);
    CALL_VOID(clSVMFree, env.context, a);
    env_fini(&env);
}

/* Pointers for arguments of every kind; an argument that is no pointer keeps its value. */
static void give_pointers(struct env *env, const char *options, void *a)
{
    static const char *const source =
        "kernel void wide(global ulong *out, ulong k) { out[0] += k; }\n"
        "kernel void scratch(global int *out, local int *l, constant int *c) { out[0] = c[0]; }\n"
        "#ifdef __IMAGE_SUPPORT__\n"
        "kernel void sampled(global float4 *out, read_only image2d_t in, sampler_t s)\n"
        "{ out[0] = read_imagef(in, s, (int2)(0, 0)); }\n"
        "#endif\n";
    const char *const names[] = {"wide", "scratch", "sampled"};
    const size_t one = 1;
    cl_ulong k = 5, words[2] = {0};
    cl_mem mem = env_buffer(env, sizeof(words), words);
    note("options '%s'", options);
    cl_program program =
        MAKE(clCreateProgramWithSource, env->context, 1, (const char **)(uintptr_t)&source, NULL);
    CALL(clBuildProgram, program, 0, NULL, options, NULL, NULL);
    for (size_t i = 0; i < (env->images ? 3 : 2); i++) {
        cl_kernel kernel = MAKE(clCreateKernel, program, names[i]);
        CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
        for (cl_uint j = 1; j < (i == 0 ? 2 : 3); j++) {
            CALL(clSetKernelArgSVMPointer, kernel, j, NULL);
            CALL(clSetKernelArgSVMPointer, kernel, j, a);
        }
        if (i != 1)
            CALL(clEnqueueNDRangeKernel, env->queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
        CALL(clFinish, env->queue);
        CALL(clReleaseKernel, kernel);
    }
    cl_kernel wide = MAKE(clCreateKernel, program, "wide");
    CALL(clSetKernelArg, wide, 1, sizeof(k), &k);
    CALL(clSetKernelArgSVMPointer, wide, 1, a);
    for (int i = 0; i < 4; i++) {
        if (i % 2)
            CALL(clSetKernelArgSVMPointer, wide, 0, a);
        else
            CALL(clSetKernelArg, wide, 0, sizeof(mem), &mem);
        CALL(clEnqueueNDRangeKernel, env->queue, wide, 1, NULL, &one, NULL, 0, NULL, NULL);
    }
    CALL(clFinish, env->queue);
    env_dump_buffer(env, "buffer", mem, sizeof(words));
    CALL(clReleaseKernel, wide);
    CALL(clReleaseProgram, program);
    CALL(clReleaseMemObject, mem);
}

static void argument_kinds(void)
{
    struct env env;
    const int zero = 0;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    int *a = CALL_PTR(clSVMAlloc, env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMemFill, env.queue, a, &zero, 4, BYTES, 0, NULL, NULL);
    give_pointers(&env, "", a);
    give_pointers(&env, "-cl-kernel-arg-info", a);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, BYTES, 0, NULL, NULL);
    note_bytes("a", a, BYTES);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL_VOID(clSVMFree, env.context, a);
    env_fini(&env);
}

/* A buffer laid over SVM: the same bytes by both names. */
static void as_buffer(void)
{
    struct env env;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = CALL_PTR(clSVMAlloc, env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_WRITE, a, BYTES, 0, NULL, NULL);
    fill_pattern(a, BYTES, 11);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    cl_mem mem = MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, BYTES, a);
    info_mem_all(mem);
    env_dump_buffer(&env, "as a buffer", mem, BYTES);
    int word = 0x55555555;
    CALL(clEnqueueFillBuffer, env.queue, mem, &word, 4, 128, 256, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL(clReleaseMemObject, mem);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, BYTES, 0, NULL, NULL);
    note_bytes("a", a, BYTES);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL_VOID(clSVMFree, env.context, a);
    env_fini(&env);
}

static struct latch freed;

static void CL_CALLBACK on_free(cl_command_queue queue, cl_uint n, void *pointers[], void *user)
{
    for (cl_uint i = 0; i < n; i++)
        clSVMFree(user, pointers[i]);
    latch_hit(&freed, (int)n, handle_known(queue));
}

static void enqueued_free(void)
{
    struct env env;
    cl_event event = NULL;
    env_init(&env);
    latch_init(&freed);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    void *pointers[2] = {clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0),
                         clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0)};
    CALL(clEnqueueSVMFree, env.queue, 2, pointers, NULL, NULL, 0, NULL, &event);
    note_event_end("free", event);
    info_event_all(event);
    CALL(clReleaseEvent, event);
    for (int i = 0; i < 2; i++)
        pointers[i] = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    CALL(clEnqueueSVMFree, env.queue, 2, pointers, on_free, env.context, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note("called: %s, with %d pointers, known queue: %d", latch_wait(&freed, 1) ? "yes" : "no",
         freed.order[0], freed.last_status);
    CALL(clEnqueueSVMFree, (cl_command_queue)NULL, 2, pointers, NULL, NULL, 0, NULL, NULL);
    CALL(clEnqueueSVMFree, env.queue, 0, pointers, NULL, NULL, 0, NULL, NULL);
    CALL(clEnqueueSVMFree, env.queue, 1, NULL, NULL, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    env_fini(&env);
}

static void errors(void)
{
    struct env env;
    char host[64];
    int pattern = 7;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMemcpy, (cl_command_queue)NULL, CL_TRUE, a, host, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, NULL, host, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, NULL, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, a + 32, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, host, 0, 0, NULL, NULL);
    CALL(clEnqueueSVMMemFill, (cl_command_queue)NULL, a, &pattern, 4, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemFill, env.queue, NULL, &pattern, 4, 64, 0, NULL, NULL);
    /* No NULL pattern: PoCL 3.1 crashes. */
    CALL(clEnqueueSVMMemFill, env.queue, a, &pattern, 3, 63, 0, NULL, NULL);
    CALL(clEnqueueSVMMemFill, env.queue, a, &pattern, 0, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemFill, env.queue, a + 1, &pattern, 4, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMemFill, env.queue, a, &pattern, 4, 62, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, (cl_command_queue)NULL, CL_TRUE, CL_MAP_READ, a, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, NULL, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, 0, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, 1 << 10, a, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMUnmap, (cl_command_queue)NULL, a, 0, NULL, NULL);
    CALL(clEnqueueSVMUnmap, env.queue, NULL, 0, NULL, NULL);
    const void *pointers[1] = {a};
    CALL(clEnqueueSVMMigrateMem, (cl_command_queue)NULL, 1, pointers, NULL, 0, 0, NULL, NULL);
    CALL(clEnqueueSVMMigrateMem, env.queue, 0, pointers, NULL, 0, 0, NULL, NULL);
    CALL(clEnqueueSVMMigrateMem, env.queue, 1, NULL, NULL, 0, 0, NULL, NULL);
    CALL(clEnqueueSVMMigrateMem, env.queue, 1, pointers, NULL, 1 << 10, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, 0, a, 64, 0, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, a, 64,
         0, NULL, NULL);
    CALL(clFinish, env.queue);
    CALL_VOID(clSVMFree, env.context, a);
    env_fini(&env);
}

static const struct diff_case svm_cases[] = {
    {"alloc", alloc},         {"operations", operations},
    {"arguments", arguments}, {"argument_kinds", argument_kinds},
    {"as_buffer", as_buffer}, {"enqueued_free", enqueued_free},
    {"errors", errors},
};
DIFF_FAMILY(svm);
