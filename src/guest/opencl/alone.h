/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_ALONE_H
#define GN_GUEST_ALONE_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * Exclusive use of a queue. Some transfers are not one command in the vGPU: a copy made in this
 * process is none, a long transfer is several. In the vGPU nothing would keep another thread's
 * command from running in between. So a queue remembers the one thread that has used it. Only that
 * thread may make such a transfer; when a second thread first uses the queue, it waits for the
 * transfer in progress. From then on each of the queue's transfers is one command.
 */

/*
 * Waits until everything in the queue and `waits` is complete, and keeps other threads out. True:
 * ended by gn_queue_leave; until then the caller waits for nothing but the device. False: *result
 * is an error, or CL_SUCCESS when it is not possible (several threads, or a busy out-of-order
 * queue) and nothing has been done.
 */
bool gn_queue_acquire_alone(struct gn_cl_queue *q, cl_command_type type, cl_uint n,
                            const cl_event *waits, cl_int *result);
/* The same without waiting: also false when a command in the queue may be incomplete. */
bool gn_queue_acquire_idle(struct gn_cl_queue *q, cl_int *result);
void gn_queue_leave(struct gn_cl_queue *q);

/* Sends a marker, which waits for its wait list, or for all earlier commands in its queue. */
cl_int gn_send_marker(struct gn_cl_queue *q, cl_uint n, const cl_event *waits,
                      const struct gn_command_show *show);
/* Sends a marker with an event; the caller gets a reference on it. */
cl_int gn_marker_new(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                     struct gn_object **ret_event);
/* Sends a marker and waits for it. *ret_event (may be NULL) gets its event if it succeeded. */
cl_int gn_marker_wait(struct gn_cl_queue *q, cl_command_type type, cl_uint n, const cl_event *waits,
                      struct gn_object **ret_event);

/* Whether all commands of the queue are complete. */
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
