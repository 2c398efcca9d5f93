/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command buffers (cl_khr_command_buffer), the program's side: recording, running, and queries. Any
 * thread of the program calls it. The vGPU has the commands. This side has the state that a program
 * may query at any time: recording, executable, or pending. A buffer is pending until the events of
 * all its runs are over, and the event table shows that wherever the vGPU is. No call here waits
 * for the device.
 */
#include "guest/session/session_ops.h"
#include "opencl_guest.h"

#include <stdlib.h>
#include <string.h>

#ifndef CL_COMMAND_BUFFER_CONTEXT_KHR /* 0.9.2; not in older headers */
#define CL_COMMAND_BUFFER_CONTEXT_KHR 0x1299
#endif

static struct gn_cl_cmdbuf *of(cl_command_buffer_khr command_buffer)
{
    return gn_object_of(command_buffer, GN_KIND_CMDBUF);
}

/* ---- runs */

static bool is_over(const struct gn_cl_cmdbuf *b, const struct gn_cl_run *run)
{
    return gn_event_phase(&b->o.session->events[run->index], NULL) == GN_EVENT_DONE;
}

static void end_run(struct gn_cl_cmdbuf *b, const struct gn_cl_run *run)
{
    if (!run->event) {
        gn_event_index_put(b->o.session, run->index);
        return;
    }
    atomic_fetch_sub_explicit(&((struct gn_cl_event *)run->event)->n_own, 1, memory_order_relaxed);
    gn_object_unref(run->event);
}

/* Whether a run is not over. Frees the oldest runs that are over; those behind a pending run stay.
 */
static bool is_pending_locked(struct gn_cl_cmdbuf *b)
{
    size_t n_over = 0;
    while (n_over < b->n_runs && is_over(b, &b->runs[n_over]))
        end_run(b, &b->runs[n_over++]);
    b->n_runs -= n_over;
    if (n_over && b->n_runs)
        memmove(b->runs, b->runs + n_over, b->n_runs * sizeof *b->runs);
    return b->n_runs != 0;
}

static bool make_place_locked(struct gn_cl_cmdbuf *b)
{
    if (b->n_runs < b->runs_capacity)
        return true;
    const size_t capacity = b->runs_capacity ? 2 * b->runs_capacity : 4;
    struct gn_cl_run *runs = realloc(b->runs, capacity * sizeof *runs);
    if (!runs)
        return false;
    b->runs = runs;
    b->runs_capacity = capacity;
    return true;
}

/* The buffer is pending from now on, for all threads. */
static cl_int begin_run(struct gn_cl_cmdbuf *b, struct gn_object *queue, bool shown,
                        struct gn_command_show *show, struct gn_object **ret)
{
    struct gn_cl_run run = {.index = GN_NO_EVENT};
    cl_int result = CL_SUCCESS;
    gn_session_look_for_news(b->o.session);
    pthread_mutex_lock(&b->lock);
    if (!b->finalized || (is_pending_locked(b) && !b->simultaneous))
        result = CL_INVALID_OPERATION;
    else if (!make_place_locked(b))
        result = CL_OUT_OF_HOST_MEMORY;
    else if (!shown)
        show->event = gn_event_index_alloc(b->o.session);
    else if ((run.event = gn_event_new(queue, CL_COMMAND_COMMAND_BUFFER_KHR, show)))
        atomic_store_explicit(&((struct gn_cl_event *)run.event)->n_own, 1, memory_order_relaxed);
    if (!result && show->event == GN_NO_EVENT)
        result = CL_OUT_OF_HOST_MEMORY;
    if (!result) {
        run.index = show->event;
        if (run.event)
            gn_object_ref(run.event);
        b->runs[b->n_runs++] = run;
    }
    pthread_mutex_unlock(&b->lock);
    *ret = run.event;
    return result;
}

/* ---- creating and ending */

/*
 * Reads the flags from a list of properties. False: an unknown property; a driver might take its
 * value for a pointer.
 */
static bool read_properties(const cl_command_buffer_properties_khr *properties,
                            cl_command_buffer_flags_khr *ret_flags)
{
    *ret_flags = 0;
    for (; properties && properties[0]; properties += 2) {
        if (properties[0] != CL_COMMAND_BUFFER_FLAGS_KHR)
            return false;
        *ret_flags |= properties[1];
    }
    return true;
}

