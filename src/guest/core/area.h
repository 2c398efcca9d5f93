/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_AREA_H
#define GN_GUEST_AREA_H

#include "base/list.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The data area: blocks in segments that both sides map, or, when memory is not shared, that both
 * sides have copies of. Any thread. Between the core's own files: gn_area_init, the segments.
 */
struct gn_area_segment;
struct gn_session;

struct gn_block {
    uint32_t segment; /* index; GN_NO_BLOCK: none */
    uint32_t order;
    uint64_t offset;
    uint64_t bytes; /* asked for */
    void *base;
};
#define GN_NO_BLOCK UINT32_MAX

#define GN_AREA_SEGMENTS 257u

/* The use of a segment; blocks of different uses never share one. */
enum gn_area_use {
    GN_AREA_PASSING, /* data in transit, free again soon */
    GN_AREA_WINDOW,  /* at an address that is the vGPU's too: shared virtual memory */
    GN_AREA_HOME,    /* memory of the vGPU's objects, for as long as they live */
};

struct gn_area {
    pthread_mutex_t lock;
    struct gn_area_segment *segments[GN_AREA_SEGMENTS];
    uint32_t n_segments;
    char *window; /* link_lock, as the next two: where segments lie that the vGPU has at the same
                     address; NULL: nowhere */
    uint64_t window_bytes, window_used;
    /* blocks of messages without an answer, free once the ring has passed their message */
    struct gn_parked_block {
        struct gn_block block;
        uint64_t end;
    } * parked;
    uint32_t n_parked, first_parked, parked_capacity;
    uint64_t home_bytes; /* link_lock: of the segments for homes */
    struct gn_list left; /* blocks that are free once an event is over */
    _Atomic uint32_t n_left;
    uint64_t kept_bytes; /* over tcp: of blocks that were put back with their pages */
};

struct gn_left_block {
    struct gn_list link;
    struct gn_block block;
    uint32_t event;
};

/* At least `bytes`, aligned to 256 or more. -ENOMEM when the area is full and no segment can be
 * added, -EPIPE. */
int gn_block_alloc(struct gn_session *s, enum gn_area_use use, uint64_t bytes,
                   struct gn_block *ret);
void gn_block_free(struct gn_session *s, struct gn_block *b);
/* Puts it back when the worker has passed the message that ended at `end`. */
void gn_block_put_behind(struct gn_session *s, struct gn_block *b, uint64_t end);

/* Where a segment lies; the area's lock is held. */
char *gn_area_segment_base(struct gn_area *a, uint32_t index, uint64_t *ret_bytes);
/* The descriptor of a segment, which stays the area's; -1: there is none. */
int gn_area_segment_fd(struct gn_area *a, uint32_t index, uint64_t *ret_bytes);
/* How much there is from here to the end of the block in hand; 0: none is. */
uint64_t gn_area_rest_of_block(struct gn_area *a, const struct gn_area_ref *ref);
/* Frees the block when the event is over; its index (gn_event_index_alloc) goes back, too. */
void gn_block_put_when(struct gn_session *s, struct gn_block *b, uint32_t event);
/* Frees the blocks that are unused by now. */
void gn_area_collect(struct gn_session *s);

static inline struct gn_area_ref gn_block_ref(const struct gn_block *b, uint64_t at)
{
    return (struct gn_area_ref){b->segment + 1, 0, b->offset + at};
}

#endif
