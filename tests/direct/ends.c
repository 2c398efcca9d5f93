/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that ends in the way that its first argument names, while its vGPU is being moved: ends
 * WAY [plain]. It has a context, a queue, a buffer and a kernel (plain: no kernel, for a driver
 * without a compiler), leaves a line in stdout's buffer, says "ready" on stderr, and ends after a
 * line of stdin, which says how many microseconds later.
 *   return, exit, quick, _exit      by these
 *   thread                          another thread, which has never made an OpenCL call, calls
 * exit() caller                          another thread, which makes calls all the time, calls
 * exit() busy                            exit() while another thread makes calls all the time
 *   callback                        exit() in an event's callback
 *   signal                          exit() in a signal's handler, in the middle of a wait
 *   pending                         exit() behind work that the device has not done
 *   atexit, first                   a handler reads the buffer, registered behind the first call;
 * ahead of it fork                            children end by exit() meanwhile; their statuses are
 * looked at last                            main ends by pthread_exit(), then the last thread of
 * the program
 */
#include <CL/cl.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N          1024u
#define MUST(what) must((what), #what, __LINE__)

static void must(cl_int result, const char *what, int line)
{
    if (!result)
        return;
    fprintf(stderr, "wrong: %s: %d (line %d)\n", what, result, line);
    _exit(1);
}

static const char source[] = "kernel void turn(global uint *a, uint n) {\n"
                             "  uint x = a[get_global_id(0)];\n"
                             "  for (uint i = 0; i < n; i++) x = x * 1664525u + 1u;\n"
                             "  a[get_global_id(0)] = x; }\n";
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem mem;
static useconds_t later_us;

static void launch(cl_uint n)
{
    const size_t one = 1;
    if (!kernel)
        return;
    MUST(clSetKernelArg(kernel, 1, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
}

static void call(void)
{
    cl_uint x[N];
    launch(1);
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    MUST(x[N - 1] != N - 1);
}

/* As a library's clean-up does, which nobody has told that the process ends. */
static void at_exit(void)
{
    call();
    MUST(clFinish(queue));
    MUST(clReleaseMemObject(mem));
    MUST(clReleaseCommandQueue(queue));
    puts("cleaned up");
}

static void begin(bool compiles)
{
    cl_uint x[N];
    cl_platform_id platform;
    cl_device_id device;
    cl_int r;
    for (cl_uint i = 0; i < N; i++)
        x[i] = i;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    MUST(r);
    queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    mem = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof x, x, &r);
    MUST(r);
    if (!compiles)
        return;
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    kernel = clCreateKernel(program, "turn", &r);
    MUST(r);
    MUST(clSetKernelArg(kernel, 0, sizeof mem, &mem));
    call();
}

static void *exits(void *arg)
{
    usleep(later_us);
    exit(0);
    return arg;
}

static bool is_over(const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long us = (now.tv_sec - since->tv_sec) * 1000000 + (now.tv_nsec - since->tv_nsec) / 1000;
    return us >= (long)later_us;
}

static void *calls(void *ends)
{
    struct timespec began;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (!ends || !is_over(&began))
        call();
    exit(0);
    return NULL;
}

static void *last(void *arg)
{
    usleep(later_us);
    call();
    return arg;
}

static void start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run, arg));
    MUST(pthread_detach(thread));
}

static void CL_CALLBACK called(cl_event event, cl_int status, void *arg)
{
    (void)event, (void)status, (void)arg;
    exit(0);
}

static void signalled(int number)
{
    (void)number;
    exit(0);
}

static void by_callback(void)
{
    cl_event event;
    usleep(later_us);
    MUST(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    MUST(clSetEventCallback(event, CL_COMPLETE, called, NULL));
    MUST(clFlush(queue));
    for (;;)
        pause();
}

static void by_signal(void)
{
    const struct itimerval when = {{0, 0},
                                   {later_us / 1000000, (suseconds_t)(later_us % 1000000 + 1)}};
    cl_context context;
    cl_int r;
    MUST(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
    cl_event never = clCreateUserEvent(context, &r);
    MUST(r);
    signal(SIGALRM, signalled);
    MUST(setitimer(ITIMER_REAL, &when, NULL));
    MUST(clWaitForEvents(1, &never));
}

static void by_children(void)
{
    struct timespec began;
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        int status = 0;
        const pid_t child = fork();
        if (child == 0)
            exit(0);
        MUST(child < 0 || waitpid(child, &status, 0) != child);
        MUST(status);
        call();
    } while (!is_over(&began));
}

static int end(const char *way)
{
    if (!strcmp(way, "thread") || !strcmp(way, "caller")) {
        start(!strcmp(way, "thread") ? exits : calls, &later_us);
        for (;;)
            pause();
    }
    if (!strcmp(way, "last")) {
        start(last, NULL);
        pthread_exit(NULL);
    }
    if (!strcmp(way, "busy"))
        start(calls, NULL);
    if (!strcmp(way, "callback"))
        by_callback();
    if (!strcmp(way, "signal"))
        by_signal();
    if (!strcmp(way, "fork"))
        by_children();
    else
        usleep(later_us);
    if (!strcmp(way, "quick") || !strcmp(way, "_exit"))
        fflush(stdout);
    if (!strcmp(way, "quick"))
        quick_exit(0);
    if (!strcmp(way, "_exit"))
        _exit(0);
    for (int i = 0; !strcmp(way, "pending") && i < 50; i++)
        launch(20000000);
    if (!strcmp(way, "pending"))
        MUST(clFlush(queue));
    if (strcmp(way, "return"))
        exit(0);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    char line[32];
    if (!strcmp(way, "first"))
        MUST(atexit(at_exit));
    begin(argc < 3);
    if (!strcmp(way, "atexit"))
        MUST(atexit(at_exit));
    printf("stays in its buffer\n");
    fprintf(stderr, "ready\n");
    MUST(!fgets(line, sizeof line, stdin));
    later_us = (useconds_t)atoi(line);
    return end(way);
}
