/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_DELTA_BASE_H
#define GN_VGPU_MIGRATE_DELTA_BASE_H

#include "migrate/page_table.h"
#include "stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;
struct gn_writes;
struct gn_delta_base;

/*
 * The way back of a vGPU that has left its program (passthrough): what came from there need not go
 * there again, as long as nothing has changed it (Crane 4.3: only dirty buffers are sent back;
 * here, only dirty pages). This is the half of the worker that has it meanwhile: it follows what is
 * written from when it came, and keeps a digest of each page. The program's half is retained.h.
 *
 * It costs 0.7 % of what the memories hold. What there is no memory for goes back whole. Used by
 * the thread that loads, then by the one that saves.
 */

/* A vGPU begins to come, whose program will keep what it leaves under this number. Without memory
 * there is no way back. */
void gn_delta_base_begin(struct gn_vgpu *v, uint64_t number);
/* NULL: there is none. */
void gn_delta_base_end(struct gn_delta_base *b);

/* A memory is told of. by_device: its pages will be hashed by its device. */
void gn_delta_base_expect(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                          struct gn_writes *writes, bool by_device);
/* The pages that come from now on come while the program stands. */
void gn_delta_base_stops(struct gn_delta_base *b);
/* Pages have been taken; where: each run of them. */
void gn_delta_base_came(struct gn_delta_base *b, const struct gn_stream_reader *r,
                        const struct gn_stream_section *s, void *const *where);
void gn_delta_base_gone(struct gn_delta_base *b, uint64_t memory);

uint64_t gn_delta_base_number(const struct gn_delta_base *b);
/* Those that tables of the way back are made with; they last as long as it does. */
const struct gn_page_hasher *gn_delta_base_hasher(const struct gn_delta_base *b, bool by_device);
/* It goes there. The table to send this memory by, in place of the one that it is followed by;
 * NULL: it has not come from there, or it is hashed otherwise than it was. */
struct gn_page_table *gn_delta_base_take(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                                         struct gn_writes *writes, bool by_device);

#endif
