/* SPDX-License-Identifier: Apache-2.0 */
#include "home.h"

#include "base/clock.h"
#include "opencl_guest.h"
#include "transfer.h"

#include <string.h>

#define ACCESS      (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

static bool one_at_most(cl_mem_flags flags)
{
    return !(flags & (flags - 1));
}

/* A wrong use must meet the driver as the program made it: only what is plainly right gets a home. */
static bool plainly_right(cl_mem_flags flags, const void *host_ptr)
{
    return !(flags & ~(cl_mem_flags)(ACCESS | HOST_ACCESS | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) &&
           one_at_most(flags & ACCESS) && one_at_most(flags & HOST_ACCESS) &&
           !(flags & CL_MEM_COPY_HOST_PTR) == !host_ptr;
}

bool gn_home_wanted(struct gn_cl_context *c, cl_mem_flags flags, size_t size, const void *host_ptr)
{
    uint64_t limit = atomic_load_explicit(&c->home_limit, memory_order_relaxed);
    if (c->o.session->remote || !plainly_right(flags, host_ptr) || !size)
        return false;
    if (limit == GN_HOME_NOT_ASKED) {
        cl_ulong largest = 0;
        /* Devices that share a context may each have a memory of its own. */
        if (c->n_devices != 1 ||
            gn_send_clGetDeviceInfo(c->o.session, (cl_device_id)c->devices[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                                    sizeof largest, &largest, NULL))
            largest = 0;
        limit = largest;
        atomic_store_explicit(&c->home_limit, limit, memory_order_relaxed);
    }
    return size <= limit;
}

void gn_home_refused(struct gn_cl_context *c)
{
    atomic_store_explicit(&c->home_limit, 0, memory_order_relaxed);
}

void gn_home_leave(struct gn_cl_mem *m)
{
    struct gn_session *s = m->o.session;
    uint32_t event = gn_event_index_take(s);
    /* Without an index nobody will ever say that the memory is free: it stays taken while the session lives.
     */
    if (event == GN_NO_EVENT)
        return;
    gn_send_LeaveHome(s, m->o.id, event);
    gn_block_put_when(s, &m->home_block, event);
}

/* ---- who uses a queue */

/*
 * A copy made here is not a command, so nothing would keep a command that another thread sends meanwhile
 * from running beside it. So only a queue that a single thread has ever used is served so; the second one
 * to come waits for a copy in progress, and from then on the queue is served the other way.
 */
void gn_queue_used(struct gn_cl_queue *q)
{
    uintptr_t none = 0;
    if (atomic_load_explicit(&q->user, memory_order_relaxed) == 1 ||
        atomic_compare_exchange_strong_explicit(&q->user, &none, (uintptr_t)pthread_self(),
                                                memory_order_relaxed, memory_order_relaxed))
        return;
    pthread_mutex_lock(&q->user_lock);
    atomic_store_explicit(&q->user, 1, memory_order_relaxed);
    pthread_mutex_unlock(&q->user_lock);
}

/* ---- one copy */

cl_int gn_send_marker(struct gn_cl_queue *q, cl_uint n, const cl_event *waits,
                      const struct gn_command_show *show)
{
    cl_int result = gn_send_clEnqueueMarkerWithWaitList(q->o.session, (cl_command_queue)q, n, waits, show);
    gn_queue_sent(q);
    return result;
}

/* Waits for a marker; *ret_event (may be NULL) is its event, when it ended well. */
static cl_int marker(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                     struct gn_object **ret_event)
{
    struct gn_session *s = q->o.session;
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *e = gn_event_new(&q->o, type, &show);
    int32_t error = 0;
    if (!e)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result = gn_send_marker(q, n, waits, &show);
    if (result)
        gn_event_finish(&s->events[e->id], result, NULL);
    else if (gn_event_wait(&s->events[e->id], &s->waiter, &error))
        result = CL_OUT_OF_RESOURCES;
    else
        result = gn_blocking_result(error);
    if (!result && ret_event)
        *ret_event = e;
    else
        gn_object_unref(e);
    return result;
}

/* Everything that was sent before `sent` is over. */
static void finished(struct gn_cl_queue *q, uint64_t sent)
{
    uint64_t before = atomic_load_explicit(&q->n_finished, memory_order_relaxed);
    while (before < sent && !atomic_compare_exchange_weak_explicit(
                                &q->n_finished, &before, sent, memory_order_release, memory_order_relaxed))
        ;
}

bool gn_home_copy(struct gn_cl_queue *q, char *home, char *ptr, size_t bytes, bool write,
                  cl_command_type type, cl_uint n, const cl_event *waits, cl_event *event, cl_int *result)
{
    const bool in_order = !(q->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const uintptr_t me = (uintptr_t)pthread_self();
    if (atomic_load_explicit(&q->user, memory_order_relaxed) != me)
        return false;
    *result = CL_SUCCESS;
    uint64_t queued_ns = event ? gn_now_ns() : 0;
    if (n || !gn_queue_idle(q)) {
        if (!in_order)
            return false;
        uint64_t sent = atomic_load_explicit(&q->n_sent, memory_order_acquire);
        *result = marker(q, type, n, waits, NULL);
        if (*result)
            return true;
        finished(q, sent + 1);
        gn_settle(q->o.session->detail);
    }
    if (gn_session_lost(q->o.session)) {
        *result = CL_OUT_OF_RESOURCES;
        return true;
    }
    pthread_mutex_lock(&q->user_lock);
    bool alone = atomic_load_explicit(&q->user, memory_order_relaxed) == me;
    uint64_t start_ns = event ? gn_now_ns() : 0;
    if (alone)
        memcpy(write ? home : ptr, write ? ptr : home, bytes);
    pthread_mutex_unlock(&q->user_lock);
    if (!alone)
        return false;
    gn_session_copied(q->o.session, GN_COPIED_ONCE);
    if (event) {
        /* The vGPU must know an event that others may wait for; its times are those of the copy. */
        struct gn_object *shown;
        *result = marker(q, type, 0, NULL, &shown);
        if (!*result) {
            struct gn_cl_event *e = (void *)shown;
            e->queued_ns = queued_ns;
            e->first.submit_ns = e->first.start_ns = start_ns;
            *event = (cl_event)shown;
        }
    }
    return true;
}
