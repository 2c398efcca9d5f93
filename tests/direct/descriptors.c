/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does odd things with descriptors: descriptors CASE TELL [ARGUMENT]. TELL is a
 * descriptor that it says "ready" and its troubles to. Then it works until SIGWINCH, which no
 * driver takes for itself, whatever is done to its vGPU meanwhile.
 *   full [quiet]         there are no descriptors left while it works, at last there are again.
 *                        quiet: a driver in the process opens none that it has to have
 *   child                the same, in a forked child that has no vGPU yet: "ready" means that it
 * gets none from [idle]          closes all from the third on and opens others, which must stay.
 *                        idle: when it has let go of its vGPU, which it then does not notice;
 *                        otherwise it begins anew once calls fail
 *   low CLOSED [quiet]   CLOSED is digits: these of the first three are closed from the start, and
 *                        free in the end. Unless quiet another thread writes there all the time,
 *                        and must meet EBADF each time; a driver in the process opens files itself
 */
#include <CL/cl.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define N          1024u
#define MOST_FDS   256
#define LARGE      (40u << 20) /* more than the data area that a program begins with */
#define MUST(what) must((what), #what, __LINE__)

static int tell_fd;
static volatile sig_atomic_t stops;

static void tell(const char *text)
{
    if (write(tell_fd, text, strlen(text)) < 0)
        _exit(2);
}

static void must(cl_int result, const char *what, int line)
{
    char text[256];
    if (!result)
        return;
    snprintf(text, sizeof text, "wrong: %s: %d (line %d)\n", what, result, line);
    tell(text);
    _exit(1);
}

/* ---- something of all that needs a descriptor */

struct vgpu {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem mem, large;
};

static const char source[] =
    "kernel void add(global uint *a, uint n) { a[get_global_id(0)] += n; }";
static atomic_int n_called;

static void CL_CALLBACK called(cl_event event, cl_int status, void *arg)
{
    (void)event, (void)status, (void)arg;
    n_called++;
}

static struct vgpu begin(void)
{
    struct vgpu v;
    const char *text = source;
    cl_platform_id platform;
    cl_int r;
    MUST(clGetPlatformIDs(1, &platform, NULL));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &v.device, NULL));
    v.context = clCreateContext(NULL, 1, &v.device, NULL, NULL, &r);
    MUST(r);
    v.queue = clCreateCommandQueue(v.context, v.device, 0, &r);
    MUST(r);
    cl_program program = clCreateProgramWithSource(v.context, 1, &text, NULL, &r);
    MUST(r);
    MUST(clBuildProgram(program, 1, &v.device, "-I.", NULL, NULL));
    v.kernel = clCreateKernel(program, "add", &r);
    MUST(r);
    v.mem = clCreateBuffer(v.context, 0, N * sizeof(cl_uint), NULL, &r);
    MUST(r);
    v.large = clCreateBuffer(v.context, 0, LARGE, NULL, &r);
    MUST(r);
    MUST(clReleaseProgram(program));
    return v;
}

static void step(const struct vgpu *v, cl_uint n)
{
    cl_uint a[N];
    const size_t size = N;
    const int before = n_called;
    cl_event event;
    for (cl_uint i = 0; i < N; i++)
        a[i] = i;
    MUST(clEnqueueWriteBuffer(v->queue, v->mem, CL_TRUE, 0, sizeof a, a, 0, NULL, NULL));
    MUST(clSetKernelArg(v->kernel, 0, sizeof v->mem, &v->mem));
    MUST(clSetKernelArg(v->kernel, 1, sizeof n, &n));
    MUST(clEnqueueNDRangeKernel(v->queue, v->kernel, 1, NULL, &size, NULL, 0, NULL, &event));
    MUST(clSetEventCallback(event, CL_COMPLETE, called, NULL));
    MUST(clEnqueueReadBuffer(v->queue, v->mem, CL_TRUE, 0, sizeof a, a, 0, NULL, NULL));
    for (cl_uint i = 0; i < N; i++)
        MUST(a[i] != i + n);
    while (n_called == before)
        usleep(100);
    MUST(clReleaseEvent(event));
}

static void end(const struct vgpu *v)
{
    MUST(clReleaseMemObject(v->large));
    MUST(clReleaseMemObject(v->mem));
    MUST(clReleaseKernel(v->kernel));
    MUST(clReleaseCommandQueue(v->queue));
    MUST(clReleaseContext(v->context));
}

/* Without waiting, so that all of it is in the data area at once. */
static void large(const struct vgpu *v)
{
    unsigned char *bytes = malloc(LARGE);
    MUST(!bytes);
    memset(bytes, 7, LARGE);
    MUST(clEnqueueWriteBuffer(v->queue, v->large, CL_FALSE, 0, LARGE, bytes, 0, NULL, NULL));
    MUST(clFinish(v->queue));
    memset(bytes, 0, LARGE);
    MUST(clEnqueueReadBuffer(v->queue, v->large, CL_FALSE, 0, LARGE, bytes, 0, NULL, NULL));
    MUST(clFinish(v->queue));
    MUST(bytes[0] != 7 || bytes[LARGE - 1] != 7);
    free(bytes);
}

