/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes use of its device in one of many ways, and goes on with it after its vGPU
 * has been moved to another one. Prints "ready", waits for a line, looks whether its device still
 * says what it said and its work still comes out right, and prints "right".
 *
 *     needs plain | binary | part | parts | files FOLDER
 */
#include <CL/cl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "must.h"

#define N       4096u
#define GROUP   64u
#define LARGE   ((size_t)24 << 20)
#define N_FACTS 0x80u

static const char source[] = "kernel void turn(global uint *a, local uint *l) {\n"
                             "    local uint fixed[512];\n"
                             "    size_t i = get_local_id(0), n = get_local_size(0);\n"
                             "    l[i] = a[get_global_id(0)];\n"
                             "    fixed[i] = ONE;\n"
                             "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                             "    a[get_global_id(0)] = l[n - 1 - i] + fixed[n - 1 - i];\n"
                             "}\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel turn;
static cl_uint values[N];

struct fact {
    cl_int result;
    size_t n;
    unsigned char bytes[4096];
};
static struct fact before[N_FACTS];

static void ask(cl_uint number, struct fact *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->result = clGetDeviceInfo(device, number, sizeof ret->bytes, ret->bytes, &ret->n);
}

/* All that it was told of its device is what it is told now. */
static void facts(bool compare)
{
    struct fact now;
    for (cl_uint i = 0; i < N_FACTS; i++) {
        if (0x1000 + i == CL_DEVICE_REFERENCE_COUNT)
            continue;
        ask(0x1000 + i, compare ? &now : &before[i]);
        if (!compare || (now.result == before[i].result && now.n == before[i].n &&
                         !memcmp(now.bytes, before[i].bytes, sizeof now.bytes)))
            continue;
        printf("wrong: fact 0x%x has changed\n", 0x1000 + i);
        exit(1);
    }
}

static cl_program from_source(void)
{
    const char *text = source;
    cl_int r;
    cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(p, 1, &device, "-DONE=1", NULL, NULL));
    return p;
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "we");
    HOLDS(f);
    HOLDS(fputs(text, f) >= 0 && !fclose(f));
}

/* Out of files that are gone as soon as it is built. One of them is included by two names, and may
 * be read once. */
static cl_program from_files(const char *folder)
{
    const char *names[] = {"turn.h", "deep/one.h"}, *text = "#include \"turn.h\"\n";
    char options[4096], path[4096];
    cl_int r;
    snprintf(path, sizeof path, "%s/deep", folder);
    HOLDS(!mkdir(path, 0700));
    put(folder, "deep/one.h", "#pragma once\nconstant uint one = 1;\n#define ONE one\n");
    snprintf(path, sizeof path, "#include \"deep/one.h\"\n#include \"deep/../deep/one.h\"\n%s",
             source);
    put(folder, "turn.h", path);
    snprintf(options, sizeof options, "-I %s", folder);
    cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(p, 1, &device, options, NULL, NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        HOLDS(!remove(path));
    }
    snprintf(path, sizeof path, "%s/deep", folder);
    HOLDS(!remove(path));
    return p;
}

/* Of a part with a header that is a program of its own, and linked. */
static cl_program from_parts(void)
{
    const char *head = "#define ONE 1\n", *name = "one.h",
               *with[] = {"#include \"one.h\"\n", source};
    cl_int r;
    cl_program header = clCreateProgramWithSource(context, 1, &head, NULL, &r);
    MUST(r);
    cl_program p = clCreateProgramWithSource(context, 2, with, NULL, &r);
    MUST(r);
    MUST(clCompileProgram(p, 1, &device, NULL, 1, &header, &name, NULL, NULL));
    cl_program linked = clLinkProgram(context, 1, &device, NULL, 1, &p, NULL, NULL, &r);
    MUST(r);
    MUST(clReleaseProgram(p));
    MUST(clReleaseProgram(header));
    return linked;
}

