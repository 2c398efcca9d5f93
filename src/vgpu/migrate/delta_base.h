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
 * The delta base of a vGPU that has left its program (passthrough): contents that came from the
 * program and have not changed since need not be sent when the vGPU migrates back (Crane 4.3 sends
 * only dirty buffers back; Gantry only dirty pages). This is the half of the worker that has the
 * vGPU meanwhile: it tracks the writes since the contents arrived, and stores a digest of each
 * page. The program's half is retained.h.
 *
 * It costs 0.7 % of the size of the memories. If memory runs out, the affected contents are sent
 * back whole. Used by the loading thread, then by the saving thread.
 */

/*
 * The load of a vGPU begins; its program will retain contents under this number. Without memory
 * there is no delta base.
 */
void gn_delta_base_begin(struct gn_vgpu *v, uint64_t number);
/* NULL does nothing. */
void gn_delta_base_end(struct gn_delta_base *b);

/* The stream announces a memory. by_device: the device will hash its pages. */
void gn_delta_base_expect(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                          struct gn_writes *writes, bool by_device);
/* From now on pages arrive during the stop. */
void gn_delta_base_stops(struct gn_delta_base *b);
/* Pages have been loaded; where: the address of each run. */
void gn_delta_base_came(struct gn_delta_base *b, const struct gn_stream_reader *r,
                        const struct gn_stream_section *s, void *const *where);
void gn_delta_base_gone(struct gn_delta_base *b, uint64_t memory);

uint64_t gn_delta_base_number(const struct gn_delta_base *b);
/* The hashers of the delta base's tables; they live as long as the delta base. */
const struct gn_page_hasher *gn_delta_base_hasher(const struct gn_delta_base *b, bool by_device);
/*
 * The memory migrates back: returns the table to send it by, which replaces the table of the
 * outbound migration. NULL: the memory did not come from the program, or is hashed differently now.
 */
struct gn_page_table *gn_delta_base_take(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                                         struct gn_writes *writes, bool by_device);

#endif
