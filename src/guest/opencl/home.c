/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers with their home in the data area: see home.h. Called on the program's threads. Only the
 * copies of blocking calls wait for the device.
 */
#include "home.h"

#include "alone.h"

#include "base/clock.h"
#include "guest/session/session_ops.h"
#include "opencl_guest.h"
#include "transfer.h"

#include <string.h>

#define ACCESS      (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

static bool has_one_bit_at_most(cl_mem_flags flags)
{
    return !(flags & (flags - 1));
}

/*
 * The driver must see an invalid use as the program made it: only plainly valid buffers get a home.
 */
static bool is_plainly_valid(cl_mem_flags flags, const void *host_ptr)
{
    return !(flags & ~(cl_mem_flags)(ACCESS | HOST_ACCESS | CL_MEM_ALLOC_HOST_PTR |
                                     CL_MEM_COPY_HOST_PTR)) &&
           has_one_bit_at_most(flags & ACCESS) && has_one_bit_at_most(flags & HOST_ACCESS) &&
           !(flags & CL_MEM_COPY_HOST_PTR) == !host_ptr;
}

bool gn_home_wanted(struct gn_cl_context *c, cl_mem_flags flags, size_t size, const void *host_ptr)
{
    uint64_t limit = atomic_load_explicit(&c->home_limit, memory_order_relaxed);
    /*
     * Over tcp a home pays for large buffers only: their data is sent and received without a copy
     * on the other side.
     */
    if (!is_plainly_valid(flags, host_ptr) || !size ||
        (!gn_session_shares_memory(c->o.session) && size < GN_HOME_FAR_BYTES))
        return false;
    if (limit == GN_HOME_NOT_ASKED) {
        cl_ulong largest = 0;
        /* Devices that share a context may each have their own memory. */
        if (c->n_devices != 1 ||
            gn_send_clGetDeviceInfo(c->o.session, (cl_device_id)c->devices[0],
                                    CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL))
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

void gn_home_release(struct gn_cl_mem *m)
{
    struct gn_session *s = m->o.session;
    uint32_t event = gn_event_index_alloc(s);
    /*
     * Without an event index it cannot be known when the block is free: it stays allocated while
     * the session lives.
     */
    if (event == GN_NO_EVENT)
        return;
    gn_send_LeaveHome(s, m->o.id, event);
    gn_block_put_when(s, &m->home_block, event);
}

/* ---- reads and writes as one copy */

bool gn_home_far_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_uint n,
                      const cl_event *waits, cl_int *result)
{
    struct gn_session *s = q->o.session;
    struct gn_area_ref ref = gn_block_ref(&t->mem->home_block, t->origin[0]),
                       none = {GN_SPAN_NULL, 0, 0};
    const size_t bytes = t->region[0];
    if (!gn_queue_in_order(q))
        return false;
    if (!gn_queue_acquire_alone(q, t->type, n, waits, result))
        return *result != CL_SUCCESS;
    if (!gn_data_begin(s)) {
        gn_queue_leave(q);
        return false;
    }
    if (t->write) {
        *result = gn_data_ship(s, &ref, t->host.ptr, bytes)
                      ? CL_OUT_OF_RESOURCES
                      : gn_send_HomeBytes(s, t->mem->o.id, &none, 0);
        if (*result)
            gn_data_forget(s, t->host.ptr, bytes);
    } else {
        bool landed = gn_data_land(s, &ref, t->host.ptr, bytes);
        *result = gn_send_HomeBytes(s, t->mem->o.id, &ref, bytes);
        if (landed)
            gn_data_landed(s, &ref);
        else if (!*result)
            memcpy(t->host.ptr, (char *)t->mem->home_block.base + t->origin[0], bytes);
    }
    gn_data_end(s, true);
    gn_queue_leave(q);
    return true;
}

bool gn_home_copy(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                  const cl_event *waits, cl_event *event, cl_int *result)
{
    char *home = t->mem->home + t->origin[0];
    uint64_t queued_ns = event ? gn_now_ns() : 0;
    if (blocking ? !gn_queue_acquire_alone(q, t->type, n, waits, result)
                 : n || !gn_queue_acquire_idle(q, result))
        return *result != CL_SUCCESS;
    uint64_t start_ns = event ? gn_now_ns() : 0;
    memcpy(t->write ? home : t->host.ptr, t->write ? t->host.ptr : home, t->region[0]);
    gn_queue_leave(q);
    gn_session_copied(q->o.session, GN_COPIED_ONCE);
    if (event) {
        /*
         * The vGPU must know an event that other commands may wait for. Its times are those of the
         * copy.
         */
        struct gn_object *shown;
        *result = blocking ? gn_marker_wait(q, t->type, 0, NULL, &shown)
                           : gn_marker_new(q, t->type, 0, NULL, &shown);
        if (!*result) {
            struct gn_cl_event *e = (void *)shown;
            e->queued_ns = queued_ns;
            e->first.submit_ns = e->first.start_ns = start_ns;
            *event = (cl_event)shown;
        }
    }
    return true;
}
