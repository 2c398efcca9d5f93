/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_OPENCL_BACKING_H
#define GN_OPENCL_BACKING_H

#include "memory_copy.h"

#include "base/list.h"
#include "migrate/page_hash.h"

#include <stdint.h>

struct gn_backing_device;
struct gn_vgpu;

/*
 * Host memory with the contents of a memory object that is evicted, or of one that is in the driver
 * and may have been written since. On a device that hashes pages, only those are copied out that
 * differ.
 */
struct gn_backing {
    unsigned char *bytes;   /* owned; NULL: none */
    unsigned char *digests; /* owned; of the pages of `bytes`, by the device; NULL: not known */
};

static inline bool gn_backing_has_bytes(const struct gn_backing *b)
{
    return b->bytes != NULL;
}

/* Room for so many bytes, of no contents yet. False: no memory. */
bool gn_backing_init(struct gn_backing *b, uint64_t bytes);
/* All zeros is allowed. */
void gn_backing_fini(struct gn_backing *b);

/*
 * Makes the backing's contents those of c->mem. holds: it has earlier contents of it; then pages
 * that are known to be equal are not copied. on: the device that hashes, if its memory has room for
 * that; NULL: no device hashes. Adds the bytes that have come from the device, with digests. After
 * an error the backing has no contents. No other thread uses the memory.
 */
cl_int gn_backing_save(struct gn_vgpu *v, struct gn_backing *b, const struct gn_copied *c,
                       bool holds, struct gn_backing_device *on, uint64_t *copied_bytes);
/* Copies the backing into c->mem, which is new. */
cl_int gn_backing_load(struct gn_vgpu *v, const struct gn_backing *b, const struct gn_copied *c);

/* ---- devices that hash: one for each context with such backings */

/* What hashing takes of the device's memory, at most. */
#define GN_BACKING_HASH_BYTES (UINT64_C(512) << 10)

struct gn_backing_devices {
    struct gn_list contexts;      /* of struct gn_backing_device */
    struct gn_page_hasher hasher; /* while there is one of them */
};

void gn_backing_devices_init(struct gn_backing_devices *all);
/* The device of c's context, with a reference. NULL: it does not hash such memory. Takes no memory
 * of the device. */
struct gn_backing_device *gn_backing_device_get(struct gn_vgpu *v, struct gn_backing_devices *all,
                                                cl_context context, const struct gn_copied *c);
/* NULL is allowed. */
void gn_backing_device_put(struct gn_backing_devices *all, struct gn_backing_device *d);
/* Gives back the devices' memory that hashing has taken. Nothing is being hashed. */
void gn_backing_devices_trim(struct gn_backing_devices *all);

#endif
