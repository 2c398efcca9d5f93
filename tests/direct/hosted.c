/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does what its first argument says, for the tests of passthrough:
 *   add        adds up on the device from four threads, and says "right"
 *   fork       uses the device, forks, and so does the child while its parent goes on
 *   fork steps uses the device, says "ready" and forks after a line; the child does as by "steps"
 *   steps      a kernel a line of stdin; says what the calls returned: "step RESULT"
 *   hold MS    after a line of stdin, kernels without a pause, for about so long or until there is
 * more of it, then "held RESULT" zero       a launch of groups of nothing, which PoCL divides by
 * and steps over, in a handler of its own: "zero RESULT" buffers    needs no compiler: 8 buffers; a
 * line of stdin: each is written and read in turn; says "step RESULT" late       needs no compiler;
 * does what the lines of stdin say, and says "WORD RESULT" after each: make, release: 8 buffers;
 * check: what they hold; copy N: so many copies on one queue; other: one on another queue; finish:
 * the first queue; sockets, quiet: many pairs of sockets, and whether any has anything to read;
 * words: how many its context has been told take       buffers of 1 MiB until there is none; says
 * how many and the error, and waits for a line
 */
#include <CL/cl.h>

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N       4096u
#define THREADS 4
#define MUST(what)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (what);                                                                     \
        if (must_) {                                                                               \
            printf("wrong: %s: %d (line %d)\n", #what, must_, __LINE__);                           \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const char source[] =
    "kernel void add(global uint *a, uint n) { a[get_global_id(0)] += n; }\n"
    "kernel void turn(global uint *a, uint n)\n"
    "{ uint x = a[get_global_id(0)]; for (uint i = 0; i < n; i++) x = x * 1664525u + 1013904223u;\n"
    "  a[get_global_id(0)] = x; }\n";

static cl_context context;
static cl_device_id device;
static cl_program program;

/* The first error, or 0. */
static cl_int begin_without_program(void)
{
    cl_platform_id platform;
    cl_int r = clGetPlatformIDs(1, &platform, NULL);
    if (!r)
        r = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (!r)
        context = clCreateContext(NULL, 1, &device, NULL, NULL, &r);
    return r;
}

static cl_int begin(void)
{
    cl_int r = begin_without_program();
    const char *text = source;
    if (!r)
        program = clCreateProgramWithSource(context, 1, &text, NULL, &r);
    return r ? r : clBuildProgram(program, 1, &device, "", NULL, NULL);
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, cl_mem mem, cl_uint n)
{
    const size_t size = N;
    cl_int r = clSetKernelArg(kernel, 0, sizeof mem, &mem);
    if (!r)
        r = clSetKernelArg(kernel, 1, sizeof n, &n);
    return r ? r : clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL);
}

static void *adds(void *arg)
{
    cl_int r;
    cl_uint values[N] = {0};
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_mem mem = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, &r);
    MUST(r);
    cl_kernel kernel = clCreateKernel(program, "add", &r);
    MUST(r);
    for (cl_uint i = 1; i <= 200; i++) {
        MUST(launch(queue, kernel, mem, i));
        if (i % 50 == 0)
            MUST(clFinish(queue));
    }
    MUST(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    for (size_t i = 0; i < N; i++)
        if (values[i] != 200 * 201 / 2)
            MUST(1);
    MUST(clReleaseKernel(kernel));
    MUST(clReleaseMemObject(mem));
    MUST(clReleaseCommandQueue(queue));
    return arg;
}

static void add(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, adds, NULL));
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL));
}

static void zero(void)
{
    const size_t size = N, none = 0;
    cl_int r;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_mem mem = clCreateBuffer(context, 0, N * 4, NULL, &r);
    MUST(r);
    cl_kernel kernel = clCreateKernel(program, "add", &r);
    MUST(r);
    /* What comes before it puts it into the hands of whoever waits for the device. */
    for (cl_uint i = 0; i < 50; i++)
        MUST(launch(queue, kernel, mem, i));
    r = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &none, 0, NULL, NULL);
    printf("zero %d\n", r ? r : clFinish(queue));
}

static void steps(void)
{
    char line[16];
    cl_int r;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_mem mem = clCreateBuffer(context, 0, N * 4, NULL, &r);
    MUST(r);
    cl_kernel kernel = clCreateKernel(program, "add", &r);
    MUST(r);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        r = launch(queue, kernel, mem, 1);
        printf("step %d\n", r ? r : clFinish(queue));
        fflush(stdout);
    }
}

static void in_child(void (*work)(void))
{
    MUST(begin());
    work();
    /* What the parent's driver left in this process is not to be run. */
    printf("child right\n");
    fflush(stdout);
    _exit(0);
}

static void forks(bool with_steps)
{
    char line[16];
    int status;
    add();
    if (with_steps) {
        printf("ready\n");
        fflush(stdout);
        MUST(!fgets(line, sizeof line, stdin));
    }
    pid_t child = fork();
    if (child == 0)
        in_child(with_steps ? steps : add);
    add();
    MUST(waitpid(child, &status, 0) != child);
    MUST(status);
}

