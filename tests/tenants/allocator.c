/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL program that holds device memory as it is told on stdin, a line a command, and answers
 * each with a line:
 *
 *   buffer N | sub I N | image W H | image1d N | svm N | host N | copy N    make something; "made
 * I" or "error CODE" (svm: 0) pipe SIZE COUNT likewise free I | freeall          let it go, and
 * wait until the queue has; "freed" drop I                    let it go, and wait for nothing;
 * "dropped" poke I                    write a buffer's first byte: the driver needs memory for it
 * now; "poked RESULT" build PRINTS              build a program, which prints or does not, and link
 * one; "built RESULT RESULT PRINTF_BUFFER" touch I                   write and read a buffer to its
 * last byte; "same" or "differs" storm SEED N MOST         N times makes or frees at random, at
 * most MOST bytes a time; "storm HELD REFUSED MADE" info                      "info GLOBAL LARGEST"
 * platforms                 "platforms N DEVICES..." (before anything else was asked: says nothing
 * of memory)
 *
 * It ends when stdin does.
 */
#include <CL/cl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THINGS 4096

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static struct thing {
    cl_mem mem;
    void *svm;
    size_t bytes;
    void *host;
} things[MOST_THINGS];

static int need(cl_int result, const char *what)
{
    if (!result)
        return 0;
    printf("broken %s %d\n", what, (int)result);
    exit(2);
}

static int empty_slot(void)
{
    for (int i = 0; i < MOST_THINGS; i++)
        if (!things[i].mem && !things[i].svm)
            return i;
    exit(3);
}

static void tell(int i, cl_int result)
{
    if (things[i].mem || things[i].svm)
        printf("made %d\n", i);
    else
        printf("error %d\n", (int)result);
}

static void free_thing(int i)
{
    if (things[i].mem)
        need(clReleaseMemObject(things[i].mem), "clReleaseMemObject");
    if (things[i].svm)
        clSVMFree(context, things[i].svm);
    free(things[i].host);
    memset(&things[i], 0, sizeof things[i]);
}

static cl_int make_buffer(int i, cl_mem_flags flags, size_t bytes, void *host)
{
    cl_int result = 77;
    things[i].mem = clCreateBuffer(context, flags, bytes, host, &result);
    things[i].bytes = bytes;
    if (!things[i].mem == !result)
        need(1, "a result and an object that do not fit");
    return result;
}

static void make_host(size_t bytes, cl_mem_flags flags)
{
    int i = empty_slot();
    void *host = calloc(1, bytes);
    if (!host)
        exit(4);
    cl_int result = make_buffer(i, flags, bytes, host);
    if (things[i].mem && (flags & CL_MEM_USE_HOST_PTR))
        things[i].host = host;
    else
        free(host);
    tell(i, result);
}

static void make_image(size_t width, size_t height)
{
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc desc = {.image_type = height ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_IMAGE1D,
                          .image_width = width,
                          .image_height = height};
    int i = empty_slot();
    cl_int result;
    things[i].mem = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &result);
    tell(i, result);
}

/* Whatever was released before has been, when this returns: a question is answered after it. */
static void wait_for_all(void)
{
    cl_ulong ignored;
    need(clFinish(queue), "clFinish");
    need(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof ignored, &ignored, NULL),
         "info");
}

static void touch(int i)
{
    unsigned char *out = malloc(things[i].bytes), *in = malloc(things[i].bytes);
    if (!out || !in)
        exit(4);
    for (size_t b = 0; b < things[i].bytes; b++)
        out[b] = (unsigned char)(b * 31 + (size_t)i);
    need(
        clEnqueueWriteBuffer(queue, things[i].mem, CL_TRUE, 0, things[i].bytes, out, 0, NULL, NULL),
        "write");
    need(clEnqueueReadBuffer(queue, things[i].mem, CL_TRUE, 0, things[i].bytes, in, 0, NULL, NULL),
         "read");
    puts(memcmp(in, out, things[i].bytes) ? "differs" : "same");
    free(out);
    free(in);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed >> 11;
}

static void storm(uint64_t seed, int n, size_t most)
{
    size_t held = 0;
    int refused = 0, made = 0;
    for (int step = 0; step < n; step++) {
        int i = (int)(next(&seed) % 64);
        if (things[i].mem) {
            held -= things[i].bytes;
            free_thing(i);
            continue;
        }
        cl_int result = make_buffer(i, CL_MEM_READ_WRITE, 1 + next(&seed) % most, NULL);
        if (result && result != CL_MEM_OBJECT_ALLOCATION_FAILURE)
            need(result, "clCreateBuffer");
        refused += result != 0;
        made += result == 0;
        held += result ? 0 : things[i].bytes;
    }
    wait_for_all();
    printf("storm %zu %d %d\n", held, refused, made);
}

