/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_SESSION_LAYOUT_H
#define GN_SHM_SESSION_LAYOUT_H

#include "shm/reply.h"
#include "shm/segment.h"
#include "shm/slot_ring.h"

#include <stdint.h>

/*
 * The ring segment of a session. Every offset and capacity is a constant of this version; none is
 * read from shared memory. The header names the version for diagnosis; both sides agree on the
 * version in the handshake.
 */
#define GN_SESSION_MAGIC         UINT64_C(0x31676e6972746e67) /* "gntring1" */
#define GN_SESSION_VERSION       1u
#define GN_SESSION_REQUEST_SLOTS 1024u
#define GN_SESSION_PAGE          4096u

struct gn_session_header {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
};

/*
 * Statistics of data transfers that only the program knows; for display, not verified. All zeros at
 * first.
 */
struct gn_session_counts {
    _Atomic uint64_t copies_mapped; /* transfers with one copy, of memory that both sides map */
    _Atomic uint64_t copies_bypass; /* transfers without a copy */
    /* of the vGPU's transfers, the maps, with the device's copy as the only one */
    _Atomic uint64_t maps;
};

/*
 * Tells the program's waiting threads whether to spin. Written by the worker. All zeros at first.
 */
struct gn_session_turn {
    _Atomic uint32_t whose; /* enum gn_spin_turn */
};

#define GN_SESSION_COUNTS_AT    64u
#define GN_SESSION_TURN_AT      128u
#define GN_SESSION_REQUESTS_AT  GN_SESSION_PAGE
#define GN_SESSION_REQUESTS_END (GN_SESSION_REQUESTS_AT + GN_RING_BYTES(GN_SESSION_REQUEST_SLOTS))
#define GN_SESSION_REPLIES_AT   86272u /* what lies between is reserved, and zero */
#define GN_SESSION_REPLIES      (GN_REPLY_SLOTS * sizeof(struct gn_reply_slot))
#define GN_SESSION_END          (GN_SESSION_REPLIES_AT + GN_SESSION_REPLIES)
/* whole pages of any page size in use */
#define GN_SESSION_BYTES ((GN_SESSION_END + 65535) / 65536 * 65536)

_Static_assert(sizeof(struct gn_session_header) == 16, "session header layout");
_Static_assert(GN_SESSION_REQUESTS_AT % 64 == 0 && GN_SESSION_REPLIES_AT % 64 == 0, "cache lines");
_Static_assert(GN_SESSION_REQUESTS_AT == 4096 && GN_SESSION_REQUESTS_END == 69760 &&
                   GN_SESSION_REPLIES_AT == 86272 && GN_SESSION_END == 102656 &&
                   GN_SESSION_BYTES == 131072,
               "session layout of version 1, as docs/ring.md draws it");

struct gn_session_view {
    struct gn_session_counts *counts;
    struct gn_session_turn *turn;
    struct gn_ring *requests; /* guest to worker, GN_SESSION_REQUEST_SLOTS */
    struct gn_reply_slot *replies;
};

/*
 * Makes the segment with its header, not mapped. Zeroed rings are empty rings, so nothing else is
 * written.
 */
int gn_session_create(const char *name, struct gn_segment *ret);

/*
 * Locates the parts of a mapped segment. -EINVAL if its size or its header is not of this version.
 */
int gn_session_map(void *base, uint64_t bytes, struct gn_session_view *ret);

#endif
