/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_HOME_H
#define GN_GUEST_HOME_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * Homes: buffers that are allocated in the data area itself (GViM 3.2's one-copy and bypass paths).
 * Where the device uses the host's memory and the driver works in place, such a buffer is the same
 * memory for the program, the worker and the kernels: a map costs nothing, and a blocking read or
 * write is one copy, made in the program. Whether a buffer has a home is decided at creation, and
 * invisible to the program.
 */

#define GN_HOME_NOT_ASKED UINT64_MAX /* initial value of a context's home_limit */

/*
 * Whether a buffer with these flags and this host pointer may have a home, as far as is known in
 * this context.
 */
bool gn_home_wanted(struct gn_cl_context *c, cl_mem_flags flags, size_t size, const void *host_ptr);
/* The driver does not work in place: no buffer of the context will ask for a home again. */
void gn_home_refused(struct gn_cl_context *c);
/*
 * Before the release of a buffer with a home is sent: the block is freed when the driver has
 * released the buffer.
 */
void gn_home_release(struct gn_cl_mem *m);

struct gn_transfer;

/*
 * Reads or writes a buffer with a home by one copy, which is complete on return. A non-blocking
 * call does so only if it need not wait. True: done or failed, and *result is the call's result.
 * False: nothing was done, and the caller must transfer in another way (another thread uses the
 * queue, or earlier commands cannot be waited for).
 */
bool gn_home_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                  const cl_event *waits, cl_event *event, cl_int *result);

/*
 * The same over tcp, for a buffer with a far home: its bytes go directly between the program's
 * memory and the buffer's.
 */
bool gn_home_far_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_uint n,
                      const cl_event *waits, cl_int *result);
#define GN_HOME_FAR_BYTES (512u << 10)

#endif
