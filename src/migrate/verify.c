/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verification of 64 pages, on a round's thread. While kernels go on writing, a page is copied
 * once, and that copy is hashed and sent: if one reading were hashed and another sent, a page that
 * changed in between and back again would pass as sent. It never writes into the table but for the
 * host's marks.
 */
#include "migrate/verify.h"

#include <string.h>

#include "base/clock.h"
#include "stream/hash.h"

/* In a sampled run, pages are prefetched this far ahead. */
#define SAMPLES_AHEAD 6u

#define for_each_page(i, bits)                                                                     \
    for (uint64_t rest_ = (bits), i; rest_ && (i = (uint64_t)__builtin_ctzll(rest_), 1);           \
         rest_ &= rest_ - 1)

/* The arguments of one group's verification. */
struct group {
    struct gn_page_table *t;
    const struct gn_page_source *source;
    const struct gn_verify_how *how;
    struct gn_verify_slot *slot;
    uint64_t g;
    uint32_t page_bytes, digest_bytes;
};

static const unsigned char *page_of(const struct group *v, uint64_t i)
{
    return v->slot->content + i * v->page_bytes;
}

static uint32_t length_of(const struct group *v, uint64_t i)
{
    return gn_page_table_length(v->t, v->g * GN_PAGE_GROUP + i);
}

static const unsigned char *old_digest(const struct group *v, uint64_t i)
{
    return v->t->digests + (v->g * GN_PAGE_GROUP + i) * v->digest_bytes;
}

/* Makes the pages of `bits` readable at slot->content. */
static int fetch(const struct group *v, uint64_t bits)
{
    uint64_t base = v->g * GN_PAGE_GROUP * v->page_bytes;
    if (v->source->memory && v->how->kind == GN_ROUND_STOP) {
        v->slot->content = (const unsigned char *)v->source->memory + base;
        return 0;
    }
    v->slot->content = v->slot->staging;
    for (uint64_t i, n, rest = bits; rest; rest &= ~gn_page_run(i, n)) {
        i = (uint64_t)__builtin_ctzll(rest);
        n = gn_page_run_length(rest, i);
        uint64_t offset = base + i * v->page_bytes;
        uint64_t bytes = (n - 1) * v->page_bytes + length_of(v, i + n - 1);
        unsigned char *dst = v->slot->staging + i * v->page_bytes;
        if (v->source->memory) {
            memcpy(dst, (const unsigned char *)v->source->memory + offset, bytes);
        } else {
            int r = v->source->read(v->source->ctx, offset, dst, bytes);
            v->slot->stats.read_bytes += bytes;
            if (r)
                return r;
        }
    }
    return 0;
}

static void prefetch_page(const struct group *v, uint64_t i)
{
    const unsigned char *p = page_of(v, i);
    const uint32_t n = length_of(v, i);
    for (uint32_t line = 0; line < n && line < 1024; line += 64)
        __builtin_prefetch(p + line);
}

/* Prefetches a page that is hashed after a gap, which the processor's own prefetch misses. */
static void prefetch_after_gap(const struct group *v, uint64_t rest, uint64_t i)
{
    rest &= rest - 1;
    if (rest && !(rest >> (i + 1) & 1))
        prefetch_page(v, (uint64_t)__builtin_ctzll(rest));
}

static bool is_sample_different(const struct group *v, uint64_t i, enum gn_sample_place place)
{
    const uint32_t now =
        gn_page_sample_at(place, v->t->sample_bytes, page_of(v, i), length_of(v, i));
    return now != v->t->samples[v->g * GN_PAGE_GROUP + i].at[place];
}

static void prefetch_sample(const struct group *v, uint64_t i, enum gn_sample_place place)
{
    if (place != GN_SAMPLE_SPREAD)
        __builtin_prefetch(place == GN_SAMPLE_HEAD ? page_of(v, i)
                                                   : page_of(v, i) + length_of(v, i) - 1);
}

/* Returns the pages of `bits` with a different sample. */
static uint64_t sample(const struct group *v, uint64_t bits, enum gn_sample_place place)
{
    uint64_t differ = 0;
    /*
     * Each first access to a page misses the caches: many misses in parallel take hardly longer
     * than one.
     */
    for_each_page(i, bits) prefetch_sample(v, i, place);
    for_each_page(i, bits) differ |= (uint64_t)is_sample_different(v, i, place) << i;
    return differ;
}

/*
 * True if the page's digest differs from the one that was sent. The new digest goes into the slot.
 */
static bool hash(const struct group *v, uint64_t i)
{
    unsigned char *digest = v->slot->digests + i * v->digest_bytes;
    gn_page_digest(v->t->hasher, page_of(v, i), length_of(v, i), digest);
    return memcmp(digest, old_digest(v, i), v->digest_bytes) != 0;
}

/* Returns the pages of `bits` with a different digest. */
static uint64_t hash_all(const struct group *v, uint64_t bits)
{
    uint64_t differ = 0;
    for_each_page(i, bits)
    {
        prefetch_after_gap(v, rest_, i);
        differ |= (uint64_t)hash(v, i) << i;
    }
    return differ;
}