/* The required properties are compared with those that the program gave: the vGPU's queue may have
 * more. */
static cl_int check_queue(const struct gn_cl_queue *q)
{
    cl_command_queue_properties required = 0;
    if (!gn_command_buffers_of(q->device))
        return CL_INVALID_OPERATION;
    cl_int result = gn_send_clGetDeviceInfo(q->o.session, (cl_device_id)q->device,
                                            CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR,
                                            sizeof required, &required, NULL);
    return result                      ? result
           : required & ~q->properties ? CL_INCOMPATIBLE_COMMAND_QUEUE_KHR
                                       : CL_SUCCESS;
}

cl_command_buffer_khr CL_API_CALL
gn_clCreateCommandBufferKHR(cl_uint num_queues, const cl_command_queue *queues,
                            const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
{
    cl_command_buffer_flags_khr flags;
    if (num_queues != 1 || !queues || !read_properties(properties, &flags))
        return gn_refuse(errcode_ret, CL_INVALID_VALUE);
    struct gn_cl_queue *q = gn_object_of(queues[0], GN_KIND_QUEUE);
    cl_int result = q ? check_queue(q) : CL_INVALID_COMMAND_QUEUE;
    if (result)
        return gn_refuse(errcode_ret, result);
    struct gn_cl_cmdbuf *b = (void *)gn_object_new(q->o.session, GN_KIND_CMDBUF, &q->o);
    if (!b)
        return gn_refuse(errcode_ret, CL_OUT_OF_HOST_MEMORY);
    pthread_mutex_init(&b->lock, NULL);
    b->queue = q;
    b->simultaneous = flags & CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR;
    b->given = (void *)gn_copy_list(properties, &b->n_given);
    result = properties && !b->given
                 ? CL_OUT_OF_HOST_MEMORY
                 : gn_send_CommandBuffer(q->o.session, &b->o, (cl_command_queue)q, b->given);
    if (result) {
        gn_cmdbuf_gone(b);
        gn_object_drop(&b->o);
        return gn_refuse(errcode_ret, result);
    }
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_command_buffer_khr)b;
}

static void end_addition(struct gn_addition *a)
{
    for (size_t i = 0; i < a->n; i++)
        gn_object_unref(a->objects[i]);
    free(a);
}

void gn_cmdbuf_gone(struct gn_cl_cmdbuf *b)
{
    for (size_t i = 0; i < b->n_runs; i++)
        end_run(b, &b->runs[i]);
    free(b->runs);
    while (b->additions) {
        struct gn_addition *next = b->additions->next;
        end_addition(b->additions);
        b->additions = next;
    }
    free(b->given);
    pthread_mutex_destroy(&b->lock);
}

cl_int CL_API_CALL gn_clFinalizeCommandBufferKHR(cl_command_buffer_khr command_buffer)
{
    struct gn_cl_cmdbuf *b = of(command_buffer);
    if (!b)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    pthread_mutex_lock(&b->lock);
    const bool finalized = b->finalized;
    pthread_mutex_unlock(&b->lock);
    /* An error since 0.9.1. The driver is not asked: PoCL 3.1 makes a pending buffer executable. */
    if (finalized)
        return gn_command_buffers_of(b->queue->device) < CL_MAKE_VERSION(0, 9, 1)
                   ? CL_SUCCESS
                   : CL_INVALID_OPERATION;
    cl_int result = gn_send_clFinalizeCommandBufferKHR(b->o.session, command_buffer);
    pthread_mutex_lock(&b->lock);
    b->finalized |= !result;
    pthread_mutex_unlock(&b->lock);
    return result;
}

/* ---- recording */

struct gn_addition *gn_cmdbuf_add(struct gn_object *o, void *const *handles, size_t n)
{
    struct gn_addition *a = calloc(1, sizeof *a + n * sizeof a->objects[0]);
    (void)o;
    for (size_t i = 0; a && i < n; i++) {
        if (!handles[i])
            continue;
        a->objects[a->n] = handles[i];
        gn_object_ref(a->objects[a->n++]);
    }
    return a;
}

