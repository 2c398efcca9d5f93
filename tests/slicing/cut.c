/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose launches may be cut. It says what every work-item is told about where it stands,
 * as the specification has it, and prints a line for each thing that it has looked at, which must
 * be the same whatever is between it and the driver:
 *
 *   cut ids        every function that tells a work-item where it stands, over many geometries
 *   cut facts      build logs, sources, binaries and kernels' arguments, before and after launches
 *   cut events     one event a launch: its order, times, callbacks, dependents, markers, errors
 *   cut whole      launches that may not be cut
 *   cut long N     N launches, one after the other, each long; "ready", then "round" after each
 */
#include <CL/cl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_device_id device;
static cl_context context;
static cl_command_queue queue, free_queue; /* in order; out of order */

static void need(cl_int result, const char *what)
{
    if (!result)
        return;
    printf("broken %s %d\n", what, (int)result);
    exit(2);
}

static uint64_t hash(const void *bytes, size_t n, uint64_t h)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

static cl_program build(const char *text, const char *options)
{
    cl_int result;
    cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, &result);
    need(result, "program");
    result = clBuildProgram(p, 1, &device, options, NULL, NULL);
    if (result) {
        static char log[8192];
        clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        printf("%s\n", log);
    }
    need(result, "build");
    return p;
}

static cl_kernel kernel_of(cl_program p, const char *name)
{
    cl_int result;
    cl_kernel k = clCreateKernel(p, name, &result);
    need(result, "kernel");
    return k;
}

static cl_mem buffer(size_t bytes)
{
    cl_int result;
    const cl_uint zero = 0;
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &result);
    need(result, "buffer");
    need(clEnqueueFillBuffer(queue, m, &zero, sizeof zero, 0, bytes, 0, NULL, NULL), "fill");
    return m;
}

/* ---- ids */

#define N_WORDS 25

static const char ids_text[] =
    "kernel void ids(global uint *out, uint row, uint plane, uint ox, uint oy, uint oz) {\n"
    "    uint at = (get_global_id(2) - oz) * plane + (get_global_id(1) - oy) * row + "
    "get_global_id(0) - ox;\n"
    "    global uint *o = out + at * 25;\n"
    "    for (uint d = 0; d < 4; d++) {\n"
    "        o[d] += get_global_id(d);\n"
    "        o[4 + d] += get_group_id(d);\n"
    "        o[8 + d] += get_num_groups(d);\n"
    "        o[12 + d] += get_global_size(d);\n"
    "        o[16 + d] += get_global_offset(d);\n"
    "        o[20 + d] += get_local_id(d) + 1000 * get_local_size(d);\n"
    "    }\n"
    "    o[24] += get_work_dim() + 100 * __LINE__;\n"
    "}\n"
    "kernel void sum(global uint *out, global const uint *in, uint n) {\n"
    "    uint i = get_global_id(0);\n"
    "    out[i] += in[i] * 3 + n;\n"
    "}\n";

struct geometry {
    cl_uint dim;
    size_t offset[3], size[3], local[3];
};

static uint32_t id_of(const struct geometry *g, uint32_t word, const size_t *at)
{
    const uint32_t d = word % 4;
    const int in = d < g->dim;
    const size_t local = in ? g->local[d] : 1, id = in ? at[d] : 0;
    switch (word / 4) {
    case 0:
        return (uint32_t)(in ? g->offset[d] + id : 0);
    case 1:
        return (uint32_t)(id / local);
    case 2:
        return (uint32_t)(in ? g->size[d] / local : 1);
    case 3:
        return (uint32_t)(in ? g->size[d] : 1);
    case 4:
        return (uint32_t)(in ? g->offset[d] : 0);
    case 5:
        return (uint32_t)(id % local + 1000 * local);
    default:
        return g->dim + 100 * 12;
    }
}

