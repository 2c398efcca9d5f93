/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_MIGRATE_DELTA_BASE_H
#define GN_VGPU_MIGRATE_DELTA_BASE_H

#include "migrate/page_table.h"
#include "stream/known.h"
#include "stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

struct gn_vgpu;
struct gn_writes;

/*
 * The base for the return of a vGPU that has left its program (passthrough): contents that came
 * from the program need not go there again unless they have changed (Crane 4.3: only dirty buffers
 * are sent back; here, only dirty pages). This is the half of the worker that has the vGPU
 * meanwhile: it tracks writes from the moment when the contents came, and keeps a digest of each
 * page. The program's half is retained.h.
 *
 * It costs 0.7 % of the contents' size. A memory for which it has no room returns whole. Used by
 * the loading thread, then by the saving thread.
 */

struct gn_delta_base {
    /* set once */
    struct gn_vgpu *v;
    uint64_t number; /* of the contents in the program */
    /* of the tables: the processor's, and with index 1 the one of memories that a device hashes */
    struct gn_page_hasher hashers[2];
    /* pages from now on come while the program is stopped; the loading thread sets it */
    bool stops;
    /* delta_base.c's own */
    /* a memory is tracked: most programs' memory is in their own process, and costs nothing here */
    bool follows;
    struct gn_base_memory *memories;
    uint32_t n, capacity;
    struct gn_known_ids places; /* indices in `memories` */
};

/*
 * Begins the base when a vGPU comes from a program that retains its contents under this number.
 * Without memory there is no base.
 */
void gn_delta_base_begin(struct gn_vgpu *v, uint64_t number);
/* Ends it; NULL: no effect. */
void gn_delta_base_end(struct gn_delta_base *b);

/* A memory has been announced. by_device: its device will hash its pages. */
void gn_delta_base_expect(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                          struct gn_writes *writes, bool by_device);
/* Pages have been read; where: the address of each run. */
void gn_delta_base_came(struct gn_delta_base *b, const struct gn_stream_reader *r,
                        const struct gn_stream_section *s, void *const *where);
void gn_delta_base_gone(struct gn_delta_base *b, uint64_t memory);

/*
 * The vGPU returns. Gives the table to send this memory by, in place of the one that tracks it now;
 * NULL: it did not come from there, or it was hashed differently.
 */
struct gn_page_table *gn_delta_base_table(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                                          struct gn_writes *writes, bool by_device);

#endif
