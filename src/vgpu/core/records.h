/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_RECORDS_H
#define GN_VGPU_RECORDS_H

#include <stdint.h>

struct gn_request;
struct gn_vgpu;
struct gn_vobject;

/*
 * What the live objects were made from, and no history (Crane 4.1.1, 4.1.2). A record is a request
 * that made objects or changed one, whole and private. It holds the records of everything it names,
 * so that what a live object needs is there as long as it is, whether or not the program still has
 * a handle on it: a linked program keeps the sources it was linked from, not the programs. A change
 * that is made again takes the place of the one before; of requests that add to an object
 * (class->adds) all stay.
 *
 * Serving the records anew in the order of their serials makes the objects anew, under the same
 * ids. Records are counted, under the objects' lock; what is in one never changes.
 */
struct gn_record {
    uint32_t n_refs; /* objects' lock */
    uint32_t op;
    uint64_t serial; /* of this vGPU's records; the order in which their requests were served */
    int32_t result;  /* of the request: a program that did not build is one, too */
    uint32_t n_bytes;
    uint32_t n_pins;
    struct gn_record **pins;         /* held: the records of the objects that the request named */
    struct gn_build_includes *files; /* those of the program's that it has read; NULL: none */
    unsigned char
        bytes[]; /* the message; what lay in the data area stands behind it, and its span says so */
};

/* An object's own: what made it, and what has changed it since. */
struct gn_record_link {
    struct gn_record_link *next;
    struct gn_record *record;
};

/* The request has made o, or changed it. A request makes one record, however many objects it makes.
 */
void gn_object_record(struct gn_vobject *o, struct gn_request *r, int32_t result);
/* The serial of the record that made it; 0: nothing did, or there was no memory for one. Any
 * thread. */
uint64_t gn_object_made_by(const struct gn_vobject *o);
/* Its records do not hold all that makes it. */
void gn_object_unsaveable(struct gn_vobject *o);
/* The object is gone. */
void gn_object_forget_records(struct gn_vobject *o);
/* The request is over. */
void gn_request_forget_record(struct gn_request *r);

/*
 * The records that all live objects need, and these that pending commands keep
 * (released_objects.h), by serial, each held until gn_records_put; and, when asked for, those
 * objects, each held until gn_objects_put. An object that is just being made is not among them, nor
 * are platform and devices, which nothing made: of them there are the records of what has changed
 * them. 0, -ENOMEM, or -ENODATA when an object's records do not hold all that makes it. Any thread,
 * at any time.
 */
int gn_records_gather(struct gn_vgpu *v, struct gn_vobject *const *kept, uint32_t n_kept,
                      struct gn_record ***ret, uint32_t *ret_n, struct gn_vobject ***ret_objects,
                      uint32_t *ret_n_objects);
void gn_records_put(struct gn_vgpu *v, struct gn_record **records, uint32_t n);
void gn_objects_put(struct gn_vobject **objects, uint32_t n);

#endif
