/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_ROUNDS_WORLD_H
#define GN_MIGRATE_ROUNDS_WORLD_H

/*
 * For tests: some buffers at the source and their copies at the destination. Sources read the
 * buffers (and can change them during a read, as kernels do); the sink writes the copies, and fails
 * when a test says so.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "migrate/rounds.h"

#define MAX_BUFFERS 6

/* True in a build in which a round takes many times as long, so that tests run fewer. */
static inline bool few(void)
{
    return getenv("MIGRATE_FEW") != NULL;
}

struct world;

struct buffer {
    struct world *w;
    unsigned char *here, *there;
    uint64_t bytes;
    struct gn_page_table *table;
    bool kernels; /* kernels write this buffer */
};

struct world {
    struct gn_page_hasher hasher;
    struct buffer buffers[MAX_BUFFERS];
    struct gn_round_item items[MAX_BUFFERS];
    size_t n_buffers;
    struct gn_page_sink sink;
    struct gn_rounds *rounds;

    /* protects the random numbers, the counts and the content of lively buffers */
    pthread_mutex_t lock;
    uint64_t random;
    bool lively; /* reading a buffer changes it, before and after the copy */
    uint64_t reads, read_bytes, digests, digested_pages;
    long fail_read_at, fail_digest_at; /* the n-th call from now fails; 1: the next; 0: none */

    /* used by the sending thread alone */
    uint64_t calls, digests_given;
    long fail_call_at;
};

