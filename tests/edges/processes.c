/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, exec, ends of every kind, closed descriptors. */
#include "edge.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int case_life(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    edge_whole_life();
    return 0;
}

static void CL_CALLBACK never(cl_event event, cl_int status, void *arg)
{
    (void)event;
    (void)status;
    (void)arg;
}

/* Ends, as told, while everything is alive and a kernel runs. */
int case_leave(int argc, char **argv)
{
    struct edge e;
    cl_event running, behind;
    cl_int rc;
    static char host[4096];
    CHECK(argc == 1);
    edge_open(&e, CL_QUEUE_PROFILING_ENABLE);
    cl_mem m = edge_buffer(&e, 1 << 20),
           used = clCreateBuffer(e.context, CL_MEM_USE_HOST_PTR, sizeof host, host, &rc);
    NEED(rc);
    CHECK(clEnqueueMapBuffer(e.queue, m, CL_TRUE, CL_MAP_WRITE, 0, 4096, 0, NULL, NULL, &rc) !=
          NULL);
    NEED(rc);
    edge_launch_endless(&e, m, &running);
    NEED(clSetEventCallback(running, CL_COMPLETE, never, NULL));
    NEED(clEnqueueReadBuffer(e.queue, used, CL_FALSE, 0, sizeof host, host, 0, NULL, &behind));
    cl_event user = clCreateUserEvent(e.context, &rc);
    NEED(rc);
    NEED(clEnqueueMarkerWithWaitList(e.queue, 1, &user, NULL));
    edge_say("ready");
    if (strcmp(argv[0], "exit") == 0)
        exit(0);
    if (strcmp(argv[0], "_exit") == 0)
        _exit(0);
    if (strcmp(argv[0], "abort") == 0)
        abort();
    if (strcmp(argv[0], "wait") == 0)
        NEED(clFinish(e.queue)); /* until it is killed */
    return 0;
}

/* ---- fork */

static _Atomic bool stop;

struct going_on {
    struct edge e;
    cl_mem m;
    cl_uint n;
};

static void *go_on(void *arg)
{
    struct going_on *g = arg;
    cl_kernel k = edge_kernel(&g->e, "add");
    edge_set_add(k, g->m, 1);
    while (!atomic_load(&stop)) {
        cl_event e;
        edge_launch(g->e.queue, k, 16, 0, NULL, &e);
        g->n++;
        NEED(clWaitForEvents(1, &e));
        NEED(clReleaseEvent(e));
    }
    NEED(clReleaseKernel(k));
    return NULL;
}

/* The parent's handles are none here: an error from everything, and from nothing a hang. */
static void try_strange_handles(const struct going_on *g)
{
    cl_uint x[16];
    cl_int rc;
    size_t n = 1;
    CHECK(clFinish(g->e.queue) == CL_INVALID_COMMAND_QUEUE);
    CHECK(clEnqueueReadBuffer(g->e.queue, g->m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL) ==
          CL_INVALID_COMMAND_QUEUE);
    CHECK(clCreateBuffer(g->e.context, CL_MEM_READ_WRITE, 16, NULL, &rc) == NULL &&
          rc == CL_INVALID_CONTEXT);
    CHECK(clCreateKernel(g->e.program, "add", &rc) == NULL && rc == CL_INVALID_PROGRAM);
    CHECK(clGetMemObjectInfo(g->m, CL_MEM_SIZE, sizeof n, &n, NULL) == CL_INVALID_MEM_OBJECT);
    CHECK(clReleaseMemObject(g->m) == CL_INVALID_MEM_OBJECT);
    CHECK(clRetainContext(g->e.context) == CL_INVALID_CONTEXT);
}

static void child_ended_well(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Children start afresh, while a thread of the parent's goes on; grandchildren too. */
int case_fork(int argc, char **argv)
{
    struct going_on g = {.n = 0};
    cl_uint x[16] = {0};
    (void)argc;
    (void)argv;
    edge_open(&g.e, 0);
    g.m = edge_buffer(&g.e, sizeof x);
    NEED(clEnqueueWriteBuffer(g.e.queue, g.m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    edge_thread("edge", go_on, &g);
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            if (i % 3 == 0)
                try_strange_handles(&g);
            edge_whole_life();
            if (i % 3 != 0)
                try_strange_handles(&g);
            if (i == 5) {
                pid_t grandchild = fork();
                if (grandchild == 0) {
                    edge_whole_life();
                    exit(0);
                }
                child_ended_well(grandchild);
                edge_whole_life();
            }
            exit(0);
        }
        child_ended_well(child);
    }
    /* A child that does nothing but end, as many are. */
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        child_ended_well(child);
    }
    atomic_store(&stop, true);
    edge_join();
    NEED(clEnqueueReadBuffer(g.e.queue, g.m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < 16; i++)
        CHECK(x[i] == g.n);
    NEED(clReleaseMemObject(g.m));
    edge_close(&g.e);
    return 0;
}

/* What exec was given: no descriptor but the first three. Then a life of its own. */
int case_execed(int argc, char **argv)
{
    DIR *dir = opendir("/proc/self/fd");
    (void)argc;
    (void)argv;
    CHECK(dir != NULL);
    for (const struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.' && atoi(d->d_name) != dirfd(dir) && atoi(d->d_name) > 2)
            EDGE_FAIL("descriptor %s came through exec", d->d_name);
    closedir(dir);
    edge_whole_life();
    return 0;
}

int case_fork_exec(int argc, char **argv)
{
    struct edge e;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, 128 << 20); /* a read of it needs a segment of its own */
    char *host = malloc(128 << 20);
    CHECK(host != NULL);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", "edges", "execed", NULL);
            _exit(127);
        }
        NEED(clEnqueueReadBuffer(e.queue, m, CL_FALSE, 0, 128 << 20, host, 0, NULL, NULL));
        child_ended_well(child);
        NEED(clFinish(e.queue));
    }
    free(host);
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    /* And this process itself becomes another. */
    execl("/proc/self/exe", "edges", "execed", NULL);
    return 1;
}

