/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a run of an image's pixels into boxes. Called by whichever thread reads or writes an
 * image's contents during a migration; calls nothing and keeps nothing.
 */
#include "vgpu/opencl/image_boxes.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The largest box that begins at this pixel and holds only pixels of the run. */
static struct gn_image_box next_box(const size_t size[3], uint64_t first, uint64_t n)
{
    const uint64_t row = size[0], slice = row * size[1];
    const uint64_t x = first % row, y = first / row % size[1], z = first / slice;
    struct gn_image_box box = {.origin = {x, y, z}, .region = {1, 1, 1}};
    if (x || n < row) {
        box.region[0] = least(n, row - x);
    } else if (y || n < slice) {
        box.region[0] = row;
        box.region[1] = least(n / row, size[1] - y);
    } else {
        box.region[0] = row;
        box.region[1] = size[1];
        box.region[2] = n / slice;
    }
    box.n_pixels = (uint64_t)box.region[0] * box.region[1] * box.region[2];
    return box;
}

unsigned gn_image_boxes(const size_t size[3], uint64_t first, uint64_t n,
                        struct gn_image_box ret[GN_IMAGE_MOST_BOXES])
{
    unsigned n_boxes = 0;
    while (n) {
        ret[n_boxes] = next_box(size, first, n);
        first += ret[n_boxes].n_pixels;
        n -= ret[n_boxes].n_pixels;
        n_boxes++;
    }
    return n_boxes;
}