cl_int gn_cmdbuf_added(struct gn_object *o, struct gn_addition *a, cl_int result)
{
    struct gn_cl_cmdbuf *b = (void *)o;
    if (result) {
        end_addition(a);
        return result;
    }
    pthread_mutex_lock(&b->lock);
    a->next = b->additions;
    b->additions = a;
    pthread_mutex_unlock(&b->lock);
    return CL_SUCCESS;
}

/* Holds the kernel and the live objects that its arguments name. */
static struct gn_addition *add_launch(struct gn_cl_cmdbuf *b, struct gn_cl_kernel *k)
{
    void **named = calloc(k->n_args + (size_t)1, sizeof *named);
    size_t n = 0;
    if (!named)
        return NULL;
    named[n++] = k;
    for (cl_uint i = 0; i < k->n_args; i++) {
        const struct gn_cl_arg *a = &k->args[i];
        const bool names = a->arg.kind == GN_ARG_MEM || a->arg.kind == GN_ARG_SAMPLER ||
                           a->arg.kind == GN_ARG_QUEUE;
        if (names && a->named && gn_object_of_session(&k->o, a->named, a->named->kind) &&
            a->named->id == a->arg.value)
            named[n++] = a->named;
    }
    struct gn_addition *addition = gn_cmdbuf_add(&b->o, named, n);
    free(named);
    return addition;
}

static cl_int check_launch(const struct gn_cl_cmdbuf *b, const struct gn_cl_kernel *k,
                           const cl_properties *properties, cl_uint work_dim)
{
    if (k->program->context != b->queue->context)
        return CL_INVALID_CONTEXT;
    /* All defined properties belong to extensions that Gantry does not carry. */
    if (properties && properties[0])
        return CL_INVALID_VALUE;
    if (work_dim < 1 || work_dim > 3)
        return CL_INVALID_WORK_DIMENSION;
    return k->n_set < k->n_args ? CL_INVALID_KERNEL_ARGS : CL_SUCCESS;
}

cl_int CL_API_CALL gn_clCommandNDRangeKernelKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_properties *properties, cl_kernel kernel, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size, const size_t *local_work_size,
    cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle)
{
    struct gn_cl_cmdbuf *b = of(command_buffer);
    unsigned char run[GN_ARGS_MAX_BYTES];
    if (!b)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    if (command_queue)
        return CL_INVALID_COMMAND_QUEUE;
    if (mutable_handle)
        return CL_INVALID_VALUE;
    struct gn_cl_kernel *k = gn_object_of_session(&b->o, kernel, GN_KIND_KERNEL);
    cl_int result = k ? check_launch(b, k, properties, work_dim) : CL_INVALID_KERNEL;
    if (result)
        return result;
    const cl_uint bytes = gn_kernel_args(k, run);
    if (bytes == UINT32_MAX)
        return CL_OUT_OF_RESOURCES;
    struct gn_addition *addition = add_launch(b, k);
    if (!addition)
        return CL_OUT_OF_HOST_MEMORY;
    result =
        gn_send_RecordLaunch(b->o.session, command_buffer, kernel, work_dim, global_work_offset,
                             global_work_size, local_work_size, bytes ? run : NULL, bytes,
                             num_sync_points_in_wait_list, sync_point_wait_list, sync_point);
    if (!result && atomic_load_explicit(&k->program->may_print, memory_order_relaxed))
        atomic_store_explicit(&b->may_print, true, memory_order_relaxed);
    return gn_cmdbuf_added(&b->o, addition, result);
}

/* ---- running */

/* The queue of the run: the buffer's, or another one of the same kind. */
static cl_int choose_queue(struct gn_cl_cmdbuf *b, cl_uint num_queues,
                           const cl_command_queue *queues, struct gn_cl_queue **ret)
{
    struct gn_cl_queue *q = b->queue;
    if (!num_queues != !queues || num_queues > 1)
        return CL_INVALID_VALUE;
    if (queues)
        q = gn_object_of_session(&b->o, queues[0], GN_KIND_QUEUE);
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    if (q->context != b->queue->context)
        return CL_INVALID_CONTEXT;
    /* The driver's queues may have more properties than the program asked for: compare the
     * program's. */
    if (q->device != b->queue->device || q->properties != b->queue->properties)
        return CL_INCOMPATIBLE_COMMAND_QUEUE_KHR;
    *ret = q;
    return CL_SUCCESS;
}

