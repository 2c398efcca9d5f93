/* SPDX-License-Identifier: Apache-2.0 */
/* Shared virtual memory in use: pointers in it, a kernel and the program at once, gates, large
 * copies, many allocations, buffers over it. */
#include "difftest.h"

enum { BYTES = 4096 };

static cl_device_svm_capabilities offered(struct env *env)
{
    cl_device_svm_capabilities caps = 0;
    if (clGetDeviceInfo(env->device, CL_DEVICE_SVM_CAPABILITIES, sizeof(caps), &caps, NULL) !=
        CL_SUCCESS)
        caps = 0;
    return caps;
}

static const char *const own_source =
    "typedef struct node { global struct node *next; int value; } node_t;\n"
    "kernel void follow(global node_t *first, global int *out)\n"
    "{ int sum = 0, n = 0;\n"
    "  for (global node_t *at = first; at; at = at->next) { sum = sum * 3 + at->value; at->value "
    "= -sum; "
    "n++; }\n"
    "  out[0] = sum; out[1] = n; }\n"
    "kernel void meet(global volatile int *flag, global int *out)\n"
    "{ int seen = 0;\n"
    "  atomic_xchg(&flag[0], 1);\n"
    "  for (int i = 0; i < 2000000000 && !seen; i++) seen = atomic_add(&flag[1], 0);\n"
    "  out[0] = seen; }\n";

static cl_kernel own_kernel(struct env *env, const char *name)
{
    const char *text = own_source;
    cl_program program = MAKE(clCreateProgramWithSource, env->context, 1, &text, NULL);
    CALL(clBuildProgram, program, 1, &env->device, "", NULL, NULL);
    cl_kernel kernel = MAKE(clCreateKernel, program, name);
    CALL(clReleaseProgram, program);
    return kernel;
}

/* Pointers inside shared memory: a list over several allocations, walked by a kernel. */
static void linked(void)
{
    enum { NODES = 40 };
    struct node {
        struct node *next;
        int value;
    } * nodes[NODES];
    struct env env;
    size_t one = 1;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
        case_end("no fine-grain SVM");
    for (int i = 0; i < NODES; i++) {
        nodes[i] = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                              sizeof(struct node) + (size_t)i * 100, 0);
        nodes[i]->value = i;
        nodes[i]->next = i ? nodes[i - 1] : NULL;
    }
    int *out = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 8, 0);
    cl_kernel kernel = own_kernel(&env, "follow");
    CALL(clSetKernelArgSVMPointer, kernel, 0, nodes[NODES - 1]);
    CALL(clSetKernelArgSVMPointer, kernel, 1, out);
    CALL(clSetKernelExecInfo, kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(nodes), nodes);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note("sum %d over %d nodes, the last now %d", out[0], out[1], nodes[0]->value);
    CALL(clReleaseKernel, kernel);
    for (int i = 0; i < NODES; i++)
        clSVMFree(env.context, nodes[i]);
    clSVMFree(env.context, out);
    env_fini(&env);
}

/* Fine grain with atomics: the program and a running kernel see each other's writes. */
static void meeting(void)
{
    struct env env;
    size_t one = 1;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_ATOMICS))
        case_end("no SVM atomics");
    int *flag = clSVMAlloc(
        env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 0);
    int *out = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0);
    flag[0] = flag[1] = 0;
    cl_kernel kernel = own_kernel(&env, "meet");
    CALL(clSetKernelArgSVMPointer, kernel, 0, flag);
    CALL(clSetKernelArgSVMPointer, kernel, 1, out);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    CALL(clFlush, env.queue);
    while (!__atomic_load_n(&flag[0], __ATOMIC_SEQ_CST))
        ;
    __atomic_store_n(&flag[1], 77, __ATOMIC_SEQ_CST);
    CALL(clFinish, env.queue);
    note("the kernel saw %d", out[0]);
    CALL(clReleaseKernel, kernel);
    clSVMFree(env.context, flag);
    clSVMFree(env.context, out);
    env_fini(&env);
}

/* Nothing happens before what it waits for, and everything after. */
static void gated(void)
{
    struct env env;
    cl_event gate, copied, back;
    static char from[BYTES], to[BYTES];
    int word = 0x01020304;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_WRITE, a, BYTES, 0, NULL, NULL);
    memset(a, 0, BYTES);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    fill_pattern(from, sizeof(from), 5);
    gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, a, from, BYTES / 2, 1, &gate, &copied);
    CALL(clEnqueueSVMMemFill, env.queue, a + BYTES / 2, &word, 4, BYTES / 4, 1, &copied, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, to, a, BYTES, 0, NULL, &back);
    CALL(clFlush, env.queue);
    note_bytes("before the gate opens", to, BYTES);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    note_event_end("there and back", back);
    note_bytes("after", to, BYTES);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseEvent, copied);
    CALL(clReleaseEvent, back);
    clSVMFree(env.context, a);
    env_fini(&env);
}

