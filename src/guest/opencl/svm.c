/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory: the commands. Only shared pointers are passed to the vGPU unchanged. The
 * program's other memory is not accessible there: a copy from or to it goes through the data area
 * like any transfer, and it cannot be a kernel argument. Called on the program's threads; free
 * functions run on the callback thread.
 */
#include "opencl_guest.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

struct command {
    struct gn_cl_queue *q;
    struct gn_session *session;
    struct gn_cl_session *s;
    struct gn_command_show show;
    struct gn_object *shown;
};

static cl_int check_queue(cl_command_queue command_queue, struct command *c)
{
    c->q = gn_object_of(command_queue, GN_KIND_QUEUE);
    if (!c->q)
        return CL_INVALID_COMMAND_QUEUE;
    c->session = c->q->o.session;
    c->s = c->session->detail;
    return gn_svm_capabilities(c->q->device) ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/* Checks the wait list, and creates the event if it is wanted. */
static cl_int begin_command(struct command *c, cl_command_type type, int doubt, bool wanted,
                            cl_uint n, const cl_event *waits)
{
    cl_int result = gn_command_begin(&c->q->o, n, waits);
    if (result)
        return result;
    c->show = (struct gn_command_show){GN_NO_EVENT, 0, doubt};
    c->shown = wanted ? gn_event_new(&c->q->o, type, &c->show) : NULL;
    return wanted && !c->shown ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
}

static cl_int end(struct command *c, cl_int result, cl_bool blocking, cl_event *event)
{
    cl_event shown = NULL;
    int32_t error = 0;
    result = gn_command_sent(&c->q->o, c->shown, &shown, result);
    if (result || !shown)
        return result;
    if (blocking) {
        int lost = gn_event_wait(&c->session->events[c->shown->id], &c->session->waiter, &error);
        result = lost ? CL_OUT_OF_RESOURCES : gn_blocking_result(error);
        gn_settle(c->s);
    }
    if (event && !result)
        *event = shown;
    else
        gn_object_unref(c->shown);
    return result;
}

static bool is_inside(const struct command *c, const void *ptr, size_t bytes)
{
    return gn_svm_find(c->s, ptr, bytes) == GN_SVM_INSIDE;
}

/*
 * Copies between two places in the program's own memory: the vGPU keeps the order, this process
 * copies.
 */
static cl_int copy_in_program(struct command *c, cl_bool blocking, void *dst, const void *src,
                              size_t size, cl_uint n, const cl_event *waits, cl_event *event)
{
    struct gn_block block;
    struct gn_layout to = {dst, size, 1, 1, size, size, false};
    int32_t error = 0;
    if (gn_block_alloc(c->session, GN_AREA_PASSING, size, &block))
        return gn_session_lost(c->session) ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY;
    cl_int result = begin_command(c, CL_COMMAND_SVM_MEMCPY, GN_SURE, true, n, waits);
    struct gn_object *shown = c->shown;
    if (!result) {
        memcpy(block.base, src, size);
        gn_object_ref(shown);
        result = gn_send_clEnqueueMarkerWithWaitList(c->session, (cl_command_queue)c->q, n, waits,
                                                     &c->show);
        result = end(c, result, CL_FALSE, event);
        if (result)
            gn_object_unref(shown);
    }
    if (result) {
        gn_block_free(c->session, &block);
        return result;
    }
    if (!blocking)
        return gn_settle_later(c->s, shown, &block, &to);
    if (gn_event_wait(&c->session->events[shown->id], &c->session->waiter, &error))
        error = CL_OUT_OF_RESOURCES;
    result = gn_settle_later(c->s, shown, &block, &to);
    gn_settle(c->s);
    return error ? gn_blocking_result(error) : result;
}

cl_int CL_API_CALL gn_clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
                                         void *dst_ptr, const void *src_ptr, size_t size,
                                         cl_uint num_events_in_wait_list,
                                         const cl_event *event_wait_list, cl_event *event)
{
    const uintptr_t dst = (uintptr_t)dst_ptr, src = (uintptr_t)src_ptr;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!dst || !src || !size)
        return CL_INVALID_VALUE;
    if (src < dst + size && dst < src + size)
        return CL_MEM_COPY_OVERLAP;
    enum gn_svm_place to = gn_svm_find(c.s, dst_ptr, size), from = gn_svm_find(c.s, src_ptr, size);
    if (to == GN_SVM_BEYOND || from == GN_SVM_BEYOND)
        return CL_INVALID_VALUE;
    if (to == GN_SVM_NOT && from == GN_SVM_NOT)
        return copy_in_program(&c, blocking_copy, dst_ptr, src_ptr, size, num_events_in_wait_list,
                               event_wait_list, event);
    if (to == GN_SVM_INSIDE && from == GN_SVM_INSIDE) {
        result = begin_command(&c, CL_COMMAND_SVM_MEMCPY, GN_SURE, event || blocking_copy,
                               num_events_in_wait_list, event_wait_list);
        if (result)
            return result;
        struct gn_area_ref none = {GN_SPAN_NULL, 0, 0};
        result = gn_send_SvmCopy(c.session, command_queue, dst, src, size, &none, 0,
                                 num_events_in_wait_list, event_wait_list, &c.show);
        return end(&c, result, blocking_copy, event);
    }
    result = gn_command_begin(&c.q->o, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    bool write = to == GN_SVM_INSIDE;
    struct gn_transfer t = {
        .kind = GN_TRANSFER_SVM,
        .write = write,
        .origin = {write ? dst : src},
        .region = {size, 1, 1},
        .host = {write ? (char *)src_ptr : dst_ptr, size, 1, 1, size, size, false},
        .type = CL_COMMAND_SVM_MEMCPY,
        .doubt = GN_SURE};
    return gn_transfer(c.q, &t, blocking_copy, num_events_in_wait_list, event_wait_list, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr,
                                          const void *pattern, size_t pattern_size, size_t size,
                                          cl_uint num_events_in_wait_list,
                                          const cl_event *event_wait_list, cl_event *event)
{
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !pattern || !size || !pattern_size || pattern_size > 128 ||
        (pattern_size & (pattern_size - 1)) || size % pattern_size ||
        (uintptr_t)svm_ptr % pattern_size || !is_inside(&c, svm_ptr, size))
        return CL_INVALID_VALUE;
    result = begin_command(&c, CL_COMMAND_SVM_MEMFILL, GN_SURE, event != NULL,
                           num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmFill(c.session, command_queue, (uintptr_t)svm_ptr, pattern, pattern_size,
                             size, num_events_in_wait_list, event_wait_list, &c.show);
    return end(&c, result, CL_FALSE, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                                      cl_map_flags flags, void *svm_ptr, size_t size,
                                      cl_uint num_events_in_wait_list,
                                      const cl_event *event_wait_list, cl_event *event)
{
    const cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !size || !is_inside(&c, svm_ptr, size))
        return CL_INVALID_VALUE;
    bool usual =
        flags && !(flags & ~known) &&
        (!(flags & CL_MAP_WRITE_INVALIDATE_REGION) || flags == CL_MAP_WRITE_INVALIDATE_REGION);
    result = begin_command(&c, CL_COMMAND_SVM_MAP, usual ? GN_SURE : GN_ASK(CL_SUCCESS),
                           event || blocking_map, num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmMap(c.session, command_queue, flags, (uintptr_t)svm_ptr, size,
                            num_events_in_wait_list, event_wait_list, &c.show);
    return end(&c, result, blocking_map, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                                        cl_uint num_events_in_wait_list,
                                        const cl_event *event_wait_list, cl_event *event)
{
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!svm_ptr || !is_inside(&c, svm_ptr, 0))
        return CL_INVALID_VALUE;
    result = begin_command(&c, CL_COMMAND_SVM_UNMAP, GN_SURE, event != NULL,
                           num_events_in_wait_list, event_wait_list);
    if (result)
        return result;
    result = gn_send_SvmUnmap(c.session, command_queue, (uintptr_t)svm_ptr, num_events_in_wait_list,
                              event_wait_list, &c.show);
    return end(&c, result, CL_FALSE, event);
}

cl_int CL_API_CALL gn_clEnqueueSVMMigrateMem(cl_command_queue command_queue,
                                             cl_uint num_svm_pointers, const void **svm_pointers,
                                             const size_t *sizes, cl_mem_migration_flags flags,
                                             cl_uint num_events_in_wait_list,
                                             const cl_event *event_wait_list, cl_event *event)
{
    const cl_mem_migration_flags known =
        CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    struct command c;
    cl_int result = check_queue(command_queue, &c);
    if (result)
        return result;
    if (!num_svm_pointers || !svm_pointers || flags & ~known)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        if (!is_inside(&c, svm_pointers[i], sizes ? sizes[i] : 0))
            return CL_INVALID_VALUE;
    cl_ulong *all = calloc(num_svm_pointers, 2 * sizeof *all);
    if (!all)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < num_svm_pointers; i++) {
        all[i] = (uintptr_t)svm_pointers[i];
        all[num_svm_pointers + i] = sizes ? sizes[i] : 0;
    }
    result = begin_command(&c, CL_COMMAND_SVM_MIGRATE_MEM, GN_SURE, event != NULL,
                           num_events_in_wait_list, event_wait_list);
    if (!result) {
        result = gn_send_SvmMigrate(c.session, command_queue, all, all + num_svm_pointers,
                                    num_svm_pointers, flags, num_events_in_wait_list,
                                    event_wait_list, &c.show);
        result = end(&c, result, CL_FALSE, event);
    }
    free(all);
    return result;
}

/* ---- freeing in the order of a queue */

struct freeing {
    struct gn_cl_queue *q; /* reference */
    /* A user event, set when the program's function has returned; NULL: no function. */
    cl_event gate;
    void(CL_CALLBACK *free_func)(cl_command_queue, cl_uint, void **, void *);
    void *user_data;
    cl_uint n;
    void *pointers[];
};

/* The queue has reached the command. On the callback thread. */
static void CL_CALLBACK free_now(cl_event event, cl_int status, void *user_data)
{
    struct freeing *f = user_data;
    (void)event;
    if (status >= 0 && f->free_func)
        f->free_func((cl_command_queue)f->q, f->n, f->pointers, f->user_data);
    for (cl_uint i = 0; status >= 0 && !f->free_func && i < f->n; i++)
        gn_svm_free(gn_cl_session_of(&f->q->o), f->pointers[i]);
    if (f->gate) {
        gn_clSetUserEventStatus(f->gate, status < 0 ? status : CL_COMPLETE);
        gn_clReleaseEvent(f->gate);
    }
    gn_object_unref(&f->q->o);
    free(f);
}

/*
 * The program frees memory in this process, so the vGPU gets a marker. With a free function there
 * are two markers: the second waits for a user event that is set after the function has returned,
 * so that the event, and later commands in the queue, follow the function.
 */
cl_int CL_API_CALL gn_clEnqueueSVMFree(
    cl_command_queue command_queue, cl_uint num_svm_pointers, void **svm_pointers,
    void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void **, void *), void *user_data,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
    struct command first, second;
    cl_int result = check_queue(command_queue, &first);
    if (result)
        return result;
    second = first;
    if (!num_svm_pointers || !svm_pointers)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_svm_pointers; i++)
        if (!svm_pointers[i])
            return CL_INVALID_VALUE;
    struct freeing *f = calloc(1, sizeof *f + num_svm_pointers * sizeof *f->pointers);
    if (!f)
        return CL_OUT_OF_HOST_MEMORY;
    f->q = first.q;
    f->free_func = pfn_free_func;
    f->user_data = user_data;
    f->n = num_svm_pointers;
    memcpy(f->pointers, svm_pointers, num_svm_pointers * sizeof *f->pointers);
    gn_object_ref(&f->q->o);

    result = begin_command(&first, CL_COMMAND_SVM_FREE, GN_SURE, true, num_events_in_wait_list,
                           event_wait_list);
    if (!result && pfn_free_func) {
        f->gate = gn_clCreateUserEvent((cl_context)f->q->context, &result);
        if (result) {
            gn_event_finish(&first.session->events[first.shown->id], result, NULL);
            gn_object_unref(first.shown);
        }
    }
    cl_event came = NULL;
    if (!result) {
        result = gn_send_clEnqueueMarkerWithWaitList(
            first.session, command_queue, num_events_in_wait_list, event_wait_list, &first.show);
        result = end(&first, result, CL_FALSE, &came);
    }
    if (result) {
        if (f->gate) {
            gn_clSetUserEventStatus(f->gate, result);
            gn_clReleaseEvent(f->gate);
        }
        gn_object_unref(&f->q->o);
        free(f);
        return result;
    }
    if (f->gate) {
        result = begin_command(&second, CL_COMMAND_SVM_FREE, GN_SURE, event != NULL, 1, &f->gate);
        if (!result) {
            result = gn_send_clEnqueueMarkerWithWaitList(second.session, command_queue, 1, &f->gate,
                                                         &second.show);
            result = end(&second, result, CL_FALSE, event);
        }
    } else if (event) {
        gn_object_ref(first.shown);
        *event = came;
    }
    if (gn_clSetEventCallback(came, CL_COMPLETE, free_now, f)) {
        /* No memory for a callback: wait here. */
        int32_t error = 0;
        if (gn_event_wait(&first.session->events[first.shown->id], &first.session->waiter, &error))
            error = CL_OUT_OF_RESOURCES;
        free_now(came, error, f);
    }
    gn_object_unref(first.shown);
    return result;
}
