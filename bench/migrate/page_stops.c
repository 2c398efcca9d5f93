/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The round that stops, over a line: how long a load would stand for it, by hash and by the line's
 * speed (gMig figures 6 and 7), and what hashing and sending at once are worth, for loads (figure
 * 16) and in the course of one round (figure 15). The line is pages.h's model.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "../loads/load.h"
#include "base/checked.h"
#include "base/clock.h"

#define TURNS    5u
#define GBITS(n) ((uint64_t)((n)*125e6))

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Until the line is empty; the median of several. */
static uint64_t stop_ns(struct gn_rounds *r, struct tracked *t, struct line *l,
                        struct gn_round_stats *s)
{
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_AUTO};
    uint64_t took[TURNS];
    for (unsigned i = 0; i < TURNS; i++) {
        tracked_again(t);
        l->n_notes = 0;
        const uint64_t began_ns = gn_now_ns();
        need(gn_rounds_run(r, &stop, t->items, t->n, &l->sink, s, NULL), "a round failed");
        line_drain(l);
        took[i] = gn_now_ns() - began_ns;
    }
    qsort(took, TURNS, sizeof *took, by_time);
    return took[TURNS / 2];
}

/* Of a round of which one thread did everything: at best, hashing one group and sending the one
 * before take as long as the longer. */
static uint64_t ideal_ns(const struct line *l, uint64_t began_ns, uint64_t ended_ns)
{
    uint64_t sum = ended_ns - (l->n_notes ? l->notes[l->n_notes - 1].ended_ns : began_ns);
    for (uint64_t i = 0; i < l->n_notes; i++) {
        const uint64_t hash_ns = l->notes[i].began_ns - (i ? l->notes[i - 1].ended_ns : began_ns);
        const uint64_t send_ns = l->notes[i].ended_ns - l->notes[i].began_ns;
        sum += hash_ns > send_ns ? hash_ns : send_ns;
    }
    return sum;
}

static void note_groups(struct line *l, uint64_t n_pages)
{
    l->most_notes = n_pages / GN_PAGE_GROUP + MOST_BUFFERS + 1;
    l->notes = calloc(l->most_notes, sizeof *l->notes);
    if (!l->notes)
        die("out of memory");
}

static void overlap(struct tracked *t, uint64_t bytes_per_s)
{
    struct gn_rounds *one = rounds(1), *none = rounds(0);
    struct gn_round_stats s;
    struct line l;
    line_open(&l, bytes_per_s);
    note_groups(&l, t->n_pages);
    const uint64_t sequential_ns = stop_ns(none, t, &l, &s);
    tracked_again(t);
    l.n_notes = 0;
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_AUTO};
    const uint64_t began_ns = gn_now_ns();
    need(gn_rounds_run(none, &stop, t->items, t->n, &l.sink, &s, NULL), "a round failed");
    const uint64_t best_ns = ideal_ns(&l, began_ns, gn_now_ns());
    line_drain(&l);
    const uint64_t overlapped_ns = stop_ns(one, t, &l, &s);
    const double pages = (double)t->n_pages;
    printf("\"overlap\": {\"gbit_per_s\": %.1f, \"sequential_ns\": %.1f, \"overlapped_ns\": %.1f, "
           "\"ideal_ns\": %.1f}",
           (double)bytes_per_s / 125e6, (double)sequential_ns / pages,
           (double)overlapped_ns / pages, (double)best_ns / pages);
    free(l.notes);
    free(l.buffer);
    gn_rounds_destroy(one);
    gn_rounds_destroy(none);
}

