/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An out-of-order queue given a random graph of commands, and a context over two devices. Whether
 * an order was kept is seen in the data: every command changes what it writes in a way that does
 * not commute.
 */
#include "edge.h"

#include <string.h>

#define N_COMMANDS 2000
#define N_BUFFERS  24
#define N          64u
#define MAX_WAITS  96

struct cell {
    cl_mem mem;
    cl_uint value[N];
    cl_event written; /* the last command that writes it; NULL: none yet */
    cl_event read[MAX_WAITS];
    cl_uint n_read; /* since then */
};

/* All events of a run, in the order they came: each is released once, at the end. */
static cl_event all[N_COMMANDS * 3];
static size_t n_all;

static cl_event keep(cl_event e)
{
    CHECK(n_all < sizeof all / sizeof all[0]);
    return all[n_all++] = e;
}

static void add(cl_event *waits, cl_uint *n, cl_event e)
{
    for (cl_uint i = 0; i < *n; i++)
        if (waits[i] == e)
            return;
    if (e) {
        CHECK(*n < MAX_WAITS * 2);
        waits[(*n)++] = e;
    }
}

static void was_read(struct cell *c, cl_event e)
{
    CHECK(c->n_read < MAX_WAITS);
    c->read[c->n_read++] = e;
}

static void run_graph(const struct edge *e, cl_command_queue *queues, cl_uint n_queues,
                      cl_uint seed)
{
    struct cell cells[N_BUFFERS];
    cl_event gates[N_COMMANDS / 20];
    cl_uint n_gates = 0, n_open = 0;
    cl_int rc;
    n_all = 0;
    memset(cells, 0, sizeof cells);
    cl_kernel mix = edge_kernel(e, "stir");
    for (cl_uint i = 0; i < N_BUFFERS; i++) {
        for (cl_uint j = 0; j < N; j++)
            cells[i].value[j] = edge_random(&seed);
        cells[i].mem = edge_buffer(e, sizeof cells[i].value);
        NEED(clEnqueueWriteBuffer(queues[0], cells[i].mem, CL_TRUE, 0, sizeof cells[i].value,
                                  cells[i].value, 0, NULL, NULL));
    }
    for (cl_uint command = 0; command < N_COMMANDS; command++) {
        cl_command_queue q = queues[edge_random(&seed) % n_queues];
        cl_event waits[MAX_WAITS * 2], done;
        cl_uint n = 0;
        struct cell *d = &cells[edge_random(&seed) % N_BUFFERS], *a, *b;
        do
            a = &cells[edge_random(&seed) % N_BUFFERS];
        while (a == d);
        do
            b = &cells[edge_random(&seed) % N_BUFFERS];
        while (b == d);
        add(waits, &n, d->written);
        add(waits, &n, a->written);
        add(waits, &n, b->written);
        for (cl_uint i = 0; i < d->n_read; i++)
            add(waits, &n, d->read[i]);
        if (command % 25 == 7) {
            gates[n_gates] = keep(clCreateUserEvent(e->context, &rc));
            NEED(rc);
            add(waits, &n, gates[n_gates++]);
        }
        /* Sometimes a marker, or a barrier with a list, stands for the list. */
        if (n && edge_random(&seed) % 8 == 0) {
            cl_event stand_in;
            if (edge_random(&seed) % 2)
                NEED(clEnqueueMarkerWithWaitList(q, n, waits, &stand_in));
            else
                NEED(clEnqueueBarrierWithWaitList(q, n, waits, &stand_in));
            waits[0] = keep(stand_in);
            n = 1;
        }
        cl_uint k = edge_random(&seed);
        NEED(clSetKernelArg(mix, 0, sizeof d->mem, &d->mem));
        NEED(clSetKernelArg(mix, 1, sizeof a->mem, &a->mem));
        NEED(clSetKernelArg(mix, 2, sizeof b->mem, &b->mem));
        NEED(clSetKernelArg(mix, 3, sizeof k, &k));
        edge_launch(q, mix, N, n, n ? waits : NULL, &done);
        keep(done);
        for (cl_uint j = 0; j < N; j++)
            d->value[j] = d->value[j] * 7 + a->value[j] * 3 + b->value[j] * 5 + k;
        d->written = done;
        d->n_read = 0;
        was_read(a, done);
        if (b != a)
            was_read(b, done);
        /* A barrier without a list stands before everything that follows on the only queue. */
        if (n_queues == 1 && command % 211 == 210) {
            NEED(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
            for (cl_uint i = 0; i < N_BUFFERS; i++) {
                cells[i].written = NULL;
                cells[i].n_read = 0;
            }
        }
        /* The gates open late, and not in their order. */
        if (command % 100 == 99) {
            for (cl_uint i = n_gates; i-- > n_open;)
                NEED(clSetUserEventStatus(gates[i], CL_COMPLETE));
            n_open = n_gates;
        }
    }
    for (cl_uint i = n_gates; i-- > n_open;)
        NEED(clSetUserEventStatus(gates[i], CL_COMPLETE));
    /* A queue's commands may wait for another's only once those were flushed. */
    for (cl_uint i = 0; i < n_queues; i++)
        NEED(clFlush(queues[i]));
    for (cl_uint i = 0; i < n_queues; i++)
        NEED(clFinish(queues[i]));
    for (size_t i = 0; i < n_all; i++) {
        cl_int status;
        NEED(clGetEventInfo(all[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                            NULL));
        CHECK(status == CL_COMPLETE);
        NEED(clReleaseEvent(all[i]));
    }
    for (cl_uint i = 0; i < N_BUFFERS; i++) {
        cl_uint got[N];
        NEED(clEnqueueReadBuffer(queues[0], cells[i].mem, CL_TRUE, 0, sizeof got, got, 0, NULL,
                                 NULL));
        CHECK(memcmp(got, cells[i].value, sizeof got) == 0);
        NEED(clReleaseMemObject(cells[i].mem));
    }
    NEED(clReleaseKernel(mix));
}

int case_dag(int argc, char **argv)
{
    struct edge e;
    (void)argc;
    (void)argv;
    edge_open(&e, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (cl_uint seed = 1; seed <= 3; seed++)
        run_graph(&e, &e.queue, 1, seed);
    edge_close(&e);
    return 0;
}

/* The same graph over the queues of two devices, so that most waits cross from one to the other.
 * (Of PoCL's devices not the one named basic: it blocks itself when a command of another queue
 * waits for one of its own.) */
int case_two_devices(int argc, char **argv)
{
    struct edge e;
    cl_platform_id platform;
    cl_device_id devices[2];
    cl_command_queue queues[2];
    cl_uint n = 0;
    cl_int rc;
    static const char *text =
        "kernel void stir(global uint *d, global const uint *a, global const uint *b, uint k)\n"
        "{ size_t i = get_global_id(0); d[i] = d[i] * 7 + a[i] * 3 + b[i] * 5 + k; }\n";
    (void)argc;
    (void)argv;
    NEED(clGetPlatformIDs(1, &platform, NULL));
    NEED(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &n));
    CHECK(n == 2);
    e.context = clCreateContext(NULL, 2, devices, NULL, NULL, &rc);
    NEED(rc);
    e.program = clCreateProgramWithSource(e.context, 1, &text, NULL, &rc);
    NEED(rc);
    NEED(clBuildProgram(e.program, 0, NULL, "", NULL, NULL));
    for (int i = 0; i < 2; i++) {
        queues[i] = clCreateCommandQueue(e.context, devices[i],
                                         i ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &rc);
        NEED(rc);
    }
    e.queue = queues[0];
    run_graph(&e, queues, 2, 9);
    NEED(clReleaseCommandQueue(queues[1]));
    edge_close(&e);
    return 0;
}