static void check_ids(cl_kernel k, const struct geometry *g)
{
    size_t n[3] = {1, 1, 1};
    for (cl_uint d = 0; d < g->dim; d++)
        n[d] = g->size[d];
    const size_t items = n[0] * n[1] * n[2], bytes = items * N_WORDS * sizeof(cl_uint);
    const cl_uint row = (cl_uint)n[0], plane = (cl_uint)(n[0] * n[1]);
    cl_uint o[3] = {0, 0, 0};
    for (cl_uint d = 0; d < g->dim; d++)
        o[d] = (cl_uint)g->offset[d];
    cl_mem out = buffer(bytes);
    uint32_t *got = malloc(bytes);
    need(clSetKernelArg(k, 0, sizeof out, &out), "argument");
    need(clSetKernelArg(k, 1, sizeof row, &row), "argument");
    need(clSetKernelArg(k, 2, sizeof plane, &plane), "argument");
    for (cl_uint d = 0; d < 3; d++)
        need(clSetKernelArg(k, 3 + d, sizeof o[d], &o[d]), "argument");
    need(clEnqueueNDRangeKernel(queue, k, g->dim, g->offset, g->size, g->local, 0, NULL, NULL),
         "launch");
    need(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, bytes, got, 0, NULL, NULL), "read");
    size_t wrong = 0;
    for (size_t i = 0; i < items; i++) {
        const size_t at[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
        /* Of a fourth dimension every driver says what it likes: only that it is the same is looked
         * at. */
        for (uint32_t w = 0; w < N_WORDS; w++)
            wrong += w % 4 != 3 && got[i * N_WORDS + w] != id_of(g, w, at);
    }
    printf("ids %u %zux%zux%zu groups of %zu: %zu wrong, %016llx\n", g->dim, n[0], n[1], n[2],
           g->local[0], wrong, (unsigned long long)hash(got, bytes, 0));
    clReleaseMemObject(out);
    free(got);
}

static void ids(void)
{
    static const struct geometry all[] = {
        {1, {0}, {4096}, {4}},
        {1, {100}, {4096}, {4}},
        {1, {7}, {3 * 1021}, {3}},
        {1, {0}, {64}, {64}},
        {2, {0, 0}, {64, 48}, {4, 2}},
        {2, {3, 5}, {60, 70}, {5, 7}},
        {2, {0, 9}, {2, 3000}, {2, 1}},
        {2, {1, 0}, {3000, 2}, {1, 2}},
        {3, {0, 0, 0}, {16, 12, 20}, {2, 3, 4}},
        {3, {11, 13, 17}, {15, 14, 13}, {5, 7, 1}},
        {3, {0, 1, 0}, {1, 1, 1500}, {1, 1, 1}},
        {3, {5, 0, 0}, {1500, 1, 2}, {1, 1, 1}},
    };
    cl_program p = build(ids_text, "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        /* A program's variants are few: afresh, so that each geometry has its own. */
        cl_program own = build(ids_text, "-DAFRESH");
        cl_kernel k = kernel_of(own, "ids");
        check_ids(k, &all[i]);
        check_ids(k, &all[i]);
        clReleaseKernel(k);
        clReleaseProgram(own);
    }
    /* And all of them by one, more than its variants. */
    cl_kernel k = kernel_of(p, "ids");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        check_ids(k, &all[i]);
    clReleaseKernel(k);
    clReleaseProgram(p);
}

/* ---- facts */

static void say_facts(cl_program p, cl_kernel k, const char *when)
{
    static char text[65536];
    size_t bytes = 0, binary_bytes = 0;
    need(clGetProgramInfo(p, CL_PROGRAM_SOURCE, sizeof text, text, &bytes), "source");
    printf("%s source %zu %016llx\n", when, bytes, (unsigned long long)hash(text, bytes, 0));
    need(clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_LOG, sizeof text, text, &bytes), "log");
    printf("%s log [%.*s]\n", when, (int)bytes, text);
    need(clGetProgramBuildInfo(p, device, CL_PROGRAM_BUILD_OPTIONS, sizeof text, text, &bytes),
         "options");
    printf("%s options [%s]\n", when, text);
    need(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof binary_bytes, &binary_bytes, NULL),
         "binary");
    printf("%s binary %d\n", when, binary_bytes > 0);
    need(clGetProgramInfo(p, CL_PROGRAM_KERNEL_NAMES, sizeof text, text, &bytes), "names");
    printf("%s kernels %s\n", when, text);
    cl_uint n = 0, references = 0;
    need(clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL), "arguments");
    need(clGetProgramInfo(p, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, NULL),
         "references");
    printf("%s arguments %u references %u\n", when, n, references);
    for (cl_uint i = 0; i < n; i++)
        if (!clGetKernelArgInfo(k, i, CL_KERNEL_ARG_NAME, sizeof text, text, NULL))
            printf("%s argument %s\n", when, text);
}

