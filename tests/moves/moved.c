/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose vGPU is moved while something of each kind is under way. At each step it prints
 * the step's name and waits for a line, during which the test moves it; then it looks at what has
 * become of it. Ends with "right", or says what was wrong. Shared virtual memory is left out where
 * there is none, and with MOVED_WITHOUT_SVM.
 */
#include <CL/cl.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

#define N 4096u

static const char source[] =
    "kernel void add(global uint *a, uint n) { a[get_global_id(0)] += n; }\n"
    "typedef struct cell { global struct cell *next; uint n; } cell;\n"
    "kernel void sum(global cell *c, global uint *to) { uint n = 0; for (; c; c = c->next) n += "
    "c->n++; *to = n; }\n"
    "kernel void say(uint n) { printf(\"kernel says %u\\n\", n); }\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue, other;
static cl_kernel add, say;
static cl_uint values[N];

/* More than the session has room for: new memory comes about after each move, and what lies in old
 * memory stays. */
static void grow(void)
{
    static cl_mem had;
    static size_t bytes = (size_t)24 << 20;
    cl_uint first[2] = {0, 0};
    const cl_uint pattern = 0x5eed;
    cl_int r;
    if (had) {
        MUST(clEnqueueReadBuffer(queue, had, CL_TRUE, bytes - sizeof first, sizeof first, first, 0,
                                 NULL, NULL));
        HOLDS(first[0] == pattern && first[1] == pattern);
        MUST(clReleaseMemObject(had));
    }
    bytes += (size_t)24 << 20;
    had = clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &r);
    MUST(r);
    MUST(clEnqueueFillBuffer(queue, had, &pattern, sizeof pattern, 0, bytes, 0, NULL, NULL));
    MUST(clFinish(queue));
}

static void step(const char *name)
{
    char line[16];
    printf("%s\n", name);
    HOLDS(fgets(line, sizeof line, stdin));
}

static void launch(cl_command_queue q, cl_mem mem, cl_uint n, cl_uint n_waits,
                   const cl_event *waits, cl_event *event)
{
    const size_t size = N;
    MUST(clSetKernelArg(add, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(add, 1, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(q, add, 1, NULL, &size, NULL, n_waits, waits, event));
}

static bool has(cl_mem mem, size_t offset, size_t n, cl_uint value)
{
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, offset * 4, n * 4, values, 0, NULL, NULL));
    for (size_t i = 0; i < n; i++)
        if (values[i] != value)
            return false;
    return true;
}

static cl_mem filled(cl_mem_flags flags, cl_uint value)
{
    cl_int r;
    for (size_t i = 0; i < N; i++)
        values[i] = value;
    cl_mem mem = clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, N * 4, values, &r);
    MUST(r);
    return mem;
}

static void CL_CALLBACK called(cl_event event, cl_int status, void *arg)
{
    (void)event;
    __atomic_store_n((int *)arg, status == CL_COMPLETE ? 1 : -1, __ATOMIC_RELEASE);
}

static void *wait_for(void *arg)
{
    cl_event event = arg;
    return (void *)(intptr_t)clWaitForEvents(1, &event);
}

/* Commands behind a user event that is set after the move; a thread waits for the last of them, and
 * one has a callback. */