static void stop(int number)
{
    (void)number;
    stops = 1;
}

/* ---- the first three */

static bool closed[3];

static void *prints(void *arg)
{
    while (!stops)
        for (int fd = 0; fd < 3; fd++)
            if (closed[fd] && (write(fd, "!", 1) >= 0 || errno != EBADF)) {
                char text[128];
                snprintf(text, sizeof text, "what is written to %d goes somewhere\n", fd);
                tell(text);
                _exit(1);
            }
    return arg;
}

static void low(const char *which, bool quiet)
{
    pthread_t thread;
    for (; *which; which++) {
        closed[*which - '0'] = true;
        close(*which - '0');
    }
    if (!quiet)
        MUST(pthread_create(&thread, NULL, prints, NULL));
    struct vgpu v = begin();
    step(&v, 1);
    large(&v);
    tell("ready\n");
    for (cl_uint i = 0; !stops; i++)
        step(&v, i);
    large(&v);
    end(&v);
    if (!quiet)
        MUST(pthread_join(thread, NULL));
    for (int fd = 0; fd < 3; fd++)
        MUST(closed[fd] && fcntl(fd, F_GETFD) >= 0);
}

/* ---- no descriptors left */

static int own[MOST_FDS], n_own;

static void take_all(void)
{
    const struct rlimit limit = {MOST_FDS, MOST_FDS};
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    while (n_own < MOST_FDS && (own[n_own] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n_own++;
    MUST(errno != EMFILE);
}

static void give_back(void)
{
    while (n_own)
        MUST(close(own[--n_own]));
}

static void full(bool quiet)
{
    unsigned char *bytes = calloc(1, LARGE);
    struct vgpu v = begin();
    step(&v, 1);
    take_all();
    step(&v, 2);
    /* In small pieces, or not at all. */
    MUST(!bytes);
    (void)clEnqueueWriteBuffer(v.queue, v.large, CL_FALSE, 0, LARGE, bytes, 0, NULL, NULL);
    (void)clFinish(v.queue);
    struct vgpu w = quiet ? v : begin();
    tell("ready\n");
    for (cl_uint i = 0; !stops; i++) {
        step(&v, i);
        step(&w, i);
    }
    give_back();
    large(&v);
    large(&w);
    end(&v);
    if (!quiet)
        end(&w);
    free(bytes);
}

static void child(void)
{
    struct vgpu v = begin();
    int status;
    const pid_t forked = fork();
    MUST(forked < 0);
    if (!forked) {
        take_all();
        MUST(clCreateContext(NULL, 1, &v.device, NULL, NULL, NULL) != NULL);
        tell("ready\n");
        while (!stops)
            usleep(1000);
        give_back();
        v = begin();
        step(&v, 1);
        end(&v);
        exit(0);
    }
    while (!stops)
        step(&v, 1);
    kill(forked, SIGWINCH);
    MUST(waitpid(forked, &status, 0) != forked || status);
    end(&v);
}

/* ---- all from the third on are closed */

static void close_all(void)
{
    for (int fd = 3; fd < MOST_FDS; fd++)
        if (fd != tell_fd)
            close(fd);
    for (n_own = 0; n_own < 40; n_own++) {
        int ends[2];
        MUST(n_own % 2 ? (own[n_own] = open("/dev/zero", O_RDONLY)) < 0 : pipe(ends));
        if (n_own % 2)
            continue;
        own[n_own++] = ends[0];
        own[n_own] = ends[1];
    }
}

static void check_own(void)
{
    for (int i = 0; i < n_own; i++) {
        int n_bytes = 0;
        MUST(fcntl(own[i], F_GETFD) < 0);
        (void)ioctl(own[i], FIONREAD, &n_bytes);
        MUST(n_bytes);
    }
}

static void from(bool idle)
{
    struct vgpu v = begin();
    step(&v, 1);
    if (idle)
        end(&v);
    close_all();
    if (!idle) {
        const size_t size = N;
        while (!clEnqueueNDRangeKernel(v.queue, v.kernel, 1, NULL, &size, NULL, 0, NULL, NULL) &&
               !clFinish(v.queue)) {
        }
        end(&v);
    }
    check_own();
    v = begin();
    step(&v, 1);
    large(&v);
    tell("ready\n");
    for (cl_uint i = 0; !stops; i++)
        step(&v, i);
    end(&v);
    check_own();
    give_back();
}

int main(int argc, char **argv)
{
    tell_fd = argc > 2 ? atoi(argv[2]) : 2;
    signal(SIGWINCH, stop);
    if (argc > 3 && !strcmp(argv[1], "low"))
        low(argv[3], argc > 4);
    else if (argc > 2 && !strcmp(argv[1], "full"))
        full(argc > 3);
    else if (argc > 2 && !strcmp(argv[1], "child"))
        child();
    else if (argc > 2 && !strcmp(argv[1], "from"))
        from(argc > 3);
    else
        return 3;
    return 0;
}
