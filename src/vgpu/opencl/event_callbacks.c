/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports an event's end once, from the first of two sources: the driver's callback, or the status
 * read after the callback was set. The ring thread and submitters ask; the report comes on their
 * threads or on the driver's. If a driver forgets a callback, its struct end is never freed; this
 * happens only for events that end between the two status reads.
 */
#include "event_callbacks.h"

#include <stdlib.h>
#include <time.h>

#define TRY_NS  UINT64_C(100000000)
#define LOOK_NS 100000

struct report {
    atomic_uint n_refs;
    atomic_bool is_told;
    void(CL_CALLBACK *reported)(cl_event, cl_int, void *);
    void *arg;
};

static void unref(struct report *e)
{
    if (atomic_fetch_sub_explicit(&e->n_refs, 1, memory_order_acq_rel) == 1)
        free(e);
}

static void report_once(struct report *e, cl_event event, cl_int status)
{
    if (!atomic_exchange_explicit(&e->is_told, true, memory_order_acq_rel))
        e->reported(event, status, e->arg);
}

static void CL_CALLBACK on_driver_callback(cl_event event, cl_int status, void *arg)
{
    struct report *e = arg;
    report_once(e, event, status);
    unref(e);
}

static struct report *report_new(void(CL_CALLBACK *reported)(cl_event, cl_int, void *), void *arg)
{
    struct report *e = malloc(sizeof *e);
    if (!e)
        return NULL;
    atomic_init(&e->n_refs, 2);
    atomic_init(&e->is_told, false);
    e->reported = reported;
    e->arg = arg;
    return e;
}

static bool is_over(const cl_icd_dispatch *cl, cl_event event, cl_int *ret_status)
{
    return !cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *ret_status,
                               ret_status, NULL) &&
           *ret_status <= CL_COMPLETE;
}

int32_t gn_event_callbacks_ask(struct gn_vgpu *v, cl_event event,
                               void(CL_CALLBACK *reported)(cl_event, cl_int, void *), void *arg)
{
    const cl_icd_dispatch *cl = gn_cl(v);
    const struct gn_opencl_vgpu *detail = v->detail;
    cl_int status;
    if (atomic_load_explicit(&detail->tells_ends, memory_order_acquire))
        return cl->clSetEventCallback(event, CL_COMPLETE, reported, arg);
    if (is_over(cl, event, &status)) {
        reported(event, status, arg);
        return CL_SUCCESS;
    }
    struct report *e = report_new(reported, arg);
    if (!e)
        return CL_OUT_OF_HOST_MEMORY;
    cl->clRetainEvent(event); /* the function called may release it */
    const cl_int result = cl->clSetEventCallback(event, CL_COMPLETE, on_driver_callback, e);
    if (!result && is_over(cl, event, &status))
        report_once(e, event, status);
    cl->clReleaseEvent(event);
    if (result)
        free(e);
    else
        unref(e);
    return result;
}

static void CL_CALLBACK ignore_event(cl_event event, cl_int status, void *arg)
{
    (void)event, (void)status, (void)arg;
}

static bool test_callbacks(const cl_icd_dispatch *cl, cl_event over)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct report *e = report_new(ignore_event, NULL);
    if (!e)
        return false;
    if (cl->clSetEventCallback(over, CL_COMPLETE, on_driver_callback, e)) {
        free(e);
        return false;
    }
    for (uint64_t waited_ns = 0;
         waited_ns < TRY_NS && !atomic_load_explicit(&e->is_told, memory_order_acquire);
         waited_ns += LOOK_NS)
        nanosleep(&pause, NULL);
    const bool does = atomic_load_explicit(&e->is_told, memory_order_acquire);
    unref(e);
    return does;
}

void gn_event_callbacks_context_made(struct gn_vobject *context)
{
    struct gn_opencl_vgpu *detail = context->vgpu->detail;
    const cl_icd_dispatch *cl = gn_cl(context->vgpu);
    if (atomic_exchange_explicit(&detail->ends_tried, true, memory_order_relaxed))
        return;
    const cl_event over =
        cl->clCreateUserEvent ? cl->clCreateUserEvent(context->driver, NULL) : NULL;
    if (!over)
        return;
    if (!cl->clSetUserEventStatus(over, CL_COMPLETE))
        atomic_store_explicit(&detail->tells_ends, test_callbacks(cl, over), memory_order_release);
    cl->clReleaseEvent(over);
}