static void user_event(cl_command_queue q, const char *name)
{
    cl_int r;
    int reported = 0;
    cl_event gate = clCreateUserEvent(context, &r), first, last;
    MUST(r);
    pthread_t thread;
    void *waited;
    cl_mem mem = filled(0, 5);
    launch(q, mem, 2, 1, &gate, &first);
    launch(q, mem, 3, 1, &first, &last);
    MUST(clSetEventCallback(last, CL_COMPLETE, called, &reported));
    HOLDS(!pthread_create(&thread, NULL, wait_for, last));
    step(name);
    cl_int status = 1;
    MUST(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    HOLDS(status > CL_COMPLETE && !reported);
    MUST(clSetUserEventStatus(gate, CL_COMPLETE));
    pthread_join(thread, &waited);
    HOLDS(!waited);
    HOLDS(has(mem, 0, N, 10));
    while (!__atomic_load_n(&reported, __ATOMIC_ACQUIRE))
        ;
    HOLDS(reported == 1);
    cl_ulong queued, end;
    MUST(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL));
    MUST(clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
    HOLDS(queued && end > queued);
    clReleaseEvent(gate), clReleaseEvent(first), clReleaseEvent(last), clReleaseMemObject(mem);
}

/* As before, but the program lets go of all that the commands need, and uses the handles for
 * something else. */
static void let_go(void)
{
    static cl_uint out[N];
    cl_int r;
    cl_event gate = clCreateUserEvent(context, &r), last;
    MUST(r);
    const char *text =
        "kernel void twice(global const uint *a, global uint *b) { b[get_global_id(0)] = 2 * "
        "a[get_global_id(0)]; }";
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    cl_kernel twice = clCreateKernel(program, "twice", &r);
    MUST(r);
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    const size_t size = N;
    const cl_buffer_region region = {N, N};
    cl_mem from = filled(0, 21), secret = filled(CL_MEM_HOST_NO_ACCESS, 5),
           to = clCreateBuffer(context, 0, N * 4, NULL, &r);
    MUST(r);
    /* Of memory at the program's address the vGPU has a copy of its own. */
    static cl_uint mine[N];
    for (size_t i = 0; i < N; i++)
        mine[i] = 63;
    cl_mem whole = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, sizeof mine, mine, &r);
    MUST(r);
    cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
    MUST(r);
    MUST(clSetKernelArg(twice, 0, sizeof from, &from));
    MUST(clSetKernelArg(twice, 1, sizeof to, &to));
    MUST(clEnqueueNDRangeKernel(own, twice, 1, NULL, &size, NULL, 1, &gate, NULL));
    launch(own, to, 3, 0, NULL, NULL);
    MUST(clEnqueueCopyBuffer(own, secret, to, 0, 0, N * 2, 0, NULL, NULL));
    MUST(clEnqueueCopyBuffer(own, part, to, 0, N * 2, N, 0, NULL, NULL));
    MUST(clEnqueueReadBuffer(own, to, CL_FALSE, 0, N * 4, out, 0, NULL, &last));
    MUST(clFlush(own));
    clReleaseKernel(twice), clReleaseProgram(program), clReleaseMemObject(from),
        clReleaseMemObject(secret), clReleaseMemObject(to);
    clReleaseMemObject(part), clReleaseMemObject(whole);
    clReleaseCommandQueue(own);
    cl_mem others[8];
    for (cl_uint i = 0; i < 8; i++)
        others[i] = filled(i % 2 ? CL_MEM_HOST_NO_ACCESS : 0, 100 + i);
    step("let go");
    grow();
    MUST(clSetUserEventStatus(gate, CL_COMPLETE));
    MUST(clWaitForEvents(1, &last));
    for (size_t i = 0; i < N; i++)
        HOLDS(out[i] == (i < N / 2 ? 5 : i < N / 2 + N / 4 ? 63 : 45));
    for (cl_uint i = 0; i < 8; i++) {
        HOLDS(i % 2 || has(others[i], 0, N, 100 + i));
        clReleaseMemObject(others[i]);
    }
    clReleaseEvent(gate), clReleaseEvent(last);
}

