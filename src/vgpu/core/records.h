/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_RECORDS_H
#define GN_VGPU_RECORDS_H

#include <stdint.h>

struct gn_request;
struct gn_vgpu;
struct gn_vobject;

/*
 * The requests that the live objects were made from, without history (Crane 4.1.1, 4.1.2). A record
 * is a complete, private copy of a request that made or changed objects. It holds the records of
 * all objects that the request names, so a live object's inputs exist as long as it does, even
 * after the program has released them: a linked program object keeps the sources it was linked
 * from, not the program objects. A repeated change replaces the record before it; requests that add
 * to an object (class->adds) are all kept.
 *
 * Serving the records again in the order of their serials recreates the objects under the same ids.
 * Records are reference-counted under the objects' lock, and immutable.
 */
struct gn_record {
    uint32_t n_refs; /* under the objects' lock */
    uint32_t op;
    uint64_t serial; /* order in which this vGPU served the requests */
    int32_t result;  /* of the request: a failed program build is a record, too */
    uint32_t n_bytes;
    uint32_t n_pins;
    /* References: the records of the objects that the request named. */
    struct gn_record **pins;
    struct gn_build_includes *files; /* include files that the build has read; NULL: none */
    /* The message, followed by its bytes from the data area, with its spans adjusted. */
    unsigned char bytes[];
};

/* One of an object's records: the request that made it, and each that changed it since. */
struct gn_record_link {
    struct gn_record_link *next;
    struct gn_record *record;
};

/* The request has made or changed o. One request has one record, however many objects it makes. */
void gn_object_record(struct gn_vobject *o, struct gn_request *r, int32_t result);
/*
 * The serial of the record that made the object; 0: no request did, or there was no memory for a
 * record. Any thread.
 */
uint64_t gn_object_made_by(const struct gn_vobject *o);
/* Marks the object: its records do not suffice to recreate it. */
void gn_object_unsaveable(struct gn_vobject *o);
/* Called when the object is released. */
void gn_object_forget_records(struct gn_vobject *o);
/* Called when the request is over. */
void gn_request_forget_record(struct gn_request *r);

/*
 * Gathers the records that all live objects need, and those of the objects in `kept` that pending
 * commands keep (released_objects.c), sorted by serial, each with a reference until gn_records_put;
 * if ret_objects is not NULL also those objects, each with a reference until gn_objects_put.
 * Objects that are still being made are left out, and so are the platform and the devices, which no
 * request made; records of changes to them are included. 0, -ENOMEM, or -ENODATA when an object's
 * records do not suffice to recreate it. Any thread, at any time.
 */
int gn_records_gather(struct gn_vgpu *v, struct gn_vobject *const *kept, uint32_t n_kept,
                      struct gn_record ***ret, uint32_t *ret_n, struct gn_vobject ***ret_objects,
                      uint32_t *ret_n_objects);
void gn_records_put(struct gn_vgpu *v, struct gn_record **records, uint32_t n);
void gn_objects_put(struct gn_vobject **objects, uint32_t n);

#endif
