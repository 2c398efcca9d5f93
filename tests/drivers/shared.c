/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with shared virtual memory. It prints the capabilities and, where there are any, for
 * each line that it reads it does all that there is to do with such memory and prints "done"; at
 * "end" it lets go of everything and prints "right".
 *
 *     shared
 */
#include <CL/cl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moves/must.h"

#define N 1024

static const char *source =
    "kernel void add(global int *a, int k) { a[get_global_id(0)] += k; }\n"
    "kernel void bytes(global uchar *a) { a[get_global_id(0)] ^= 0x5a; }\n"
    "struct node { global struct node *next; int value; };\n"
    "kernel void walk(global struct node *first, global int *sum)\n"
    "{ int s = 0; for (global struct node *n = first; n; n = n->next) s += n->value; *sum = s; }\n"
    "kernel void where(global ulong *to, global char *a, global char *b) { to[0] = (ulong)a; "
    "to[1] = (ulong)b; }\n";

struct node {
    struct node *next;
    int value;
};

static cl_device_id device;
static cl_context context;
static cl_command_queue queue, other;
static cl_kernel add, bytes, walk, where;
static int *a, *b;
static struct node *nodes;

static cl_kernel kernel(cl_program program, const char *name)
{
    cl_int r;
    cl_kernel k = clCreateKernel(program, name, &r);
    MUST(r);
    return k;
}

static void run(cl_kernel k, size_t n, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    MUST(clEnqueueNDRangeKernel(queue, k, 1, NULL, &n, NULL, n_waits, waits, event));
}

static void expect(const char *what, long is, long should)
{
    if (is == should)
        return;
    printf("%s: %ld and not %ld\n", what, is, should);
    exit(1);
}

static void work(void)
{
    const int three = 3, one = 1, long_pattern[4] = {1, 2, 3, 4};
    static int host[N];
    cl_event filled, copied, added;
    MUST(clEnqueueSVMMemFill(queue, a, &three, sizeof three, N * sizeof *a, 0, NULL, &filled));
    MUST(clEnqueueSVMMemcpy(other, CL_FALSE, b, a, N * sizeof *a, 1, &filled, &copied));
    MUST(clSetKernelArgSVMPointer(add, 0, a + 16));
    MUST(clSetKernelArg(add, 1, sizeof one, &one));
    run(add, N - 16, 1, &copied, &added);
    MUST(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, a, N * sizeof *a, 1, &added,
                         NULL));
    expect("before an address inside", a[15], 3);
    expect("at an address inside", a[16], 4);
    expect("the last", a[N - 1], 4);
    expect("the copy", b[N - 1], 3);
    a[N - 1] = 70;
    MUST(clEnqueueSVMUnmap(queue, a, 0, NULL, NULL));
    MUST(clSetKernelArgSVMPointer(add, 0, a));
    run(add, N, 0, NULL, NULL);
    MUST(clEnqueueSVMMemcpy(queue, CL_TRUE, host, a, N * sizeof *a, 0, NULL, NULL));
    expect("what the program wrote", host[N - 1], 71);
    /* Anywhere. */
    MUST(clSetKernelArgSVMPointer(bytes, 0, (char *)b + 5));
    run(bytes, 1, 0, NULL, NULL);
    MUST(clFinish(queue));
    expect("one byte", ((unsigned char *)b)[5], 0x5a);
    expect("the byte before", ((unsigned char *)b)[4], 3);
    MUST(clEnqueueSVMMemFill(queue, b, long_pattern, sizeof long_pattern, N * sizeof *b, 0, NULL,
                             NULL));
    MUST(clFinish(queue));
    for (int i = 0; i < N; i++)
        expect("a long pattern", b[i], i % 4 + 1);
    /* Pointers in it, which no argument names. */
    const void *list[] = {nodes};
    for (int i = 0; i < 100; i++)
        nodes[i] = (struct node){i < 99 ? &nodes[i + 1] : NULL, i};
    MUST(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof list, list));
    MUST(clSetKernelArgSVMPointer(walk, 0, &nodes[50]));
    MUST(clSetKernelArgSVMPointer(walk, 1, &b[7]));
    run(walk, 1, 0, NULL, NULL);
    MUST(clFinish(queue));
    expect("the rest of a list", b[7], (50 + 99) * 50 / 2);
    /* The kernel sees the program's own addresses; nothing at all; and what is just behind the end.
     */
    MUST(clSetKernelArgSVMPointer(where, 0, nodes));
    MUST(clSetKernelArgSVMPointer(where, 1, (char *)b + 1));
    MUST(clSetKernelArgSVMPointer(where, 2, NULL));
    run(where, 1, 0, NULL, NULL);
    MUST(clFinish(queue));
    expect("an address", ((long *)nodes)[0], (long)((char *)b + 1));
    expect("none", ((long *)nodes)[1], 0);
    const void *pointers[] = {a, b};
    const size_t sizes[] = {64, 0};
    if (clEnqueueSVMMigrateMem(queue, 2, pointers, sizes, 0, 0, NULL, NULL))
        expect("clEnqueueSVMMigrateMem", 1, 0);
    /* The same argument again, once something else has been there. */
    cl_int r;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, N * sizeof *a, NULL, &r);
    MUST(r);
    MUST(clSetKernelArg(add, 0, sizeof buffer, &buffer));
    run(add, N, 0, NULL, NULL);
    MUST(clSetKernelArgSVMPointer(add, 0, a));
    run(add, N, 0, NULL, NULL);
    MUST(clFinish(queue));
    expect("again", a[N - 1], 72);
    MUST(clReleaseMemObject(buffer));
    MUST(clReleaseEvent(filled));
    MUST(clReleaseEvent(copied));
    MUST(clReleaseEvent(added));
}

int main(void)
{
    cl_device_svm_capabilities capabilities = 0;
    cl_platform_id platform;
    cl_uint units = 0;
    char line[32];
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    MUST(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof capabilities, &capabilities,
                         NULL));
    MUST(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL));
    printf("%#x\n", (unsigned)capabilities);
    fflush(stdout);
    if (!capabilities)
        return 0;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    other = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "-cl-std=CL2.0", NULL, NULL));
    add = kernel(program, "add");
    bytes = kernel(program, "bytes");
    walk = kernel(program, "walk");
    where = kernel(program, "where");
    a = clSVMAlloc(context, CL_MEM_READ_WRITE, N * sizeof *a, 0);
    b = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, N * sizeof *b, 0);
    nodes = clSVMAlloc(context, CL_MEM_READ_WRITE, 100 * sizeof *nodes, 64);
    if (!a || !b || !nodes)
        expect("clSVMAlloc", 0, 1);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
        work();
        puts("done");
        fflush(stdout);
    }
    MUST(clEnqueueSVMFree(queue, 1, (void *[]){nodes}, NULL, NULL, 0, NULL, NULL));
    MUST(clFinish(queue));
    clSVMFree(context, a);
    clSVMFree(context, b);
    for (size_t i = 0; i < 4; i++)
        MUST(clReleaseKernel((cl_kernel[]){add, bytes, walk, where}[i]));
    MUST(clReleaseProgram(program));
    MUST(clReleaseCommandQueue(other));
    MUST(clReleaseCommandQueue(queue));
    MUST(clReleaseContext(context));
    puts("right");
    return 0;
}