/*
 * For a changed page that was just hashed: counts which places detect the change. Returns the first
 * of them, or `otherwise`.
 */
static enum gn_sample_place count_hits(const struct group *v, uint64_t i,
                                       enum gn_sample_place otherwise)
{
    enum gn_sample_place first = otherwise;
    for (enum gn_sample_place p = GN_SAMPLE_PLACES; p-- > 0;) {
        if (is_sample_different(v, i, p)) {
            v->slot->batch.hits[p]++;
            first = p;
        }
    }
    return first;
}

/*
 * Hashes the pages one after the other, and samples those behind a page that a sample detected.
 * With `use`, pages that the sample detects are not hashed but put into *ret_sampled; without, they
 * are only counted. A changed page that the sample does not detect does not end a run; an unchanged
 * page does.
 */
static uint64_t hash_in_runs(const struct group *v, uint64_t bits, bool use, uint64_t *ret_sampled)
{
    struct gn_sample_batch *b = &v->slot->batch;
    enum gn_sample_place place = GN_SAMPLE_OFF;
    uint64_t differ = 0;
    for_each_page(i, bits)
    {
        if (place != GN_SAMPLE_OFF) {
            if (use && i + SAMPLES_AHEAD < GN_PAGE_GROUP && bits >> (i + SAMPLES_AHEAD) & 1)
                prefetch_sample(v, i + SAMPLES_AHEAD, place);
            b->behind++;
            if (use && is_sample_different(v, i, place)) {
                b->told_behind++;
                b->hits[place]++;
                *ret_sampled |= UINT64_C(1) << i;
                continue;
            }
        }
        if (i && *ret_sampled >> (i - 1) & 1)
            prefetch_page(v, i);
        const bool changed = hash(v, i);
        if (changed && !use && place != GN_SAMPLE_OFF)
            b->told_behind += is_sample_different(v, i, place);
        differ |= (uint64_t)changed << i;
        place = changed ? count_hits(v, i, place) : GN_SAMPLE_OFF;
    }
    return differ;
}

/* Returns the changed pages of `bits`, which have been fetched. Fills the slot's batch. */
static uint64_t verify(const struct group *v, uint64_t bits, uint64_t *ret_sampled)
{
    struct gn_verify_slot *slot = v->slot;
    struct gn_sample_batch *b = &slot->batch;
    uint64_t sampled = 0, changed, t0 = gn_now_ns();

    b->place = v->how->place;
    b->looked = b->place == GN_SAMPLE_OFF && v->how->look;
    if (b->place < GN_SAMPLE_PLACES) {
        sampled = sample(v, bits, b->place);
        b->hits[b->place] = (uint32_t)__builtin_popcountll(sampled);
        uint64_t t1 = gn_now_ns();
        b->sample_ns = t1 - t0;
        t0 = t1;
    }
    if (b->place == GN_SAMPLE_RUNS || b->looked)
        changed = hash_in_runs(v, bits, b->place == GN_SAMPLE_RUNS, &sampled);
    else
        changed = hash_all(v, bits & ~sampled);
    b->hash_ns = gn_now_ns() - t0;
    b->n_pages = (uint32_t)__builtin_popcountll(bits);
    b->n_hashed = (uint32_t)__builtin_popcountll(bits & ~sampled);
    slot->stats.hash_ns += b->hash_ns;
    *ret_sampled = sampled;
    return sampled | changed;
}

/* Compares the digests that the device computed. Pages that differ still have to be read. */
static uint64_t verify_on_device(const struct group *v, uint64_t bits)
{
    uint64_t differ = 0;
    for_each_page(i, bits)
    {
        if (memcmp(v->how->device_digests + i * v->digest_bytes, old_digest(v, i),
                   v->digest_bytes) != 0)
            differ |= UINT64_C(1) << i;
    }
    return differ;
}

/*
 * Records digest and sample of these pages in the slot; `fresh` are the pages with a digest in the
 * slot already.
 */
static void record_digests(const struct group *v, uint64_t bits, uint64_t fresh)
{
    struct gn_verify_slot *slot = v->slot;
    if (!v->digest_bytes || !bits)
        return;
    uint64_t t0 = gn_now_ns();
    for_each_page(i, bits)
    {
        if (!(fresh >> i & 1)) /* verify() put the digest of a fresh page there */
            gn_page_digest(v->t->hasher, page_of(v, i), length_of(v, i),
                           slot->digests + i * v->digest_bytes);
        slot->samples[i] = gn_page_sample_draw(v->t->sample_bytes, page_of(v, i), length_of(v, i));
    }
    slot->hashed = bits;
    slot->known |= bits;
    slot->stats.hash_ns += gn_now_ns() - t0;
}

