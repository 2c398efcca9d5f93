/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the data in the data area that a message carries to the vGPU, from the message alone: for
 * messages that were put into the ring before the program knew that its vGPU is on another machine
 * (guest/migrate/ring_relay.c). Called by the relay. Never reads the data itself.
 */
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
        /*
         * The message does not contain the size of the image's elements. 0: the whole block, which
         * belongs to this write alone.
         */
        BRINGS(clEnqueueWriteImage, ptr, 0)
    default:
        return false;
    }
}
