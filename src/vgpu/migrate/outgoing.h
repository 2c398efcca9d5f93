/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_OUTGOING_H
#define GN_VGPU_MIGRATE_OUTGOING_H

#include "base/error.h"
#include "migrate/rounds.h"
#include "stream/stream.h"

struct gn_vgpu;
struct gn_vobject;
struct gn_outgoing;

/*
 * Contents of memory objects, outbound (gMig 3.3): in rounds while the program runs, and in one
 * while it is stopped. Before each round the set of objects is updated. Objects being sent are held
 * until they are gone from the set or the save ends; each has a page table that decides which pages
 * the next round sends. One thread.
 */
#define GN_OUTGOING_PAGE_BYTES 4096u

/*
 * The two hashers of page tables: the processor's, whose digests the stream has, and with index 1
 * the one of memories that a device hashes. 0, or -errno and nothing to fini.
 */
int gn_outgoing_hashers_init(struct gn_page_hasher ret[2], struct gn_error *err);
void gn_outgoing_hashers_fini(struct gn_page_hasher hashers[2]);

/* w: where everything is sent. homes: include contents in the program's memory. */
int gn_outgoing_new(struct gn_vgpu *v, struct gn_stream_writer *w, bool homes,
                    struct gn_outgoing **ret, struct gn_error *err);
/* Stops all tracking; the program's objects are as before. NULL: no effect. */
void gn_outgoing_free(struct gn_outgoing *out);

/*
 * Sets the objects that exist now; the caller holds them. Others are held and counted until
 * gn_outgoing_send_gone.
 */
int gn_outgoing_look(struct gn_outgoing *out, struct gn_vobject *const *objects, uint32_t n,
                     struct gn_error *err);
/*
 * Call it after the first gn_outgoing_look and before the first announcement: the destination
 * retains the contents of these objects, as they came from there (delta_base.h).
 */
void gn_outgoing_goes_back(struct gn_outgoing *out, const uint64_t *ids, uint32_t n);
/* As of the last look: objects with contents to send, their size, and its part that the destination
 * retains. */
struct gn_outgoing_size {
    uint32_t n;
    uint64_t bytes, pages, pages_kept;
};
struct gn_outgoing_size gn_outgoing_size(const struct gn_outgoing *out);
/*
 * Announce the memories that are gone, and the new ones. The objects themselves must be announced
 * before the commit.
 */
int gn_outgoing_send_gone(struct gn_outgoing *out);
int gn_outgoing_send_new(struct gn_outgoing *out);

/* Runs one round over all objects; bytes_per_s 0: no limit. */
int gn_outgoing_round(struct gn_outgoing *out, enum gn_round_kind kind, uint64_t bytes_per_s,
                      struct gn_round_stats *ret, struct gn_error *err);

#endif
