/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_REQUEST_H
#define GN_VGPU_REQUEST_H

#include "base/checked.h"
#include "base/list.h"
#include "vgpu/core/objects.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Requests: decoding a message, serving it, and its answer. */
struct gn_command;
struct gn_record;
struct gn_vgpu;

#define GN_WRITES_ARGS  UINT32_MAX
#define GN_SPAN_PRIVATE (UINT32_MAX - 1)

#define GN_REQUEST_MAX_OUTS 4u
#define GN_REQUEST_MAX_HELD 8u
#define GN_REQUEST_MAX_INS  6u

struct gn_build_includes;
struct gn_request {
    struct gn_vgpu *vgpu;
    const struct gn_request_class *class;
    struct gn_list link; /* in the helper's queue */
    uint32_t n_bytes;
    bool off_ring;  /* on the helper thread or the lease thread: it may wait */
    bool defer;     /* nothing has been done: to be served anew on the lease thread */
    bool fault;     /* sticky: the guest broke the protocol */
    bool absent;    /* sticky: nothing has been done: to be served anew once the memory that it
                       needs is in the driver */
    bool refused;   /* what it has waited for does not come */
    bool pins;      /* set before a charge: the object that is made can never be evicted */
    bool no_memory; /* sticky: answered, and nothing done */
    bool answered;
    struct gn_area_ref brings; /* this data goes ahead of the answer, unless memory is shared */
    uint64_t brings_bytes;
    int32_t result;
    uint64_t charged_bytes;   /* taken from the lease; the part that no object has got goes back at
                                 the end */
    uint64_t wants_bytes;     /* with `defer`: to be charged before it is served anew */
    uint64_t wants_pin_bytes; /* with `defer`: charged bytes that are to be pinned, too */
    uint64_t ahead_bytes;     /* charged before it was served; not in charged_bytes yet */
    uint64_t lacks_bytes;     /* the charge that was refused; 0: none */
    uint32_t n_outs, n_ins, n_held, n_arrays;
    struct {
        const struct gn_span *span;
        void *bytes;
    } outs[GN_REQUEST_MAX_OUTS],
        ins[GN_REQUEST_MAX_INS]; /* ins: private copies of data in the area */
    struct gn_vobject *held[GN_REQUEST_MAX_HELD];
    struct {
        struct gn_vobject **objects;
        uint64_t n;
    } arrays[2];
    struct gn_record *record;   /* of the objects that it has made or changed; NULL: none yet */
    const unsigned char *whole; /* the bytes that inline spans name; more than `bytes` when a record
                                   is served again */
    bool anew;                  /* it is: nobody waits for its outputs */
    struct gn_build_includes
        *files; /* of the program's, that it has read; its record's, when it gets one */
    _Alignas(16) struct gn_list blobs; /* private memory, freed with the request */
    _Alignas(16) unsigned char bytes[GN_MSG_MAX_BYTES];
};

/* How a kind of request is served: one row of the generated table. */
struct gn_request_class {
    const char *name;
    uint32_t fixed_bytes;
    bool slow, quiet;
    bool brings;  /* a command that reads into its area */
    bool ordered; /* a command that, without a wait list, follows everything before it in its queue
                   */
    bool fence;   /* a command that everything after it in its queue follows */
    bool many; /* a command for which the driver runs many: the times of its event are not theirs */
    bool adds; /* a request that adds to an object: another one does not replace it */
    void (*serve)(struct gn_vgpu *, struct gn_request *);
    void (*admit)(struct gn_vgpu *, struct gn_command *);
    int32_t (*submit)(struct gn_vgpu *, struct gn_command *, void *queue, uint32_t n_waits,
                      void *const *waits, void **event);
    /*
     * The answer for a command that has to wait, since the driver judges it only when it gets it:
     * 0, or an error, and then the command is dropped. The serving thread, without a lock. NULL: 0.
     */
    int32_t (*judge)(struct gn_vgpu *, struct gn_command *);
    uint16_t key_at, key_bytes; /* for requests that change an object: the place of the key that
                                   names the changed part */
    uint16_t creates;           /* GN_KIND_*, 0: nothing */
    uint32_t writes; /* bit i: the command writes refs[i]; GN_WRITES_ARGS: its arguments tell */
    uint32_t n_parents;
    uint16_t parents[3]; /* offsets of the handles that an object is made from */
};

