/* SPDX-License-Identifier: Apache-2.0 */
/* The hard programs' main, and what they share. `edges CASE [ARGUMENT]...`. */
#include "edge.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

static const char source[] =
    "kernel void nothing(void) {}\n"
    "kernel void add(global uint *x, uint v) { x[get_global_id(0)] += v; }\n"
    "kernel void uneven(global const uint *x, global uint *n) { if (x[get_global_id(0)] != x[0]) "
    "atomic_inc(n); }\n"
    "kernel void stir(global uint *d, global const uint *a, global const uint *b, uint k)\n"
    "{ size_t i = get_global_id(0); d[i] = d[i] * 7 + a[i] * 3 + b[i] * 5 + k; }\n"
    "kernel void endless(global volatile uint *x, uint n)\n"
    "{ for (uint r = 0; r < 64; r++) for (uint i = 0; i < n; i++) x[1] += i; x[0] = 1; }\n";

void edge_open(struct edge *e, cl_command_queue_properties properties)
{
    const char *text = source;
    cl_int rc;
    NEED(clGetPlatformIDs(1, &e->platform, NULL));
    NEED(clGetDeviceIDs(e->platform, CL_DEVICE_TYPE_ALL, 1, &e->device, NULL));
    e->context = clCreateContext(NULL, 1, &e->device, NULL, NULL, &rc);
    NEED(rc);
    e->queue = clCreateCommandQueue(e->context, e->device, properties, &rc);
    NEED(rc);
    e->program = clCreateProgramWithSource(e->context, 1, &text, NULL, &rc);
    NEED(rc);
    NEED(clBuildProgram(e->program, 0, NULL, "", NULL, NULL));
}

void edge_close(struct edge *e)
{
    NEED(clReleaseProgram(e->program));
    NEED(clReleaseCommandQueue(e->queue));
    NEED(clReleaseContext(e->context));
}

cl_kernel edge_kernel(const struct edge *e, const char *name)
{
    cl_int rc;
    cl_kernel k = clCreateKernel(e->program, name, &rc);
    NEED(rc);
    return k;
}

cl_mem edge_buffer(const struct edge *e, size_t bytes)
{
    cl_int rc;
    cl_mem m = clCreateBuffer(e->context, CL_MEM_READ_WRITE, bytes, NULL, &rc);
    NEED(rc);
    return m;
}

void edge_launch(cl_command_queue q, cl_kernel k, size_t n, cl_uint n_waits, const cl_event *waits,
                 cl_event *event)
{
    NEED(clEnqueueNDRangeKernel(q, k, 1, NULL, &n, NULL, n_waits, waits, event));
}

void edge_set_add(cl_kernel k, cl_mem x, cl_uint v)
{
    NEED(clSetKernelArg(k, 0, sizeof x, &x));
    NEED(clSetKernelArg(k, 1, sizeof v, &v));
}

void edge_launch_endless(const struct edge *e, cl_mem x, cl_event *event)
{
    cl_kernel k = edge_kernel(e, "endless");
    edge_set_add(k, x, UINT32_MAX);
    edge_launch(e->queue, k, 1, 0, NULL, event);
    NEED(clFlush(e->queue));
    NEED(clReleaseKernel(k));
}

void edge_whole_life(void)
{
    struct edge e;
    cl_uint x[64] = {0};
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, sizeof x);
    cl_kernel k = edge_kernel(&e, "add");
    NEED(clEnqueueWriteBuffer(e.queue, m, CL_FALSE, 0, sizeof x, x, 0, NULL, NULL));
    for (cl_uint i = 1; i <= 10; i++) {
        edge_set_add(k, m, i);
        edge_launch(e.queue, k, 64, 0, NULL, NULL);
    }
    NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < 64; i++)
        CHECK(x[i] == 55);
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(m));
    edge_close(&e);
}

void edge_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void edge_hear(void)
{
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        EDGE_FAIL("the driver of the test is gone");
}

#define MAX_THREADS 64
static pthread_t threads[MAX_THREADS];
static int n_threads;

void edge_thread(const char *name, void *(*run)(void *), void *arg)
{
    CHECK(n_threads < MAX_THREADS);
    CHECK(pthread_create(&threads[n_threads], NULL, run, arg) == 0);
    pthread_setname_np(threads[n_threads++], name);
}

void edge_join(void)
{
    while (n_threads)
        pthread_join(threads[--n_threads], NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } cases[] = {
        {"one_queue", case_one_queue},
        {"whole_writes", case_whole_writes},
        {"own_contexts", case_own_contexts},
        {"churn", case_churn},
        {"dag", case_dag},
        {"two_devices", case_two_devices},
        {"live_events", case_live_events},
        {"told_end", case_told_end},
        {"cmdbufs", case_cmdbufs},
        {"cmdbuf_dies", case_cmdbuf_dies},
        {"long_wait_list", case_long_wait_list},
        {"many_buffers", case_many_buffers},
        {"deferred", case_deferred},
        {"pieces", case_pieces},
        {"big_source", case_big_source},
        {"leave", case_leave},
        {"fork", case_fork},
        {"fork_exec", case_fork_exec},
        {"execed", case_execed},
        {"close_fds", case_close_fds},
        {"anew", case_anew},
        {"anew_devices", case_anew_devices},
        {"signals", case_signals},
        {"small_stacks", case_small_stacks},
        {"steps", case_steps},
        {"life", case_life},
        {"idle", case_idle},
        {"lost_waits", case_lost_waits},
        {"lost_kernel", case_lost_kernel},
        {"no_daemon", case_no_daemon},
    };
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            return cases[i].run(argc - 2, argv + 2);
    fprintf(stderr, "usage: edges CASE [ARGUMENT]...\n");
    return 2;
}
