/* SPDX-License-Identifier: Apache-2.0 */
/* What of the data area a message takes along to the vGPU, told from the message alone: for those
 * that were put into the ring before anybody knew that the vGPU is on another machine
 * (guest/migrate/ring_relay.c). */
#include "opencl_guest.h"
#include "opencl_pixel.h"
#include "opencl_wire.h"

#include <string.h>

#define BRINGS(call, ref, n)                                                                       \
    case GN_OP_##call: {                                                                           \
        const struct gn_wire_##call *w = message;                                                  \
        if (n_bytes < sizeof *w)                                                                   \
            return false;                                                                          \
        *ret_ref = w->ref;                                                                         \
        *ret_bytes = (n);                                                                          \
        return true;                                                                               \
    }

bool gn_opencl_brings(const void *message, uint32_t n_bytes, struct gn_area_ref *ret_ref,
                      uint64_t *ret_bytes)
{
    switch (((const struct gn_msg *)message)->op) {
        BRINGS(Buffer, host_ptr, w->initial)
        BRINGS(Image, host_ptr, w->initial)
        BRINGS(clEnqueueWriteBuffer, ptr, w->size)
        BRINGS(clEnqueueWriteBufferRect, ptr,
               gn_pitched_bytes(1, w->region, w->host_row_pitch, w->host_slice_pitch, false))
        /* How large an element of the image is it does not say; what is written has a block of its
         * own. */
        BRINGS(clEnqueueWriteImage, ptr, 0)
    default:
        return false;
    }
}