/* Copies of many pages at odd offsets, with one end, both ends and no end in shared memory. */
static void large(void)
{
    const size_t bytes = (size_t)5 << 20, some = bytes - 12345;
    struct env env;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, bytes, 0),
         *b = clSVMAlloc(env.context, CL_MEM_READ_WRITE, bytes, 0);
    char *x = malloc(bytes), *y = calloc(1, bytes);
    name_region("a", a, bytes);
    name_region("b", b, bytes);
    name_region("x", x, bytes);
    name_region("y", y, bytes);
    fill_pattern(x, bytes, 9);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, x, bytes, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, b, a, bytes, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, b + 1, a + 777, some, 0, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, y + 13, b, some, 0, NULL, NULL);
    note_bytes("y", y, bytes);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, y + 3, x + 5, some, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    note_bytes("y", y, bytes);
    clSVMFree(env.context, a);
    clSVMFree(env.context, b);
    free(x);
    free(y);
    env_fini(&env);
}

/* Many allocations: none over another, each with its bytes, in any order of ends. */
static void many(void)
{
    enum { N = 300 };
    static char *ptr[N];
    static size_t size[N];
    struct env env;
    unsigned wrong = 0, misaligned = 0;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    for (int round = 0; round < 3; round++) {
        for (int i = round ? round : 0; i < N; i += round ? 3 : 1) {
            cl_uint alignment = i % 2 ? 1u << (i % 8) : 0;
            size[i] = (size_t)(i * 37 % 9000 + 1) * (i % 50 ? 1 : 40);
            ptr[i] = clSVMAlloc(env.context, CL_MEM_READ_WRITE, size[i], alignment);
            misaligned += alignment && (uintptr_t)ptr[i] % alignment;
            unsigned char byte = (unsigned char)(i + round);
            clEnqueueSVMMemFill(env.queue, ptr[i], &byte, 1, size[i], 0, NULL, NULL);
        }
        clFinish(env.queue);
        for (int i = 0; i < N; i++) {
            int made = i % 3 && i % 3 <= round ? i % 3 : 0;
            for (size_t k = 0; k < size[i]; k++)
                wrong += (unsigned char)ptr[i][k] != (unsigned char)(i + made);
        }
        for (int i = round + 1; i < N && round < 2; i += 3)
            clSVMFree(env.context, ptr[i]);
    }
    note("wrong bytes %u, misaligned %u", wrong, misaligned);
    for (int i = 0; i < N; i++)
        clSVMFree(env.context, ptr[i]);
    env_fini(&env);
}

/* A buffer over a whole allocation is mapped in place, and so is a part of it. */
static void buffer_in_place(void)
{
    struct env env;
    cl_buffer_region part = {BYTES / 2, 1024};
    int k = 3;
    size_t n = BYTES / 4;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    name_region("a", a, BYTES);
    MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, 2 * BYTES, a);
    cl_mem mem = MAKE(clCreateBuffer, env.context, CL_MEM_USE_HOST_PTR, BYTES, a);
    cl_mem sub =
        MAKE(clCreateSubBuffer, mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &part);
    int zero = 0;
    CALL(clEnqueueFillBuffer, env.queue, mem, &zero, 4, 0, BYTES, 0, NULL, NULL);
    cl_int code = -1;
    char *at = clEnqueueMapBuffer(env.queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 256, 512, 0,
                                  NULL, NULL, &code);
    note("mapped: %d, in place: %s", code, at == a + 256 ? "yes" : "no");
    at[0] = 11;
    CALL(clEnqueueUnmapMemObject, env.queue, mem, at, 0, NULL, NULL);
    char *there = clEnqueueMapBuffer(env.queue, sub, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                     1024, 0, NULL, NULL, &code);
    note("mapped: %d, in place: %s", code, there == a + BYTES / 2 ? "yes" : "no");
    memset(there, 7, 1024);
    CALL(clEnqueueUnmapMemObject, env.queue, sub, there, 0, NULL, NULL);
    cl_kernel kernel = env_kernel(&env, "add");
    CALL(clSetKernelArg, kernel, 0, sizeof(mem), &mem);
    CALL(clSetKernelArg, kernel, 1, sizeof(k), &k);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
    CALL(clSetKernelArgSVMPointer, kernel, 0, a);
    CALL(clEnqueueNDRangeKernel, env.queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
    CALL(clFinish, env.queue);
    env_dump_buffer(&env, "by the buffer", mem, BYTES);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, BYTES, 0, NULL, NULL);
    note_bytes("by the pointer", a, BYTES);
    CALL(clEnqueueSVMUnmap, env.queue, a, 0, NULL, NULL);
    CALL(clReleaseKernel, kernel);
    CALL(clReleaseMemObject, sub);
    CALL(clReleaseMemObject, mem);
    CALL(clFinish, env.queue);
    clSVMFree(env.context, a);
    env_fini(&env);
}

static struct latch freed;

/* What the function of a free does comes before what follows in the queue. */
static void CL_CALLBACK free_and_write(cl_command_queue queue, cl_uint n, void *pointers[],
                                       void *user)
{
    *(int *)user = 4711;
    latch_hit(&freed, (int)n, handle_known(queue));
    (void)pointers;
}

