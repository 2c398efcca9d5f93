/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_HOME_H
#define GN_GUEST_HOME_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * Homes: buffers that lie in the data area itself (GViM 3.2's one-copy and bypass paths). Where the
 * device works on the host's memory and the driver does so in place, such a buffer is the same
 * memory for the program, the worker and the kernels: a map costs nothing, a blocking read or write
 * one copy, made here. Which buffers have one is chosen at creation; nothing that a program can ask
 * shows it.
 */

#define GN_HOME_NOT_ASKED UINT64_MAX /* of a context's home_limit */

/* The flags and host pointer of a buffer that may have a home, in a context that has not been told
 * otherwise.
 */
bool gn_home_wanted(struct gn_cl_context *c, cl_mem_flags flags, size_t size, const void *host_ptr);
/* The driver does not work in place: no buffer of the context need ask again. */
void gn_home_refused(struct gn_cl_context *c);
/* Before the end of a buffer with a home of its own is told: the block comes back when the driver
 * has let go.
 */
void gn_home_leave(struct gn_cl_mem *m);

struct gn_transfer;

/*
 * A read or write of a buffer at home by one copy, which is over when this returns. One that does
 * not block is made so only when there is nothing to wait for. True: it was done, or failed, and
 * *result is what the call answers. False: nothing has happened; it goes another way (another
 * thread uses the queue, or what lies before it cannot be waited for).
 */
bool gn_home_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                  const cl_event *waits, cl_event *event, cl_int *result);

/*
 * The same between machines, for a buffer with a far home: its bytes go straight from the program's
 * memory to the buffer's and back.
 */
bool gn_home_far_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_uint n,
                      const cl_event *waits, cl_int *result);
#define GN_HOME_FAR_BYTES (512u << 10)

#endif
