/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's answers about an image, for the time in which the image is evicted (residency.c).
 * Called on any thread; it has no state of its own.
 */
#include "image_facts.h"

#include "base/checked.h"

#include <stddef.h>

static const struct {
    cl_image_info name;
    size_t offset, bytes;
} facts[] = {
#define FACT(name, member)                                                                         \
    {                                                                                              \
        name, offsetof(struct gn_image_facts, member),                                             \
            sizeof(((struct gn_image_facts *)0)->member)                                           \
    }
    FACT(CL_IMAGE_FORMAT, format),
    FACT(CL_IMAGE_ELEMENT_SIZE, element_bytes),
    FACT(CL_IMAGE_ROW_PITCH, row_pitch),
    FACT(CL_IMAGE_SLICE_PITCH, slice_pitch),
    FACT(CL_IMAGE_WIDTH, width),
    FACT(CL_IMAGE_HEIGHT, height),
    FACT(CL_IMAGE_DEPTH, depth),
    FACT(CL_IMAGE_ARRAY_SIZE, array_size),
    FACT(CL_IMAGE_NUM_MIP_LEVELS, n_levels),
    FACT(CL_IMAGE_NUM_SAMPLES, n_samples),
#undef FACT
};

bool gn_image_facts_read(const cl_icd_dispatch *cl, cl_mem image, struct gn_image_facts *ret)
{
    *ret = (struct gn_image_facts){0};
    for (size_t i = 0; i < GN_ARRAY_SIZE(facts); i++)
        if (cl->clGetImageInfo(image, facts[i].name, facts[i].bytes, (char *)ret + facts[i].offset,
                               NULL))
            return false;
    return true;
}

const void *gn_image_facts_find(const struct gn_image_facts *f, cl_image_info name,
                                size_t *ret_bytes)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(facts); i++) {
        if (facts[i].name == name) {
            *ret_bytes = facts[i].bytes;
            return (const char *)f + facts[i].offset;
        }
    }
    return NULL;
}
