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
 * The contents of memory objects on their way to the destination (gMig 3.3): rounds while the
 * program runs, and one during the stop. Between rounds gn_outgoing_look() gets the current
 * objects. Objects that are being sent stay referenced until they have gone or the save ends; each
 * has a page table that determines the pages of the next round. One thread.
 */
#define GN_OUTGOING_PAGE_BYTES 4096u

/* homes: also send contents in the program's memory. */
int gn_outgoing_new(struct gn_vgpu *v, bool homes, struct gn_outgoing **ret, struct gn_error *err);
/* Ends all tracking; the program's objects are unchanged. NULL does nothing. */
void gn_outgoing_free(struct gn_outgoing *out);

/* Sets the current objects, which the caller references. */
int gn_outgoing_look(struct gn_outgoing *out, struct gn_vobject *const *objects, uint32_t n,
                     struct gn_error *err);
/*
 * Before anything is announced, after the first look: the destination has retained these memories,
 * with their contents at the time when they came from there (delta_base.h).
 */
void gn_outgoing_goes_back(struct gn_outgoing *out, const uint64_t *ids, uint32_t n);
/* As of the last look: number of pages in retained memories. */
uint64_t gn_outgoing_retained(const struct gn_outgoing *out);
/* As of the last look: number of objects with contents to send, their bytes and pages. */
uint32_t gn_outgoing_count(const struct gn_outgoing *out, uint64_t *ret_bytes, uint64_t *ret_pages);
/*
 * Announce the objects that have gone, and the new ones, to the reader. The objects themselves must
 * be in the stream by the commit.
 */
int gn_outgoing_tell_gone(struct gn_outgoing *out, struct gn_stream_writer *w);
int gn_outgoing_tell_new(struct gn_outgoing *out, struct gn_stream_writer *w);

/* Runs one round over all objects; bytes_per_s 0: no limit. */
int gn_outgoing_round(struct gn_outgoing *out, struct gn_stream_writer *w, enum gn_round_kind kind,
                      uint64_t bytes_per_s, struct gn_round_stats *ret, struct gn_error *err);

#endif
