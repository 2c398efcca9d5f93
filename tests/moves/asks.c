/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program one thread of which asks for a program's binaries, for which the driver (lesser_icd.c)
 * takes as long as FIFO is open, while the other one goes on. Prints a line at each step, and waits
 * for one:
 *
 *     asks FIFO       asks: the driver has been asked; goes on: the other thread's calls have come
 * back; told: so have its own; right: so is what a kernel of that program computes
 */
#include <CL/cl.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "must.h"

static cl_program program;

static void say(const char *step)
{
    char line[16];
    printf("%s\n", step);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(1);
}

static void *ask(void *arg)
{
    size_t size = 0;
    unsigned char *binary;
    MUST(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    binary = malloc(size ? size : 1);
    MUST(!size || !binary);
    MUST(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
    free(binary);
    return arg;
}

int main(int argc, char **argv)
{
    static const char *source = "kernel void one_more(global int *a) { a[get_global_id(0)]++; }";
    const size_t n = 64;
    int values[64] = {0};
    cl_platform_id platform;
    cl_device_id device;
    cl_int result;
    pthread_t asker;
    if (argc != 2)
        return 2;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
    MUST(result);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &result);
    MUST(result);
    cl_mem a = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, &result);
    MUST(result);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &result);
    MUST(result);
    MUST(clBuildProgram(program, 1, &device, NULL, NULL, NULL));

    pthread_create(&asker, NULL, ask, NULL);
    /* It opens when the driver opens it, too. */
    const int fifo = open(argv[1], O_WRONLY | O_CLOEXEC);
    MUST(fifo < 0);
    say("asks");
    MUST(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    clReleaseMemObject(clCreateBuffer(context, 0, 4096, NULL, &result));
    MUST(result);
    say("goes on");
    /* Who is asked for the bytes may look for the sizes once more. */
    unlink(argv[1]);
    close(fifo);
    pthread_join(asker, NULL);
    say("told");
    cl_kernel one_more = clCreateKernel(program, "one_more", &result);
    MUST(result);
    MUST(clSetKernelArg(one_more, 0, sizeof a, &a));
    MUST(clEnqueueNDRangeKernel(queue, one_more, 1, NULL, &n, NULL, 0, NULL, NULL));
    MUST(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (size_t i = 0; i < n; i++)
        MUST(values[i] != 1);
    printf("right\n");
    return 0;
}
