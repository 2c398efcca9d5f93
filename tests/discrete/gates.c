/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates: a user event in a command's wait list. With `async` it is set some time after the enqueue
 * has returned. A transfer's is set when the bus has carried its bytes: the clock starts when all
 * that the transfer waits for has ended, of which another command of the same queue, that does
 * nothing, tells. The bytes of maps are copied just before. Gates are made and closed on the
 * program's threads, and opened on the timer's.
 */
#include "discrete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASYNC_NS 200000u

struct dg_gate {
    struct dg_timer timer;
    cl_event opens; /* the user event */
    cl_event ready; /* the end of all before; NULL: nothing is waited for */
    struct dg_crossing crossing;
    struct dg_copy copy;
    bool crosses;
    cl_event *waits; /* until it is closed */
};

static void out_of_memory(void)
{
    fprintf(stderr, "discrete: no memory for a command\n");
    abort();
}

/* A command that does nothing, and ends when the gated one could start. NULL: refused, as that
 * will be. */
static cl_event enqueue_ready(cl_command_queue queue, const struct dg_crossing *crossing, cl_uint n,
                              const cl_event *waits)
{
    cl_event ready = NULL;
    const cl_int result =
        crossing ? driver->clEnqueueMigrateMemObjects(queue, 1, &crossing->mem, 0, n, waits, &ready)
                 : driver->clEnqueueMarkerWithWaitList(queue, n, waits, &ready);
    return result ? NULL : ready;
}

struct dg_gate *dg_gate_make(cl_command_queue queue, const struct dg_crossing *crossing, cl_uint *n,
                             const cl_event **waits)
{
    const bool takes_time = dg_options.bus_rate || dg_options.latency_ns;
    cl_context context;
    cl_event ready = NULL;
    if ((!dg_options.async && !(crossing && (takes_time || crossing->copies))) || !*n != !*waits ||
        driver->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL))
        return NULL;
    /* A marker that waits for nothing would wait for all that is before it. */
    if ((crossing || *n) && !(ready = enqueue_ready(queue, crossing, *n, *waits)))
        return NULL;
    struct dg_gate *g = calloc(1, sizeof *g);
    if (g)
        g->waits = calloc((size_t)*n + 1, sizeof(cl_event));
    if (!g || !g->waits || !(g->opens = driver->clCreateUserEvent(context, NULL)))
        out_of_memory();
    g->ready = ready;
    g->crosses = crossing;
    if (crossing)
        g->crossing = *crossing;
    if (*n)
        memcpy(g->waits, *waits, *n * sizeof(cl_event));
    g->waits[*n] = g->opens;
    *waits = g->waits;
    *n += 1;
    return g;
}

static void copy_rows(const struct dg_copy *c)
{
    struct dg_memory *m = c->memory;
    for (size_t z = 0; z < c->n_slices; z++) {
        for (size_t y = 0; y < c->n_rows; y++) {
            const size_t at = c->offset + z * c->slice_pitch + y * c->row_pitch;
            if (c->moves && c->direction == DG_TO_DEVICE)
                memcpy(m->base + at, m->shadow + at, c->row_bytes);
            else if (c->moves)
                memcpy(m->shadow + at, m->base + at, c->row_bytes);
            if (c->forgets)
                memset(m->shadow + at, DG_POISON, c->row_bytes);
        }
    }
}

static void open_gate(struct dg_timer *t)
{
    struct dg_gate *g = (struct dg_gate *)(void *)((char *)t - offsetof(struct dg_gate, timer));
    struct dg_copy *c = &g->copy;
    if (c->memory) {
        dg_objects_lock();
        c->forgets = c->forgets && !c->memory->mappings && !c->memory->host_ptr;
        copy_rows(c);
        dg_objects_unlock();
    }
    driver->clSetUserEventStatus(g->opens, CL_COMPLETE);
    driver->clReleaseEvent(g->opens);
    if (g->ready)
        driver->clReleaseEvent(g->ready);
    free(g);
}

/*
 * A command fails with its wait list, and PoCL 3.1 crashes if another event of the
 * list ends then, or if the failed one is freed meanwhile; nor does it always tell. Its gate stays
 * shut for ever.
 */
static void CL_CALLBACK on_ready(cl_event event, cl_int status, void *data)
{
    struct dg_gate *g = data;
    uint64_t due = dg_now_ns();
    (void)event;
    if (status < 0)
        return;
    if (g->crosses && g->crossing.bytes)
        due = dg_state_occupy_bus(g->crossing.direction, g->crossing.bytes);
    dg_timer_add(&g->timer, due + (dg_options.async ? ASYNC_NS : 0));
}

cl_int dg_gate_close(struct dg_gate *gate, const struct dg_copy *copy, cl_int result)
{
    if (!gate)
        return result;
    const cl_event ready = gate->ready;
    gate->timer.run = open_gate;
    free(gate->waits);
    if (result)
        gate->crosses = false;
    else if (copy)
        gate->copy = *copy;
    if (!result)
        dg_state_add(DG_HELD, 1);
    if (!ready || result)
        on_ready(NULL, CL_COMPLETE, gate);
    else if (driver->clSetEventCallback(ready, CL_COMPLETE, on_ready, gate))
        out_of_memory();
    return result;
}
