/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive use of a queue (alone.h), and markers. Called on the program's threads. Never holds
 * user_lock while it waits for anything but the device.
 */
#include "alone.h"

#include "opencl_guest.h"

#define SEVERAL 1u /* not a valid pthread_t */

void gn_queue_used(struct gn_cl_queue *q)
{
    uintptr_t none = 0;
    if (atomic_load_explicit(&q->user, memory_order_relaxed) == SEVERAL ||
        atomic_compare_exchange_strong_explicit(&q->user, &none, (uintptr_t)pthread_self(),
                                                memory_order_relaxed, memory_order_relaxed))
        return;
    /*
     * The exclusive user checks q->user under the lock: either it sees this store, or this thread
     * waits for it.
     */
    pthread_mutex_lock(&q->user_lock);
    atomic_store_explicit(&q->user, SEVERAL, memory_order_relaxed);
    pthread_mutex_unlock(&q->user_lock);
}

cl_int gn_send_marker(struct gn_cl_queue *q, cl_uint n, const cl_event *waits,
                      const struct gn_command_show *show)
{
    cl_int result =
        gn_send_clEnqueueMarkerWithWaitList(q->o.session, (cl_command_queue)q, n, waits, show);
    gn_queue_sent(q);
    return result;
}

cl_int gn_marker_new(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                     struct gn_object **ret_event)
{
    struct gn_session *s = q->o.session;
    struct gn_command_show show = {GN_NO_EVENT, 0, GN_SURE};
    struct gn_object *e = gn_event_new(&q->o, type, &show);
    if (!e)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int result = gn_send_marker(q, n, waits, &show);
    if (result) {
        gn_event_finish(&s->events[e->id], result, NULL);
        gn_object_unref(e);
        return result;
    }
    *ret_event = e;
    return CL_SUCCESS;
}

cl_int gn_marker_wait(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                      struct gn_object **ret_event)
{
    struct gn_session *s = q->o.session;
    struct gn_object *e;
    int32_t error = 0;
    cl_int result = gn_marker_new(q, type, n, waits, &e);
    if (result)
        return result;
    result = gn_event_wait(&s->events[e->id], &s->waiter, &error) ? CL_OUT_OF_RESOURCES
                                                                  : gn_blocking_result(error);
    if (!result && ret_event)
        *ret_event = e;
    else
        gn_object_unref(e);
    return result;
}

/* All of the first `sent` commands are complete. */
static void note_finished(struct gn_cl_queue *q, uint64_t sent)
{
    uint64_t before = atomic_load_explicit(&q->n_finished, memory_order_relaxed);
    while (before < sent &&
           !atomic_compare_exchange_weak_explicit(&q->n_finished, &before, sent,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static bool is_only_user(struct gn_cl_queue *q)
{
    return atomic_load_explicit(&q->user, memory_order_relaxed) == (uintptr_t)pthread_self();
}

bool gn_queue_acquire_idle(struct gn_cl_queue *q, cl_int *result)
{
    *result = CL_SUCCESS;
    if (!is_only_user(q) || !gn_queue_idle(q))
        return false;
    if (gn_session_lost(q->o.session)) {
        *result = CL_OUT_OF_RESOURCES;
        return false;
    }
    pthread_mutex_lock(&q->user_lock);
    if (is_only_user(q))
        return true;
    pthread_mutex_unlock(&q->user_lock);
    return false;
}

bool gn_queue_acquire_alone(struct gn_cl_queue *q, cl_command_type type, cl_uint n,
                            const cl_event *waits, cl_int *result)
{
    *result = CL_SUCCESS;
    if (!is_only_user(q))
        return false;
    if (n || !gn_queue_idle(q)) {
        uint64_t sent = atomic_load_explicit(&q->n_sent, memory_order_acquire);
        if (!gn_queue_in_order(q))
            return false;
        *result = gn_marker_wait(q, type, n, waits, NULL);
        if (*result)
            return false;
        note_finished(q, sent + 1);
        gn_settle(q->o.session->detail);
    }
    return gn_queue_acquire_idle(q, result);
}

void gn_queue_leave(struct gn_cl_queue *q)
{
    pthread_mutex_unlock(&q->user_lock);
}