static void buffers(void)
{
    cl_int r;
    cl_event event;
    cl_ulong before[2], after[2];
    const cl_buffer_region region = {4096, 4096};
    cl_mem mem = filled(0, 7), secret = filled(CL_MEM_HOST_NO_ACCESS, 9),
           empty = clCreateBuffer(context, 0, N * 4, NULL, &r);
    MUST(r);
    cl_mem part = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
    MUST(r);
    launch(queue, mem, 1, 0, NULL, &event);
    MUST(clFinish(queue));
    MUST(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &before[0], NULL));
    MUST(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &before[1], NULL));
    cl_uint *map = clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 64, 0,
                                      NULL, NULL, &r);
    MUST(r);
    HOLDS(map[0] == 8);
    map[1] = 1234;
    step("buffers");
    grow();
    HOLDS(map[0] == 8 && map[1] == 1234);
    map[2] = 5678;
    MUST(clEnqueueUnmapMemObject(queue, mem, map, 0, NULL, NULL));
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 16, values, 0, NULL, NULL));
    HOLDS(values[0] == 8 && values[1] == 1234 && values[2] == 5678 && values[3] == 8);
    HOLDS(has(part, 0, 1024, 8));
    const cl_uint nine = 99;
    MUST(clEnqueueFillBuffer(queue, part, &nine, 4, 0, 4096, 0, NULL, NULL));
    HOLDS(has(mem, 1024, 1024, 99) && has(mem, 2048, 1024, 8));
    MUST(clEnqueueCopyBuffer(queue, secret, empty, 0, 0, N * 4, 0, NULL, NULL));
    HOLDS(has(empty, 0, N, 9));
    MUST(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, 8, &after[0], NULL));
    MUST(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &after[1], NULL));
    HOLDS(before[0] == after[0] && before[1] == after[1]);
    clReleaseEvent(event), clReleaseMemObject(part), clReleaseMemObject(mem),
        clReleaseMemObject(secret), clReleaseMemObject(empty);
}

static void images(void)
{
    cl_int r;
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 61, .image_height = 37};
    const size_t origin[3] = {0}, all[3] = {61, 37, 1};
    static unsigned char pixels[37][61][4], back[37][61][4];
    for (size_t i = 0; i < sizeof pixels; i++)
        ((unsigned char *)pixels)[i] = (unsigned char)(i * 7);
    cl_mem image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, &r);
    MUST(r);
    cl_sampler sampler =
        clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &r);
    MUST(r);
    step("images");
    grow();
    MUST(clEnqueueReadImage(queue, image, CL_TRUE, origin, all, 0, 0, back, 0, NULL, NULL));
    HOLDS(!memcmp(pixels, back, sizeof pixels));
    cl_filter_mode filter = 0;
    MUST(clGetSamplerInfo(sampler, CL_SAMPLER_FILTER_MODE, sizeof filter, &filter, NULL));
    HOLDS(filter == CL_FILTER_NEAREST);
    clReleaseMemObject(image), clReleaseSampler(sampler);
}

/* Pointers that hold on both sides, in memory that both write; also what frees by itself, and what
 * is had anew in the same place. */
struct cell {
    struct cell *next;
    cl_uint n;
};