static void facts(void)
{
    cl_program p = build(ids_text, "-cl-kernel-arg-info -DX=1");
    cl_kernel k = kernel_of(p, "ids");
    const struct geometry g = {1, {10}, {4096}, {4}};
    say_facts(p, k, "before");
    check_ids(k, &g);
    say_facts(p, k, "after");
    /* One that does not compile: its log is about its own lines. */
    static const char bad[] =
        "kernel void a(global int *o) {\n    o[0] = get_group_id(0) + nothing;\n}\n";
    const char *text = bad;
    static char log[8192];
    cl_int result;
    cl_program q = clCreateProgramWithSource(context, 1, &text, NULL, &result);
    need(result, "program");
    result = clBuildProgram(q, 1, &device, "", NULL, NULL);
    clGetProgramBuildInfo(q, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    const char *where = strstr(log, ":2:");
    printf("bad %d line 2: %d\n", (int)result, where != NULL);
    clReleaseProgram(q);
    clReleaseKernel(k);
    clReleaseProgram(p);
}

/* ---- events */

#define N_SUMS 6000u

static void CL_CALLBACK reported(cl_event e, cl_int status, void *user_data)
{
    (void)e;
    __atomic_fetch_or((int *)user_data, 1 << (status < 0 ? 4 : status), __ATOMIC_SEQ_CST);
}

static void set_sum(cl_kernel k, cl_mem out, cl_mem in, cl_uint n)
{
    need(clSetKernelArg(k, 0, sizeof out, &out), "argument");
    need(clSetKernelArg(k, 1, sizeof in, &in), "argument");
    need(clSetKernelArg(k, 2, sizeof n, &n), "argument");
}

static void check_times(cl_event e, const char *what)
{
    cl_ulong t[4] = {0};
    static const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED,
                                              CL_PROFILING_COMMAND_SUBMIT,
                                              CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    for (int i = 0; i < 4; i++)
        need(clGetEventProfilingInfo(e, names[i], sizeof t[i], &t[i], NULL), "profiling");
    printf("%s times in order %d\n", what, t[0] <= t[1] && t[1] <= t[2] && t[2] < t[3]);
}

/* A chain of launches over events, arguments changed as soon as each is given. */
static void chain(cl_command_queue q, const char *name, int gated)
{
    cl_program p = build(ids_text, "");
    cl_kernel k = kernel_of(p, "sum");
    const size_t size = N_SUMS, local = 2;
    cl_mem a = buffer(N_SUMS * 4), b = buffer(N_SUMS * 4);
    cl_event e[8], marker, gate = NULL;
    cl_uint *got = malloc(N_SUMS * 4);
    int seen[8] = {0};
    cl_int result;
    need(clFinish(queue), "finish");
    if (gated) {
        gate = clCreateUserEvent(context, &result);
        need(result, "user event");
    }
    for (cl_uint i = 0; i < 8; i++) {
        set_sum(k, i % 2 ? a : b, i % 2 ? b : a, i + 1);
        need(clEnqueueNDRangeKernel(q, k, 1, NULL, &size, &local, i || gated ? 1 : 0,
                                    i       ? &e[i - 1]
                                    : gated ? &gate
                                            : NULL,
                                    &e[i]),
             "launch");
        need(clSetEventCallback(e[i], CL_SUBMITTED, reported, &seen[i]), "callback");
        need(clSetEventCallback(e[i], CL_COMPLETE, reported, &seen[i]), "callback");
    }
    need(clEnqueueMarkerWithWaitList(q, 0, NULL, &marker), "marker");
    need(clFlush(q), "flush");
    if (gated)
        need(clSetUserEventStatus(gate, CL_COMPLETE), "gate");
    need(clWaitForEvents(1, &marker), "wait");
    /* The marker's end is the end of all. */
    int over = 1;
    for (int i = 0; i < 8; i++) {
        cl_int status = 99;
        need(clGetEventInfo(e[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
             "status");
        over &= status == CL_COMPLETE;
    }
    need(clEnqueueReadBuffer(q, a, CL_TRUE, 0, N_SUMS * 4, got, 0, NULL, NULL), "read");
    need(clFinish(q), "finish");
    cl_uint wa = 0, wb = 0;
    for (cl_uint i = 0; i < 8; i++) {
        if (i % 2)
            wa += wb * 3 + i + 1;
        else
            wb += wa * 3 + i + 1;
    }
    size_t wrong = 0;
    for (size_t i = 0; i < N_SUMS; i++)
        wrong += got[i] != wa;
    printf("%s over %d wrong %zu\n", name, over, wrong);
    for (int i = 0; i < 8; i++)
        check_times(e[i], name);
    for (int i = 0; i < 8; i++) {
        while ((__atomic_load_n(&seen[i], __ATOMIC_SEQ_CST) & 5) != 5)
            ;
        clReleaseEvent(e[i]);
    }
    printf("%s callbacks\n", name);
    clReleaseEvent(marker);
    if (gate)
        clReleaseEvent(gate);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
    clReleaseKernel(k);
    clReleaseProgram(p);
    free(got);
}

static void failures(void)
{
    cl_program p = build(ids_text, "");
    cl_kernel k = kernel_of(p, "sum");
    size_t size = N_SUMS, local = 2, wild = 1u << 30, none = 0, odd = 7;
    cl_event e = NULL;
    cl_int result, status = 1;
    cl_mem a = buffer(N_SUMS * 4);
    /* Arguments that are not set, groups that are too large, or do not divide the whole; a gate
     * that fails. */
    printf("fails %d\n",
           (int)clEnqueueNDRangeKernel(queue, k, 1, NULL, &size, &local, 0, NULL, NULL));
    set_sum(k, a, a, 1);
    printf("fails %d\n",
           (int)clEnqueueNDRangeKernel(queue, k, 1, NULL, &wild, &wild, 0, NULL, NULL));
    printf("fails %d\n",
           (int)clEnqueueNDRangeKernel(queue, k, 1, NULL, &none, &local, 0, NULL, NULL) != 0);
    result = clEnqueueNDRangeKernel(queue, k, 1, NULL, &size, &odd, 0, NULL, NULL);
    printf("odd %d\n", (int)result);
    need(clFinish(queue), "finish");
    cl_event gate = clCreateUserEvent(context, &result);
    need(result, "user event");
    need(clEnqueueNDRangeKernel(free_queue, k, 1, NULL, &size, &local, 1, &gate, &e), "launch");
    need(clSetUserEventStatus(gate, -7), "gate");
    printf("waits %d\n", (int)clWaitForEvents(1, &e));
    need(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
         "status");
    printf("status %d\n", (int)status < 0);
    clReleaseEvent(e);
    clReleaseEvent(gate);
    clReleaseMemObject(a);
    clReleaseKernel(k);
    clReleaseProgram(p);
}

static void prints(void)
{
    cl_program p =
        build("kernel void say(int n) { if (get_local_id(0) == 0) printf(\"%d.%d of %d\\n\", n, "
              "(int)get_group_id(0), "
              "(int)get_num_groups(0)); }",
              "");
    cl_kernel k = kernel_of(p, "say");
    const size_t size = 64, local = 4;
    fflush(stdout);
    for (cl_int n = 0; n < 2; n++) {
        need(clSetKernelArg(k, 0, sizeof n, &n), "argument");
        need(clEnqueueNDRangeKernel(queue, k, 1, NULL, &size, &local, 0, NULL, NULL), "launch");
    }
    need(clFinish(queue), "finish");
    clReleaseKernel(k);
    clReleaseProgram(p);
}

static void events(void)
{
    chain(queue, "in order", 0);
    chain(free_queue, "out of order", 0);
    chain(queue, "in order, gated", 1);
    chain(free_queue, "out of order, gated", 1);
    failures();
    prints();
}

/* ---- what may not be cut */

static void run_whole(cl_program p, const char *name, size_t size, const size_t *local)
{
    cl_kernel k = kernel_of(p, "k");
    cl_mem out = buffer(size * 4);
    cl_uint *got = malloc(size * 4);
    need(clSetKernelArg(k, 0, sizeof out, &out), "argument");
    need(clEnqueueNDRangeKernel(queue, k, 1, NULL, &size, local, 0, NULL, NULL), "launch");
    need(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, size * 4, got, 0, NULL, NULL), "read");
    printf("whole %s %016llx\n", name, (unsigned long long)hash(got, size * 4, 0));
    clReleaseMemObject(out);
    clReleaseKernel(k);
    free(got);
}

static void whole(void)
{
    static const char plain[] =
        "kernel void k(global uint *o) { o[get_global_id(0)] = get_num_groups(0) * 1000 + "
        "get_group_id(0); }";
    const size_t four = 4;
    cl_int result;
    cl_program p = build(plain, "");
    run_whole(p, "no local size", 4096, NULL);
    /* The same as a binary. */
    size_t bytes = 0;
    need(clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL), "binary");
    unsigned char *binary = malloc(bytes);
    need(clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL), "binary");
    const unsigned char *in = binary;
    cl_program q = clCreateProgramWithBinary(context, 1, &device, &bytes, &in, NULL, &result);
    need(result, "program");
    need(clBuildProgram(q, 1, &device, "", NULL, NULL), "build");
    run_whole(q, "from a binary", 4096, &four);
    clReleaseProgram(q);
    clReleaseProgram(p);
    p = build("kernel void k(global uint *o) { for (int i = 0; i < 3; i++) atomic_add(o + "
              "get_group_id(0), get_num_groups(0)); }",
              "");
    run_whole(p, "atomics in a loop", 4096, &four);
    clReleaseProgram(p);
    p = build("#define G(x) get_##x##_id(0)\nkernel void k(global uint *o) { o[get_global_id(0)] = "
              "G(group); }",
              "");
    run_whole(p, "pasted", 4096, &four);
    clReleaseProgram(p);
    p = build("kernel void k(global uint *o) { o[get_global_id(0)] = N; }", "-DN=get_group_id(0)");
    run_whole(p, "by an option", 4096, &four);
    clReleaseProgram(p);
    free(binary);
}

