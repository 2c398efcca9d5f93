/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_TRANSFER_H
#define GN_GUEST_TRANSFER_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * Data between the program's memory and a memory object, by way of the data area. In the area bytes
 * lie tightly, or as in_step says; in the program's memory as its pitches say.
 */
struct gn_layout {
    char *ptr;
    size_t row_bytes, rows, slices; /* what moves */
    size_t row_pitch, slice_pitch;  /* how it lies in the program's memory */
    bool in_step;                   /* it lies in the area as it does there */
};

enum gn_transfer_kind { GN_TRANSFER_BUFFER, GN_TRANSFER_RECT, GN_TRANSFER_IMAGE, GN_TRANSFER_SVM };

struct gn_transfer {
    enum gn_transfer_kind kind;
    bool write;
    struct gn_cl_mem *mem;
    size_t origin[3],
        region[3]; /* BUFFER: origin[0] and region[0], in bytes; SVM: an address, and bytes */
    size_t buffer_row_pitch, buffer_slice_pitch;
    size_t area_row_pitch,
        area_slice_pitch; /* RECT, IMAGE: how the driver finds it there; 0: tight */
    struct gn_layout host;
    cl_command_type type;
    int doubt;
    const char *from; /* of a write to another machine: take the bytes from here, not from the area;
                         NULL: the area */
};

static inline uint64_t gn_layout_bytes(const struct gn_layout *l)
{
    uint64_t bytes = 0;
    return gn_mul_u64(l->row_bytes, l->rows, &bytes) && gn_mul_u64(bytes, l->slices, &bytes)
               ? bytes
               : UINT64_MAX;
}

/* Whether a region of at least nothing lies inside an image. */
bool gn_inside_image(const struct gn_cl_mem *m, const size_t *origin, const size_t *region);

/* Sends the command for a transfer with its data at `ref`. */
cl_int gn_transfer_send(struct gn_cl_queue *q, const struct gn_transfer *t,
                        const struct gn_area_ref *ref, cl_uint n, const cl_event *waits,
                        const struct gn_command_show *show);

/* The whole of it: waits when blocking, else leaves what remains to gn_settle. Waits have been
 * checked. */
cl_int gn_transfer(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                   const cl_event *waits, cl_event *event);

/* The same, always by way of the data area. */
cl_int gn_transfer_staged(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking,
                          cl_uint n, const cl_event *waits, cl_event *event);

/*
 * Leaves the rest to gn_settle: when the event (a reference of the caller's, taken) is over, the
 * block's bytes are copied to `to` (NULL: nowhere) and the block is given back.
 */
cl_int gn_settle_later(struct gn_cl_session *s, struct gn_object *event, struct gn_block *block,
                       const struct gn_layout *to);
/* The same for what an unmap leaves: a reference of the caller's on the mapping is given back. */
/* The map of a buffer at home has begun: until the event is over it is being used. Takes a
 * reference of the event's. */
void gn_settle_home_later(struct gn_cl_session *s, struct gn_object *event);
void gn_settle_mapping_later(struct gn_cl_session *s, struct gn_object *event,
                             struct gn_cl_mapping *mapping);

#endif
