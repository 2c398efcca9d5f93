/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that make other programs wait for device memory, as far as they can. Each says "goes"
 * and goes on until it is killed. A call that fails ends it with "wrong: ..." (must.h), but
 * allocations may be refused.
 *
 *     hog touch MIB MIB     sub-buffers of both, made and released: requests that need the memory,
 *                           and no device time
 *     hog storm MIB MIB     allocates both, writes a word into each, releases them
 */
#include "must.h"

#include <string.h>

#define MIB    (1u << 20)
#define N      2
#define REGION 4096

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static size_t bytes[N];
static cl_mem mem[N];
static int n;

static void open_device(void)
{
    cl_platform_id platform;
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
}

static void fill(cl_mem to, size_t n_bytes)
{
    const cl_uint word = 42;
    MUST(clEnqueueFillBuffer(queue, to, &word, sizeof word, 0, n_bytes, 0, NULL, NULL));
}

/* NULL: refused. */
static cl_mem make(size_t n_bytes)
{
    cl_int r;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, n_bytes, NULL, &r);
    HOLDS(made || r == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return made;
}

static void make_both(void)
{
    for (n = 0; n < N; n++) {
        mem[n] = make(bytes[n]);
        HOLDS(mem[n]);
        fill(mem[n], bytes[n]);
    }
    MUST(clFinish(queue));
}

static void goes(void)
{
    puts("goes");
}

static void touch(void)
{
    const cl_buffer_region region = {0, REGION};
    cl_int r;
    make_both();
    goes();
    for (int i = 0;; i ^= 1) {
        cl_mem part = clCreateSubBuffer(mem[i], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &r);
        MUST(r);
        MUST(clReleaseMemObject(part));
    }
}

static void storm(void)
{
    goes();
    for (;;) {
        for (n = 0; n < N && (mem[n] = make(bytes[n])); n++)
            fill(mem[n], sizeof(cl_uint));
        MUST(clFinish(queue));
        while (n)
            MUST(clReleaseMemObject(mem[--n]));
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"touch", touch}, {"storm", storm}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    HOLDS(argc == 2 + N);
    for (int i = 0; i < N; i++)
        bytes[i] = strtoul(argv[2 + i], NULL, 10) * MIB;
    open_device();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            ways[i].run();
    return 2;
}
