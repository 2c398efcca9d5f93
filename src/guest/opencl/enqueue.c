/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that carry none of the program's data: launches, markers, barriers, flush and finish,
 * and the checks that allow a command to be sent without waiting for an answer. A check returns
 * GN_SURE, or the answer to give if the driver cannot be asked. Called on the program's threads.
 * Only clFinish waits for the device.
 */
#include "guest/session/session_ops.h"
#include "opencl_guest.h"

#include <string.h>

cl_int gn_command_sent(struct gn_object *queue, struct gn_object *shown, cl_event *event,
                       cl_int result)
{
    gn_queue_sent((void *)queue);
    if (shown && result) {
        /*
         * The command has not reached the vGPU, or was rejected: this process completes the event's
         * entry.
         */
        gn_event_finish(&queue->session->events[shown->id], result, NULL);
        gn_object_unref(shown);
    } else if (shown) {
        *event = (cl_event)shown;
    }
    return result;
}

/* ---- checks */

static int check_range(const struct gn_cl_queue *q, const struct gn_cl_mem *m, size_t offset,
                       size_t size)
{
    if (!m || m->type != CL_MEM_OBJECT_BUFFER)
        return CL_INVALID_MEM_OBJECT;
    if (m->context != q->context)
        return CL_INVALID_CONTEXT;
    if (!gn_range_ok(offset, size, m->size))
        return CL_INVALID_VALUE;
    /* The device defines the alignment of sub-buffers; the driver judges a size of 0. */
    return m->source || !size ? GN_ASK(CL_SUCCESS) : GN_SURE;
}

int gn_check_clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
                                 cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
                                 size_t size)
{
    const struct gn_cl_queue *q = (const void *)command_queue;
    const int from = check_range(q, (const void *)src_buffer, src_offset, size);
    const int to = check_range(q, (const void *)dst_buffer, dst_offset, size);
    int doubt = from == GN_SURE || (from == GN_ASK(CL_SUCCESS) && to != GN_SURE) ? to : from;
    if (doubt == GN_SURE && src_buffer == dst_buffer && src_offset < dst_offset + size &&
        dst_offset < src_offset + size)
        doubt = CL_MEM_COPY_OVERLAP;
    return doubt;
}

int gn_check_clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer, const void *pattern,
                                 size_t pattern_size, size_t offset, size_t size)
{
    int doubt = check_range((const void *)command_queue, (const void *)buffer, offset, size);
    if (!pattern || !pattern_size || pattern_size > 128 || (pattern_size & (pattern_size - 1)) ||
        offset % pattern_size || size % pattern_size)
        return CL_INVALID_VALUE;
    return doubt;
}

int gn_check_clEnqueueMarkerWithWaitList(cl_command_queue command_queue)
{
    (void)command_queue;
    return GN_SURE;
}

int gn_check_clEnqueueBarrierWithWaitList(cl_command_queue command_queue)
{
    (void)command_queue;
    return GN_SURE;
}

/* ---- launches */

cl_uint gn_kernel_args(const struct gn_cl_kernel *k, unsigned char *run)
{
    cl_uint at = 0;
    for (cl_uint i = 0; i < k->n_args; i++) {
        const struct gn_cl_arg *a = &k->args[i];
        uint32_t tail = gn_arg_tail(a->arg.kind, a->arg.bytes);
        if (at + sizeof a->arg + tail > GN_ARGS_MAX_BYTES)
            return UINT32_MAX;
        memcpy(run + at, &a->arg, sizeof a->arg);
        if (tail)
            memcpy(run + at + sizeof a->arg, a->tail, tail);
        at += (cl_uint)sizeof a->arg + tail;
    }
    return at;
}

/*
 * Work-group sizes that the driver has accepted: it accepts them again, and all sizes that are
 * smaller in each dimension, on the same device. Packed into 16 bits each: three sizes and the
 * device's index; 0: none.
 */
static uint64_t packed_group(const struct gn_cl_queue *q, cl_uint work_dim, const size_t *local)
{
    uint64_t packed = gn_id_index(q->device->o.id) & 0xffff;
    for (cl_uint i = 0; i < 3; i++) {
        size_t n = i < work_dim ? local[i] : 1;
        if (n > UINT16_MAX)
            return 0;
        packed = packed << 16 | n;
    }
    return packed;
}

static bool group_fits(uint64_t good, uint64_t group)
{
    if (!good || good >> 48 != group >> 48)
        return false;
    for (uint32_t i = 0; i < 48; i += 16)
        if ((group >> i & 0xffff) > (good >> i & 0xffff))
            return false;
    return true;
}

