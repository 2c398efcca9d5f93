/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loads' shared frame; see load.h. Called by main.c and by every load, on the program's only
 * thread. Counts are kept here rather than in the loads, so that a call and its count cannot drift
 * apart.
 */
#include "load.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void gn_load_die(const char *fmt, ...)
{
    va_list ap;

    fputs("gantry-load: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

void gn_load_need(cl_int rc, const char *call)
{
    if (rc != CL_SUCCESS)
        gn_load_die("%s failed: %d", call, rc);
}

static bool name_matches(const char *wanted, unsigned index, const char *name)
{
    if (wanted == NULL)
        return true;
    if (isdigit((unsigned char)wanted[0]))
        return strtoul(wanted, NULL, 10) == index;
    return strcasestr(name, wanted) != NULL;
}

void gn_load_open(struct gn_run *run, const char *platform, const char *device)
{
    cl_platform_id platforms[16];
    cl_device_id devices[64];
    cl_uint n_platforms = 0;
    cl_uint n_devices = 0;
    char name[256];
    cl_int rc;

    rc = clGetPlatformIDs(16, platforms, &n_platforms);
    if (rc != CL_SUCCESS || n_platforms == 0)
        gn_load_die("no OpenCL platform (clGetPlatformIDs: %d)", rc);
    for (cl_uint i = 0; i < n_platforms && i < 16 && run->platform == NULL; i++) {
        name[0] = '\0';
        gn_load_need(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL),
                     "clGetPlatformInfo");
        if (name_matches(platform, i, name))
            run->platform = platforms[i];
    }
    if (run->platform == NULL)
        gn_load_die("no platform matches \"%s\"", platform);
    rc = clGetDeviceIDs(run->platform, CL_DEVICE_TYPE_ALL, 64, devices, &n_devices);
    if (rc != CL_SUCCESS || n_devices == 0)
        gn_load_die("the platform has no device (clGetDeviceIDs: %d)", rc);
    for (cl_uint i = 0; i < n_devices && i < 64 && run->device == NULL; i++) {
        name[0] = '\0';
        gn_load_need(clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(name), name, NULL),
                     "clGetDeviceInfo");
        if (name_matches(device, i, name))
            run->device = devices[i];
    }
    if (run->device == NULL)
        gn_load_die("no device matches \"%s\"", device);
    run->context = clCreateContext(NULL, 1, &run->device, NULL, NULL, &rc);
    gn_load_need(rc, "clCreateContext");
    gn_load_use_queue(run, false);
    gn_load_reset(run);
}

void gn_load_use_queue(struct gn_run *run, bool profiling)
{
    cl_int rc;

    if (run->queue != NULL) {
        gn_load_need(clFinish(run->queue), "clFinish");
        clReleaseCommandQueue(run->queue);
    }
    run->queue = clCreateCommandQueue(
        run->context, run->device, profiling || run->summing ? CL_QUEUE_PROFILING_ENABLE : 0, &rc);
    gn_load_need(rc, "clCreateCommandQueue");
    run->profiling = profiling;
}

void gn_load_reset(struct gn_run *run)
{
    gn_load_need(clFinish(run->queue), "clFinish");
    while (run->n_kernels > 0) {
        struct gn_load_kernel *k = &run->kernels[--run->n_kernels];

        clReleaseKernel(k->kernel);
        free(k->samples_ns);
    }
    while (run->n_buffers > 0)
        clReleaseMemObject(run->buffers[--run->n_buffers]);
    while (run->n_blocks > 0)
        free(run->blocks[--run->n_blocks]);
    if (run->program != NULL)
        clReleaseProgram(run->program);
    run->program = NULL;
    run->state = NULL;
    run->random = UINT64_C(0x9e3779b97f4a7c15);
}

void gn_load_close(struct gn_run *run)
{
    gn_load_drain(run);
    gn_load_reset(run);
    clReleaseCommandQueue(run->queue);
    clReleaseContext(run->context);
    free(run->events);
}

void *gn_load_alloc(struct gn_run *run, size_t count, size_t item_bytes)
{
    void *p = calloc(count, item_bytes);

    if (p == NULL)
        gn_load_die("out of memory: %zu items of %zu bytes", count, item_bytes);
    if (run->n_blocks == GN_LOAD_MAX_BLOCKS)
        gn_load_die("more than %d memory blocks", GN_LOAD_MAX_BLOCKS);
    run->blocks[run->n_blocks++] = p;
    return p;
}

