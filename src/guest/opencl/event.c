/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. Their state is in the session's event table, so queries and waits need no message. Called
 * on the program's threads. Never calls a callback of the program's.
 */
#include "guest/session/session_ops.h"
#include "opencl_guest.h"

#include "base/clock.h"

#include <string.h>

static struct gn_event_entry *entry_of(const struct gn_cl_event *e)
{
    return &e->o.session->events[e->o.id];
}

struct gn_object *gn_event_new(struct gn_object *queue, cl_command_type type,
                               struct gn_command_show *show)
{
    struct gn_cl_queue *q = (void *)queue;
    struct gn_cl_event *e = (void *)gn_object_new(queue->session, GN_KIND_EVENT, queue);
    if (!e)
        return NULL;
    e->queue = q;
    e->context = q->context;
    e->type = type;
    if (q->properties & CL_QUEUE_PROFILING_ENABLE)
        e->queued_ns = gn_now_ns();
    show->event = (uint32_t)e->o.id;
    return &e->o;
}

cl_int gn_command_begin(struct gn_object *object, cl_uint n, const cl_event *list)
{
    struct gn_cl_queue *q = (void *)object;
    if (atomic_load_explicit(&q->user, memory_order_relaxed) != (uintptr_t)pthread_self())
        gn_queue_used(q);
    if (!n != !list)
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < n; i++) {
        const struct gn_cl_event *e = gn_object_of_session(object, list[i], GN_KIND_EVENT);
        if (!e)
            return CL_INVALID_EVENT_WAIT_LIST;
        if (e->context != q->context)
            return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

cl_int CL_API_CALL gn_clWaitForEvents(cl_uint num_events, const cl_event *event_list)
{
    cl_int result = CL_SUCCESS;
    if (!num_events || !event_list)
        return CL_INVALID_VALUE;
    const struct gn_cl_context *context = NULL;
    for (cl_uint i = 0; i < num_events; i++) {
        const struct gn_cl_event *e = gn_object_of(event_list[i], GN_KIND_EVENT);
        if (!e)
            return CL_INVALID_EVENT;
        if (context && e->context != context)
            return CL_INVALID_CONTEXT;
        context = e->context;
    }
    for (cl_uint i = 0; i < num_events; i++) {
        const struct gn_cl_event *e = (const void *)event_list[i];
        int32_t error = 0;
        if (gn_event_wait(entry_of(e), &e->o.session->waiter, &error))
            return CL_OUT_OF_RESOURCES;
        if (error < 0)
            result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
    gn_settle(gn_cl_session_of((const void *)event_list[0]));
    return result;
}

cl_int CL_API_CALL gn_clGetEventInfo(cl_event event, cl_event_info param_name,
                                     size_t param_value_size, void *param_value,
                                     size_t *param_value_size_ret)
{
    struct gn_cl_event *e = gn_object_of(event, GN_KIND_EVENT);
    if (!e)
        return CL_INVALID_EVENT;
    switch (param_name) {
    case CL_EVENT_COMMAND_QUEUE:
        return gn_answer(&e->queue, sizeof e->queue, param_value_size, param_value,
                         param_value_size_ret);
    case CL_EVENT_CONTEXT:
        return gn_answer(&e->context, sizeof e->context, param_value_size, param_value,
                         param_value_size_ret);
    case CL_EVENT_COMMAND_TYPE:
        return gn_answer(&e->type, sizeof e->type, param_value_size, param_value,
                         param_value_size_ret);
    case CL_EVENT_COMMAND_EXECUTION_STATUS: {
        int32_t error = 0;
        gn_session_look_for_news(e->o.session);
        cl_int status = (cl_int)gn_event_phase(entry_of(e), &error);
        if (status == CL_COMPLETE) {
            if (error < 0)
                status = gn_event_status(error);
            gn_settle(gn_cl_session_of(&e->o));
        }
        return gn_answer(&status, sizeof status, param_value_size, param_value,
                         param_value_size_ret);
    }
    case CL_EVENT_REFERENCE_COUNT: {
        cl_uint n = atomic_load_explicit(&e->o.n_refs, memory_order_relaxed) -
                    atomic_load_explicit(&e->n_own, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL gn_clRetainEvent(cl_event event)
{
    struct gn_object *o = gn_object_of(event, GN_KIND_EVENT);
    if (!o)
        return CL_INVALID_EVENT;
    gn_object_ref(o);
    return CL_SUCCESS;
}

cl_int CL_API_CALL gn_clReleaseEvent(cl_event event)
{
    struct gn_object *o = gn_object_of(event, GN_KIND_EVENT);
    if (!o)
        return CL_INVALID_EVENT;
    gn_object_unref(o);
    return CL_SUCCESS;
}

/* Devices of OpenCL 1.x do not define this time. */
static bool knows_complete(struct gn_cl_device *d)
{
    char version[256] = "";
    gn_send_clGetDeviceInfo(d->o.session, (cl_device_id)d, CL_DEVICE_VERSION, sizeof version - 1,
                            version, NULL);
    return strncmp(version, "OpenCL 1.", 9) != 0;
}

cl_int CL_API_CALL gn_clGetEventProfilingInfo(cl_event event, cl_profiling_info param_name,
                                              size_t param_value_size, void *param_value,
                                              size_t *param_value_size_ret)
{
    struct gn_cl_event *e = gn_object_of(event, GN_KIND_EVENT);
    struct gn_event_times t;
    int32_t error = 0;
    cl_ulong value;
    if (!e)
        return CL_INVALID_EVENT;
    if (param_name == CL_PROFILING_COMMAND_COMPLETE && e->queue &&
        !knows_complete(e->queue->device))
        return CL_INVALID_VALUE;
    if (!e->queue || !(e->queue->properties & CL_QUEUE_PROFILING_ENABLE) ||
        gn_event_phase(entry_of(e), &error) != GN_EVENT_DONE || error < 0)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    gn_event_read_times(entry_of(e), &t);
    if (e->first.start_ns) {
        t.submit_ns = e->first.submit_ns;
        t.start_ns = e->first.start_ns;
    }
    /*
     * The queued time is from this process's clock, the others are from the worker: make them
     * monotonic.
     */
    if (t.submit_ns < e->queued_ns)
        t.submit_ns = e->queued_ns;
    if (t.start_ns < t.submit_ns)
        t.start_ns = t.submit_ns;
    if (t.end_ns < t.start_ns)
        t.end_ns = t.start_ns;
    switch (param_name) {
    case CL_PROFILING_COMMAND_QUEUED:
        value = e->queued_ns;
        break;
    case CL_PROFILING_COMMAND_SUBMIT:
        value = t.submit_ns;
        break;
    case CL_PROFILING_COMMAND_START:
        value = t.start_ns;
        break;
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE:
        value = t.end_ns;
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return gn_answer(&value, sizeof value, param_value_size, param_value, param_value_size_ret);
}

/* ---- user events: the program completes them, in this process and, by a message, in the vGPU */

cl_event CL_API_CALL gn_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
    struct gn_cl_context *c = gn_object_of(context, GN_KIND_CONTEXT);
    if (!c)
        return gn_refuse(errcode_ret, CL_INVALID_CONTEXT);
    if (gn_session_lost(c->o.session))
        return gn_refuse(errcode_ret, CL_OUT_OF_RESOURCES);
    struct gn_cl_event *e = (void *)gn_object_new(c->o.session, GN_KIND_EVENT, &c->o);
    if (!e)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    e->context = c;
    e->type = CL_COMMAND_USER;
    atomic_fetch_add_explicit(&gn_cl_session_of(&e->o)->n_open_user_events, 1,
                              memory_order_relaxed);
    gn_send_UserEvent(c->o.session, (cl_uint)e->o.id);
    gn_event_post(entry_of(e), GN_EVENT_SUBMITTED);
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_event)e;
}

cl_int CL_API_CALL gn_clSetUserEventStatus(cl_event event, cl_int execution_status)
{
    struct gn_cl_event *e = gn_object_of(event, GN_KIND_EVENT);
    if (!e || e->queue)
        return CL_INVALID_EVENT;
    if (execution_status > CL_COMPLETE)
        return CL_INVALID_VALUE;
    if (atomic_exchange_explicit(&e->set, true, memory_order_relaxed))
        return CL_INVALID_OPERATION;
    struct gn_session *s = e->o.session;
    atomic_fetch_sub_explicit(&gn_cl_session_of(&e->o)->n_open_user_events, 1,
                              memory_order_relaxed);
    gn_send_UserEventStatus(s, (cl_uint)e->o.id, execution_status);
    gn_event_finish(entry_of(e), execution_status, NULL);
    /* From here on a waiting thread may release the event. */
    gn_session_event_ended(s);
    return gn_session_lost(s) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}
