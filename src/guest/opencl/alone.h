/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_ALONE_H
#define GN_GUEST_ALONE_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * Being alone on a queue. Some transfers are not one command in the vGPU: a copy made here is none,
 * a long one is many. Nothing there would keep a command that another thread sends meanwhile from
 * running in the middle. So a queue remembers the one thread that has used it; only that thread may
 * make such a transfer, and a second one, when it first comes, waits until the one under way is
 * over. From then on the queue's transfers are one command each.
 */

/*
 * Waits until everything in the queue and `waits` is over, and keeps other threads off. True:
 * gn_queue_leave ends it; nothing waits meanwhile for anything but the device. False: *result is an
 * error, or CL_SUCCESS when this can't be had (several threads, or an out-of-order queue that is
 * busy) and nothing has happened.
 */
bool gn_queue_acquire_alone(struct gn_cl_queue *q, cl_command_type type, cl_uint n,
                            const cl_event *waits, cl_int *result);
/* The same without waiting: false, too, when something in the queue may not be over. */
bool gn_queue_acquire_idle(struct gn_cl_queue *q, cl_int *result);
void gn_queue_leave(struct gn_cl_queue *q);

/* A marker, which waits for what its wait list names, or for everything before it in its queue. */
cl_int gn_send_marker(struct gn_cl_queue *q, cl_uint n, const cl_event *waits,
                      const struct gn_command_show *show);
/* Sends one with an event, a reference of the caller's. */
cl_int gn_marker_new(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                     struct gn_object **ret_event);
/* Sends one and waits for it. *ret_event (may be NULL) is its event, when it ended well. */
cl_int gn_marker_wait(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                      struct gn_object **ret_event);

/* Nothing of the queue's is under way. */
static inline bool gn_queue_idle(struct gn_cl_queue *q)
{
    return atomic_load_explicit(&q->n_sent, memory_order_acquire) ==
           atomic_load_explicit(&q->n_finished, memory_order_acquire);
}

static inline bool gn_queue_in_order(const struct gn_cl_queue *q)
{
    return !(q->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

#endif
