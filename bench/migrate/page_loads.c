/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load's own buffers through the engine: everything is sent, the load goes on for some rounds, and the round that stops finds
 * what has changed. By it, for each place and length of a sample: how many of the changed pages it tells.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "../loads/load.h"

static const struct gn_load *const loads[] = {
    &gn_load_matrixmul, &gn_load_blackscholes, &gn_load_scan, &gn_load_histogram, &gn_load_convolution, &gn_load_hotspot,
    &gn_load_srad,      &gn_load_pathfinder,   &gn_load_nw,   &gn_load_walsh,     &gn_load_cfd,         &gn_load_lavamd,
};

struct source {
    struct gn_run *run;
    cl_mem mem;
};

static int read_buffer(void *ctx, uint64_t offset, void *dst, uint64_t n)
{
    struct source *s = ctx;
    gn_load_need(clEnqueueReadBuffer(s->run->queue, s->mem, CL_TRUE, offset, n, dst, 0, NULL, NULL), "clEnqueueReadBuffer");
    return 0;
}

/* The load's buffers in tables of their own. */
struct tracked {
    struct gn_round_item items[GN_LOAD_MAX_BUFFERS];
    struct source sources[GN_LOAD_MAX_BUFFERS];
    size_t n;
};

static void track(struct tracked *t, struct gn_run *run, const struct gn_page_hasher *h, unsigned sample_bytes)
{
    t->n = run->n_buffers;
    for (size_t i = 0; i < t->n; i++) {
        size_t bytes;
        cl_mem_flags flags;
        gn_load_need(clGetMemObjectInfo(run->buffers[i], CL_MEM_SIZE, sizeof bytes, &bytes, NULL), "clGetMemObjectInfo");
        gn_load_need(clGetMemObjectInfo(run->buffers[i], CL_MEM_FLAGS, sizeof flags, &flags, NULL), "clGetMemObjectInfo");
        t->sources[i] = (struct source){run, run->buffers[i]};
        t->items[i].source = (struct gn_page_source){.read = read_buffer, .ctx = &t->sources[i]};
        need(gn_page_table_create(h, bytes, !(flags & CL_MEM_READ_ONLY), sample_bytes, &t->items[i].table), "no table");
    }
}

static void print_stop(struct gn_rounds *r, struct tracked *t, enum gn_sample_place place, struct gn_round_stats *s)
{
    struct line none;
    line_none(&none);
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = place};
    need(gn_rounds_run(r, &stop, t->items, t->n, &none.sink, s, NULL), "a round failed");
    printf("\"pages\": %llu, \"skipped\": %llu, \"unchanged\": %llu, \"sampled\": %llu, \"missed\": %llu}", (unsigned long long)s->verify.pages,
           (unsigned long long)s->verify.skipped, (unsigned long long)s->verify.clean, (unsigned long long)s->verify.sampled,
           (unsigned long long)s->verify.missed);
}

void bench_load(const char *name, unsigned rounds_between)
{
    static const char *const places[] = {"head", "tail", "spread"};
    struct gn_run run = {0};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        if (strcmp(loads[i]->name, name) == 0)
            run.load = loads[i];
    }
    if (!run.load)
        die("no such load");
    gn_load_open(&run, NULL, NULL);
    run.size = run.load->size;
    run.batch = run.load->batch;
    run.groups = run.load->groups;
    gn_load_use_queue(&run, false);
    run.load->setup(&run);
    run.load->round(&run);
    gn_load_drain(&run);

    struct gn_page_hasher h;
    struct gn_rounds *r = rounds(0);
    need(gn_page_hasher_init(&h, GN_PAGE_HASH_XXH3, PAGE, 0, false, NULL), "no hasher");
    printf("{\"load\": \"%s\", \"samples\": [", run.load->name);
    for (unsigned bytes = 1; bytes <= 4; bytes *= 2) {
        struct tracked tracked[GN_SAMPLE_PLACES];
        struct gn_round_stats s;
        struct line none;
        line_none(&none);
        for (enum gn_sample_place place = 0; place < GN_SAMPLE_PLACES; place++) {
            track(&tracked[place], &run, &h, bytes);
            const struct gn_round_options live = {.kind = GN_ROUND_LIVE};
            need(gn_rounds_run(r, &live, tracked[place].items, tracked[place].n, &none.sink, &s, NULL), "a round failed");
        }
        for (unsigned i = 0; i < rounds_between; i++)
            run.load->round(&run);
        gn_load_drain(&run);
        for (enum gn_sample_place place = 0; place < GN_SAMPLE_PLACES; place++) {
            printf("%s{\"bytes\": %u, \"place\": \"%s\", ", bytes == 1 && place == 0 ? "" : ", ", bytes, places[place]);
            print_stop(r, &tracked[place], place, &s);
            for (size_t i = 0; i < tracked[place].n; i++)
                gn_page_table_destroy(tracked[place].items[i].table);
        }
    }
    printf("]}");
    gn_rounds_destroy(r);
    gn_page_hasher_fini(&h);
    gn_load_reset(&run);
    gn_load_close(&run);
}