static void free_in_order(void)
{
    struct env env;
    cl_event gate, event;
    int seen = 0;
    env_init(&env);
    latch_init(&freed);
    if (!(offered(&env) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
        case_end("no fine-grain SVM");
    int *word = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0);
    void *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    word[0] = 1;
    gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueSVMFree, env.queue, 1, &a, free_and_write, word, 1, &gate, &event);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_FALSE, &seen, word, sizeof(seen), 0, NULL, NULL);
    CALL(clFlush, env.queue);
    note("before the gate opens: %u calls", freed.count);
    CALL(clSetUserEventStatus, gate, CL_COMPLETE);
    note_event_end("free", event);
    CALL(clFinish, env.queue);
    note("after: %u calls, seen %d", freed.count, seen);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, gate);
    clSVMFree(env.context, a);
    clSVMFree(env.context, word);
    env_fini(&env);
}

static void note_times(const char *what, cl_event event)
{
    cl_ulong times[4] = {0};
    bool there = true, in_order = true;
    note_event_end(what, event);
    for (cl_uint i = 0; i < 4; i++) {
        there &= clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, sizeof(times[i]),
                                         &times[i], NULL) == CL_SUCCESS;
        in_order &= !i || times[i - 1] <= times[i];
    }
    note("  times: %s, in order: %s", there ? "yes" : "no", in_order ? "yes" : "no");
    clReleaseEvent(event);
}

/* Every command has its times, and none is run whose wait list has failed. */
static void events(void)
{
    static char host[BYTES];
    struct env env;
    cl_event event, gate, second;
    int word = 1;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    latch_init(&freed);
    cl_command_queue queue =
        MAKE(clCreateCommandQueue, env.context, env.device, CL_QUEUE_PROFILING_ENABLE);
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    void *b = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    int *fine = clSVMAlloc(env.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0);
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMemFill, queue, a, &word, 4, BYTES, 0, NULL, &event);
    note_times("fill", event);
    CALL(clEnqueueSVMMemcpy, queue, CL_FALSE, host, a, BYTES, 0, NULL, &event);
    note_times("copy", event);
    CALL(clEnqueueSVMMemcpy, queue, CL_TRUE, a, host, BYTES, 0, NULL, &event);
    note_times("blocking copy", event);
    CALL(clEnqueueSVMMap, queue, CL_FALSE, CL_MAP_READ, a, BYTES, 0, NULL, &event);
    note_times("map", event);
    CALL(clEnqueueSVMUnmap, queue, a, 0, NULL, &event);
    note_times("unmap", event);
    CALL(clEnqueueSVMFree, queue, 1, &b, free_and_write, fine, 0, NULL, &event);
    note_times("free", event);
    note("called %u times", freed.count);

    gate = MAKE(clCreateUserEvent, env.context);
    CALL(clEnqueueSVMMemFill, queue, a, &word, 1, BYTES, 1, &gate, &event);
    CALL(clEnqueueSVMFree, queue, 1, &b, free_and_write, fine, 1, &gate, &second);
    CALL(clFlush, queue);
    CALL(clSetUserEventStatus, gate, -7);
    note_event_end("fill after a failure", event);
    note_event_end("free after a failure", second);
    CALL(clFinish, queue);
    note("called %u times", freed.count);
    CALL(clReleaseEvent, event);
    CALL(clReleaseEvent, second);
    CALL(clReleaseEvent, gate);
    CALL(clReleaseCommandQueue, queue);
    clSVMFree(env.context, a);
    clSVMFree(env.context, b);
    clSVMFree(env.context, fine);
    env_fini(&env);
}

/* Wait lists that are none. */
static void bad_waits(void)
{
    struct env env;
    char host[64] = {0};
    int word = 0;
    env_init(&env);
    if (!(offered(&env) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
        case_end("no SVM");
    char *a = clSVMAlloc(env.context, CL_MEM_READ_WRITE, BYTES, 0);
    void *pointers[1] = {a};
    name_region("a", a, BYTES);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, host, 64, 1, NULL, NULL);
    CALL(clEnqueueSVMMemcpy, env.queue, CL_TRUE, a, a + 64, 64, 1, NULL, NULL);
    CALL(clEnqueueSVMMemFill, env.queue, a, &word, 4, 64, 1, NULL, NULL);
    CALL(clEnqueueSVMMap, env.queue, CL_TRUE, CL_MAP_READ, a, 64, 1, NULL, NULL);
    CALL(clEnqueueSVMUnmap, env.queue, a, 1, NULL, NULL);
    CALL(clEnqueueSVMMigrateMem, env.queue, 1, (const void **)pointers, NULL, 0, 1, NULL, NULL);
    CALL(clEnqueueSVMFree, env.queue, 1, pointers, NULL, NULL, 1, NULL, NULL);
    CALL(clFinish, env.queue);
    clSVMFree(env.context, a);
    env_fini(&env);
}

static const struct diff_case svmuse_cases[] = {
    {"linked", linked},       {"meeting", meeting},
    {"gated", gated},         {"large", large},
    {"many", many},           {"buffer_in_place", buffer_in_place},
    {"bad_waits", bad_waits}, {"free_in_order", free_in_order},
    {"events", events},
};
DIFF_FAMILY(svmuse);
