/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does exactly as many calls of one kind as a line on stdin says ("KIND N"), and answers "did T0
 * T1": CLOCK_REALTIME before and after, in nanoseconds. Before T0 it has done the same a thousand
 * times, so that nothing is done for the first time. `counted once KIND N` does so at once, and
 * ends, without the thousand: for callgrind.
 */
#include <CL/cl.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM 1000u

#define NEED(call)                                                                                 \
    do {                                                                                           \
        cl_int rc_ = (call);                                                                       \
        if (rc_ != CL_SUCCESS) {                                                                   \
            fprintf(stderr, "%s returned %d\n", #call, (int)rc_);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel nothing, add;
static cl_mem m, image;
static cl_event over;
static char host[1 << 20];

static void null_call(void)
{
    size_t size;
    NEED(
        clGetKernelWorkGroupInfo(add, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, NULL));
}

static void sampler(void)
{
    cl_int rc;
    cl_sampler s = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &rc);
    NEED(rc);
    NEED(clReleaseSampler(s));
}

static void set_arg(void)
{
    cl_uint v = 7;
    NEED(clSetKernelArg(add, 1, sizeof v, &v));
}

static void set_mem(void)
{
    NEED(clSetKernelArg(add, 0, sizeof m, &m));
}

static void retain(void)
{
    NEED(clRetainMemObject(m));
    NEED(clReleaseMemObject(m));
}

static void event_status(void)
{
    cl_int status;
    NEED(clGetEventInfo(over, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
}

static void wait_over(void)
{
    NEED(clWaitForEvents(1, &over));
}

static void launch(void)
{
    static const size_t n = 16;
    NEED(clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 0, NULL, NULL));
}

static void launch_event(void)
{
    static const size_t n = 16;
    cl_event e;
    NEED(clEnqueueNDRangeKernel(queue, add, 1, NULL, &n, NULL, 0, NULL, &e));
    NEED(clReleaseEvent(e));
}

static void launch_finish(void)
{
    launch();
    NEED(clFinish(queue));
}

static void set_launch(void)
{
    set_mem();
    set_arg();
    launch();
}

static void user_event(void)
{
    cl_int rc;
    cl_event e = clCreateUserEvent(context, &rc);
    NEED(rc);
    NEED(clSetUserEventStatus(e, CL_COMPLETE));
    NEED(clReleaseEvent(e));
}

static void write_small(void)
{
    NEED(clEnqueueWriteBuffer(queue, m, CL_TRUE, 0, 64, host, 0, NULL, NULL));
}

static void read_small(void)
{
    NEED(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, 64, host, 0, NULL, NULL));
}

static void read_large(void)
{
    NEED(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, 256 << 10, host, 0, NULL, NULL));
}

/* With an event, small ones go through the vGPU. */
static void read_event(void)
{
    cl_event e;
    NEED(clEnqueueReadBuffer(queue, m, CL_TRUE, 0, 64, host, 0, NULL, &e));
    NEED(clReleaseEvent(e));
}

static void map(void)
{
    cl_int rc;
    void *p = clEnqueueMapBuffer(queue, m, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof host, 0,
                                 NULL, NULL, &rc);
    NEED(rc);
    NEED(clEnqueueUnmapMemObject(queue, m, p, 0, NULL, NULL));
}

/* An image never lies in the data area: the device copies, once each way. */
static void map_image(void)
{
    static const size_t origin[3], region[3] = {16, 16, 1};
    size_t pitch;
    cl_int rc;
    void *p = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
                                &pitch, NULL, 0, NULL, NULL, &rc);
    NEED(rc);
    NEED(clEnqueueUnmapMemObject(queue, image, p, 0, NULL, NULL));
}

static void write_later(void)
{
    NEED(clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, 64, host, 0, NULL, NULL));
}

static void read_later(void)
{
    NEED(clEnqueueReadBuffer(queue, m, CL_FALSE, 0, 64, host, 0, NULL, NULL));
}

static void fill(void)
{
    cl_uint v = 1;
    NEED(clEnqueueFillBuffer(queue, m, &v, sizeof v, 0, 64, 0, NULL, NULL));
}

/* There may be something under way, which the write must not overtake. */
static void write_behind(void)
{
    fill();
    write_later();
}

static void buffer(void)
{
    cl_int rc;
    cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &rc);
    NEED(rc);
    NEED(clReleaseMemObject(b));
}

static void do_nothing(void)
{
}

static const struct {
    const char *name;
    void (*call)(void);
} kinds[] = {
    {"nothing", do_nothing},
    {"null", null_call},
    {"sampler", sampler},
    {"buffer", buffer},
    {"set_arg", set_arg},
    {"set_mem", set_mem},
    {"retain", retain},
    {"event_status", event_status},
    {"wait_over", wait_over},
    {"launch", launch},
    {"launch_event", launch_event},
    {"launch_finish", launch_finish},
    {"set_launch", set_launch},
    {"user_event", user_event},
    {"write_small", write_small},
    {"write_later", write_later},
    {"read_later", read_later},
    {"write_behind", write_behind},
    {"read_small", read_small},
    {"read_large", read_large},
    {"read_event", read_event},
    {"map", map},
    {"map_image", map_image},
    {"fill", fill},
};

static void (*find(const char *name))(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].call;
    fprintf(stderr, "no kind %s\n", name);
    exit(2);
}

static void set_up(void)
{
    static const char *source =
        "kernel void nothing(void) {}\n"
        "kernel void add(global uint *x, uint v) { x[get_global_id(0)] += v; }\n";
    cl_int rc;
    NEED(clGetPlatformIDs(1, &platform, NULL));
    NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    NEED(rc);
    queue = clCreateCommandQueue(context, device, 0, &rc);
    NEED(rc);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &rc);
    NEED(rc);
    NEED(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    nothing = clCreateKernel(program, "nothing", &rc);
    NEED(rc);
    add = clCreateKernel(program, "add", &rc);
    NEED(rc);
    const cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
    image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &rc);
    NEED(rc);
    m = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof host, NULL, &rc);
    NEED(rc);
    map_image(); /* how its rows lie is asked once */
    set_mem();
    set_arg();
    launch();
    NEED(clEnqueueMarkerWithWaitList(queue, 0, NULL, &over));
    NEED(clFinish(queue));
}

static unsigned long long real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

/* A function of its own: callgrind counts between its beginning and its end. */
void counted_calls(void (*call)(void), unsigned n);
__attribute__((noinline, noclone)) void counted_calls(void (*call)(void), unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        call();
}

int main(int argc, char **argv)
{
    char kind[32];
    unsigned n;
    set_up();
    if (argc == 4 && strcmp(argv[1], "once") == 0) {
        void (*call)(void) = find(argv[2]);
        counted_calls(call, (unsigned)atoi(argv[3]));
        return 0;
    }
    printf("ready\n");
    fflush(stdout);
    while (scanf("%31s %u", kind, &n) == 2) {
        void (*call)(void) = find(kind);
        counted_calls(call, WARM);
        NEED(clFinish(queue));
        /* The worker, too, is awake from here on: one on its way to sleep would be seen to go
         * there. */
        null_call();
        unsigned long long before = real_ns();
        counted_calls(call, n);
        unsigned long long after = real_ns();
        /* So that all of it is over, and the worker has counted it: messages are taken in order. */
        NEED(clFinish(queue));
        null_call();
        printf("did %llu %llu\n", before, after);
        fflush(stdout);
    }
    return 0;
}
