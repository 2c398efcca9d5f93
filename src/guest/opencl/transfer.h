/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_TRANSFER_H
#define GN_GUEST_TRANSFER_H

#include "guest/opencl/opencl_guest_rt.h"

/*
 * A transfer between the program's memory and a memory object, through the data area. In the data
 * area bytes lie without gaps, unless in_step is set; in the program's memory they lie as its
 * pitches say.
 */
struct gn_layout {
    char *ptr;
    size_t row_bytes, rows, slices; /* the data to transfer */
    size_t row_pitch, slice_pitch;  /* layout in the program's memory */
    bool in_step;                   /* the data area uses the same pitches */
};

enum gn_transfer_kind { GN_TRANSFER_BUFFER, GN_TRANSFER_RECT, GN_TRANSFER_IMAGE, GN_TRANSFER_SVM };

struct gn_transfer {
    enum gn_transfer_kind kind;
    bool write;
    struct gn_cl_mem *mem;
    /* BUFFER: origin[0] and region[0], in bytes; SVM: an address, and bytes. */
    size_t origin[3], region[3];
    size_t buffer_row_pitch, buffer_slice_pitch;
    /* RECT, IMAGE: pitches in the data area, for the driver; 0: no gaps. */
    size_t area_row_pitch, area_slice_pitch;
    struct gn_layout host;
    cl_command_type type;
    int doubt;
    const char *from; /* a write over tcp: source of the bytes; NULL: the data area */
};

static inline uint64_t gn_layout_bytes(const struct gn_layout *l)
{
    uint64_t bytes = 0;
    return gn_mul_u64(l->row_bytes, l->rows, &bytes) && gn_mul_u64(bytes, l->slices, &bytes)
               ? bytes
               : UINT64_MAX;
}

/* Whether a region, possibly empty, lies inside an image. */
bool gn_inside_image(const struct gn_cl_mem *m, const size_t *origin, const size_t *region);

/* Sends the command for a transfer with its data at `ref`. */
cl_int gn_transfer_send(struct gn_cl_queue *q, const struct gn_transfer *t,
                        const struct gn_area_ref *ref, cl_uint n, const cl_event *waits,
                        const struct gn_command_show *show);

/*
 * Makes a transfer: waits if it is blocking, else leaves the rest to gn_settle. The wait list has
 * been checked.
 */
cl_int gn_transfer(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking, cl_uint n,
                   const cl_event *waits, cl_event *event);

/* The same, always through the data area. */
cl_int gn_transfer_staged(struct gn_cl_queue *q, const struct gn_transfer *t, cl_bool blocking,
                          cl_uint n, const cl_event *waits, cl_event *event);

/*
 * Leaves the rest to gn_settle: when the event (takes the caller's reference) is complete, copies
 * the block to `to` (NULL: not) and frees the block.
 */
cl_int gn_settle_later(struct gn_cl_session *s, struct gn_object *event, struct gn_block *block,
                       const struct gn_layout *to);
/*
 * A map of a buffer at home has begun: the home stays in use until the event is complete. Takes the
 * caller's reference on the event.
 */
void gn_settle_home_later(struct gn_cl_session *s, struct gn_object *event);
/* The same after an unmap: releases the caller's reference on the mapping. */
void gn_settle_mapping_later(struct gn_cl_session *s, struct gn_object *event,
                             struct gn_cl_mapping *mapping);

#endif
