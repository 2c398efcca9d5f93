/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of image_boxes.c: every run of pixels of small images of each shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "vgpu/opencl/image_boxes.h"

/* Checks that the boxes cover each pixel of the run once, in order, and no other. */
static void check_run(const size_t size[3], uint64_t first, uint64_t n)
{
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    const unsigned n_boxes = gn_image_boxes(size, first, n, boxes);
    uint64_t at = first;
    assert_true(n_boxes <= GN_IMAGE_MOST_BOXES);
    for (unsigned i = 0; i < n_boxes; i++) {
        const struct gn_image_box *b = &boxes[i];
        assert_int_equal(b->n_pixels, b->region[0] * b->region[1] * b->region[2]);
        for (size_t z = 0; z < b->region[2]; z++)
            for (size_t y = 0; y < b->region[1]; y++)
                for (size_t x = 0; x < b->region[0]; x++, at++)
                    assert_int_equal(at,
                                     ((b->origin[2] + z) * size[1] + b->origin[1] + y) * size[0] +
                                         b->origin[0] + x);
        for (int d = 0; d < 3; d++)
            assert_true(b->region[d] && b->origin[d] + b->region[d] <= size[d]);
    }
    assert_int_equal(at, first + n);
}

static void every_run_of_small_images(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {7, 1, 1}, {1, 5, 1}, {1, 1, 4},
                                      {3, 4, 1}, {4, 1, 3}, {3, 2, 5}};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint64_t all = sizes[s][0] * sizes[s][1] * sizes[s][2];
        for (uint64_t first = 0; first < all; first++)
            for (uint64_t n = 1; n <= all - first; n++)
                check_run(sizes[s], first, n);
    }
}

static void whole_image_is_one_box(void **state)
{
    const size_t size[3] = {1920, 1080, 3};
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    (void)state;
    assert_int_equal(gn_image_boxes(size, 0, UINT64_C(1920) * 1080 * 3, boxes), 1);
    assert_int_equal(gn_image_boxes(size, 0, 0, boxes), 0);
}

static void run_across_slices_is_five_boxes(void **state)
{
    const size_t size[3] = {10, 10, 10};
    struct gn_image_box boxes[GN_IMAGE_MOST_BOXES];
    (void)state;
    assert_int_equal(gn_image_boxes(size, 55, 390, boxes), 5);
    check_run(size, 55, 390);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_run_of_small_images),
        cmocka_unit_test(whole_image_is_one_box),
        cmocka_unit_test(run_across_slices_is_five_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
