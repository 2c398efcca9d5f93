/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_PIXEL_H
#define GN_OPENCL_PIXEL_H

#include "base/checked.h"

#include <CL/cl.h>

/*
 * Bytes of one element of an image format, by the specification's table of channel types; 0 for an
 * unknown format. Guest and vGPU both use it: neither believes the other's sizes.
 */
static inline size_t gn_pixel_bytes(const cl_image_format *f)
{
    size_t channels, bytes;
    switch (f->image_channel_order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
    case CL_Rx:
        channels = 1;
        break;
    case CL_RG:
    case CL_RA:
    case CL_RGx:
        channels = 2;
        break;
    case CL_RGB:
    case CL_RGBx:
    case CL_sRGB:
    case CL_sRGBx:
        channels = 3;
        break;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA:
        channels = 4;
        break;
    case CL_DEPTH_STENCIL:
        return f->image_channel_data_type == CL_FLOAT ? 8 : 4;
    default:
        return 0;
    }
    switch (f->image_channel_data_type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
        bytes = 1;
        break;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
        bytes = 2;
        break;
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
        return 2;
    case CL_UNORM_INT_101010:
    case CL_UNORM_INT_101010_2:
        return 4;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
        bytes = 4;
        break;
    default:
        return 0;
    }
    /* RGBx and sRGBx store the unused channel. */
    if (f->image_channel_order == CL_RGBx || f->image_channel_order == CL_sRGBx)
        channels = 4;
    return channels * bytes;
}

/*
 * Bytes that an image region may touch in host memory; a pitch of 0 is tight. `lines`: an array of
 * one-dimensional images, which lie a slice pitch apart in the second dimension. Saturates.
 */
static inline uint64_t gn_pitched_bytes(uint64_t element, const uint64_t *region,
                                        uint64_t row_pitch, uint64_t slice_pitch, bool lines)
{
    uint64_t row = 0, slice = 0, bytes = 0;
    if (!gn_mul_u64(region[0], element, &row))
        return UINT64_MAX;
    if (row < row_pitch)
        row = row_pitch;
    if (lines && row < slice_pitch)
        row = slice_pitch;
    if (!gn_mul_u64(row, region[1], &slice))
        return UINT64_MAX;
    if (!lines && slice < slice_pitch)
        slice = slice_pitch;
    return gn_mul_u64(slice, region[2], &bytes) ? bytes : UINT64_MAX;
}

#endif