static void buffers(void)
{
    enum { N_MEMS = 8, BYTES = 1 << 20 };
    static cl_uint values[BYTES / sizeof(cl_uint)], back[BYTES / sizeof(cl_uint)];
    cl_mem mems[N_MEMS];
    char line[16];
    cl_int r;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &r);
    MUST(r);
    for (cl_uint i = 0; i < N_MEMS; i++) {
        mems[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, values, &r);
        MUST(r);
    }
    printf("ready\n");
    fflush(stdout);
    for (cl_uint step = 1; fgets(line, sizeof line, stdin); step++) {
        /* What the step before has left there, then this one's. */
        for (cl_uint i = 0; i < N_MEMS; i++) {
            MUST(clEnqueueReadBuffer(queue, mems[i], CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
            for (size_t at = 0; at < BYTES / sizeof(cl_uint); at++)
                MUST(back[at] != (step > 1 ? (step - 1) * 1000 + i + (cl_uint)at : 0));
            for (size_t at = 0; at < BYTES / sizeof(cl_uint); at++)
                values[at] = step * 1000 + i + (cl_uint)at;
            MUST(clEnqueueWriteBuffer(queue, mems[i], CL_FALSE, 0, BYTES, values, 0, NULL, NULL));
            MUST(clFinish(queue));
        }
        printf("step 0\n");
        fflush(stdout);
    }
}

static _Atomic int n_words;

static void CL_CALLBACK word(const char *text, const void *data, size_t n, void *arg)
{
    (void)text, (void)data, (void)n, (void)arg;
    n_words++;
}

/* Everything that was closed in this process and is used again is one of these. */
static int look_at_sockets(int (*pairs)[2], int n, int make)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        char c;
        if (make)
            wrong += socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) != 0;
        else
            wrong += recv(pairs[i][0], &c, 1, 0) >= 0 || recv(pairs[i][1], &c, 1, 0) >= 0;
    }
    return wrong;
}

static void late(void)
{
    enum { N_MEMS = 8, BYTES = 4 << 20, N_PAIRS = 32 };
    static cl_uchar values[BYTES], back[BYTES];
    static int pairs[N_PAIRS][2];
    cl_mem mems[N_MEMS];
    char line[32], what[16];
    cl_int r;
    cl_context c = clCreateContext(NULL, 1, &device, word, NULL, &r);
    MUST(r);
    cl_command_queue queue = clCreateCommandQueue(c, device, 0, &r);
    MUST(r);
    cl_command_queue other = clCreateCommandQueue(c, device, 0, &r);
    MUST(r);
    memset(values, 7, sizeof values);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int n = 1, result = 0;
        MUST(sscanf(line, "%15s %d", what, &n) < 1);
        for (int i = 0; i < N_MEMS; i++) {
            if (!strcmp(what, "make")) {
                mems[i] = clCreateBuffer(c, CL_MEM_COPY_HOST_PTR, BYTES, values, &r);
                MUST(r);
            } else if (!strcmp(what, "release")) {
                MUST(clReleaseMemObject(mems[i]));
            } else if (!strcmp(what, "check")) {
                MUST(clEnqueueReadBuffer(queue, mems[i], CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
                MUST(memcmp(values, back, BYTES) != 0);
            }
        }
        if (!strcmp(what, "copy"))
            while (n--)
                MUST(clEnqueueCopyBuffer(queue, mems[0], mems[1], 0, 0, 64, 0, NULL, NULL));
        else if (!strcmp(what, "other"))
            MUST(clEnqueueCopyBuffer(other, mems[0], mems[1], 0, 0, 64, 0, NULL, NULL));
        else if (!strcmp(what, "finish"))
            MUST(clFinish(queue));
        else if (!strcmp(what, "sockets") || !strcmp(what, "quiet"))
            result = look_at_sockets(pairs, N_PAIRS, !strcmp(what, "sockets"));
        else if (!strcmp(what, "words"))
            result = n_words;
        printf("%s %d\n", what, result);
        fflush(stdout);
    }
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void hold(double seconds, cl_uint turns)
{
    struct pollfd more = {.fd = 0, .events = POLLIN};
    char line[16];
    cl_int r;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &r);
    MUST(r);
    cl_mem mem = clCreateBuffer(context, 0, N * 4, NULL, &r);
    MUST(r);
    cl_kernel kernel = clCreateKernel(program, "turn", &r);
    MUST(r);
    printf("ready\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return;
    const double end = now_s() + seconds;
    do {
        r = launch(queue, kernel, mem, turns);
        if (!r)
            r = clFinish(queue);
    } while (!r && now_s() < end && poll(&more, 1, 0) == 0);
    printf("held %d\n", r);
}

static void take(void)
{
    char line[16];
    cl_int r = 0;
    unsigned n = 0;
    while (n < 4096 && clCreateBuffer(context, 0, 1 << 20, NULL, &r))
        n++;
    printf("took %u: %d\n", n, r);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool compiles = strcmp(what, "buffers") && strcmp(what, "late");
    cl_int r = compiles ? begin() : begin_without_program();
    if (r) {
        printf("no device: %d\n", r);
        return 1;
    }
    if (!strcmp(what, "add"))
        add();
    else if (!strcmp(what, "fork"))
        forks(argc > 2);
    else if (!strcmp(what, "steps"))
        steps();
    else if (!strcmp(what, "buffers"))
        buffers();
    else if (!strcmp(what, "late"))
        late();
    else if (!strcmp(what, "hold"))
        hold(atof(argv[2]) / 1e3, argc > 3 ? (cl_uint)atoi(argv[3]) : 2000);
    else if (!strcmp(what, "take"))
        take();
    else if (!strcmp(what, "zero"))
        zero();
    printf("right\n");
    return 0;
}
