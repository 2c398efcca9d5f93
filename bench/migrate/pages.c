/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer and the line that bench-pages measures on. */
#include "pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define LINE_BUFFER (UINT64_C(4) << 20)
#define LINE_AHEAD  UINT64_C(2000000)

_Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-pages: %s\n", what);
    exit(1);
}

void need(int r, const char *what)
{
    if (r) {
        fprintf(stderr, "bench-pages: %s: %s\n", what, strerror(-r));
        exit(1);
    }
}

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double draw_part(void)
{
    return (double)(draw() >> 11) / (double)(UINT64_C(1) << 53);
}

static int none_data(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                     const void *digests)
{
    return 0;
}

void line_none(struct line *l)
{
    memset(l, 0, sizeof *l);
    l->sink = (struct gn_page_sink){.data = none_data, .ctx = l};
}

static void sleep_until(uint64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

static int line_data(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                     const void *digests)
{
    struct line *l = ctx;
    if (!data) /* pages of zeros cross the line without contents */
        return 0;
    if (!l->now.pages)
        l->now.began_ns = gn_now_ns();
    l->now.pages += (n + PAGE - 1) / PAGE;
    for (uint64_t done = 0; done < n;) {
        uint64_t piece = n - done < LINE_BUFFER - l->at ? n - done : LINE_BUFFER - l->at;
        memcpy(l->buffer + l->at, (const char *)data + done, piece);
        l->at = (l->at + piece) % LINE_BUFFER;
        done += piece;
    }
    if (!l->bytes_per_s)
        return 0;
    uint64_t now = gn_now_ns();
    if (l->free_at_ns < now)
        l->free_at_ns = now;
    l->free_at_ns += n * 1000000000u / l->bytes_per_s;
    if (l->free_at_ns > now + LINE_AHEAD)
        sleep_until(l->free_at_ns - LINE_AHEAD);
    return 0;
}

static int line_flush(void *ctx)
{
    struct line *l = ctx;
    l->now.ended_ns = gn_now_ns();
    if (l->now.pages && l->notes && l->n_notes < l->most_notes)
        l->notes[l->n_notes++] = l->now;
    l->now.pages = 0;
    return 0;
}

void line_open(struct line *l, uint64_t bytes_per_s)
{
    line_none(l);
    l->bytes_per_s = bytes_per_s;
    l->sink.data = line_data;
    l->sink.flush = line_flush;
    l->buffer = malloc(LINE_BUFFER);
    if (!l->buffer)
        die("out of memory");
    memset(l->buffer, 1, LINE_BUFFER);
}

void line_drain(struct line *l)
{
    if (l->free_at_ns > gn_now_ns())
        sleep_until(l->free_at_ns);
}

struct gn_rounds *rounds(unsigned threads)
{
    struct gn_rounds *r;
    need(gn_rounds_create(PAGE, threads, &r, NULL), "no engine");
    return r;
}

uint64_t timed_round(struct gn_rounds *r, struct pages *p, struct gn_round_options o,
                     struct line *l, struct gn_round_stats *s)
{
    uint64_t t0 = gn_now_ns();
    need(gn_rounds_run(r, &o, &p->item, 1, &l->sink, s, NULL), "a round failed");
    line_drain(l);
    return gn_now_ns() - t0;
}

/* Takes a page of zeros and a page of equal words for the same, and any order of words. */
static void digest_xor256(const struct gn_page_hasher *h, const void *page, size_t n, void *ret)
{
    typedef uint64_t quad __attribute__((vector_size(32)));
    quad a = {0}, b = {0};
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        quad x, y;
        memcpy(&x, (const char *)page + i, 32);
        memcpy(&y, (const char *)page + i + 32, 32);
        a ^= x;
        b ^= y;
    }
    a ^= b;
    for (; i < n; i += 32) {
        quad x = {0};
        memcpy(&x, (const char *)page + i, n - i < 32 ? n - i : 32);
        a ^= x;
    }
    memcpy(ret, &a, 32);
}

void hasher_make(struct gn_page_hasher *h, enum gn_page_hash_kind kind)
{
    const bool own = kind == GN_PAGE_HASH_OTHER;
    need(gn_page_hasher_init(h, own ? GN_PAGE_HASH_NONE : kind, PAGE, 0, NULL), "no hasher");
    if (!own)
        return;
    h->kind = kind;
    h->digest = digest_xor256;
    h->digest_bytes = 32; /* of zeros: zeros, as h->zero is */
}

void pages_make(struct pages *p, uint64_t n, enum gn_page_hash_kind kind)
{
    memset(p, 0, sizeof *p);
    p->n = n;
    p->memory = aligned_alloc(PAGE, n * PAGE);
    need(gn_page_hasher_init(&p->hasher, kind, PAGE, 0, NULL), "no hasher");
    need(gn_page_table_create(&p->hasher, n * PAGE, true, 4, &p->table), "no table");
    p->sent = calloc(p->table->n_groups, 8);
    p->hashed = calloc(p->table->n_groups, 8);
    if (!p->memory || !p->sent || !p->hashed)
        die("out of memory");
    for (uint64_t i = 0; i < n * PAGE / 8; i++)
        ((uint64_t *)p->memory)[i] = draw();
    p->item = (struct gn_round_item){.table = p->table, .source = {.memory = p->memory}};
}

void pages_forget(struct pages *p)
{
    for (uint64_t g = 0; g < p->table->n_groups; g++)
        p->table->sent[g] = p->table->hashed[g] = 0;
}

void pages_mix(struct pages *p, struct mix mix)
{
    struct gn_rounds *r = rounds(0);
    struct gn_round_stats s;
    struct line l;
    line_none(&l);
    pages_forget(p);
    timed_round(r, p, (struct gn_round_options){.kind = GN_ROUND_LIVE}, &l, &s);
    gn_rounds_destroy(r);
    memcpy(p->sent, p->table->sent, 8 * p->table->n_groups);
    memcpy(p->hashed, p->table->hashed, 8 * p->table->n_groups);
    /* A run of changed pages goes on with a new draw of the same outcome. */
    const double anew = mix.run > 0 && mix.changed < 1 ? 1 / (mix.run * (1 - mix.changed)) : 1;
    double kind = draw_part();
    for (uint64_t i = 0; i < p->n; i++) {
        if (i && draw_part() < anew)
            kind = draw_part();
        if (kind >= mix.changed)
            continue;
        /* A kernel that writes a page seldom writes one word of it. */
        uint64_t *words = (uint64_t *)(p->memory + i * PAGE);
        for (unsigned w = kind < mix.reported ? 0 : 40; w < 400; w += 3)
            words[w] ^= draw() | 1;
    }
}

void pages_again(struct pages *p)
{
    memcpy(p->table->sent, p->sent, 8 * p->table->n_groups);
    memcpy(p->table->hashed, p->hashed, 8 * p->table->n_groups);
}

void pages_free(struct pages *p)
{
    gn_page_table_destroy(p->table);
    gn_page_hasher_fini(&p->hasher);
    free(p->memory);
    free(p->sent);
    free(p->hashed);
}
