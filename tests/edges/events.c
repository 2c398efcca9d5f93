/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand live events; a wait list longer than the ring; the status of an event in its own
 * callback. */
#include "edge.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#define N_LIVE  10000u
#define N_WAITS 20000u

static _Atomic cl_uint n_called;

static void CL_CALLBACK called(cl_event event, cl_int status, void *arg)
{
    (void)event;
    (void)arg;
    if (status != CL_COMPLETE)
        EDGE_FAIL("a callback was told %d: the event returned %d", (int)status, (int)status);
    atomic_fetch_add(&n_called, 1);
}

static cl_int status_of(cl_event e)
{
    cl_int status;
    NEED(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

int case_live_events(int argc, char **argv)
{
    struct edge e;
    static cl_event events[N_LIVE];
    cl_int rc;
    cl_uint x[4] = {0};
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, sizeof x);
    cl_kernel k = edge_kernel(&e, "add");
    NEED(clEnqueueWriteBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    edge_set_add(k, m, 1);
    for (int round = 0; round < 2; round++) {
        cl_event gate = clCreateUserEvent(e.context, &rc);
        NEED(rc);
        for (cl_uint i = 0; i < N_LIVE; i++) {
            edge_launch(e.queue, k, 4, i ? 0 : 1, i ? NULL : &gate, &events[i]);
            NEED(clRetainEvent(events[i]));
        }
        /* All are alive and none is over: the queue is in order and its first command waits. */
        for (cl_uint i = 0; i < N_LIVE; i++)
            CHECK(status_of(events[i]) > CL_COMPLETE);
        for (cl_uint i = 0; i < 100; i++)
            NEED(clSetEventCallback(events[i * 100], CL_COMPLETE, called, NULL));
        NEED(clSetUserEventStatus(gate, CL_COMPLETE));
        /* Polled in part, waited for in part, one by one and all at once. */
        while (status_of(events[N_LIVE / 4]) != CL_COMPLETE)
            NEED(clFlush(e.queue));
        for (cl_uint i = N_LIVE / 4; i < N_LIVE / 2; i++)
            NEED(clWaitForEvents(1, &events[i]));
        NEED(clWaitForEvents(N_LIVE, events));
        for (cl_uint i = 0; i < N_LIVE; i++) {
            CHECK(status_of(events[i]) == CL_COMPLETE);
            NEED(clReleaseEvent(events[i]));
            cl_uint refs;
            NEED(clGetEventInfo(events[i], CL_EVENT_REFERENCE_COUNT, sizeof refs, &refs, NULL));
            CHECK(refs >= 1);
        }
        /* A callback is owed to each, and the last reference is not theirs to wait for. */
        for (cl_uint i = 0; i < N_LIVE; i++)
            NEED(clReleaseEvent(events[i]));
        NEED(clReleaseEvent(gate));
        NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
        for (int i = 0; i < 4; i++)
            CHECK(x[i] == (cl_uint)(round + 1) * N_LIVE);
        while (atomic_load(&n_called) < (cl_uint)(round + 1) * 100) {
        }
    }
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}

int case_long_wait_list(int argc, char **argv)
{
    struct edge e;
    static cl_event waits[N_WAITS];
    cl_int rc;
    cl_uint x[4] = {0};
    (void)argc;
    (void)argv;
    edge_open(&e, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem m = edge_buffer(&e, sizeof x);
    cl_kernel k = edge_kernel(&e, "add");
    NEED(clEnqueueWriteBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    edge_set_add(k, m, 1);
    cl_event done;
    for (cl_uint i = 0; i < N_WAITS; i++) {
        waits[i] = clCreateUserEvent(e.context, &rc);
        NEED(rc);
    }
    edge_launch(e.queue, k, 4, N_WAITS, waits, &done);
    for (cl_uint i = 0; i < N_WAITS; i++) {
        CHECK(status_of(done) != CL_COMPLETE);
        NEED(clSetUserEventStatus(waits[i], CL_COMPLETE));
    }
    NEED(clWaitForEvents(1, &done));
    NEED(clReleaseEvent(done));
    /* Now of events that are over, most of them. */
    NEED(clEnqueueMarkerWithWaitList(e.queue, N_WAITS, waits, &done));
    NEED(clWaitForEvents(1, &done));
    NEED(clReleaseEvent(done));
    for (cl_uint i = 0; i < N_WAITS; i++)
        NEED(clReleaseEvent(waits[i]));
    NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(x[i] == 1);
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}

static sem_t reported;

static void CL_CALLBACK look(cl_event event, cl_int status, void *arg)
{
    (void)status;
    *(cl_int *)arg = status_of(event);
    sem_post(&reported);
}

/* Says the status that a callback of an event's end reads in the event: tests/faults/told_end.py.
 */
int case_told_end(int argc, char **argv)
{
    struct edge e;
    cl_event event;
    cl_int status = CL_QUEUED;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    sem_init(&reported, 0, 0);
    cl_kernel k = edge_kernel(&e, "nothing");
    cl_event gate = clCreateUserEvent(e.context, NULL);
    edge_launch(e.queue, k, 1, 1, &gate, &event);
    NEED(clSetEventCallback(event, CL_COMPLETE, look, &status));
    NEED(clSetUserEventStatus(gate, CL_COMPLETE));
    sem_wait(&reported);
    edge_say("status %d", (int)status);
    NEED(clReleaseEvent(event));
    NEED(clReleaseEvent(gate));
    NEED(clReleaseKernel(k));
    edge_close(&e);
    return 0;
}
