/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects with contents being sent, with a page table and a source each; the rounds of
 * src/migrate work on them. Run by the saving thread; one hashing thread of the rounds reads the
 * API's sources.
 */
#include "vgpu/migrate/outgoing.h"

#include "base/array.h"
#include "base/fault.h"
#include "migrate/page_stream.h"
#include "stream/known.h"
#include "vgpu/migrate/save.h"
#include "vgpu/migrate/delta_base.h"
#include "vgpu/migrate/write_tracking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES GN_OUTGOING_PAGE_BYTES
#define N_HASHERS  1u /* sources allow one thread at a time */

struct item {
    struct gn_vobject *object; /* referenced */
    struct gn_writes *writes;
    struct gn_page_table *table;
    struct gn_page_source source;
    uint64_t bytes;
    bool reported, here, kept; /* kept: the destination retains it */
};

struct gn_outgoing {
    struct gn_vgpu *v;
    struct gn_stream_writer *w;
    bool homes;
    struct gn_page_hasher own[2];
    const struct gn_page_hasher *hashers; /* index 1: of memories that their device hashes */
    bool goes_back;
    struct gn_rounds *rounds;
    struct item *items;
    uint32_t n, capacity;
    struct gn_known_ids places; /* indices in `items`, by the object's id */
};

int gn_outgoing_hashers_init(struct gn_page_hasher ret[2], struct gn_error *err)
{
    int rc = gn_page_hasher_init(&ret[0], GN_PAGE_HASH_XXH3, PAGE_BYTES, 0, err);
    if (!rc)
        rc = gn_page_hasher_init(&ret[1], GN_PAGE_HASH_NH, PAGE_BYTES, 0, err);
    return rc;
}

void gn_outgoing_hashers_fini(struct gn_page_hasher hashers[2])
{
    gn_page_hasher_fini(&hashers[0]);
    gn_page_hasher_fini(&hashers[1]);
}

int gn_outgoing_new(struct gn_vgpu *v, struct gn_stream_writer *w, bool homes,
                    struct gn_outgoing **ret, struct gn_error *err)
{
    struct gn_outgoing *out = calloc(1, sizeof *out);
    if (!out)
        return gn_fail(err, ENOMEM, NULL, "no memory left to send memory contents");
    out->v = v;
    out->w = w;
    out->homes = homes;
    int rc = gn_outgoing_hashers_init(out->own, err);
    if (!rc)
        rc = gn_rounds_create(PAGE_BYTES, N_HASHERS, &out->rounds, err);
    if (rc) {
        gn_outgoing_hashers_fini(out->own);
        free(out);
        return rc;
    }
    /* A device has one key at a time. */
    out->hashers = v->delta_base ? v->delta_base->hashers : out->own;
    *ret = out;
    return 0;
}

static void stop_sending(struct gn_outgoing *out, struct item *i)
{
    out->v->api->contents->shut(out->v, &i->source);
    gn_writes_unfollow(out->v, i->writes, GN_FOLLOWED_OUT);
    gn_object_unref(i->object);
}

void gn_outgoing_free(struct gn_outgoing *out)
{
    if (!out)
        return;
    gn_rounds_destroy(out->rounds);
    for (uint32_t i = 0; i < out->n; i++)
        stop_sending(out, &out->items[i]);
    if (out->v->api->contents)
        out->v->api->contents->end(out->v);
    /* The destination had the contents once, and has used them up. */
    if (out->goes_back)
        gn_delta_base_end(out->v->delta_base);
    gn_outgoing_hashers_fini(out->own);
    gn_known_fini(&out->places);
    free(out->items);
    free(out);
}

static int fail_no_memory(struct gn_error *err)
{
    return gn_fail(err, ENOMEM, NULL, "no memory left to track memory contents");
}

/* After a failure the save ends. */
static int add_item(struct gn_outgoing *out, struct gn_vobject *o, uint64_t bytes,
                    struct gn_writes *writes, struct gn_error *err)
{
    struct item *items = gn_array_reserve(out->items, out->n, &out->capacity, sizeof *items);
    if (!items)
        return fail_no_memory(err);
    out->items = items;
    if (gn_known_put(&out->places, o->id, out->n))
        return fail_no_memory(err);
    struct item *i = &items[out->n];
    *i = (struct item){.object = o, .writes = writes, .bytes = bytes, .here = true};
    int rc = out->v->api->contents->open(out->v, o, &out->hashers[1], &i->source, err);
    if (rc)
        return rc;
    rc = gn_writes_follow(out->v, writes, GN_FOLLOWED_OUT, &out->hashers[i->source.digest != NULL],
                          bytes, &i->table);
    if (rc) {
        out->v->api->contents->shut(out->v, &i->source);
        return rc == -ENOMEM
                   ? fail_no_memory(err)
                   : gn_fail(err, -rc, NULL, "cannot track memory contents: %s", strerror(-rc));
    }
    atomic_fetch_add_explicit(&o->n_refs, 1, memory_order_relaxed);
    out->n++;
    return 0;
}

int gn_outgoing_look(struct gn_outgoing *out, struct gn_vobject *const *objects, uint32_t n,
                     struct gn_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < out->n; i++)
        out->items[i].here = false;
    for (uint32_t i = 0; i < n && !rc; i++) {
        struct gn_writes *writes;
        uint64_t bytes;
        const uint32_t *place = gn_known_find(&out->places, objects[i]->id);
        if (place)
            out->items[*place].here = true;
        else if (out->v->api->contents->look(out->v, objects[i], out->homes, &bytes, &writes))
            rc = add_item(out, objects[i], bytes, writes, err);
    }
    return rc;
}