static bool is_good_group(struct gn_cl_kernel *k, uint64_t group)
{
    for (uint32_t i = 0; group && i < GN_ARRAY_SIZE(k->good); i++)
        if (group_fits(atomic_load_explicit(&k->good[i], memory_order_relaxed), group))
            return true;
    return false;
}

static void remember_good_group(struct gn_cl_kernel *k, uint64_t group)
{
    uint32_t i =
        atomic_fetch_add_explicit(&k->next_good, 1, memory_order_relaxed) % GN_ARRAY_SIZE(k->good);
    if (group)
        atomic_store_explicit(&k->good[i], group, memory_order_relaxed);
}

/*
 * Sizes that are plainly valid. Whether other sizes are (no work-items, groups that do not divide
 * the range) is for the driver to judge each time.
 */
static bool has_plain_sizes(const struct gn_cl_kernel *k, cl_uint work_dim, const size_t *global,
                            const size_t *local)
{
    const bool required = k->required[0] != 0;
    for (cl_uint i = 0; i < work_dim; i++)
        if (!global || !global[i] || (local && (!local[i] || global[i] % local[i])) ||
            (required && (!local || local[i] != k->required[i])))
            return false;
    /* In the dimensions that a launch omits, a group is one work-item wide. */
    for (cl_uint i = work_dim; required && i < 3; i++)
        if (k->required[i] != 1)
            return false;
    return true;
}

/* The errors of a launch that this process can detect. */
static int check_launch(const struct gn_cl_queue *q, struct gn_cl_kernel *k, cl_uint work_dim,
                        const size_t *global, const size_t *local)
{
    if (k->program->context != q->context)
        return CL_INVALID_CONTEXT;
    if (k->n_set < k->n_args)
        return CL_INVALID_KERNEL_ARGS;
    if (work_dim < 1 || work_dim > 3)
        return CL_INVALID_WORK_DIMENSION;
    if (!has_plain_sizes(k, work_dim, global, local))
        return GN_ASK(CL_SUCCESS);
    return !local || is_good_group(k, packed_group(q, work_dim, local)) ? GN_SURE
                                                                        : GN_ASK(CL_SUCCESS);
}

static cl_int launch(cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
                     const size_t *offset, const size_t *global, const size_t *local, bool task,
                     cl_uint n, const cl_event *list, cl_event *event)
{
    struct gn_object *queue = gn_object_of(command_queue, GN_KIND_QUEUE);
    unsigned char run[GN_ARGS_MAX_BYTES];
    size_t offsets[3] = {0}, globals[3] = {0}, locals[3] = {0};
    if (!queue)
        return CL_INVALID_COMMAND_QUEUE;
    struct gn_cl_kernel *k = gn_object_of_session(queue, kernel, GN_KIND_KERNEL);
    if (!k)
        return CL_INVALID_KERNEL;
    cl_int result = gn_command_begin(queue, n, list);
    if (result)
        return result;
    struct gn_command_show show = {GN_NO_EVENT, 0,
                                   check_launch((const void *)queue, k, work_dim, global, local)};
    if (show.doubt == CL_INVALID_WORK_DIMENSION || show.doubt == CL_INVALID_KERNEL_ARGS)
        return show.doubt;
    cl_uint bytes = gn_kernel_args(k, run);
    if (bytes == UINT32_MAX)
        return CL_OUT_OF_RESOURCES;
    for (cl_uint i = 0; i < work_dim; i++) {
        offsets[i] = offset ? offset[i] : 0;
        globals[i] = global ? global[i] : 0;
        locals[i] = local ? local[i] : 0;
    }
    struct gn_object *shown =
        event ? gn_event_new(queue, task ? CL_COMMAND_TASK : CL_COMMAND_NDRANGE_KERNEL, &show)
              : NULL;
    if (event && !shown)
        return CL_OUT_OF_HOST_MEMORY;
    if (atomic_load_explicit(&k->program->may_print, memory_order_relaxed))
        gn_follow_stdout(queue->session->detail);
    result = gn_send_Launch(queue->session, command_queue, kernel, work_dim, task,
                            offset ? offsets : NULL, global ? globals : NULL, local ? locals : NULL,
                            bytes ? run : NULL, bytes, n, list, &show);
    if (!result && local && show.doubt == GN_ASK(CL_SUCCESS) &&
        has_plain_sizes(k, work_dim, global, local))
        remember_good_group(k, packed_group((const void *)queue, work_dim, locals));
    return gn_command_sent(queue, shown, event, result);
}

