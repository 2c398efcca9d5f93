/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_COMPAT_H
#define GN_VGPU_OPENCL_DEVICE_COMPAT_H

#include "device_answers.h"

/*
 * The features of its devices that a vGPU uses, and those that another device lacks, compared with
 * the features in use or with the answers that the program received. Sizes are compared with sizes
 * in use: if the program later exceeds the new device, that call fails, as on any device that runs
 * out of a resource. Abilities are compared with the answers: the program may have chosen its
 * kernels by them.
 */

/* GN_PART_API of a "devices" entry. */
#define GN_USES_IT     1u /* a context has the device */
#define GN_USES_BINARY 2u /* a program exists only as a binary */
struct gn_saved_uses {
    uint32_t n_devices; /* of the vGPU: as many entries follow */
    uint32_t flags;
    /* device memory in use, of all devices together; size of the largest object */
    uint64_t memory_bytes, largest_bytes;
    /* size of the largest work-group launched, and its largest sides */
    uint64_t work_items, work_sizes[3];
    uint64_t local_bytes; /* the most local memory that a kernel takes */
    uint64_t queue_properties;
    uint64_t image2d[2], image3d[3], image_layers,
        image_elements; /* largest sides of images; number of elements of images over buffers */
    uint32_t sub_units; /* compute units of the largest sub-device made of it */
    uint32_t zero;
};

/* GN_PART_API + 1, any number of times: an image format in use. */
struct gn_saved_image {
    uint32_t order, type, kind, zero; /* as the specification numbers them */
    uint64_t flags;
};

struct gn_saved_kernel {
    uint64_t work_items; /* GN_PART_API of a kernel: size of its largest work-group so far */
};

#define GN_USED_IMAGES 64u /* image formats stored for each device; a driver has about as many */
struct gn_uses {
    struct gn_saved_uses most;
    struct gn_saved_image images[GN_USED_IMAGES];
    uint32_t n_images;
};

struct gn_vobject;
struct gn_record;
/* Collects the use of each of the vGPU's devices. The caller holds objects and records. */
void gn_uses_look(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  struct gn_record *const *records, uint32_t n_records, struct gn_uses *ret);

/*
 * The missing features as one sentence. Items that do not fit are counted; the log gets all of
 * them.
 */
struct gn_device_lacks {
    uint32_t n, left_out;
    size_t bytes;
    char text[320];
};
void gn_lack(struct gn_device_lacks *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends a list to another. */
void gn_device_compat_add(struct gn_device_lacks *l, const struct gn_device_lacks *more);
/*
 * Collects the features that `here` lacks of those that the program was `told` of, or that it uses.
 */
void gn_device_compat_check(struct gn_vgpu *v, uint32_t device,
                            const struct gn_device_answers_device *reported,
                            const struct gn_device_answers_device *here, const struct gn_uses *uses,
                            struct gn_device_lacks *l);

#endif