void gn_outgoing_goes_back(struct gn_outgoing *out, const uint64_t *ids, uint32_t n)
{
    out->goes_back = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *place = ids[i] ? gn_known_find(&out->places, ids[i]) : NULL;
        struct item *it = place ? &out->items[*place] : NULL;
        struct gn_page_table *t = it && !it->kept
                                      ? gn_delta_base_table(out->v->delta_base, ids[i], it->bytes,
                                                            it->writes, it->source.digest != NULL)
                                      : NULL;
        if (!t)
            continue;
        /*
         * A kernel may write memory that it was given as `const`, unnoticed. In other migrations
         * that would have to happen between the first round and the stop, but this vGPU may have
         * been away for days: so all pages are compared once.
         */
        t->doubts = true;
        it->table = t;
        it->kept = true;
    }
}

struct gn_outgoing_size gn_outgoing_size(const struct gn_outgoing *out)
{
    struct gn_outgoing_size size = {.n = out->n};
    for (uint32_t i = 0; i < out->n; i++) {
        const struct item *it = &out->items[i];
        size.bytes += it->bytes;
        size.pages += it->table->n_pages;
        size.pages_kept += it->kept ? it->table->n_pages : 0;
    }
    return size;
}

int gn_outgoing_send_gone(struct gn_outgoing *out)
{
    struct gn_stream_gone *gone = calloc(out->n ? out->n : 1, sizeof *gone);
    uint32_t n = 0;
    if (!gone)
        return -ENOMEM;
    for (uint32_t i = out->n; i--;) {
        struct item *it = &out->items[i];
        const uint64_t id = it->object->id;
        if (it->here)
            continue;
        if (it->reported)
            gone[n++] = (struct gn_stream_gone){.id = id, .what = GN_STREAM_GONE_MEMORY};
        stop_sending(out, it);
        gn_known_remove(&out->places, id);
        /* The last item moves into the free place. */
        *it = out->items[--out->n];
        if (i < out->n)
            *gn_known_find(&out->places, it->object->id) = i;
    }
    const int rc = gn_stream_put_gone(out->w, gone, n);
    free(gone);
    return rc;
}

int gn_outgoing_send_new(struct gn_outgoing *out)
{
    struct gn_stream_memory *new = calloc(out->n ? out->n : 1, sizeof *new);
    uint32_t n = 0;
    if (!new)
        return -ENOMEM;
    for (uint32_t i = 0; i < out->n; i++) {
        struct item *it = &out->items[i];
        if (it->reported)
            continue;
        new[n++] = (struct gn_stream_memory){.id = it->object->id,
                                             .object = it->object->id,
                                             .bytes = it->bytes,
                                             .flags = it->kept ? GN_STREAM_MEMORY_KEPT : 0};
        it->reported = true;
    }
    const int rc = gn_stream_put_memories(out->w, new, n);
    free(new);
    return rc;
}

/* Progress for gantryd. */
static void report_progress(void *ctx, uint64_t bytes)
{
    const struct gn_outgoing *out = ctx;
    struct gn_counters *c = out->v->counters;
    gn_counter_add(&c->save_round_bytes, bytes);
    gn_counter_set(&c->save_sent_bytes, gn_stream_writer_counts(out->w)->stream_bytes);
}

/*
 * Prepares devices for hashing where pages will be hashed, before anything is read, so that the
 * pages read do not age meanwhile.
 */
static void prepare_devices(struct gn_outgoing *out)
{
    for (uint32_t i = 0; i < out->n; i++) {
        struct item *it = &out->items[i];
        if (it->source.digest &&
            (it->table->doubts ||
             atomic_load_explicit(&it->writes->by_kernels, memory_order_relaxed) == GN_KERNELS_DO))
            out->v->api->contents->ready(out->v, &it->source);
    }
}

int gn_outgoing_round(struct gn_outgoing *out, enum gn_round_kind kind, uint64_t bytes_per_s,
                      struct gn_round_stats *ret, struct gn_error *err)
{
    const struct gn_round_options options = {.kind = kind,
                                             .sample = GN_SAMPLE_AUTO,
                                             .bytes_per_s = bytes_per_s,
                                             .done = report_progress,
                                             .done_ctx = out};
    struct gn_round_item *items = calloc(out->n ? out->n : 1, sizeof *items);
    struct gn_page_stream stream;
    struct gn_page_sink sink = gn_page_stream_sink(&stream, out->w, PAGE_BYTES);
    memset(ret, 0, sizeof *ret);
    gn_counter_set(&out->v->counters->save_round_bytes, 0);
    gn_counter_set(&out->v->counters->save_bytes, gn_outgoing_size(out).bytes);
    gn_counter_add(&out->v->counters->save_round, 1);
    if (!items)
        return fail_no_memory(err);
    for (uint32_t i = 0; i < out->n; i++)
        items[i] = (struct gn_round_item){.table = out->items[i].table,
                                          .source = out->items[i].source,
                                          .id = out->items[i].object->id};
    if (kind == GN_ROUND_LIVE)
        prepare_devices(out);
    int rc =
        gn_stream_round_begin(out->w, kind == GN_ROUND_STOP ? GN_STREAM_STOP : GN_STREAM_PRECOPY);
    GN_FAULT("save-contents");
    if (!rc)
        rc = gn_rounds_run(out->rounds, &options, items, out->n, &sink, ret, err);
    for (uint32_t i = 0; i < out->n && !rc; i++)
        out->items[i].table->doubts = false;
    free(items);
    /* The stream's own reason is more precise. */
    const struct gn_error *said = gn_stream_writer_error(out->w);
    if (rc && said->what[0])
        gn_fail(err, -rc, said->fix, "%s", said->what);
    return rc;
}
