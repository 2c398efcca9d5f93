/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_OPENCL_DEVICE_COMPAT_H
#define GN_VGPU_OPENCL_DEVICE_COMPAT_H

#include "device_answers.h"

/*
 * What a vGPU makes use of on each of its devices, and what another device lacks of that, or of
 * what the program was told it can rely on. A size is held to what is in use: a program that later
 * wants more than there is is told so by that call, as by any device that has run out of something.
 * Abilities are held to what it was told: it may have chosen its kernels by them.
 */

/* GN_PART_API of a "devices" entry. */
#define GN_USES_IT     1u /* a context has the device */
#define GN_USES_BINARY 2u /* a program is known by a binary alone */
struct gn_saved_uses {
    uint32_t n_devices; /* of the vGPU: so many entries come */
    uint32_t flags;
    uint64_t memory_bytes,
        largest_bytes; /* device memory it holds, all its devices together; the largest object */
    uint64_t work_items, work_sizes[3]; /* the largest work-group launched, and its largest sides */
    uint64_t local_bytes;               /* the most that a kernel takes */
    uint64_t queue_properties;
    uint64_t image2d[2], image3d[3], image_layers,
        image_elements; /* the largest sides; of images over buffers */
    uint32_t sub_units; /* compute units of the largest part that was made of it */
    uint32_t zero;
};

/* GN_PART_API + 1, as often as needed: a format of images that it has. */
struct gn_saved_image {
    uint32_t order, type, kind, zero; /* as the specification numbers them */
    uint64_t flags;
};

struct gn_saved_kernel {
    uint64_t work_items; /* GN_PART_API of a kernel: of its largest work-group so far */
};

#define GN_USED_IMAGES                                                                             \
    64u /* kinds of images that are told of each device; a driver has about as many */
struct gn_uses {
    struct gn_saved_uses most;
    struct gn_saved_image images[GN_USED_IMAGES];
    uint32_t n_images;
};

struct gn_vobject;
struct gn_record;
/* Of each of the vGPU's devices. Objects and records are held. */
void gn_uses_look(struct gn_vgpu *v, struct gn_vobject *const *objects, uint32_t n,
                  struct gn_record *const *records, uint32_t n_records, struct gn_uses *ret);

/* The list, as one sentence; what does not fit is counted, and all of it goes to the log. */
struct gn_device_lacks {
    uint32_t n, left_out;
    size_t bytes;
    char text[320];
};
void gn_lack(struct gn_device_lacks *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A list behind another. */
void gn_device_compat_add(struct gn_device_lacks *l, const struct gn_device_lacks *more);
/* What `here` lacks that the program was `told`, or that is used. */
void gn_device_compat_check(struct gn_vgpu *v, uint32_t device,
                            const struct gn_device_answers_device *told,
                            const struct gn_device_answers_device *here, const struct gn_uses *uses,
                            struct gn_device_lacks *l);

#endif
