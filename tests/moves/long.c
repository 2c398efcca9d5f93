/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose launches are long, one after the other, until a line comes. Each work-item adds
 * to its own element by an ordinary +=, so one that has run twice, or not at all, shows; and so
 * does one that was told wrongly where it stands.
 *
 *     long plain      one dimension, a queue that takes times
 *     long told       two dimensions and an offset; its groups ask for their numbers; a queue out
 * of order
 *
 * Prints "goes" when the first is with the driver, and in the end "right", or what was wrong.
 */
#include <CL/cl.h>

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

#define LOCAL    4u
#define COLUMNS  200u /* groups */
#define ROWS     100u
#define GROUPS   (COLUMNS * ROWS)
#define ITEMS    (GROUPS * LOCAL)
#define FEW_ROWS 16u /* enough to be measured */
#define OFFSET   (3 * LOCAL)

/* Two programs, so that what is found out with one tells nothing of the other's kernels. */
static const char body[] = "    for (uint r = 0; r < rounds; r++)\n"
                           "        x = x * 1664525u + 1013904223u;\n"
                           "    a[2 * at] += 1u;\n"
                           "    a[2 * at + 1] += x;\n"
                           "}\n";
static const char plain_text[] = "kernel void go(global uint *a, uint rounds) {\n"
                                 "    uint at = get_global_id(0), x = at;\n";
static const char told_text[] =
    "kernel void go(global uint *a, uint rounds) {\n"
    "    uint at = (get_group_id(1) * get_num_groups(0) + get_group_id(0)) * get_local_size(0) + "
    "get_local_id(0), x = at;\n"
    "    if (get_global_id(0) - get_global_offset(0) != get_group_id(0) * get_local_size(0) + "
    "get_local_id(0))\n"
    "        x = 0;\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static bool reported;
static uint32_t host[2 * ITEMS];

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static cl_kernel build(const char *head)
{
    const char *text[] = {head, body};
    cl_int r;
    cl_program program = clCreateProgramWithSource(context, 2, text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel k = clCreateKernel(program, "go", &r);
    MUST(r);
    clReleaseProgram(program);
    return k;
}

static cl_event launch(cl_kernel k, bool flat, cl_mem mem, uint32_t rows, uint32_t rounds,
                       const cl_event *after)
{
    const size_t offset[2] = {OFFSET, 0}, line[1] = {COLUMNS * rows * LOCAL},
                 plane[2] = {COLUMNS * LOCAL, rows}, local[2] = {LOCAL, 1};
    cl_event event;
    MUST(clSetKernelArg(k, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(k, 1, sizeof rounds, &rounds));
    MUST(clEnqueueNDRangeKernel(queue, k, flat ? 1 : 2, flat ? NULL : offset, flat ? line : plane,
                                local, after != NULL, after, &event));
    return event;
}

/* Rounds that make a launch of all rows take about that long. */
static uint32_t rounds_for(cl_mem mem, double wanted)
{
    cl_kernel k = build(plain_text);
    /* The driver compiles at the first. */
    for (uint32_t rounds = 100, n = 0;; rounds *= 2, n++) {
        cl_event event = launch(k, true, mem, FEW_ROWS, rounds, NULL);
        const double began = seconds();
        MUST(clWaitForEvents(1, &event));
        const double took = seconds() - began;
        clReleaseEvent(event);
        if (n < 2 || (took < 0.03 && rounds < 1u << 24))
            continue;
        clReleaseKernel(k);
        return (uint32_t)(rounds * wanted / (took * ROWS / FEW_ROWS)) + 1;
    }
}

static void check_times(cl_event event, cl_ulong *last_end)
{
    static const cl_profiling_info infos[] = {CL_PROFILING_COMMAND_QUEUED,
                                              CL_PROFILING_COMMAND_SUBMIT,
                                              CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong t[4];
    for (int i = 0; i < 4; i++)
        MUST(clGetEventProfilingInfo(event, infos[i], sizeof t[i], &t[i], NULL));
    if (t[0] > t[1] || t[1] > t[2] || t[2] >= t[3] || t[3] < *last_end) {
        printf("wrong: times %llu %llu %llu %llu after %llu\n", (unsigned long long)t[0],
               (unsigned long long)t[1], (unsigned long long)t[2], (unsigned long long)t[3],
               (unsigned long long)*last_end);
        exit(1);
    }
    *last_end = t[3];
}

static bool told_to_end(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    cl_platform_id platform;
    cl_ulong last_end = 0;
    cl_int r;
    reported = argc > 1 && strcmp(argv[1], "told") == 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(
        context, device,
        reported ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : CL_QUEUE_PROFILING_ENABLE, &r);
    MUST(r);
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof host, NULL, &r);
    MUST(r);
    const uint32_t rounds = rounds_for(mem, 1.5), zero = 0;
    cl_kernel k = build(reported ? told_text : plain_text);
    /* What a group takes is to be known before the first long one. */
    for (int i = 0; reported && i < 3; i++) {
        cl_event event = launch(k, false, mem, FEW_ROWS, rounds, NULL);
        MUST(clWaitForEvents(1, &event));
        clReleaseEvent(event);
    }
    cl_event before;
    MUST(clEnqueueFillBuffer(queue, mem, &zero, sizeof zero, 0, sizeof host, 0, NULL, &before));
    /* Two at a time, so that there is one whenever a move comes. */
    cl_event events[2] = {launch(k, !reported, mem, ROWS, rounds, &before), NULL};
    uint32_t n_all = 1;
    MUST(clFlush(queue));
    clReleaseEvent(before);
    printf("goes\n");
    while (!told_to_end()) {
        events[1] = launch(k, !reported, mem, ROWS, rounds, &events[0]);
        n_all++;
        MUST(clFlush(queue));
        MUST(clWaitForEvents(1, &events[0]));
        if (!reported)
            check_times(events[0], &last_end);
        clReleaseEvent(events[0]);
        events[0] = events[1];
    }
    MUST(clWaitForEvents(1, &events[0]));
    if (!reported)
        check_times(events[0], &last_end);
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof host, host, 0, NULL, NULL));
    /* What the rounds make of x: a * x + c. */
    uint32_t a = 1, c = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        a *= 1664525u;
        c = c * 1664525u + 1013904223u;
    }
    for (uint32_t i = 0; i < ITEMS; i++)
        if (host[2 * i] != n_all || host[2 * i + 1] != n_all * (a * i + c)) {
            printf("wrong: item %u: %u of %u times, %u for %u\n", i, host[2 * i], n_all,
                   host[2 * i + 1], n_all * (a * i + c));
            return 1;
        }
    printf("right\n");
    return 0;
}