/* Also by a compile and a link. */
static void build(const char *source)
{
    cl_int result, built, linked;
    cl_ulong bytes = 0;
    size_t size = 0;
    cl_program whole = clCreateProgramWithSource(context, 1, &source, NULL, &result);
    need(result, "clCreateProgramWithSource");
    built = clBuildProgram(whole, 0, NULL, "", NULL, NULL);
    cl_program part = clCreateProgramWithSource(context, 1, &source, NULL, &result);
    need(clCompileProgram(part, 0, NULL, "", 0, NULL, NULL, NULL, NULL), "clCompileProgram");
    cl_program all = clLinkProgram(context, 0, NULL, "", 1, &part, NULL, NULL, &linked);
    need(clGetDeviceInfo(device, CL_DEVICE_PRINTF_BUFFER_SIZE, sizeof size, &size, NULL), "info");
    bytes = size;
    printf("built %d %d %llu\n", (int)built, (int)linked, (unsigned long long)bytes);
    if (all)
        clReleaseProgram(all);
    clReleaseProgram(part);
    clReleaseProgram(whole);
}

/* Whichever is offered; with ALLOCATOR_DEVICE=N the Nth of all, =default the platform's own. */
static void choose_device(cl_platform_id platform)
{
    const char *which = getenv("ALLOCATOR_DEVICE");
    cl_device_id all[8];
    cl_uint n = 0;
    if (which && strcmp(which, "default") != 0) {
        need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, all, &n), "clGetDeviceIDs");
        device = all[strtoul(which, NULL, 10) % n];
        return;
    }
    need(clGetDeviceIDs(platform, which ? CL_DEVICE_TYPE_DEFAULT : CL_DEVICE_TYPE_ALL, 1, &device,
                        &n),
         "clGetDeviceIDs");
}

static void open_device(void)
{
    cl_platform_id platform;
    cl_int result;
    need(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    choose_device(platform);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
    need(result, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &result);
    need(result, "clCreateCommandQueue");
}

static void list_platforms(void)
{
    cl_platform_id platforms[8];
    cl_uint n = 0, n_devices = 0;
    if (clGetPlatformIDs(8, platforms, &n))
        n = 0;
    printf("platforms %u", n);
    for (cl_uint i = 0; i < n; i++) {
        need(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, NULL, &n_devices),
             "clGetDeviceIDs");
        printf(" %u", n_devices);
    }
    putchar('\n');
}

static void obey(const char *word, unsigned long long a, unsigned long long b, unsigned long long c)
{
    int i;
    cl_int result = 0;
    if (strcmp(word, "buffer") == 0) {
        i = empty_slot();
        result = make_buffer(i, CL_MEM_READ_WRITE, a, NULL);
        tell(i, result);
    } else if (strcmp(word, "sub") == 0) {
        cl_buffer_region region = {0, b};
        i = empty_slot();
        things[i].mem =
            clCreateSubBuffer(things[a].mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &result);
        tell(i, result);
    } else if (strcmp(word, "image") == 0) {
        make_image(a, b);
    } else if (strcmp(word, "svm") == 0) {
        i = empty_slot();
        things[i].svm = clSVMAlloc(context, CL_MEM_READ_WRITE, a, 0);
        tell(i, 0);
    } else if (strcmp(word, "host") == 0) {
        make_host(a, CL_MEM_USE_HOST_PTR);
    } else if (strcmp(word, "copy") == 0) {
        make_host(a, CL_MEM_COPY_HOST_PTR);
    } else if (strcmp(word, "free") == 0) {
        free_thing((int)a);
        wait_for_all();
        puts("freed");
    } else if (strcmp(word, "drop") == 0) {
        free_thing((int)a);
        puts("dropped");
    } else if (strcmp(word, "freeall") == 0) {
        for (i = MOST_THINGS - 1; i >= 0; i--)
            free_thing(i);
        wait_for_all();
        puts("freed");
    } else if (strcmp(word, "touch") == 0) {
        touch((int)a);
    } else if (strcmp(word, "poke") == 0) {
        result = clEnqueueWriteBuffer(queue, things[a].mem, CL_TRUE, 0, 1, "x", 0, NULL, NULL);
        printf("poked %d\n", (int)result);
    } else if (strcmp(word, "build") == 0) {
        build(a ? "kernel void k(global int *o) { printf(\"%d\", o[0]); }"
                : "kernel void k(global int *o) { o[0] = 1; }");
    } else if (strcmp(word, "storm") == 0) {
        storm(a, (int)b, c);
    } else if (strcmp(word, "flags") == 0) {
        i = empty_slot();
        things[i].mem =
            clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, a, NULL, &result);
        tell(i, result);
    } else if (strcmp(word, "info") == 0) {
        cl_ulong global = 0, largest = 0;
        need(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL),
             "info");
        need(clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL),
             "info");
        printf("info %llu %llu\n", (unsigned long long)global, (unsigned long long)largest);
    } else if (strcmp(word, "device") == 0) {
        char name[256];
        need(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), "info");
        printf("device %s\n", name);
    } else {
        printf("what? %s\n", word);
    }
}

int main(void)
{
    char line[256], word[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long a = 0, b = 0, c = 0;
        if (sscanf(line, "%31s %llu %llu %llu", word, &a, &b, &c) < 1)
            continue;
        if (strcmp(word, "platforms") == 0) {
            list_platforms();
            continue;
        }
        if (!context)
            open_device();
        obey(word, a, b, c);
    }
    return 0;
}