void bench_stops(const char *name, unsigned rounds_between)
{
    static const struct {
        const char *name;
        enum gn_page_hash_kind kind;
    } hashes[] = {
        {"none", GN_PAGE_HASH_NONE}, {"xor256", GN_PAGE_HASH_OTHER}, {"xxh3", GN_PAGE_HASH_XXH3}};
    static const double gbits[] = {5, 7.5, 10};
    struct gn_page_hasher hashers[GN_ARRAY_SIZE(hashes)];
    struct tracked tracked[GN_ARRAY_SIZE(hashes)];
    struct gn_rounds *r = rounds(1);
    struct gn_run run;
    load_begin(&run, name);
    for (size_t i = 0; i < GN_ARRAY_SIZE(hashes); i++) {
        hasher_make(&hashers[i], hashes[i].kind);
        tracked_open(&tracked[i], &run, &hashers[i], 4);
    }
    for (unsigned i = 0; i < rounds_between; i++)
        run.load->round(&run);
    gn_load_drain(&run);
    printf("{\"load\": \"%s\", \"pages\": %llu, \"stops\": [", run.load->name,
           (unsigned long long)tracked[0].n_pages);
    for (size_t i = 0; i < GN_ARRAY_SIZE(hashes); i++) {
        tracked_stand(&tracked[i]);
        for (size_t k = 0; k < GN_ARRAY_SIZE(gbits); k++) {
            struct gn_round_stats s;
            struct line l;
            line_open(&l, GBITS(gbits[k]));
            const uint64_t ns = stop_ns(r, &tracked[i], &l, &s);
            printf("%s{\"hash\": \"%s\", \"gbit_per_s\": %.1f, \"ns\": %llu, \"sent\": %llu, "
                   "\"zero\": %llu}",
                   i || k ? ", " : "", hashes[i].name, gbits[k], (unsigned long long)ns,
                   (unsigned long long)s.sent_pages, (unsigned long long)s.verify.zero);
            free(l.buffer);
        }
    }
    printf("], ");
    overlap(&tracked[GN_ARRAY_SIZE(hashes) - 1], GBITS(10));
    printf("}");
    for (size_t i = 0; i < GN_ARRAY_SIZE(hashes); i++) {
        tracked_close(&tracked[i]);
        gn_page_hasher_fini(&hashers[i]);
    }
    gn_rounds_destroy(r);
    load_end(&run);
}

/* Points of a course: where it is in the round, and ns a page. */
static void print_course(const char *name, const struct line *l, uint64_t began_ns, bool ideal,
                         const char *after)
{
    const uint64_t step = l->n_notes / 100 ? l->n_notes / 100 : 1;
    printf("\"%s\": [", name);
    for (uint64_t i = 0; i + step <= l->n_notes; i += step) {
        uint64_t sum = 0;
        for (uint64_t k = i; k < i + step; k++) {
            const uint64_t from_ns = k ? l->notes[k - 1].ended_ns : began_ns;
            const uint64_t hash_ns = l->notes[k].began_ns - from_ns,
                           send_ns = l->notes[k].ended_ns - l->notes[k].began_ns;
            sum += !ideal ? hash_ns + send_ns : hash_ns > send_ns ? hash_ns : send_ns;
        }
        printf("%s[%llu, %.1f]", i ? ", " : "", (unsigned long long)(i * GN_PAGE_GROUP),
               (double)sum / (double)(step * GN_PAGE_GROUP));
    }
    printf("]%s", after);
}

void bench_course(uint64_t n_pages)
{
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_AUTO};
    struct gn_rounds *by[2] = {rounds(0), rounds(1)};
    struct gn_round_stats s;
    struct pages p;
    struct line l;
    pages_make(&p, n_pages, GN_PAGE_HASH_XXH3);
    pages_mix(&p, (struct mix){.changed = 0.526, .reported = 0.467});
    line_open(&l, GBITS(10));
    note_groups(&l, n_pages);
    printf("{");
    for (int i = 0; i < 2; i++) {
        pages_again(&p);
        l.n_notes = 0;
        const uint64_t began_ns = gn_now_ns();
        timed_round(by[i], &p, stop, &l, &s);
        print_course(i ? "overlapped" : "sequential", &l, began_ns, false, i ? "}" : ", ");
        if (!i)
            print_course("ideal", &l, began_ns, true, ", ");
        gn_rounds_destroy(by[i]);
    }
    free(l.notes);
    free(l.buffer);
    pages_free(&p);
}
