/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load's own buffers through the engine: everything is sent, the load goes on for some rounds,
 * and the round that stops finds what has changed. By it, for each place and length of a sample:
 * how many of the changed pages it tells, and what a page takes.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "../loads/load.h"
#include "base/checked.h"

static const struct gn_load *const loads[] = {
    &gn_load_matrixmul,   &gn_load_blackscholes, &gn_load_scan, &gn_load_histogram,
    &gn_load_convolution, &gn_load_hotspot,      &gn_load_srad, &gn_load_pathfinder,
    &gn_load_nw,          &gn_load_walsh,        &gn_load_cfd,  &gn_load_lavamd,
};

static int read_buffer(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct tracked_source *s = ctx;
    gn_load_need(clEnqueueReadBuffer(s->run->queue, s->mem, CL_TRUE, offset, n, dst, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
    return 0;
}

void load_begin(struct gn_run *run, const char *name)
{
    memset(run, 0, sizeof *run);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        if (strcmp(loads[i]->name, name) == 0)
            run->load = loads[i];
    }
    if (!run->load)
        die("no such load");
    gn_load_open(run, NULL, NULL);
    run->size = run->load->size;
    run->batch = run->load->batch;
    run->groups = run->load->groups;
    gn_load_use_queue(run, false);
    run->load->setup(run);
    run->load->round(run);
    gn_load_drain(run);
}

void load_end(struct gn_run *run)
{
    gn_load_reset(run);
    gn_load_close(run);
}

void tracked_open(struct tracked *t, struct gn_run *run, const struct gn_page_hasher *h,
                  unsigned sample_bytes)
{
    _Static_assert(MOST_BUFFERS >= GN_LOAD_MAX_BUFFERS, "a load's buffers");
    memset(t, 0, sizeof *t);
    t->n = run->n_buffers;
    for (size_t i = 0; i < t->n; i++) {
        size_t bytes;
        cl_mem_flags flags;
        gn_load_need(clGetMemObjectInfo(run->buffers[i], CL_MEM_SIZE, sizeof bytes, &bytes, NULL),
                     "clGetMemObjectInfo");
        gn_load_need(clGetMemObjectInfo(run->buffers[i], CL_MEM_FLAGS, sizeof flags, &flags, NULL),
                     "clGetMemObjectInfo");
        t->sources[i] = (struct tracked_source){run, run->buffers[i]};
        t->items[i].source = (struct gn_page_source){.read = read_buffer, .ctx = &t->sources[i]};
        need(gn_page_table_create(h, bytes, !(flags & CL_MEM_READ_ONLY), sample_bytes,
                                  &t->items[i].table),
             "no table");
        t->n_pages += t->items[i].table->n_pages;
    }
    struct gn_rounds *r = rounds(0);
    struct gn_round_stats s;
    struct line none;
    line_none(&none);
    const struct gn_round_options live = {.kind = GN_ROUND_LIVE};
    need(gn_rounds_run(r, &live, t->items, t->n, &none.sink, &s, NULL), "a round failed");
    gn_rounds_destroy(r);
    for (size_t i = 0; i < t->n; i++) {
        const size_t bytes = 8 * t->items[i].table->n_groups;
        t->sent[i] = malloc(bytes);
        t->hashed[i] = malloc(bytes);
        if (!t->sent[i] || !t->hashed[i])
            die("out of memory");
        memcpy(t->sent[i], t->items[i].table->sent, bytes);
        memcpy(t->hashed[i], t->items[i].table->hashed, bytes);
    }
}

void tracked_close(struct tracked *t)
{
    for (size_t i = 0; i < t->n; i++) {
        gn_page_table_destroy(t->items[i].table);
        free(t->sent[i]);
        free(t->hashed[i]);
        free(t->stands[i]);
    }
}

void tracked_stand(struct tracked *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const uint64_t bytes = t->items[i].table->bytes;
        t->stands[i] = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
        if (!t->stands[i])
            die("out of memory");
        read_buffer(&t->sources[i], 0, t->stands[i], bytes);
        t->items[i].source.memory = t->stands[i];
    }
}

void tracked_again(struct tracked *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const size_t bytes = 8 * t->items[i].table->n_groups;
        memcpy(t->items[i].table->sent, t->sent[i], bytes);
        memcpy(t->items[i].table->hashed, t->hashed[i], bytes);
    }
}

static int find_data(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                     const void *digests)
{
    memset(((unsigned char **)ctx)[id] + offset / PAGE, 1, (n + PAGE - 1) / PAGE);
    return 0;
}