static inline uint64_t draw_locked(struct world *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static inline uint64_t draw(struct world *w, uint64_t below)
{
    pthread_mutex_lock(&w->lock);
    uint64_t x = (draw_locked(w) >> 16) % below;
    pthread_mutex_unlock(&w->lock);
    return x;
}

/*
 * Simulates a kernel's writes: scattered bytes, sometimes zeros, sometimes the present value. The
 * lock is held.
 */
static inline void kernel_runs_locked(struct buffer *b, unsigned writes)
{
    struct world *w = b->w;
    for (unsigned i = 0; i < writes; i++) {
        uint64_t at = (draw_locked(w) >> 16) % b->bytes, n = 1 + (draw_locked(w) >> 16) % 40;
        n = n < b->bytes - at ? n : b->bytes - at;
        switch ((draw_locked(w) >> 16) % 4) {
        case 0:
            memset(b->here + at, 0, n);
            break;
        case 1:
            b->here[at] ^= 1; /* a second time restores it */
            break;
        default:
            memset(b->here + at, (int)(draw_locked(w) >> 24), n);
        }
    }
}

static inline int world_read(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct buffer *b = ctx;
    struct world *w = b->w;
    pthread_mutex_lock(&w->lock);
    assert_true(offset <= b->bytes && n > 0 && n <= b->bytes - offset);
    bool fail = w->fail_read_at && --w->fail_read_at == 0;
    w->reads++;
    w->read_bytes += n;
    if (!fail) {
        if (w->lively && b->kernels)
            kernel_runs_locked(b, 2);
        memcpy(dst, b->here + offset, n);
        if (w->lively && b->kernels)
            kernel_runs_locked(b, 2);
    }
    pthread_mutex_unlock(&w->lock);
    return fail ? -EIO : 0;
}

static inline int world_digest(void *ctx, uint64_t first, uint64_t n, void *ret)
{
    struct buffer *b = ctx;
    struct world *w = b->w;
    const struct gn_page_hasher *h = b->table->hasher;
    pthread_mutex_lock(&w->lock);
    assert_true(n > 0 && first + n <= b->table->n_pages);
    bool fail = w->fail_digest_at && --w->fail_digest_at == 0;
    w->digests++;
    w->digested_pages += n;
    for (uint64_t i = 0; i < n && !fail; i++)
        gn_page_digest(h, b->here + (first + i) * h->page_bytes,
                       gn_page_table_length(b->table, first + i),
                       (unsigned char *)ret + i * h->digest_bytes);
    if (w->lively && b->kernels)
        kernel_runs_locked(b, 2);
    pthread_mutex_unlock(&w->lock);
    return fail ? -EIO : 0;
}

static inline int sink_call(struct world *w, struct buffer *b, uint64_t offset, uint64_t n)
{
    assert_true(n > 0 && offset <= b->bytes && n <= b->bytes - offset);
    assert_int_equal(offset % w->hasher.page_bytes, 0);
    assert_true(n <= GN_PAGE_GROUP * w->hasher.page_bytes);
    w->calls++;
    return w->fail_call_at && --w->fail_call_at == 0 ? -EPIPE : 0;
}

static inline int sink_data(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                            const void *digests)
{
    struct world *w = ctx;
    struct buffer *b = &w->buffers[id];
    int r = sink_call(w, b, offset, n);
    const struct gn_page_hasher *h = &w->hasher;
    for (uint64_t at = 0; digests && at < n; at += h->page_bytes) {
        unsigned char digest[GN_PAGE_DIGEST_MAX];
        gn_page_digest(h, (const unsigned char *)data + at,
                       n - at < h->page_bytes ? n - at : h->page_bytes, digest);
        assert_memory_equal(digest,
                            (const unsigned char *)digests + at / h->page_bytes * h->digest_bytes,
                            h->digest_bytes);
    }
    w->digests_given += digests != NULL;
    if (!r && data)
        memcpy(b->there + offset, data, n);
    else if (!r)
        memset(b->there + offset, 0, n);
    return r;
}

/* As gn_page_table_create leaves it: nothing has been sent. */
static inline void forget_sent(struct gn_page_table *t)
{
    for (uint64_t g = 0; g < t->n_groups; g++)
        t->sent[g] = t->hashed[g] = 0;
}

enum world_source { READ, MEMORY, DEVICE };

static inline struct buffer *world_add(struct world *w, uint64_t bytes, bool kernels,
                                       enum world_source source)
{
    struct buffer *b = &w->buffers[w->n_buffers];
    *b = (struct buffer){.w = w,
                         .bytes = bytes,
                         .kernels = kernels,
                         .here = calloc(1, bytes),
                         .there = malloc(bytes)};
    assert_non_null(b->here);
    assert_non_null(b->there);
    memset(b->there, 0xee, bytes);
    assert_int_equal(gn_page_table_create(&w->hasher, bytes, kernels, 4, &b->table), 0);
    w->items[w->n_buffers] = (struct gn_round_item){
        .table = b->table,
        .source = {.memory = source == MEMORY ? b->here : NULL,
                   .read = world_read,
                   .digest = source == DEVICE ? world_digest : NULL,
                   .ctx = b},
        .id = w->n_buffers,
    };
    w->n_buffers++;
    return b;
}

static inline void world_init(struct world *w, enum gn_page_hash_kind kind, uint32_t page_bytes,
                              unsigned threads, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->random = seed * 2 + 1;
    for (unsigned i = 0; i < 8; i++)
        draw_locked(w);
    w->sink = (struct gn_page_sink){.data = sink_data, .ctx = w};
    assert_int_equal(gn_page_hasher_init(&w->hasher, kind, page_bytes, seed + 1, NULL), 0);
    assert_int_equal(gn_rounds_create(page_bytes, threads, &w->rounds, NULL), 0);
}

static inline void world_fini(struct world *w)
{
    gn_rounds_destroy(w->rounds);
    for (size_t i = 0; i < w->n_buffers; i++) {
        gn_page_table_destroy(w->buffers[i].table);
        free(w->buffers[i].here);
        free(w->buffers[i].there);
    }
    gn_page_hasher_fini(&w->hasher);
    pthread_mutex_destroy(&w->lock);
}

static inline int world_round(struct world *w, struct gn_round_options options,
                              struct gn_round_stats *stats)
{
    struct gn_round_stats unasked;
    w->lively = options.kind == GN_ROUND_LIVE && w->lively;
    return gn_rounds_run(w->rounds, &options, w->items, w->n_buffers, &w->sink,
                         stats ? stats : &unasked, NULL);
}

static inline void assert_all_there(const struct world *w)
{
    for (size_t i = 0; i < w->n_buffers; i++)
        assert_memory_equal(w->buffers[i].here, w->buffers[i].there, w->buffers[i].bytes);
}

#define LIVE ((struct gn_round_options){.kind = GN_ROUND_LIVE, .sample = GN_SAMPLE_AUTO})
#define STOP ((struct gn_round_options){.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_AUTO})

#endif
