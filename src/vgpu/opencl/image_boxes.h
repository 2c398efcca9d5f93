/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_IMAGE_BOXES_H
#define GN_VGPU_OPENCL_IMAGE_BOXES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The pixels of an image in the order of a migration stream: row after row, slice after slice,
 * without padding. A run of pixels in that order is at most five boxes of the image: the end of a
 * row, whole rows, whole slices, whole rows, the beginning of a row. Pure.
 */
#define GN_IMAGE_MOST_BOXES 5u

struct gn_image_box {
    size_t origin[3], region[3]; /* in pixels, as OpenCL commands take them */
    uint64_t n_pixels;
};

/*
 * Computes the boxes of the pixels [first, first + n) of an image of this size, in order, and
 * returns their number. size: columns, rows (or lines of a 1-D array), slices (or layers), each at
 * least 1. The run must lie inside the image.
 */
unsigned gn_image_boxes(const size_t size[3], uint64_t first, uint64_t n,
                        struct gn_image_box ret[GN_IMAGE_MOST_BOXES]);

#endif