/* ---- */

/* As a daemon does that wants to inherit nothing. An error or continued work: no hang, no crash. */
int case_close_fds(int argc, char **argv)
{
    struct edge e;
    cl_uint x[64] = {0};
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, sizeof x), large = edge_buffer(&e, 128 << 20);
    cl_kernel k = edge_kernel(&e, "add");
    char *host = malloc(128 << 20);
    CHECK(host != NULL);
    NEED(clEnqueueWriteBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    edge_set_add(k, m, 1);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    /* Its own now sit where Gantry's were, and must stay its own. */
    int ends[2][2];
    char byte = 'x';
    for (int i = 0; i < 2; i++) {
        CHECK(pipe(ends[i]) == 0);
        CHECK(write(ends[i][1], &byte, 1) == 1);
    }
    for (int i = 0; i < 100; i++) {
        size_t n = 64;
        if (clEnqueueNDRangeKernel(e.queue, k, 1, NULL, &n, NULL, 0, NULL, NULL) != CL_SUCCESS)
            break;
    }
    cl_int finished = clFinish(e.queue);
    cl_int got = clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL);
    if (!finished && !got)
        for (int i = 0; i < 64; i++)
            CHECK(x[i] == 100);
    got = clEnqueueReadBuffer(e.queue, large, CL_FALSE, 0, 128 << 20, host, 0, NULL, NULL);
    CHECK(got == CL_SUCCESS || got < 0);
    clFinish(e.queue);
    for (int i = 0; i < 2; i++) {
        byte = 0;
        CHECK(read(ends[i][0], &byte, 1) == 1 && byte == 'x');
    }
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(m));
    NEED(clReleaseMemObject(large));
    edge_close(&e);
    free(host);
    /* It begins anew, and its own descriptors are still its own, in a child, too. */
    edge_whole_life();
    pid_t child = fork();
    if (child == 0)
        exit(write(ends[0][1], "y", 1) == 1 ? 0 : 1);
    child_ended_well(child);
    CHECK(read(ends[0][0], &byte, 1) == 1 && byte == 'y');
    for (int i = 0; i < 2; i++)
        CHECK(close(ends[i][0]) == 0 && close(ends[i][1]) == 0);
    return 0;
}

/* ---- */

static _Atomic unsigned n_signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&n_signals, 1, memory_order_relaxed);
}

/* A timer interrupts whatever the program is in, two thousand times a second, and restarts nothing.
 */
int case_signals(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = count_signal};
    struct itimerval often = {{0, 500}, {0, 500}}, never_again = {{0, 0}, {0, 0}};
    struct edge e;
    const size_t bytes = 64 << 20;
    (void)argc;
    (void)argv;
    CHECK(sigaction(SIGALRM, &act, NULL) == 0);
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, bytes);
    char *x = malloc(bytes), *y = malloc(bytes);
    CHECK(x != NULL && y != NULL);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 4; i++) {
        memset(x, 'a' + i, bytes);
        NEED(clEnqueueWriteBuffer(e.queue, m, i % 2 ? CL_TRUE : CL_FALSE, 0, bytes, x, 0, NULL,
                                  NULL));
        NEED(clEnqueueReadBuffer(e.queue, m, i < 2 ? CL_TRUE : CL_FALSE, 0, bytes, y, 0, NULL,
                                 NULL));
        NEED(clFinish(e.queue));
        CHECK(memcmp(x, y, bytes) == 0);
        edge_whole_life();
    }
    while (atomic_load(&n_signals) < 100)
        NEED(clFinish(e.queue));
    CHECK(setitimer(ITIMER_REAL, &never_again, NULL) == 0);
    free(x);
    free(y);
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}

static void *on_small_stack(void *arg)
{
    struct going_on *g = arg;
    cl_uint x[16] = {0};
    cl_event done;
    cl_kernel k = edge_kernel(&g->e, "add");
    NEED(clEnqueueWriteBuffer(g->e.queue, g->m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (cl_uint i = 0; i < 100; i++) {
        edge_set_add(k, g->m, 2);
        edge_launch(g->e.queue, k, 16, 0, NULL, &done);
        NEED(clWaitForEvents(1, &done));
        NEED(clReleaseEvent(done));
    }
    NEED(clEnqueueReadBuffer(g->e.queue, g->m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < 16; i++)
        CHECK(x[i] == 200);
    NEED(clReleaseKernel(k));
    return NULL;
}

/* Threads of 64 KiB, as servers with many of them have. */
int case_small_stacks(int argc, char **argv)
{
    struct going_on g = {.n = 0};
    pthread_attr_t small;
    pthread_t thread;
    (void)argc;
    (void)argv;
    edge_open(&g.e, 0);
    g.m = edge_buffer(&g.e, 64);
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
    CHECK(pthread_create(&thread, &small, on_small_stack, &g) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&small);
    NEED(clReleaseMemObject(g.m));
    edge_close(&g.e);
    return 0;
}