static void find_zeros(const struct group *v, uint64_t bits)
{
    for_each_page(i, bits)
    {
        /*
         * A page with a digest is examined only if the digest is the one of zeros. An equal digest
         * is no proof, because it is a hash.
         */
        if ((v->slot->known >> i & 1) && length_of(v, i) == v->page_bytes &&
            memcmp(v->slot->digests + i * v->digest_bytes, v->t->hasher->zero, v->digest_bytes) !=
                0)
            continue;
        if (gn_stream_all_zero(page_of(v, i), length_of(v, i)))
            v->slot->zero |= UINT64_C(1) << i;
    }
}

static uint64_t count(uint64_t bits)
{
    return (uint64_t)__builtin_popcountll(bits);
}

static int verify_pages(const struct group *v, uint64_t direct, uint64_t verified, uint64_t kernel)
{
    struct gn_verify_slot *slot = v->slot;
    const uint64_t by_device = v->how->device_digests ? verified : 0, here = verified & ~by_device;
    uint64_t changed = verify_on_device(v, by_device), sampled = 0, fresh = 0;
    const int r = fetch(v, direct | here | changed);
    if (r)
        return r;
    if (here) {
        changed = verify(v, here, &sampled);
        fresh = here & ~sampled;
    }
    slot->stats.device = count(by_device);
    slot->stats.sampled = count(sampled);
    slot->stats.hashed = count(verified & ~sampled);
    slot->stats.missed = count(changed & ~sampled);
    slot->stats.clean = count(verified & ~changed);
    slot->send = direct | changed;
    slot->known = fresh & slot->send;
    if (v->how->kind == GN_ROUND_LIVE) /* no round follows a stop and compares */
        record_digests(v, slot->send & kernel, fresh);
    find_zeros(v, slot->send);
    slot->stats.zero = count(slot->zero);
    return 0;
}

int gn_verify_group(struct gn_page_table *t, const struct gn_page_source *source, uint64_t g,
                    const struct gn_verify_how *how, struct gn_verify_slot *slot)
{
    struct group v = {.t = t,
                      .source = source,
                      .how = how,
                      .slot = slot,
                      .g = g,
                      .page_bytes = t->hasher->page_bytes,
                      .digest_bytes = t->hasher->digest_bytes};
    uint64_t t0 = gn_now_ns();
    uint64_t in_group = t->n_pages - g * GN_PAGE_GROUP;
    uint64_t valid = in_group < GN_PAGE_GROUP ? (UINT64_C(1) << in_group) - 1 : UINT64_MAX;

    slot->send = slot->zero = slot->hashed = slot->known = 0;
    slot->content = NULL;
    memset(&slot->stats, 0, sizeof slot->stats);
    memset(&slot->batch, 0, sizeof slot->batch);

    /*
     * V0 pairs with M0: a mark that is cleared here was set after its write, which the reading
     * below therefore sees. If the mark were cleared after the reading, a write between the two
     * would be lost.
     */
    uint64_t host = atomic_exchange_explicit(&t->host[g], 0, memory_order_acquire) & valid;
    uint64_t kernel =
        t->doubts || atomic_load_explicit(&t->kernel, memory_order_acquire) ? valid : 0;

    uint64_t unsent = valid & ~t->sent[g];
    uint64_t direct = unsent | host;
    const uint64_t comparable = t->hasher->kind == GN_PAGE_HASH_NONE ? 0 : t->hashed[g];
    const uint64_t verified = kernel & ~direct & comparable;
    direct |= kernel & ~comparable;

    int r = direct | verified ? verify_pages(&v, direct, verified, kernel) : 0;
    slot->stats.pages = count(valid);
    slot->stats.skipped = count(valid & ~direct & ~verified);
    slot->stats.host = count(host & ~unsent);
    slot->stats.unseen = count(direct) - slot->stats.host;
    slot->stats.verify_ns = gn_now_ns() - t0;
    if (r)
        atomic_fetch_or_explicit(&t->host[g], host, memory_order_release);
    return r;
}

void gn_verify_commit(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot)
{
    uint32_t digest_bytes = t->hasher->digest_bytes;
    uint64_t base = g * GN_PAGE_GROUP;
    for_each_page(i, slot->hashed)
    {
        memcpy(t->digests + (base + i) * digest_bytes, slot->digests + i * digest_bytes,
               digest_bytes);
        t->samples[base + i] = slot->samples[i];
    }
    t->sent[g] |= slot->send;
    t->hashed[g] = (t->hashed[g] & ~slot->send) | slot->hashed;
}

void gn_verify_undo(struct gn_page_table *t, uint64_t g, const struct gn_verify_slot *slot)
{
    t->sent[g] &= ~slot->send;
    t->hashed[g] &= ~slot->send;
}

void gn_verify_stats_add(struct gn_verify_stats *sum, const struct gn_verify_stats *s)
{
    /* All fields are counts. */
    _Static_assert(sizeof *s % sizeof s->pages == 0, "counts of 64 bits");
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)s;
    for (size_t i = 0; i < sizeof *s / sizeof *from; i++)
        to[i] += from[i];
}