cl_mem gn_load_buffer(struct gn_run *run, cl_mem_flags flags, size_t bytes, const void *init)
{
    cl_int rc;
    cl_mem mem = clCreateBuffer(run->context, flags, bytes, NULL, &rc);

    gn_load_need(rc, "clCreateBuffer");
    if (run->n_buffers == GN_LOAD_MAX_BUFFERS)
        gn_load_die("more than %d buffers", GN_LOAD_MAX_BUFFERS);
    run->buffers[run->n_buffers++] = mem;
    if (init != NULL)
        gn_load_need(clEnqueueWriteBuffer(run->queue, mem, CL_TRUE, 0, bytes, init, 0, NULL, NULL),
                     "clEnqueueWriteBuffer");
    return mem;
}

void gn_load_build(struct gn_run *run, const char *source, const char *options_fmt, ...)
{
    char options[512];
    va_list ap;
    cl_int rc;

    va_start(ap, options_fmt);
    if (vsnprintf(options, sizeof(options), options_fmt, ap) >= (int)sizeof(options))
        gn_load_die("build options too long");
    va_end(ap);
    run->program = clCreateProgramWithSource(run->context, 1, &source, NULL, &rc);
    gn_load_need(rc, "clCreateProgramWithSource");
    rc = clBuildProgram(run->program, 1, &run->device, options, NULL, NULL);
    if (rc != CL_SUCCESS) {
        char log[8192] = "";

        clGetProgramBuildInfo(run->program, run->device, CL_PROGRAM_BUILD_LOG, sizeof(log), log,
                              NULL);
        gn_load_die("clBuildProgram failed: %d\n%s", rc, log);
    }
}

struct gn_load_kernel *gn_load_kernel(struct gn_run *run, const char *name)
{
    struct gn_load_kernel *k;
    cl_int rc;

    if (run->n_kernels == GN_LOAD_MAX_KERNELS)
        gn_load_die("more than %d kernels", GN_LOAD_MAX_KERNELS);
    k = &run->kernels[run->n_kernels];
    *k = (struct gn_load_kernel){.name = name};
    k->kernel = clCreateKernel(run->program, name, &rc);
    gn_load_need(rc, "clCreateKernel");
    run->n_kernels++;
    return k;
}

void gn_load_arg(struct gn_load_kernel *k, cl_uint index, size_t bytes, const void *value)
{
    cl_int rc = clSetKernelArg(k->kernel, index, bytes, value);

    if (rc != CL_SUCCESS)
        gn_load_die("clSetKernelArg(%s, %u) failed: %d", k->name, index, rc);
}

uint32_t gn_load_random(struct gn_run *run)
{
    /* splitmix64 */
    uint64_t z = (run->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

float gn_load_random_float(struct gn_run *run, float low, float high)
{
    return low + (high - low) * ((float)(gn_load_random(run) >> 8) / 16777216.0f);
}

/* Time on the device of a command that is over; releases the event. */
static uint64_t event_ns(cl_event event)
{
    cl_ulong start = 0;
    cl_ulong end = 0;

    gn_load_need(
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, NULL),
        "clGetEventProfilingInfo");
    gn_load_need(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL),
                 "clGetEventProfilingInfo");
    clReleaseEvent(event);
    return end - start;
}

static void keep_event(struct gn_run *run, cl_event event)
{
    if (run->n_events == run->max_events) {
        size_t want = run->max_events == 0 ? 1024 : run->max_events * 2;
        cl_event *more = realloc(run->events, want * sizeof(cl_event));

        if (more == NULL)
            gn_load_die("out of memory: %zu events", want);
        run->events = more;
        run->max_events = want;
    }
    run->events[run->n_events++] = event;
}

/* Waits for the launch, so that samples need no second walk over thousands of events; only in the
 * profiling pass. */
static void take_sample(struct gn_load_kernel *k, cl_event event)
{
    uint64_t device_ns;

    gn_load_need(clWaitForEvents(1, &event), "clWaitForEvents");
    device_ns = event_ns(event);
    k->launches++;
    if (k->n_samples == k->max_samples) {
        size_t want = k->max_samples == 0 ? 64 : k->max_samples * 2;
        uint64_t *more = realloc(k->samples_ns, want * sizeof(*more));

        if (more == NULL)
            gn_load_die("out of memory: %zu samples", want);
        k->samples_ns = more;
        k->max_samples = want;
    }
    k->samples_ns[k->n_samples++] = device_ns;
}