cl_int CL_API_CALL gn_clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue *queues,
                                                cl_command_buffer_khr command_buffer,
                                                cl_uint num_events_in_wait_list,
                                                const cl_event *event_wait_list, cl_event *event)
{
    struct gn_cl_cmdbuf *b = of(command_buffer);
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *shown = NULL;
    struct gn_cl_queue *q = NULL;
    cl_int result = b ? choose_queue(b, num_queues, queues, &q) : CL_INVALID_COMMAND_BUFFER_KHR;
    if (!result)
        result = gn_command_begin(&q->o, num_events_in_wait_list, event_wait_list);
    if (!result)
        result = begin_run(b, &q->o, event != NULL, &show, &shown);
    if (result)
        return result;
    if (!atomic_load_explicit(&b->accepted, memory_order_relaxed))
        show.doubt = GN_ASK(CL_SUCCESS);
    if (atomic_load_explicit(&b->may_print, memory_order_relaxed))
        gn_follow_stdout(b->o.session->detail);
    result = gn_send_EnqueueCommandBuffer(b->o.session, (cl_command_queue)q, command_buffer,
                                          shown != NULL, num_events_in_wait_list, event_wait_list,
                                          &show);
    if (!result)
        atomic_store_explicit(&b->accepted, true, memory_order_relaxed);
    else if (!shown)
        gn_event_finish(&b->o.session->events[show.event], result, NULL);
    /* A refused run is over by now. The next look at the runs frees it. */
    return gn_command_sent(&q->o, shown, event, result);
}

/* ---- asking */

static cl_command_buffer_state_khr state_of(struct gn_cl_cmdbuf *b)
{
    cl_command_buffer_state_khr state = CL_COMMAND_BUFFER_STATE_RECORDING_KHR;
    gn_session_look_for_news(b->o.session);
    pthread_mutex_lock(&b->lock);
    if (b->finalized)
        state = is_pending_locked(b) ? CL_COMMAND_BUFFER_STATE_PENDING_KHR
                                     : CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR;
    pthread_mutex_unlock(&b->lock);
    return state;
}

cl_int CL_API_CALL gn_clGetCommandBufferInfoKHR(cl_command_buffer_khr command_buffer,
                                                cl_command_buffer_info_khr param_name,
                                                size_t param_value_size, void *param_value,
                                                size_t *param_value_size_ret)
{
    static const cl_uint one = 1;
    struct gn_cl_cmdbuf *b = of(command_buffer);
    if (!b)
        return CL_INVALID_COMMAND_BUFFER_KHR;
    switch (param_name) {
    case CL_COMMAND_BUFFER_NUM_QUEUES_KHR:
        return gn_answer(&one, sizeof one, param_value_size, param_value, param_value_size_ret);
    case CL_COMMAND_BUFFER_QUEUES_KHR:
        return gn_answer(&b->queue, sizeof b->queue, param_value_size, param_value,
                         param_value_size_ret);
    case CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR: {
        const cl_uint n = atomic_load_explicit(&b->o.n_refs, memory_order_relaxed);
        return gn_answer(&n, sizeof n, param_value_size, param_value, param_value_size_ret);
    }
    case CL_COMMAND_BUFFER_STATE_KHR: {
        const cl_command_buffer_state_khr state = state_of(b);
        return gn_answer(&state, sizeof state, param_value_size, param_value, param_value_size_ret);
    }
    case CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR:
        return gn_answer(b->given, b->n_given * sizeof *b->given, param_value_size, param_value,
                         param_value_size_ret);
    case CL_COMMAND_BUFFER_CONTEXT_KHR:
        if (gn_command_buffers_of(b->queue->device) < CL_MAKE_VERSION(0, 9, 2))
            return CL_INVALID_VALUE;
        return gn_answer(&b->queue->context, sizeof b->queue->context, param_value_size,
                         param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}
