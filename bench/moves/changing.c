/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program to be moved while it works: buffers of which kernels may write some, and keep changing
 * a part.
 *
 *     changing TOTAL_MIB WRITABLE_MIB CHANGED_MIB
 *
 * In buffers of 16 MiB. Each kernel changes one MiB; they go round what is to be changed, four at a
 * time, and after four one that could write goes round what kernels may write. Prints "ready" when
 * all has been written once and the kernels go; at a line on stdin it ends, and prints how many
 * kernels ran, and the time of the longest, from its submission to its end, in microseconds, moves
 * included; on a second line, as JSON, how many were over at which times (CLOCK_MONOTONIC, ns).
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_MIB 16u
#define MARK_US    2000.0
#define MAX_MARKS  65536u
#define MIB        (1u << 20)

#define MUST(what)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (what);                                                                     \
        if (must_) {                                                                               \
            fprintf(stderr, "%s: %d\n", #what, must_);                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char source[] = "kernel void change(global uint *a, uint from, uint n) {\n"
                             "    uint i = from + get_global_id(0);\n"
                             "    a[i] = a[i] * 1664525u + n;\n"
                             "}\n"
                             /* May write, as far as anybody can tell, and does not. */
                             "kernel void look(global uint *a, global uint *b) {\n"
                             "    if (a[0] == 1 && a[1] == 2 && a[2] == 3) b[0] = a[3];\n"
                             "}\n";

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct mark {
    double at_us;
    uint32_t n;
} marks[MAX_MARKS];

int main(int argc, char **argv)
{
    const uint32_t total = argc == 4 ? (uint32_t)atoi(argv[1]) : 0,
                   writable = argc == 4 ? (uint32_t)atoi(argv[2]) : 0;
    const uint32_t changed = argc == 4 ? (uint32_t)atoi(argv[3]) : 0, n_bufs = total / BUFFER_MIB;
    const cl_mem_properties none[] = {
        0}; /* memory of the vGPU's own: what lies in the program does not move */
    const size_t items = MIB / 4;
    const char *text = source;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    cl_platform_id platform;
    cl_device_id device;
    cl_int r;
    if (!n_bufs || n_bufs > 4096 || !changed || changed > writable || writable > total ||
        writable < BUFFER_MIB) {
        fprintf(stderr, "changing TOTAL_MIB WRITABLE_MIB CHANGED_MIB\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    cl_kernel change = clCreateKernel(program, "change", &r);
    MUST(r);
    cl_kernel look = clCreateKernel(program, "look", &r);
    MUST(r);
    uint32_t *host = malloc(BUFFER_MIB * MIB);
    cl_mem bufs[4096];
    for (uint32_t b = 0; b < n_bufs && host; b++) {
        for (uint32_t i = 0; i < BUFFER_MIB * MIB / 4; i++)
            host[i] = (b << 22 | i) * 2654435761u;
        bufs[b] = clCreateBufferWithProperties(context, none, CL_MEM_COPY_HOST_PTR,
                                               BUFFER_MIB * MIB, host, &r);
        MUST(r);
    }
    const size_t one = 1;
    printf("ready\n");
    uint32_t n = 0;
    uint32_t n_marks = 0;
    double longest = 0;
    while (poll(&in, 1, 0) == 0) {
        const double began = now_us();
        for (int i = 0; i < 4; i++, n++) {
            const uint32_t mib = n % changed, from = mib % BUFFER_MIB * (MIB / 4);
            MUST(clSetKernelArg(change, 0, sizeof(cl_mem), &bufs[mib / BUFFER_MIB]));
            MUST(clSetKernelArg(change, 1, sizeof from, &from));
            MUST(clSetKernelArg(change, 2, sizeof n, &n));
            MUST(clEnqueueNDRangeKernel(queue, change, 1, NULL, &items, NULL, 0, NULL, NULL));
        }
        cl_mem *looked = &bufs[n / 4 % (writable / BUFFER_MIB)];
        MUST(clSetKernelArg(look, 0, sizeof(cl_mem), looked));
        MUST(clSetKernelArg(look, 1, sizeof(cl_mem), looked));
        MUST(clEnqueueNDRangeKernel(queue, look, 1, NULL, &one, NULL, 0, NULL, NULL));
        MUST(clFinish(queue));
        const double ended = now_us(), took = ended - began;
        longest = took > longest ? took : longest;
        if (n_marks < MAX_MARKS && (!n_marks || ended - marks[n_marks - 1].at_us >= MARK_US))
            marks[n_marks++] = (struct mark){ended, n};
    }
    printf("%u %.0f\n[", n, longest);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    for (uint32_t i = 0; i < n_marks; i++)
        printf("%s[%.0f, %u]", i ? ", " : "", marks[i].at_us * 1e3, marks[i].n);
    printf("]\n");
    return 0;
}
