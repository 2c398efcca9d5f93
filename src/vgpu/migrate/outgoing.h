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
 * What memory objects hold, on its way out (gMig 3.3): in rounds while the program runs, and in one
 * while it stands still. Between rounds it is looked which objects there are; those that are being
 * sent are held until they are gone from there or all is over, and each has a page table that says
 * what the next round sends. One thread.
 */
#define GN_OUTGOING_PAGE_BYTES 4096u

/* homes: what lies in the program's memory goes, too. */
int gn_outgoing_new(struct gn_vgpu *v, bool homes, struct gn_outgoing **ret, struct gn_error *err);
/* Nothing is followed any more; the program's objects are as they were. NULL does nothing. */
void gn_outgoing_free(struct gn_outgoing *out);

/* These are the objects that there are now, held by the caller. */
int gn_outgoing_look(struct gn_outgoing *out, struct gn_vobject *const *objects, uint32_t n,
                     struct gn_error *err);
/* Before anything has been told, after the first look: whoever loads has these from before, as they
 * were when they came from there (delta_base.h). */
void gn_outgoing_goes_back(struct gn_outgoing *out, const uint64_t *ids, uint32_t n);
/* As of the last look, the pages of those that are there already. */
uint64_t gn_outgoing_retained(const struct gn_outgoing *out);
/* As of the last look: how many hold contents that go, and how much. */
uint32_t gn_outgoing_count(const struct gn_outgoing *out, uint64_t *ret_bytes, uint64_t *ret_pages);
/* Tells the reader of those that are gone, and of those that have come. The objects themselves have
 * been told of by the commit. */
int gn_outgoing_tell_gone(struct gn_outgoing *out, struct gn_stream_writer *w);
int gn_outgoing_tell_new(struct gn_outgoing *out, struct gn_stream_writer *w);

/* One round of all of them; bytes_per_s 0: no limit. */
int gn_outgoing_round(struct gn_outgoing *out, struct gn_stream_writer *w, enum gn_round_kind kind,
                      uint64_t bytes_per_s, struct gn_round_stats *ret, struct gn_error *err);

#endif
