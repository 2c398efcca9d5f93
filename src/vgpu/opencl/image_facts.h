/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_IMAGE_FACTS_H
#define GN_OPENCL_IMAGE_FACTS_H

#include <CL/cl_icd.h>
#include <stdbool.h>

/* A driver's answers to clGetImageInfo, kept while it has no image. */
struct gn_image_facts {
    cl_image_format format;
    size_t element_bytes, row_pitch, slice_pitch, width, height, depth, array_size;
    cl_uint n_levels, n_samples;
};

/* Any thread. False: the driver does not answer; *ret is undefined then. */
bool gn_image_facts_read(const cl_icd_dispatch *cl, cl_mem image, struct gn_image_facts *ret);
/* The answer and its bytes; it points into *f. NULL: no such query is kept. */
const void *gn_image_facts_find(const struct gn_image_facts *f, cl_image_info name,
                                size_t *ret_bytes);

#endif