/* ---- long */

static void launch_long(unsigned n)
{
    cl_program p = build(
        "kernel void k(global uint *o, uint steps) { uint x = get_global_id(0); for (uint i = 0; "
        "i < steps; i++) "
        "x = x * 1664525u + 1013904223u; o[get_group_id(0)] = x; }",
        "");
    cl_kernel k = kernel_of(p, "k");
    const size_t groups = 60000, local = 1;
    const cl_uint steps = 4000;
    cl_mem out = buffer(groups * 4);
    cl_uint *got = malloc(groups * 4);
    need(clSetKernelArg(k, 0, sizeof out, &out), "argument");
    need(clSetKernelArg(k, 1, sizeof steps, &steps), "argument");
    printf("ready\n");
    fflush(stdout);
    for (unsigned i = 0; i < n; i++) {
        need(clEnqueueNDRangeKernel(queue, k, 1, NULL, &groups, &local, 0, NULL, NULL), "launch");
        need(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, groups * 4, got, 0, NULL, NULL), "read");
        size_t wrong = 0;
        for (uint32_t g = 0; g < groups; g += 97) {
            uint32_t x = g;
            for (uint32_t s = 0; s < steps; s++)
                x = x * 1664525u + 1013904223u;
            wrong += got[g] != x;
        }
        printf("round %zu wrong\n", wrong);
        fflush(stdout);
        memset(got, 0, groups * 4);
        const cl_uint zero = 0;
        need(clEnqueueFillBuffer(queue, out, &zero, sizeof zero, 0, groups * 4, 0, NULL, NULL),
             "fill");
    }
    free(got);
    clReleaseMemObject(out);
    clReleaseKernel(k);
    clReleaseProgram(p);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "ids";
    cl_platform_id platform;
    cl_int result;
    need(clGetPlatformIDs(1, &platform, NULL), "platform");
    need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
    need(result, "context");
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &result);
    need(result, "queue");
    free_queue = clCreateCommandQueue(
        context, device, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        &result);
    need(result, "queue");
    if (strcmp(what, "ids") == 0)
        ids();
    else if (strcmp(what, "facts") == 0)
        facts();
    else if (strcmp(what, "events") == 0)
        events();
    else if (strcmp(what, "whole") == 0)
        whole();
    else if (strcmp(what, "long") == 0)
        launch_long(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    else
        return 2;
    clReleaseCommandQueue(queue);
    clReleaseCommandQueue(free_queue);
    clReleaseContext(context);
    printf("end\n");
    return 0;
}
