/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads on one queue. Sixteen threads: on one queue; each with a context, queue and kernel of
 * its own; making and releasing everything. */
#include "edge.h"

#include <string.h>

#define N_THREADS 16
#define ROUNDS    200
#define N         256u

struct worker {
    struct edge *e;
    cl_mem shared;
    cl_uint index;
};

static void *on_one_queue(void *arg)
{
    struct worker *w = arg;
    cl_uint x[N], expected = 0, seed = w->index + 1;
    memset(x, 0, sizeof x);
    cl_kernel own = edge_kernel(w->e, "add"), all = edge_kernel(w->e, "add");
    cl_mem m = edge_buffer(w->e, sizeof x);
    NEED(clEnqueueWriteBuffer(w->e->queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        cl_uint v = edge_random(&seed);
        cl_event done;
        edge_set_add(own, m, v);
        expected += v;
        edge_launch(w->e->queue, own, N, 0, NULL, &done);
        edge_set_add(all, w->shared, w->index + 1);
        edge_launch(w->e->queue, all, N, 0, NULL, NULL);
        switch (i % 8) {
        case 3:
            NEED(clWaitForEvents(1, &done));
            break;
        case 5:
            NEED(clFinish(w->e->queue));
            break;
        case 7:
            NEED(clEnqueueReadBuffer(w->e->queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
            for (cl_uint j = 0; j < N; j++)
                CHECK(x[j] == expected);
            break;
        default:
            break;
        }
        NEED(clReleaseEvent(done));
    }
    NEED(clReleaseKernel(own));
    NEED(clReleaseKernel(all));
    NEED(clReleaseMemObject(m));
    return NULL;
}

int case_one_queue(int argc, char **argv)
{
    struct edge e;
    struct worker w[N_THREADS];
    cl_uint x[N];
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    memset(x, 0, sizeof x);
    cl_mem shared = edge_buffer(&e, sizeof x);
    NEED(clEnqueueWriteBuffer(e.queue, shared, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (cl_uint i = 0; i < N_THREADS; i++) {
        w[i] = (struct worker){&e, shared, i};
        edge_thread("edge", on_one_queue, &w[i]);
    }
    edge_join();
    NEED(clEnqueueReadBuffer(e.queue, shared, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    /* In order: no two launches overlap, so none may be lost. */
    for (cl_uint i = 0; i < N; i++)
        CHECK(x[i] == ROUNDS * N_THREADS * (N_THREADS + 1) / 2);
    NEED(clReleaseMemObject(shared));
    edge_close(&e);
    return 0;
}

/* ---- one thread's write is never seen half done by another's kernel or read on the same queue */

#define WORDS        (256u << 10)
#define FRESH_QUEUES 60
#define WRITES       4

struct halves {
    struct edge *e;
    cl_command_queue queue;
    cl_mem m, n_uneven;
};

static void *write_whole(void *arg)
{
    struct halves *h = arg;
    static cl_uint x[WORDS];
    for (cl_uint i = 0; i < WRITES; i++) {
        for (cl_uint j = 0; j < WORDS; j++)
            x[j] += 1;
        NEED(clEnqueueWriteBuffer(h->queue, h->m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    }
    return NULL;
}

static void *look_at_halves(void *arg)
{
    struct halves *h = arg;
    static cl_uint x[WORDS];
    const size_t n = WORDS;
    cl_kernel k = edge_kernel(h->e, "uneven");
    NEED(clSetKernelArg(k, 0, sizeof h->m, &h->m));
    NEED(clSetKernelArg(k, 1, sizeof h->n_uneven, &h->n_uneven));
    for (int i = 0; i < WRITES; i++) {
        NEED(clEnqueueNDRangeKernel(h->queue, k, 1, NULL, &n, NULL, 0, NULL, NULL));
        NEED(clEnqueueReadBuffer(h->queue, h->m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
        for (cl_uint j = 0; j < WORDS; j++)
            CHECK(x[j] == x[0]);
    }
    NEED(clReleaseKernel(k));
    return NULL;
}

/* The second thread comes at any moment of the first one's first writes: a new queue each time. */
int case_whole_writes(int argc, char **argv)
{
    struct edge e;
    struct halves h = {.e = &e};
    const cl_uint zero = 0;
    cl_uint n = 0;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    h.m = edge_buffer(&e, WORDS * sizeof(cl_uint));
    h.n_uneven = edge_buffer(&e, sizeof n);
    NEED(clEnqueueFillBuffer(e.queue, h.m, &zero, sizeof zero, 0, WORDS * sizeof zero, 0, NULL,
                             NULL));
    NEED(clEnqueueFillBuffer(e.queue, h.n_uneven, &zero, sizeof zero, 0, sizeof zero, 0, NULL,
                             NULL));
    NEED(clFinish(e.queue));
    for (int i = 0; i < FRESH_QUEUES; i++) {
        cl_int rc;
        h.queue = clCreateCommandQueue(e.context, e.device, 0, &rc);
        NEED(rc);
        edge_thread("writes", write_whole, &h);
        edge_thread("looks", look_at_halves, &h);
        edge_join();
        NEED(clFinish(h.queue));
        NEED(clReleaseCommandQueue(h.queue));
    }
    NEED(clEnqueueReadBuffer(e.queue, h.n_uneven, CL_TRUE, 0, sizeof n, &n, 0, NULL, NULL));
    CHECK(n == 0);
    NEED(clReleaseMemObject(h.m));
    NEED(clReleaseMemObject(h.n_uneven));
    edge_close(&e);
    return 0;
}

static void *in_own_context(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        edge_whole_life();
    return NULL;
}

int case_own_contexts(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < N_THREADS; i++)
        edge_thread("edge", in_own_context, NULL);
    edge_join();
    return 0;
}

/* Objects come and go in every order, and are let go of while commands still use them. */
static void *churn(void *arg)
{
    struct worker *w = arg;
    cl_uint seed = w->index * 77 + 5;
    for (int i = 0; i < 60; i++) {
        cl_int rc;
        cl_uint x[N], v = edge_random(&seed);
        cl_context context = clCreateContext(NULL, 1, &w->e->device, NULL, NULL, &rc);
        NEED(rc);
        cl_command_queue q = clCreateCommandQueue(
            context, w->e->device,
            edge_random(&seed) % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &rc);
        NEED(rc);
        cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof x, NULL, &rc);
        NEED(rc);
        cl_buffer_region half = {0, sizeof x / 2};
        cl_mem sub = clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &rc);
        NEED(rc);
        cl_event filled, done;
        NEED(clEnqueueFillBuffer(q, m, &v, sizeof v, 0, sizeof x, 0, NULL, &filled));
        NEED(clReleaseMemObject(m));
        NEED(clEnqueueReadBuffer(q, sub, CL_FALSE, 0, sizeof x / 2, x, 1, &filled, &done));
        NEED(clReleaseMemObject(sub));
        NEED(clReleaseEvent(filled));
        NEED(clFlush(q));
        NEED(clReleaseCommandQueue(q));
        NEED(clReleaseContext(context));
        NEED(clWaitForEvents(1, &done));
        for (cl_uint j = 0; j < N / 2; j++)
            CHECK(x[j] == v);
        NEED(clReleaseEvent(done));

        cl_kernel k = edge_kernel(w->e, "add");
        cl_mem own = edge_buffer(w->e, sizeof x);
        NEED(clEnqueueFillBuffer(w->e->queue, own, &v, sizeof v, 0, sizeof x, 0, NULL, NULL));
        edge_set_add(k, own, 3);
        edge_launch(w->e->queue, k, N, 0, NULL, NULL);
        NEED(clReleaseKernel(k));
        NEED(clEnqueueReadBuffer(w->e->queue, own, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
        NEED(clReleaseMemObject(own));
        for (cl_uint j = 0; j < N; j++)
            CHECK(x[j] == v + 3);
    }
    return NULL;
}

int case_churn(int argc, char **argv)
{
    struct edge e;
    struct worker w[N_THREADS];
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    for (cl_uint i = 0; i < N_THREADS; i++) {
        w[i] = (struct worker){&e, NULL, i};
        edge_thread("edge", churn, &w[i]);
    }
    edge_join();
    edge_close(&e);
    return 0;
}