/* What its first life leaves is all there is in the second. */
static cl_program from_binary(void)
{
    size_t n = 0;
    cl_int r, loaded = 0;
    cl_program p = from_source();
    MUST(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, NULL));
    unsigned char *bytes = malloc(n);
    HOLDS(n && bytes);
    MUST(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL));
    MUST(clReleaseProgram(p));
    p = clCreateProgramWithBinary(context, 1, &device, &n, (const unsigned char **)&bytes, &loaded,
                                  &r);
    MUST(r);
    MUST(loaded);
    MUST(clBuildProgram(p, 1, &device, NULL, NULL, NULL));
    free(bytes);
    return p;
}

/* Each group's values the other way round, and one more. */
static void work(cl_mem mem, cl_uint times)
{
    const size_t size = N, local = GROUP;
    MUST(clSetKernelArg(turn, 0, sizeof mem, &mem));
    MUST(clSetKernelArg(turn, 1, GROUP * sizeof(cl_uint), NULL));
    MUST(clEnqueueNDRangeKernel(queue, turn, 1, NULL, &size, &local, 0, NULL, NULL));
    MUST(clFinish(queue));
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (cl_uint i = 0; i < N; i++)
        HOLDS(values[i] == (times & 1 ? i / GROUP * GROUP + GROUP - 1 - i % GROUP : i) + times);
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

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    static unsigned char pixels[37][64][4], back[37][61][4];
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = 61,
                                .image_height = 37,
                                .image_row_pitch = sizeof *pixels};
    const size_t origin[3] = {0}, all[3] = {61, 37, 1};
    size_t pitch = 0, pitch_now = 0;
    cl_platform_id platform;
    char line[16];
    cl_int r;
    setvbuf(stdout, NULL, _IONBF, 0);
    MUST(clGetPlatformIDs(1, &platform, NULL));
    device = first_device(platform);
    facts(false);
    if (strcmp(how, "part") == 0) {
        const cl_device_partition_property by[] = {CL_DEVICE_PARTITION_BY_COUNTS, 2, 0, 0};
        cl_device_id part;
        MUST(clCreateSubDevices(device, by, 1, &part, NULL));
        device = part;
        facts(false);
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &r);
    MUST(r);
    cl_program program = strcmp(how, "binary") == 0              ? from_binary()
                         : strcmp(how, "files") == 0 && argc > 2 ? from_files(argv[2])
                         : strcmp(how, "parts") == 0             ? from_parts()
                                                                 : from_source();
    turn = clCreateKernel(program, "turn", &r);
    MUST(r);
    for (cl_uint i = 0; i < N; i++)
        values[i] = i;
    cl_mem mem = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, &r);
    MUST(r);
    cl_mem large = clCreateBuffer(context, 0, LARGE, NULL, &r);
    MUST(r);
    for (size_t i = 0; i < sizeof pixels; i++)
        ((unsigned char *)pixels)[i] = (unsigned char)(i * 7);
    /* PoCL 3.1 aborts when an image of a part of a device is read. */
    const bool images = strcmp(how, "part") != 0;
    cl_mem image =
        images ? clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, &r) : NULL;
    MUST(r);
    if (images)
        MUST(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof pitch, &pitch, NULL));
    work(mem, 1);
    printf("ready\n");
    HOLDS(fgets(line, sizeof line, stdin));
    facts(true);
    work(mem, 2);
    work(mem, 3);
    if (images) {
        MUST(clEnqueueReadImage(queue, image, CL_TRUE, origin, all, 0, 0, back, 0, NULL, NULL));
        for (size_t y = 0; y < desc.image_height; y++)
            HOLDS(!memcmp(pixels[y], back[y], sizeof *back));
        MUST(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof pitch_now, &pitch_now, NULL));
        HOLDS(pitch_now == pitch);
    }
    const cl_uint pattern = 7;
    MUST(clEnqueueFillBuffer(queue, large, &pattern, sizeof pattern, 0, LARGE, 0, NULL, NULL));
    MUST(clFinish(queue));
    printf("right\n");
    return 0;
}
