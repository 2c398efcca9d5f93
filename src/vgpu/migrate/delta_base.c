/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks the contents that came out of a program, for their return; see delta_base.h. Run by the
 * loading thread, then by the saving thread. It never reads a device's memory.
 */
#include "vgpu/migrate/delta_base.h"

#include "base/array.h"
#include "vgpu/migrate/outgoing.h"
#include "vgpu/core/vgpu_core.h"
#include "vgpu/migrate/write_tracking.h"

#include <stdlib.h>

struct gn_base_memory {
    struct gn_writes *writes; /* held by the tracking */
    struct gn_page_table *table;
    uint64_t memory;
    bool by_device;
};

void gn_delta_base_begin(struct gn_vgpu *v, uint64_t number)
{
    struct gn_error ignored;
    struct gn_delta_base *b = calloc(1, sizeof *b);
    if (!b || gn_outgoing_hashers_init(b->hashers, &ignored)) {
        free(b);
        return;
    }
    b->v = v;
    b->number = number;
    v->delta_base = b;
}

void gn_delta_base_end(struct gn_delta_base *b)
{
    if (!b)
        return;
    if (b->follows)
        gn_vgpu_follow_writes_no_more(b->v);
    for (uint32_t i = 0; i < b->n; i++)
        gn_writes_unfollow(b->v, b->memories[i].writes, GN_FOLLOWED_BACK);
    gn_outgoing_hashers_fini(b->hashers);
    gn_known_fini(&b->places);
    free(b->memories);
    b->v->delta_base = NULL;
    free(b);
}

void gn_delta_base_expect(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                          struct gn_writes *writes, bool by_device)
{
    struct gn_base_memory *memories =
        gn_array_reserve(b->memories, b->n, &b->capacity, sizeof *memories);
    if (!memories)
        return;
    b->memories = memories;
    struct gn_base_memory *w = &b->memories[b->n];
    *w = (struct gn_base_memory){.writes = writes, .memory = memory, .by_device = by_device};
    if (gn_writes_follow(b->v, writes, GN_FOLLOWED_BACK, &b->hashers[by_device], bytes, &w->table))
        return;
    if (gn_known_put(&b->places, memory, b->n)) {
        gn_writes_unfollow(b->v, writes, GN_FOLLOWED_BACK);
        return;
    }
    b->n++;
    if (b->follows)
        return;
    /* No command runs yet: there is nothing to wait for. */
    (void)gn_vgpu_follow_writes(b->v, 0);
    b->follows = true;
}

static struct gn_base_memory *find_memory(const struct gn_delta_base *b, uint64_t memory)
{
    const uint32_t *at = gn_known_find(&b->places, memory);
    return at ? &b->memories[*at] : NULL;
}

/* The last entry moves into the free place. */
static void drop_memory(struct gn_delta_base *b, struct gn_base_memory *w)
{
    gn_known_remove(&b->places, w->memory);
    *w = b->memories[--b->n];
    uint32_t *at = gn_known_find(&b->places, w->memory);
    if (at)
        *at = (uint32_t)(w - b->memories);
}

void gn_delta_base_gone(struct gn_delta_base *b, uint64_t memory)
{
    struct gn_base_memory *w = find_memory(b, memory);
    if (!w)
        return;
    gn_writes_unfollow(b->v, w->writes, GN_FOLLOWED_BACK);
    drop_memory(b, w);
}

void gn_delta_base_came(struct gn_delta_base *b, const struct gn_stream_reader *r,
                        const struct gn_stream_section *s, void *const *where)
{
    const struct gn_base_memory *w = find_memory(b, s->memory->id);
    const struct gn_stream_hash *hash = s->hashes;
    if (!w || gn_stream_reader_about(r)->page_bytes != GN_OUTGOING_PAGE_BYTES)
        return;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        const struct gn_stream_run_head *run = &s->runs[i];
        for (uint32_t k = 0; k < run->n_pages; k++) {
            const unsigned char *content =
                (const unsigned char *)where[i] + (uint64_t)k * GN_OUTGOING_PAGE_BYTES;
            /*
             * The stream's hash is the processor's digest. The device's digest takes time, which
             * must not be spent while the program is stopped.
             */
            const bool known = !w->by_device && !run->zeros;
            gn_page_table_has(w->table, run->first_page + k,
                              w->by_device && b->stops ? NULL : content, known ? hash : NULL);
            hash += !run->zeros;
        }
    }
}

struct gn_page_table *gn_delta_base_table(struct gn_delta_base *b, uint64_t memory, uint64_t bytes,
                                          struct gn_writes *writes, bool by_device)
{
    struct gn_base_memory *w = find_memory(b, memory);
    if (!w || w->writes != writes || w->table->bytes != bytes || w->by_device != by_device)
        return NULL;
    drop_memory(b, w);
    return gn_writes_turn_back(b->v, writes);
}
