/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that make other programs wait for device memory, as far as they can. Each says "goes"
 * and goes on until it is killed. A call that fails ends it with "wrong: ..." (must.h), but
 * allocations may be refused.
 *
 *     hog touch MIB MIB     sub-buffers of both, made and released: requests that need the memory,
 *                           and no device time
 *     hog storm MIB MIB     allocates both, writes a word into each, releases them
 *     hog blink MIB MIB     writes a word, waits for it, and pauses for less than an eviction takes
 *     hog all MIB MIB       kernels, one after another, each of which works on all of both
 */
#include "must.h"

#include <string.h>
#include <unistd.h>

#define MIB    (1u << 20)
#define N      2
#define REGION 4096

#define PAUSE_US 8000u

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static size_t bytes[N];
static cl_mem mem[N];
static int n;

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

static void blink(void)
{
    make_both();
    goes();
    for (int i = 0;; i ^= 1) {
        fill(mem[i], sizeof(cl_uint));
        MUST(clFinish(queue));
        usleep(PAUSE_US);
    }
}

static void all(void)
{
    const char *text = "kernel void both(global uint *a, uint n, global uint *b, uint m) {\n"
                       "    uint i = get_global_id(0);\n"
                       "    if (i < n)\n"
                       "        a[i] += i;\n"
                       "    if (i < m)\n"
                       "        b[i] += i;\n"
                       "}\n";
    const size_t items = (bytes[0] > bytes[1] ? bytes[0] : bytes[1]) / sizeof(cl_uint);
    cl_int r;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel both = clCreateKernel(program, "both", &r);
    MUST(r);
    make_both();
    for (cl_uint i = 0; i < N; i++) {
        const cl_uint words = (cl_uint)(bytes[i] / sizeof(cl_uint));
        MUST(clSetKernelArg(both, 2 * i, sizeof mem[i], &mem[i]));
        MUST(clSetKernelArg(both, 2 * i + 1, sizeof words, &words));
    }
    goes();
    for (;;) {
        for (int i = 0; i < 8; i++)
            MUST(clEnqueueNDRangeKernel(queue, both, 1, NULL, &items, NULL, 0, NULL, NULL));
        MUST(clFinish(queue));
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"touch", touch}, {"storm", storm}, {"blink", blink}, {"all", all}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    HOLDS(argc == 2 + N);
    for (int i = 0; i < N; i++)
        bytes[i] = strtoul(argv[2 + i], NULL, 10) * MIB;
    must_open(&device, &context, &queue);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            ways[i].run();
    return 2;
}
