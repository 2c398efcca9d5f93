/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose kernel counts its launches in a program-scope variable. It prints "ready" and
 * then, for each line that it reads, launches the kernel and prints the count, which begins at 100;
 * at "end" it lets go of everything and prints "right".
 *
 *     variables HOW [FOLDER]
 *
 * HOW is how the variable comes into the program: source, linked, header, included (by a file in
 * FOLDER), binary; or none, where there is no such variable; or what has happened before "ready":
 * clone (the counting kernel is a clone), other (the kernel that was launched and the program are
 * released, and another kernel of the program is left), unlaunched (nothing was launched), gone
 * (all of it was released, and another program made). PoCL 3.1 gives each kernel variables of its
 * own, and gets those in functions wrong. With recorded and unrun the kernel is launched by a
 * command buffer alone, before "ready" or not, which is all that is left of it.
 */
#include "command_buffers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "moves/must.h"

#define OPTIONS "-cl-std=CL2.0"

static const char variable[] = "global int counter = 100;\n";
static const char kernels[] = "kernel void count(global int *o) { o[0] = ++counter; }\n"
                              "kernel void show(global int *o) { o[0] = ++counter; }\n";
static const char without[] = "kernel void count(global int *o) { o[0] = 101; }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_mem out;
static cl_command_buffer_khr buffer; /* NULL: launched directly */

#define DEFINE(name) static name##_fn name __attribute__((unused));
COMMAND_BUFFER_FUNCTIONS(DEFINE)

static cl_program from_text(const char *first, const char *second)
{
    const char *texts[2] = {first, second};
    cl_int r;
    cl_program p = clCreateProgramWithSource(context, 2, texts, NULL, &r);
    MUST(r);
    return p;
}

static cl_program build(cl_program p, const char *options)
{
    MUST(clBuildProgram(p, 1, &device, options, NULL, NULL));
    return p;
}

static cl_program link(cl_program p, cl_uint n_headers, const cl_program *headers,
                       const char **names)
{
    cl_int r;
    MUST(clCompileProgram(p, 1, &device, OPTIONS, n_headers, headers, names, NULL, NULL));
    cl_program linked = clLinkProgram(context, 1, &device, NULL, 1, &p, NULL, NULL, &r);
    MUST(r);
    MUST(clReleaseProgram(p));
    return linked;
}

static cl_program from_header(void)
{
    const char *name = "counter.h";
    cl_program header = from_text(variable, "");
    cl_program p = link(from_text("#include \"counter.h\"\n", kernels), 1, &header, &name);
    MUST(clReleaseProgram(header));
    return p;
}

static cl_program from_file(const char *folder)
{
    char path[4096], options[4096];
    snprintf(path, sizeof path, "%s/counter.h", folder);
    FILE *f = fopen(path, "we");
    HOLDS(f);
    HOLDS(fputs(variable, f) >= 0 && !fclose(f));
    snprintf(options, sizeof options, OPTIONS " -I %s", folder);
    return build(from_text("#include \"counter.h\"\n", kernels), options);
}

static cl_program from_binary(void)
{
    size_t bytes = 0;
    cl_int status, r;
    cl_program source = build(from_text(variable, kernels), OPTIONS);
    MUST(clGetProgramInfo(source, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL));
    unsigned char *binary = malloc(bytes);
    HOLDS(binary);
    MUST(clGetProgramInfo(source, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
    cl_program p = clCreateProgramWithBinary(context, 1, &device, &bytes,
                                             (const unsigned char **)&binary, &status, &r);
    MUST(r);
    free(binary);
    MUST(clReleaseProgram(source));
    return build(p, "");
}

static cl_kernel kernel_of(cl_program p, const char *name)
{
    cl_int r;
    cl_kernel kernel = clCreateKernel(p, name, &r);
    MUST(r);
    return kernel;
}

static void record(cl_platform_id platform, cl_kernel kernel)
{
    const size_t one = 1;
    cl_int r;
#define FIND(name)                                                                                 \
    name = (name##_fn)(uintptr_t)clGetExtensionFunctionAddressForPlatform(platform, #name);
    COMMAND_BUFFER_FUNCTIONS(FIND)
    buffer = clCreateCommandBufferKHR(1, &queue, NULL, &r);
    MUST(r);
    MUST(clSetKernelArg(kernel, 0, sizeof out, &out));
    MUST(clCommandNDRangeKernelKHR(buffer, NULL, NULL, kernel, 1, NULL, &one, NULL, 0, NULL, NULL,
                                   NULL));
    MUST(clFinalizeCommandBufferKHR(buffer));
}

static int launch(cl_kernel kernel)
{
    const size_t one = 1;
    int n = 0;
    if (buffer) {
        MUST(clEnqueueCommandBufferKHR(0, NULL, buffer, 0, NULL, NULL));
    } else {
        MUST(clSetKernelArg(kernel, 0, sizeof out, &out));
        MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
    }
    MUST(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof n, &n, 0, NULL, NULL));
    return n;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    cl_platform_id platform;
    char line[16];
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), NULL, &r);
    MUST(r);
    cl_program p = !strcmp(how, "none")     ? build(from_text("", without), OPTIONS)
                   : !strcmp(how, "linked") ? link(from_text(variable, kernels), 0, NULL, NULL)
                   : !strcmp(how, "header") ? from_header()
                   : !strcmp(how, "included") && argc > 2 ? from_file(argv[2])
                   : !strcmp(how, "binary")               ? from_binary()
                                            : build(from_text(variable, kernels), OPTIONS);
    cl_kernel kernel = kernel_of(p, "count");
    if (!strcmp(how, "clone")) {
        cl_kernel clone = clCloneKernel(kernel, &r);
        MUST(r);
        MUST(clReleaseKernel(kernel));
        kernel = clone;
    }
    if (!strcmp(how, "recorded") || !strcmp(how, "unrun")) {
        record(platform, kernel);
        MUST(clReleaseKernel(kernel));
        MUST(clReleaseProgram(p));
        kernel = NULL;
        p = NULL;
    }
    if (strcmp(how, "unlaunched") != 0 && strcmp(how, "unrun") != 0)
        HOLDS(launch(kernel) == 101);
    if (!strcmp(how, "other")) {
        cl_kernel other = kernel_of(p, "show");
        MUST(clReleaseKernel(kernel));
        MUST(clReleaseProgram(p));
        kernel = other;
        p = NULL;
    }
    if (!strcmp(how, "gone")) {
        MUST(clReleaseKernel(kernel));
        MUST(clReleaseProgram(p));
        p = build(from_text(variable, kernels), OPTIONS);
        kernel = kernel_of(p, "count");
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
        printf("%d\n", launch(kernel));
        fflush(stdout);
    }
    if (buffer)
        MUST(clReleaseCommandBufferKHR(buffer));
    if (kernel)
        MUST(clReleaseKernel(kernel));
    if (p)
        MUST(clReleaseProgram(p));
    MUST(clReleaseMemObject(out));
    MUST(clReleaseCommandQueue(queue));
    MUST(clReleaseContext(context));
    puts("right");
    return 0;
}