static void CL_CALLBACK freed(cl_command_queue q, cl_uint n, void **pointers, void *arg)
{
    (void)q;
    for (cl_uint i = 0; i < n; i++)
        clSVMFree(context, pointers[i]);
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

static void shared_memory(cl_program program)
{
    cl_device_svm_capabilities can = 0;
    cl_int r;
    int reported = 0;
    if (getenv("MOVED_WITHOUT_SVM") ||
        clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL) ||
        !(can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)) {
        step("shared memory");
        step("shared memory, again");
        return;
    }
    struct cell *cells = clSVMAlloc(context, CL_MEM_READ_WRITE, 3 * sizeof *cells, 0);
    cl_uint *words = clSVMAlloc(context, CL_MEM_READ_WRITE, N * 4, 0),
            *late = clSVMAlloc(context, CL_MEM_READ_WRITE, N * 4, 0);
    HOLDS(cells && words && late);
    cl_kernel sum = clCreateKernel(program, "sum", &r);
    MUST(r);
    cl_event gate = clCreateUserEvent(context, &r), last;
    MUST(r);
    MUST(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, cells, 3 * sizeof *cells, 0, NULL, NULL));
    for (cl_uint i = 0; i < 3; i++)
        cells[i] = (struct cell){i < 2 ? &cells[i + 1] : NULL, 10 * (i + 1)};
    MUST(clEnqueueSVMUnmap(queue, cells, 0, NULL, NULL));
    cl_mem over = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, N * 4, words, &r);
    MUST(r);
    const cl_uint five = 5;
    const size_t one = 1;
    MUST(clEnqueueSVMMemFill(queue, words, &five, 4, N * 4, 0, NULL, NULL));
    launch(queue, over, 1, 0, NULL, NULL);
    const void *pointers[] = {cells};
    MUST(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers));
    MUST(clSetKernelArgSVMPointer(sum, 0, cells));
    MUST(clSetKernelArgSVMPointer(sum, 1, &words[1]));
    MUST(clEnqueueNDRangeKernel(queue, sum, 1, NULL, &one, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    HOLDS(words[0] == 6 && words[1] == 60 && cells[2].n == 31);
    /* What waits: a kernel, a copy out of shared memory, the end of an allocation. */
    MUST(clEnqueueNDRangeKernel(other, sum, 1, NULL, &one, NULL, 1, &gate, &last));
    MUST(clEnqueueSVMMemcpy(other, CL_FALSE, late, words, N * 4, 1, &last, NULL));
    clReleaseEvent(last);
    MUST(clEnqueueBarrierWithWaitList(other, 0, NULL, NULL));
    MUST(clEnqueueSVMMemcpy(other, CL_FALSE, values, late, N * 4, 0, NULL, &last));
    void *end[] = {late};
    MUST(clEnqueueSVMFree(other, 1, end, freed, &reported, 1, &last, NULL));
    step("shared memory");
    grow();
    HOLDS(words[0] == 6 && words[1] == 60 && !reported);
    cells[0].n = 1000; /* fine grain or not: nobody else has it now */
    MUST(clSetUserEventStatus(gate, CL_COMPLETE));
    MUST(clFinish(other));
    HOLDS(values[0] == 6 && values[1] == 1000 + 21 + 31 && reported);
    cl_uint *more = clSVMAlloc(context, CL_MEM_READ_WRITE, N * 4, 0);
    HOLDS(more);
    MUST(clEnqueueSVMMemFill(queue, more, &five, 4, N * 4, 0, NULL, NULL));
    launch(queue, over, 4, 0, NULL, NULL);
    MUST(clFinish(queue));
    HOLDS(more[N - 1] == 5 && words[0] == 10 && has(over, 2, N - 2, 10));
    step("shared memory, again");
    MUST(clEnqueueSVMMemcpy(queue, CL_TRUE, values, more, N * 4, 0, NULL, NULL));
    HOLDS(values[0] == 5 && words[0] == 10 && cells[0].n == 1001);
    clReleaseEvent(gate), clReleaseEvent(last), clReleaseMemObject(over), clReleaseKernel(sum);
    clSVMFree(context, cells), clSVMFree(context, words), clSVMFree(context, more);
}

/* Of several the one whose name says that it uses threads; who asks for one alone is offered the
 * one that has the least to do. */
static cl_device_id first_device(cl_platform_id platform)
{
    cl_device_id devices[16];
    cl_uint n = 0;
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 16, devices, &n));
    for (cl_uint i = 0; i < n; i++) {
        char name[256] = "";
        MUST(clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof name, name, NULL));
        if (strncmp(name, "pthread", 7) == 0)
            return devices[i];
    }
    return devices[0];
}

int main(void)
{
    cl_platform_id platform;
    cl_int r;
    const char *text = source;
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    device = first_device(platform);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &r);
    MUST(r);
    other = clCreateCommandQueue(
        context, device, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &r);
    MUST(r);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    add = clCreateKernel(program, "add", &r);
    MUST(r);
    say = clCreateKernel(program, "say", &r);
    MUST(r);
    buffers();
    images();
    user_event(queue, "user event, in order");
    user_event(other, "user event, out of order");
    let_go();
    shared_memory(program);
    step("printf");
    grow();
    const cl_uint number = 42;
    const size_t one = 1;
    MUST(clSetKernelArg(say, 0, sizeof number, &number));
    MUST(clEnqueueNDRangeKernel(queue, say, 1, NULL, &one, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    printf("right\n");
    return 0;
}