static void launch(struct gn_run *run, struct gn_load_kernel *k, cl_uint dims, const size_t *offset,
                   const size_t *global, const size_t *local)
{
    cl_event event = NULL;
    cl_int rc = clEnqueueNDRangeKernel(run->queue, k->kernel, dims, offset, global, local, 0, NULL,
                                       run->profiling || run->summing ? &event : NULL);

    if (rc != CL_SUCCESS)
        gn_load_die("clEnqueueNDRangeKernel(%s) failed: %d", k->name, rc);
    run->async_calls++;
    run->launches++;
    if (run->profiling)
        take_sample(k, event);
    else if (run->summing)
        keep_event(run, event);
}

void gn_load_launch(struct gn_run *run, struct gn_load_kernel *k, size_t global, size_t local)
{
    launch(run, k, 1, NULL, &global, &local);
}

void gn_load_launch_from(struct gn_run *run, struct gn_load_kernel *k, size_t offset, size_t global,
                         size_t local)
{
    launch(run, k, 1, &offset, &global, &local);
}

void gn_load_launch_2d(struct gn_run *run, struct gn_load_kernel *k, const size_t global[2],
                       const size_t local[2])
{
    launch(run, k, 2, NULL, global, local);
}

void gn_load_copy(struct gn_run *run, cl_mem from, cl_mem to, size_t bytes)
{
    gn_load_need(clEnqueueCopyBuffer(run->queue, from, to, 0, 0, bytes, 0, NULL, NULL),
                 "clEnqueueCopyBuffer");
    run->async_calls++;
}

void gn_load_read(struct gn_run *run, cl_mem mem, size_t offset, size_t bytes, void *to)
{
    gn_load_need(clEnqueueReadBuffer(run->queue, mem, CL_TRUE, offset, bytes, to, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
    run->sync_calls++;
}

void gn_load_write(struct gn_run *run, cl_mem mem, size_t offset, size_t bytes, const void *from)
{
    gn_load_need(clEnqueueWriteBuffer(run->queue, mem, CL_TRUE, offset, bytes, from, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
    run->sync_calls++;
}

/* A round's work is in the queue before the last one's end is waited for. */
static void finish_behind(struct gn_run *run)
{
    cl_event here;

    gn_load_need(clEnqueueMarkerWithWaitList(run->queue, 0, NULL, &here),
                 "clEnqueueMarkerWithWaitList");
    gn_load_need(clFlush(run->queue), "clFlush");
    if (run->behind != NULL) {
        gn_load_need(clWaitForEvents(1, &run->behind), "clWaitForEvents");
        clReleaseEvent(run->behind);
    }
    run->behind = here;
    run->sync_calls++;
}

void gn_load_drain(struct gn_run *run)
{
    gn_load_need(clFinish(run->queue), "clFinish");
    if (run->behind != NULL)
        clReleaseEvent(run->behind);
    run->behind = NULL;
}

void gn_load_finish(struct gn_run *run)
{
    if (run->ahead) {
        finish_behind(run);
        return;
    }
    gn_load_need(clFinish(run->queue), "clFinish");
    run->sync_calls++;
    while (run->n_events > 0)
        run->profiled_ns += event_ns(run->events[--run->n_events]);
}

bool gn_load_same_floats(const char *what, const float *got, const float *want, size_t n,
                         float tolerance)
{
    for (size_t i = 0; i < n; i++) {
        float scale = fmaxf(1.0f, fabsf(want[i]));

        /* Written so that a NaN fails. */
        if (!(fabsf(got[i] - want[i]) <= tolerance * scale)) {
            fprintf(stderr, "gantry-load: %s[%zu] is %g, the reference says %g\n", what, i,
                    (double)got[i], (double)want[i]);
            return false;
        }
    }
    return true;
}

bool gn_load_same_ints(const char *what, const int32_t *got, const int32_t *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (got[i] != want[i]) {
            fprintf(stderr, "gantry-load: %s[%zu] is %d, the reference says %d\n", what, i, got[i],
                    want[i]);
            return false;
        }
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t gn_load_median_ns(struct gn_load_kernel *k)
{
    if (k->n_samples == 0)
        return 0;
    qsort(k->samples_ns, k->n_samples, sizeof(*k->samples_ns), by_value);
    return k->samples_ns[k->n_samples / 2];
}

uint64_t gn_load_kernel_ns(struct gn_run *run)
{
    uint64_t sum_ns = 0;
    size_t n = 0;

    if (!run->load->mean)
        return gn_load_median_ns(&run->kernels[0]);
    for (size_t i = 0; i < run->n_kernels; i++) {
        for (size_t s = 0; s < run->kernels[i].n_samples; s++)
            sum_ns += run->kernels[i].samples_ns[s];
        n += run->kernels[i].n_samples;
    }
    return n == 0 ? 0 : sum_ns / n;
}