cl_int CL_API_CALL gn_clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel,
                                             cl_uint work_dim, const size_t *global_work_offset,
                                             const size_t *global_work_size,
                                             const size_t *local_work_size,
                                             cl_uint num_events_in_wait_list,
                                             const cl_event *event_wait_list, cl_event *event)
{
    return launch(command_queue, kernel, work_dim, global_work_offset, global_work_size,
                  local_work_size, false, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                    cl_uint num_events_in_wait_list,
                                    const cl_event *event_wait_list, cl_event *event)
{
    static const size_t one = 1;
    return launch(command_queue, kernel, 1, NULL, &one, &one, true, num_events_in_wait_list,
                  event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueNativeKernel(cl_command_queue command_queue,
                                            void(CL_CALLBACK *user_func)(void *), void *args,
                                            size_t cb_args, cl_uint num_mem_objects,
                                            const cl_mem *mem_list, const void **args_mem_loc,
                                            cl_uint num_events_in_wait_list,
                                            const cl_event *event_wait_list, cl_event *event)
{
    (void)user_func, (void)args, (void)cb_args, (void)num_mem_objects, (void)mem_list,
        (void)args_mem_loc;
    (void)num_events_in_wait_list, (void)event_wait_list, (void)event;
    return gn_object_of(command_queue, GN_KIND_QUEUE) ? CL_INVALID_OPERATION
                                                      : CL_INVALID_COMMAND_QUEUE;
}

/* ---- markers and barriers of 1.0 and 1.1 */

cl_int CL_API_CALL gn_clEnqueueMarker(cl_command_queue command_queue, cl_event *event)
{
    if (!gn_object_of(command_queue, GN_KIND_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return event ? gn_clEnqueueMarkerWithWaitList(command_queue, 0, NULL, event) : CL_INVALID_VALUE;
}

cl_int CL_API_CALL gn_clEnqueueWaitForEvents(cl_command_queue command_queue, cl_uint num_events,
                                             const cl_event *event_list)
{
    struct gn_object *queue = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!queue)
        return CL_INVALID_COMMAND_QUEUE;
    if (!num_events || !event_list)
        return CL_INVALID_VALUE;
    if (!gn_objects_of_session(queue, event_list, num_events, GN_KIND_EVENT))
        return CL_INVALID_EVENT;
    return gn_clEnqueueBarrierWithWaitList(command_queue, num_events, event_list, NULL);
}

cl_int CL_API_CALL gn_clEnqueueBarrier(cl_command_queue command_queue)
{
    if (!gn_object_of(command_queue, GN_KIND_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    return gn_clEnqueueBarrierWithWaitList(command_queue, 0, NULL, NULL);
}

/* ---- flush and finish */

cl_int CL_API_CALL gn_clFlush(cl_command_queue command_queue)
{
    struct gn_object *queue = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!queue)
        return CL_INVALID_COMMAND_QUEUE;
    gn_session_flush(queue->session);
    /* The vGPU flushes by itself as soon as its ring is empty. */
    return gn_session_lost(queue->session) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int CL_API_CALL gn_clFinish(cl_command_queue command_queue)
{
    struct gn_cl_queue *q = gn_object_of(command_queue, GN_KIND_QUEUE);
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    int32_t error = 0;
    if (!q)
        return CL_INVALID_COMMAND_QUEUE;
    struct gn_session *s = q->o.session;
    uint64_t sent = atomic_load_explicit(&q->n_sent, memory_order_acquire);
    if (gn_session_lost(s))
        return CL_OUT_OF_RESOURCES;
    if (sent == atomic_load_explicit(&q->n_finished, memory_order_acquire)) {
        gn_settle(s->detail);
        return CL_SUCCESS;
    }
    show.event = gn_event_index_alloc(s);
    if (show.event == GN_NO_EVENT)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result = gn_send_Finish(s, command_queue, 0, NULL, &show);
    if (!result && gn_event_wait(&s->events[show.event], &s->waiter, &error))
        result = CL_OUT_OF_RESOURCES;
    gn_event_index_put(s, show.event);
    uint64_t finished = atomic_load_explicit(&q->n_finished, memory_order_relaxed);
    while (!result && finished < sent &&
           !atomic_compare_exchange_weak_explicit(&q->n_finished, &finished, sent,
                                                  memory_order_release, memory_order_relaxed))
        ;
    gn_settle(s->detail);
    return result ? result : gn_event_status(error);
}
