/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_MEMORY_COPY_H
#define GN_OPENCL_MEMORY_COPY_H

#include <CL/cl_icd.h>
#include <stdbool.h>
#include <stdint.h>

/* Of the device's memory, the least with which memory that is closed to the host is copied. */
#define GN_COPY_LEAST_BYTES (UINT64_C(64) << 10)

struct gn_vgpu;

/*
 * The bytes of a memory object, to and from host memory: a buffer's, or an image's pixels row after
 * row, slice after slice, without padding. Memory that the program has closed to host reads or
 * writes (CL_MEM_HOST_*) is copied on the device, to or from a buffer that is open to them, of up
 * to 4 MiB. The device may be full: the buffer is as large as the driver allows.
 */

/* A queue of Gantry's own, in order, invisible to the program. One thread at a time. */
struct gn_copy_queue {
    cl_context context; /* its own reference */
    cl_command_queue queue;
    cl_mem between; /* between_bytes large; NULL: not needed yet */
    uint64_t between_bytes;
};

/* Is memory with these flags copied by way of a buffer that is open to the host? */
static inline bool gn_is_closed(cl_mem_flags flags)
{
    return flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS);
}

/* In the context of the memory, on the first of its devices. False: the driver makes no queue. */
bool gn_copy_queue_open(struct gn_vgpu *v, cl_mem mem, struct gn_copy_queue *ret);
/* Waits until the queue is empty, and the driver has freed the buffer between, for two seconds at
 * most. */
void gn_copy_queue_close(struct gn_vgpu *v, struct gn_copy_queue *q);

struct gn_copied {
    cl_mem mem; /* borrowed */
    cl_mem_object_type type;
    cl_mem_flags flags;
    uint64_t bytes;
    /* of an image: columns, rows (or lines of a 1-D array), slices (or layers); 0 of a buffer */
    size_t size[3], pixel_bytes;
};

static inline bool gn_copied_is_image(const struct gn_copied *c)
{
    return c->pixel_bytes != 0;
}

/*
 * pixel_bytes: of an image's element; 0: a buffer. Of an image with mip levels the first level.
 * False: the driver does not tell.
 */
bool gn_copied_describe(const cl_icd_dispatch *cl, cl_mem mem, size_t pixel_bytes,
                        struct gn_copied *ret);
/*
 * The bytes [at, at + n), which lie within the object; of an image they may begin and end within a
 * pixel. Returns after the copy; on an error part of it may have been made. The queue's thread.
 */
cl_int gn_memory_read(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                      uint64_t at, uint64_t n, void *to);
cl_int gn_memory_write(struct gn_vgpu *v, struct gn_copy_queue *q, const struct gn_copied *c,
                       uint64_t at, uint64_t n, const void *from);

#endif
