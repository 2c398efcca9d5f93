/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker is lost: to threads that wait in eight different calls, and in the middle of a kernel.
 * What the contract says: CL_OUT_OF_RESOURCES from every call that needs the worker, -5 in events,
 * local queries and releases go on.
 */
#include "edge.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

struct lost {
    struct edge e;
    cl_mem m, large;
    cl_event pending, user;
    cl_program unbuilt;
    cl_kernel kernel;
};

static _Atomic int n_in, n_out;
static _Atomic int n_callbacks;
static _Atomic uint64_t last_out_ns;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void CL_CALLBACK reported(cl_event event, cl_int status, void *arg)
{
    cl_int s;
    (void)arg;
    CHECK(status == CL_OUT_OF_RESOURCES);
    NEED(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof s, &s, NULL));
    CHECK(s == CL_OUT_OF_RESOURCES);
    atomic_fetch_add(&n_callbacks, 1);
}

/* One thread a call: in, the call, out. Waits for events may tell of the event's own end, too. */
#define WAITER(name, call)                                                                         \
    static void *name(void *arg)                                                                   \
    {                                                                                              \
        struct lost *l = arg;                                                                      \
        cl_int rc;                                                                                 \
        atomic_fetch_add(&n_in, 1);                                                                \
        call;                                                                                      \
        atomic_store(&last_out_ns, now_ns());                                                      \
        if (rc != CL_OUT_OF_RESOURCES && rc != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)       \
            EDGE_FAIL("%s: %d", #call, (int)rc);                                                   \
        atomic_fetch_add(&n_out, 1);                                                               \
        return NULL;                                                                               \
    }

static char host[4 << 20];
static cl_uint words[8][16];

WAITER(in_finish, rc = clFinish(l->e.queue))
WAITER(in_wait, rc = clWaitForEvents(1, &l->pending))
WAITER(in_read, rc = clEnqueueReadBuffer(l->e.queue, l->m, CL_TRUE, 0, 64, words[0], 0, NULL, NULL))
WAITER(in_long_read,
       rc = clEnqueueReadBuffer(l->e.queue, l->large, CL_TRUE, 0, sizeof host, host, 0, NULL, NULL))
WAITER(in_build, rc = clBuildProgram(l->unbuilt, 0, NULL, "", NULL, NULL))
WAITER(in_map,
       (void)clEnqueueMapBuffer(l->e.queue, l->m, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &rc))
WAITER(in_create, (void)clCreateBuffer(l->e.context, CL_MEM_READ_WRITE, 64, NULL, &rc))
WAITER(in_query, rc = clGetKernelWorkGroupInfo(l->kernel, l->e.device, CL_KERNEL_WORK_GROUP_SIZE,
                                               64, words[1], NULL))

static void open_lost(struct lost *l)
{
    static const char *text = "kernel void other(global uint *x) { x[0] = 1; }";
    cl_int rc;
    edge_open(&l->e, 0);
    l->m = edge_buffer(&l->e, 64);
    l->large = edge_buffer(&l->e, sizeof host);
    l->unbuilt = clCreateProgramWithSource(l->e.context, 1, &text, NULL, &rc);
    NEED(rc);
    l->kernel = edge_kernel(&l->e, "add");
    edge_set_add(l->kernel, l->m, 1);
    edge_launch(l->e.queue, l->kernel, 16, 0, NULL, NULL);
    NEED(clFinish(l->e.queue));
    l->user = clCreateUserEvent(l->e.context, &rc);
    NEED(rc);
    NEED(clEnqueueMarkerWithWaitList(l->e.queue, 1, &l->user, &l->pending));
    NEED(clSetEventCallback(l->pending, CL_COMPLETE, reported, NULL));
    NEED(clSetEventCallback(l->pending, CL_RUNNING, reported, NULL));
    NEED(clFlush(l->e.queue));
}

/* After the loss: what needs the worker fails, what does not goes on, and everything can be let go
 * of. */
static void after(struct lost *l)
{
    cl_int rc, status;
    size_t n = 16;
    cl_uint refs;
    cl_event e = NULL;
    CHECK(clFinish(l->e.queue) == CL_OUT_OF_RESOURCES);
    CHECK(clFlush(l->e.queue) == CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueNDRangeKernel(l->e.queue, l->kernel, 1, NULL, &n, NULL, 0, NULL, NULL) ==
          CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueNDRangeKernel(l->e.queue, l->kernel, 1, NULL, &n, NULL, 0, NULL, &e) ==
              CL_OUT_OF_RESOURCES &&
          !e);
    CHECK(clEnqueueReadBuffer(l->e.queue, l->m, CL_FALSE, 0, 64, words[2], 0, NULL, NULL) ==
          CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueWriteBuffer(l->e.queue, l->m, CL_TRUE, 0, 64, words[2], 0, NULL, NULL) ==
          CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueWriteBuffer(l->e.queue, l->large, CL_TRUE, 0, sizeof host, host, 0, NULL,
                               NULL) == CL_OUT_OF_RESOURCES);
    CHECK(clEnqueueMarkerWithWaitList(l->e.queue, 0, NULL, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(clCreateBuffer(l->e.context, CL_MEM_READ_WRITE, 64, NULL, &rc) == NULL &&
          rc == CL_OUT_OF_RESOURCES);
    CHECK(clCreateContext(NULL, 1, &l->e.device, NULL, NULL, &rc) == NULL &&
          rc == CL_OUT_OF_RESOURCES);
    CHECK(clCreateUserEvent(l->e.context, &rc) == NULL && rc == CL_OUT_OF_RESOURCES);
    CHECK(clCreateKernel(l->e.program, "stir", &rc) == NULL && rc == CL_OUT_OF_RESOURCES);
    CHECK(clCreateCommandQueue(l->e.context, l->e.device, 0, &rc) == NULL &&
          rc == CL_OUT_OF_RESOURCES);
    CHECK(clBuildProgram(l->unbuilt, 0, NULL, "", NULL, NULL) == CL_OUT_OF_RESOURCES);
    CHECK(clWaitForEvents(1, &l->pending) < 0);

    NEED(clGetEventInfo(l->pending, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                        NULL));
    CHECK(status == CL_OUT_OF_RESOURCES);
    cl_context of;
    NEED(clGetMemObjectInfo(l->m, CL_MEM_CONTEXT, sizeof of, &of, NULL));
    CHECK(of == l->e.context);
    NEED(clGetCommandQueueInfo(l->e.queue, CL_QUEUE_CONTEXT, sizeof of, &of, NULL));
    CHECK(of == l->e.context);
    NEED(clGetMemObjectInfo(l->m, CL_MEM_REFERENCE_COUNT, sizeof refs, &refs, NULL));
    CHECK(refs == 1);
    NEED(clRetainMemObject(l->m));
    NEED(clReleaseMemObject(l->m));
    cl_uint v = 2;
    CHECK(clSetKernelArg(l->kernel, 1, sizeof v, &v) == CL_OUT_OF_RESOURCES);
    /* A callback asked for too late is told at once. */
    int before = atomic_load(&n_callbacks);
    NEED(clSetEventCallback(l->pending, CL_COMPLETE, reported, NULL));
    while (atomic_load(&n_callbacks) == before) {
    }
    cl_int set = clSetUserEventStatus(l->user, CL_COMPLETE);
    CHECK(set == CL_OUT_OF_RESOURCES || set == CL_SUCCESS);

    NEED(clReleaseEvent(l->pending));
    NEED(clReleaseEvent(l->user));
    NEED(clReleaseKernel(l->kernel));
    NEED(clReleaseProgram(l->unbuilt));
    NEED(clReleaseMemObject(l->m));
    NEED(clReleaseMemObject(l->large));
    edge_close(&l->e);
}

/* The driver of the test stops the worker, lets the threads in, kills when all of them sleep in
 * their calls.
 */
int case_lost_waits(int argc, char **argv)
{
    struct lost l;
    (void)argc;
    (void)argv;
    open_lost(&l);
    edge_say("ready");
    edge_hear();
    void *(*const runs[])(void *) = {in_finish, in_wait, in_read,   in_long_read,
                                     in_build,  in_map,  in_create, in_query};
    const int n = sizeof runs / sizeof runs[0];
    for (int i = 0; i < n; i++)
        edge_thread("edge-waits", runs[i], &l);
    while (atomic_load(&n_in) < n) {
    }
    edge_say("in");
    edge_join();
    edge_say("out %llu", (unsigned long long)atomic_load(&last_out_ns));
    while (atomic_load(&n_callbacks) < 2) {
    }
    after(&l);
    edge_say("done");
    return 0;
}

/* The same while a kernel runs, by a single thread that is in clFinish. */
int case_lost_kernel(int argc, char **argv)
{
    struct lost l;
    (void)argc;
    (void)argv;
    open_lost(&l);
    cl_event running;
    cl_command_queue first = l.e.queue;
    cl_int rc;
    l.e.queue = clCreateCommandQueue(l.e.context, l.e.device, 0, &rc);
    NEED(rc);
    edge_launch_endless(&l.e, l.large, &running);
    NEED(clSetEventCallback(running, CL_COMPLETE, reported, NULL));
    edge_say("ready");
    CHECK(clFinish(l.e.queue) == CL_OUT_OF_RESOURCES);
    edge_say("out %llu", (unsigned long long)now_ns());
    cl_int status;
    NEED(clGetEventInfo(running, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status == CL_OUT_OF_RESOURCES);
    while (atomic_load(&n_callbacks) < 3) {
    }
    NEED(clReleaseEvent(running));
    NEED(clReleaseCommandQueue(l.e.queue));
    l.e.queue = first;
    after(&l);
    edge_say("done");
    return 0;
}

/* No daemon, or one that is going: no platform, and no word. */
int case_no_daemon(int argc, char **argv)
{
    cl_uint n = 7;
    cl_platform_id p;
    (void)argc;
    (void)argv;
    CHECK(clGetPlatformIDs(0, NULL, &n) == CL_PLATFORM_NOT_FOUND_KHR);
    CHECK(clGetPlatformIDs(1, &p, &n) == CL_PLATFORM_NOT_FOUND_KHR);
    return 0;
}

/* ---- after a loss */

static _Atomic int n_words;

static void CL_CALLBACK word(const char *text, const void *data, size_t n, void *arg)
{
    (void)data, (void)n, (void)arg;
    CHECK(strstr(text, "is lost") != NULL);
    atomic_fetch_add(&n_words, 1);
}

#define LARGE (UINT64_C(16) << 20)

/*
 * A context, and work that is checked, with the device that there is; and a buffer that is there
 * until let_go.
 */
static void begin_with(struct edge *e, cl_device_id device)
{
    cl_int rc;
    void *bytes = calloc(1, LARGE);
    cl_uint x[16] = {0};
    e->device = device;
    e->context = clCreateContext(NULL, 1, &e->device, word, NULL, &rc);
    NEED(rc);
    e->queue = clCreateCommandQueue(e->context, e->device, 0, &rc);
    NEED(rc);
    cl_mem m = edge_buffer(e, sizeof x);
    const cl_uint seven = 7;
    NEED(clEnqueueFillBuffer(e->queue, m, &seven, sizeof seven, 0, sizeof x, 0, NULL, NULL));
    NEED(clEnqueueReadBuffer(e->queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < 16; i++)
        CHECK(x[i] == 7);
    NEED(clReleaseMemObject(m));
    e->large = clCreateBuffer(e->context, CL_MEM_ALLOC_HOST_PTR, LARGE, NULL, &rc);
    NEED(rc);
    NEED(clEnqueueWriteBuffer(e->queue, e->large, CL_TRUE, 0, LARGE, bytes, 0, NULL, NULL));
    free(bytes);
}

static void let_go(const struct edge *e)
{
    NEED(clReleaseMemObject(e->large));
    NEED(clReleaseCommandQueue(e->queue));
    NEED(clReleaseContext(e->context));
}

static cl_int try_context(cl_device_id device)
{
    cl_int rc;
    cl_context c = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    if (c)
        NEED(clReleaseContext(c));
    return rc;
}

/*
 * The vGPU is lost again and again, by whatever the driver of the test does after "ready". Each
 * time the program begins anew with the handles that it has, as the argument says:
 *   released   it has let go of all that it had
 *   asked      it has not, and asks for devices
 *   later      the same as released; until the driver of the test says so there is no gantryd, and
 * no context
 */
int case_anew(int argc, char **argv)
{
    const char *how = argc ? argv[0] : "";
    const bool asks = strcmp(how, "asked") == 0;
    cl_platform_id platform;
    cl_device_id device, again;
    struct edge e, old;
    char name[64];
    NEED(clGetPlatformIDs(1, &platform, NULL));
    NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    begin_with(&e, device);
    for (int i = 0; i < 4; i++) {
        const int n_before = atomic_load(&n_words);
        edge_say("ready");
        edge_hear();
        while (clFinish(e.queue) == CL_SUCCESS) {
        }
        CHECK(clFinish(e.queue) == CL_OUT_OF_RESOURCES);
        /*
         * A program that has something of the lost vGPU is told of the loss whatever it does with
         * that.
         */
        CHECK(try_context(device) == CL_OUT_OF_RESOURCES);
        while (atomic_load(&n_words) == n_before) {
        }
        old = e;
        if (!asks)
            let_go(&old);
        if (strcmp(how, "later") == 0) {
            CHECK(try_context(device) == CL_OUT_OF_RESOURCES);
            edge_say("none");
            edge_hear();
        }
        if (asks) {
            NEED(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL));
            NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &again, NULL));
            CHECK(again == device);
            NEED(clGetDeviceInfo(again, CL_DEVICE_NAME, sizeof name, name, NULL));
        }
        begin_with(&e, device);
        if (asks) {
            CHECK(clFinish(old.queue) == CL_OUT_OF_RESOURCES);
            CHECK(clCreateCommandQueue(old.context, device, 0, NULL) == NULL);
            let_go(&old);
        }
    }
    let_go(&e);
    edge_whole_life();
    return 0;
}

#define MOST_DEVICES 8

/*
 * Each gantryd that comes after the one before has other devices. Says which there are by their
 * drivers' names, and which of the handles that there have been stand for them.
 */
int case_anew_devices(int argc, char **argv)
{
    cl_platform_id platform;
    cl_device_id known[MOST_DEVICES], there[MOST_DEVICES];
    char names[MOST_DEVICES][128], name[128];
    cl_uint n_known = 0, n;
    struct edge e;
    (void)argv;
    NEED(clGetPlatformIDs(1, &platform, NULL));
    for (int i = 0; i < 4; i++) {
        char line[256] = "";
        NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, there, &n));
        for (cl_uint d = 0; d < n; d++) {
            cl_uint k = 0;
            NEED(clGetDeviceInfo(there[d], CL_DEVICE_NAME, sizeof name, name, NULL));
            while (k < n_known && known[k] != there[d])
                k++;
            CHECK(k < MOST_DEVICES);
            if (k == n_known) {
                known[n_known++] = there[d];
                strcpy(names[k], name);
            }
            CHECK(strcmp(names[k], name) == 0);
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s%.*s:%u", d ? "," : "",
                     (int)strcspn(name, "-"), name, k);
            begin_with(&e, there[d]);
            let_go(&e);
        }
        for (cl_uint k = 0; k < n_known; k++) {
            bool is_there = false;
            for (cl_uint d = 0; d < n; d++)
                is_there |= there[d] == known[k];
            CHECK((try_context(known[k]) == CL_SUCCESS) == is_there);
        }
        begin_with(&e, there[0]);
        edge_say("devices %s", line);
        edge_hear();
        while (clFinish(e.queue) == CL_SUCCESS) {
        }
        let_go(&e);
        edge_say("none");
        edge_hear();
    }
    return argc ? 1 : 0;
}