static inline const void *gn_request_message(const struct gn_request *r)
{
    return r->bytes;
}

void gn_request_init(struct gn_request *r, struct gn_vgpu *v);
/* Nothing has been done for it: as it was before it was served, with `refused` and wants_bytes. */
void gn_request_again(struct gn_request *r);
/* Writes the outputs to where the guest wants them and wakes it. */
void gn_request_answer(struct gn_request *r);
void gn_request_fini(struct gn_request *r);

/* Decoding. Each fault is sticky; a handle of an object that is gone decodes as NULL, and the
 * driver judges that. */
/* For a query: the object may be evicted, and then the driver has none. */
struct gn_vobject *gn_request_named(struct gn_request *r, uint16_t kind, uint64_t id);
/* The driver has an object of it, or the request is not to be served now. */
struct gn_vobject *gn_request_object(struct gn_request *r, uint16_t kind, uint64_t id);
void *gn_request_objects(struct gn_request *r, uint16_t kind, const struct gn_span *span,
                         uint64_t n);
/*
 * For an object that the request holds otherwise: the driver has an object of it. False: no, and
 * the request is not to be served now, or has no memory; nothing has been done then.
 */
bool gn_request_bring_in(struct gn_request *r, struct gn_vobject *o);
void *gn_request_in(struct gn_request *r, const struct gn_span *span, uint64_t bytes);
void *gn_request_string(struct gn_request *r, const struct gn_span *span);
void *gn_request_list(struct gn_request *r, const struct gn_span *span);
/*
 * No other key is in the list, which may be NULL: a driver might use the value of an unknown key as
 * a pointer.
 */
bool gn_list_knows(const void *list, const uint64_t *keys, size_t n);
void *gn_request_out(struct gn_request *r, const struct gn_span *span, uint64_t bytes);
/* A span that must name something. */
void gn_request_need(struct gn_request *r, const struct gn_span *span);
void *gn_request_area(struct gn_request *r, const struct gn_area_ref *ref, uint64_t bytes);
/* Private memory that lives as long as the request; NULL when there is none left. */
void *gn_request_alloc(struct gn_request *r, uint64_t bytes);
/* After decoding: true when the request is not to be served. */
bool gn_request_faulty(struct gn_request *r);
/*
 * Charges device memory for the objects that the request is about to make. False when there is
 * none, or when only gantryd can tell, or while part of the memory is evicted: then the request is
 * served again, from its beginning, on the lease thread, which waits first. Call it before anything
 * is made.
 */
bool gn_request_charge(struct gn_request *r, uint64_t bytes);
/*
 * Before so many charged bytes are pinned that could be evicted. False: not now, or never, as
 * gn_request_charge; objects that are pinned by then stay pinned.
 */
bool gn_request_may_pin(struct gn_request *r, uint64_t bytes);
/*
 * Registers the object of a creating request (NULL: none) under its id; the request's charge is the
 * object's from then on. Returns the result to answer.
 */
int32_t gn_request_made(struct gn_request *r, uint16_t kind, uint64_t id, void *driver,
                        int32_t result);
void gn_request_changed(struct gn_request *r, struct gn_vobject *o);

/* Multiplications of lengths that saturate: a length that does not fit never matches a span. */
static inline uint64_t gn_times(uint64_t a, uint64_t b)
{
    uint64_t product = UINT64_MAX;
    gn_mul_u64(a, b, &product);
    return product;
}

#endif