/* How many pages that have changed lie side by side, in the mean; 0 when none has. */
static double run_length(struct gn_rounds *r, struct tracked *t)
{
    unsigned char *found[MOST_BUFFERS]; /* a byte a page */
    const struct gn_page_sink find = {.data = find_data, .ctx = found};
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_OFF};
    struct gn_round_stats s;
    uint64_t pages = 0, runs = 0;
    for (size_t i = 0; i < t->n; i++) {
        found[i] = calloc(t->items[i].table->n_pages, 1);
        if (!found[i])
            die("out of memory");
        t->items[i].id = i;
    }
    tracked_again(t);
    need(gn_rounds_run(r, &stop, t->items, t->n, &find, &s, NULL), "a round failed");
    for (size_t i = 0; i < t->n; i++) {
        for (uint64_t k = 0; k < t->items[i].table->n_pages; k++) {
            pages += found[i][k];
            runs += found[i][k] && (!k || !found[i][k - 1]);
        }
        free(found[i]);
    }
    tracked_again(t);
    return runs ? (double)pages / (double)runs : 0;
}

#define TURNS 5u

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The round that stops, verified on one thread and sent nowhere, several times: its figures, and ns
 * a page.
 */
static double stop_ns(struct gn_rounds *r, struct tracked *t, enum gn_sample_place place,
                      struct gn_round_stats *s)
{
    uint64_t took[TURNS];
    struct line none;
    line_none(&none);
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = place};
    for (unsigned i = 0; i < TURNS; i++) {
        tracked_again(t);
        need(gn_rounds_run(r, &stop, t->items, t->n, &none.sink, s, NULL), "a round failed");
        took[i] = s->verify.verify_ns;
    }
    tracked_again(t);
    qsort(took, TURNS, sizeof *took, by_time);
    return (double)took[TURNS / 2] / (double)t->n_pages;
}

void bench_load(const char *name, unsigned rounds_between)
{
    static const char *const places[] = {"head", "tail", "spread"};
    const unsigned lengths[] = {1, 2, 4};
    struct gn_run run;
    load_begin(&run, name);

    struct gn_page_hasher h;
    struct gn_rounds *r = rounds(0);
    struct tracked tracked[GN_ARRAY_SIZE(lengths)];
    struct gn_round_stats s;
    need(gn_page_hasher_init(&h, GN_PAGE_HASH_XXH3, PAGE, 0, NULL), "no hasher");
    for (unsigned i = 0; i < GN_ARRAY_SIZE(lengths); i++)
        tracked_open(&tracked[i], &run, &h, lengths[i]);
    for (unsigned i = 0; i < rounds_between; i++)
        run.load->round(&run);
    gn_load_drain(&run);
    for (unsigned i = 0; i < GN_ARRAY_SIZE(lengths); i++)
        tracked_stand(&tracked[i]);

    stop_ns(r, &tracked[0], GN_SAMPLE_OFF, &s); /* the caches */
    printf("{\"load\": \"%s\", \"run\": %.1f, \"off_ns\": %.1f, \"samples\": [", run.load->name,
           run_length(r, &tracked[0]), stop_ns(r, &tracked[0], GN_SAMPLE_OFF, &s));
    for (unsigned i = 0; i < GN_ARRAY_SIZE(lengths); i++)
        for (enum gn_sample_place place = 0; place < GN_SAMPLE_PLACES; place++) {
            const double ns = stop_ns(r, &tracked[i], place, &s);
            printf(
                "%s{\"bytes\": %u, \"place\": \"%s\", \"ns\": %.1f, \"pages\": %llu, \"skipped\": "
                "%llu, "
                "\"unchanged\": %llu, "
                "\"sampled\": %llu, \"missed\": %llu}",
                i || place ? ", " : "", lengths[i], places[place], ns,
                (unsigned long long)s.verify.pages, (unsigned long long)s.verify.skipped,
                (unsigned long long)s.verify.clean, (unsigned long long)s.verify.sampled,
                (unsigned long long)s.verify.missed);
        }
    printf("], \"auto_ns\": %.1f}", stop_ns(r, &tracked[0], GN_SAMPLE_AUTO, &s));
    for (unsigned i = 0; i < GN_ARRAY_SIZE(lengths); i++)
        tracked_close(&tracked[i]);
    gn_rounds_destroy(r);
    gn_page_hasher_fini(&h);
    load_end(&run);
}
