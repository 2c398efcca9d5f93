/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests samples byte by byte, and the choice in virtual time: its cost compared with hashing all
 * pages.
 */
#include "migrate/page_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void samples_are_the_bytes_they_are_of(void **state)
{
    unsigned char page[4096];
    for (unsigned i = 0; i < sizeof page; i++)
        page[i] = (unsigned char)(i * 7 + (i >> 8));
    for (unsigned bytes = 1; bytes <= 4; bytes *= 2) {
        uint32_t head = 0, tail = 0;
        memcpy(&head, page, bytes);
        memcpy(&tail, page + sizeof page - bytes, bytes);
        assert_int_equal(gn_page_sample_at(GN_SAMPLE_HEAD, bytes, page, sizeof page), head);
        assert_int_equal(gn_page_sample_at(GN_SAMPLE_TAIL, bytes, page, sizeof page), tail);
        struct gn_page_sample all = gn_page_sample_draw(bytes, page, sizeof page);
        for (enum gn_sample_place p = 0; p < GN_SAMPLE_PLACES; p++)
            assert_int_equal(all.at[p], gn_page_sample_at(p, bytes, page, sizeof page));
    }
    uint32_t spread = page[512] | (uint32_t)page[1536] << 8 | (uint32_t)page[2560] << 16 |
                      (uint32_t)page[3584] << 24;
    assert_int_equal(gn_page_sample_at(GN_SAMPLE_SPREAD, 4, page, sizeof page), spread);
    assert_int_equal(gn_page_sample_at(GN_SAMPLE_SPREAD, 1, page, sizeof page), page[2048]);
}

/* A buffer's last page may have a single byte; a sanitizer detects any read beyond it. */
static void short_pages_are_sampled_whole(void **state)
{
    for (size_t n = 1; n <= 9; n++) {
        unsigned char *page = malloc(n);
        assert_non_null(page);
        for (unsigned bytes = 1; bytes <= 4; bytes *= 2) {
            for (enum gn_sample_place p = 0; p < GN_SAMPLE_PLACES; p++) {
                memset(page, 0, n);
                uint32_t was = gn_page_sample_at(p, bytes, page, n), reported = 0;
                for (size_t i = 0; i < n; i++) {
                    page[i] = 1;
                    reported += gn_page_sample_at(p, bytes, page, n) != was;
                    page[i] = 0;
                }
                assert_int_equal(reported, n < bytes ? n : bytes);
            }
        }
        free(page);
    }
}

/* A machine: the costs on it, and how pages change. */
struct machine {
    double hash_ns, hashed_ns, sample_ns[GN_SAMPLE_PLACES];
    double hits[GN_SAMPLE_PLACES]; /* of all pages */
    double run; /* mean length of runs of pages that a sample detects; 0: single pages */
    /* extra cost of a page that is hashed and also sampled, in one place that detects it */
    double look_ns;
    double other_way; /* extra cost of the first batch after a switch, as a part */
};

static uint64_t random_state = 88172645463325252u;

static double draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / (double)(UINT64_C(1) << 53);
}

/* The places in which a sample detects this page. */
struct page {
    bool by[GN_SAMPLE_PLACES];
};

static struct page next_page(const struct machine *m, const struct page *last)
{
    struct page page;
    for (enum gn_sample_place p = 0; p < GN_SAMPLE_PLACES; p++) {
        const bool anew =
            m->run == 0 || m->hits[p] == 1 || draw() < 1 / (m->run * (1 - m->hits[p]));
        page.by[p] = anew ? draw() < m->hits[p] : last->by[p];
    }
    return page;
}

static enum gn_sample_place teller(const struct page *page)
{
    enum gn_sample_place p = 0;
    while (p < GN_SAMPLE_PLACES && !page->by[p])
        p++;
    return p;
}

/*
 * Simulates the verification of one batch: fills b, and returns the cost of hashing and sampling.
 */
static double verify(struct gn_sample_batch *b, const struct machine *m, struct page *page)
{
    enum gn_sample_place behind = GN_SAMPLE_OFF;
    bool skipped = false;
    double took = 0;
    for (unsigned k = 0; k < b->n_pages; k++) {
        *page = next_page(m, page);
        if (b->place < GN_SAMPLE_PLACES) {
            b->hits[b->place] += page->by[b->place];
            b->n_hashed += !page->by[b->place];
            took += page->by[b->place] ? 0 : m->hashed_ns;
            continue;
        }
        const bool in_runs = b->place == GN_SAMPLE_RUNS;
        if (behind != GN_SAMPLE_OFF) {
            b->behind++;
            b->told_behind += page->by[behind];
            if (in_runs)
                b->sample_ns += (uint64_t)m->sample_ns[behind];
            if (in_runs && page->by[behind]) {
                b->hits[behind]++;
                skipped = true;
                continue;
            }
        }
        b->n_hashed++;
        took += skipped ? m->hashed_ns : m->hash_ns;
        skipped = false;
        behind = teller(page);
        for (enum gn_sample_place p = 0; p < GN_SAMPLE_PLACES && (in_runs || b->looked); p++) {
            b->hits[p] += page->by[p];
            took += page->by[p] * m->look_ns;
        }
    }
    return took;
}

/*
 * The time of n batches of 64 pages with the choice. noise: the clock shows a hundred times the
 * cost of one batch in 50; the choice sees it, the result does not count it.
 */
static double run(struct gn_sample_choice *c, const struct machine *m, unsigned n, bool noise)
{
    double total = 0;
    bool was_off = true;
    struct page page = {0};
    for (unsigned i = 0; i < n; i++) {
        struct gn_sample_batch b = {.n_pages = 64};
        b.place = gn_sample_choose(c, &b.looked);
        const bool off = b.place == GN_SAMPLE_OFF;
        assert_true(off || !b.looked);
        const double hash = verify(&b, m, &page) * (i && was_off != off ? 1 + m->other_way : 1);
        const double sample =
            b.place < GN_SAMPLE_PLACES ? 64 * m->sample_ns[b.place] : (double)b.sample_ns;
        was_off = off;
        total += sample + hash;
        const double times = noise && draw() < 0.02 ? 100 : 1;
        b.sample_ns = b.place < GN_SAMPLE_PLACES ? (uint64_t)(sample * times) : 0;
        b.hash_ns = (uint64_t)(hash * times);
        gn_sample_note(c, &b);
    }
    return total;
}

static const struct machine dear = {.hash_ns = 500, .hashed_ns = 650, .sample_ns = {30, 30, 90}};

/*
 * gMig's Tropics: 52.6 % of the pages verified had changed; their first byte detects 46.7 % of all.
 */
static void the_papers_mix_is_a_fifth_cheaper(void **state)
{
    for (unsigned noise = 0; noise < 2; noise++) {
        struct gn_sample_choice c;
        struct machine m = dear;
        m.hits[GN_SAMPLE_HEAD] = 0.467;
        m.hits[GN_SAMPLE_TAIL] = 0.1;
        m.hits[GN_SAMPLE_SPREAD] = 0.4;
        gn_sample_choice_init(&c);
        double took = run(&c, &m, 1000, noise);
        assert_true(took < 0.8 * 500 * 64 * 1000);
    }
}

static void no_mix_is_two_percent_dearer(void **state)
{
    for (unsigned percent = 0; percent <= 100; percent++) {
        for (unsigned where = 0; where < 4; where++) {
            for (unsigned noise = 0; noise < 2; noise++) {
                struct gn_sample_choice c;
                struct machine m = dear;
                /* One place detects the changed pages, or all places, or none. */
                for (enum gn_sample_place p = 0; p < GN_SAMPLE_PLACES; p++)
                    m.hits[p] = where == 3 || where == p ? percent / 100.0 : 0;
                if (percent % 10 == 0 && where == 0)
                    memset(m.hits, 0, sizeof m.hits);
                gn_sample_choice_init(&c);
                double took = run(&c, &m, 500, noise);
                if (took > 1.02 * 500 * 64 * 500)
                    fail_msg("%u %% told by %u costs %.3f of hashing all", percent, where,
                             took / (500. * 64 * 500));
            }
        }
    }
}

/* The buffers of a migration follow each other: a good choice for one may be bad for the next. */
static void choice_follows_a_changed_mix(void **state)
{
    struct gn_sample_choice c;
    struct machine reported = dear, clean = dear;
    reported.hits[GN_SAMPLE_TAIL] = 0.9;
    gn_sample_choice_init(&c);
    double took = 0;
    for (unsigned i = 0; i < 20; i++)
        took += run(&c, i % 2 ? &clean : &reported, 100, false);
    assert_true(took < 0.7 * 500 * 64 * 2000);
    for (unsigned i = 0; i < 20; i++)
        run(&c, &clean, 1, false);
    bool look;
    unsigned sampled = 0;
    for (unsigned i = 0; i < 64; i++)
        sampled += gn_sample_choose(&c, &look) < GN_SAMPLE_PLACES;
    assert_int_equal(sampled, 0);
    /* Where nothing has changed, sampling in runs takes no sample. */
    assert_true(run(&c, &clean, 640, false) <= 1.0001 * 500 * 64 * 640);
}

/* A sample that costs as much as a hash is not taken. */
static void expensive_samples_are_not_taken(void **state)
{
    struct gn_sample_choice c;
    struct machine m = {
        .hash_ns = 300, .hashed_ns = 900, .sample_ns = {250, 250, 250}, .hits = {0.4, 0.4, 0.4}};
    gn_sample_choice_init(&c);
    double took = run(&c, &m, 1000, false);
    assert_true(took < 1.02 * 300 * 64 * 1000);
}

/*
 * An AMD EPYC: its prefetch works so well that skipping every second page saves little, and
 * restarting the prefetch costs time.
 */
static const struct machine far_sighted = {
    .hash_ns = 210, .hashed_ns = 370, .sample_ns = {16, 16, 60}, .look_ns = 10, .other_way = 0.2};

static void small_savings_are_not_taken(void **state)
{
    for (unsigned percent = 0; percent <= 60; percent++) {
        for (unsigned noise = 0; noise < 2; noise++) {
            struct gn_sample_choice c;
            struct machine m = far_sighted;
            m.hits[GN_SAMPLE_HEAD] = m.hits[GN_SAMPLE_TAIL] = m.hits[GN_SAMPLE_SPREAD] =
                0.888 * percent / 100;
            gn_sample_choice_init(&c);
            double took = run(&c, &m, 1000, noise);
            if (took > 1.02 * 210 * 64 * 1000)
                fail_msg("%u %% changed costs %.3f of hashing all", percent,
                         took / (210. * 64 * 1000));
        }
    }
}

static void large_savings_are_taken(void **state)
{
    struct gn_sample_choice c;
    struct machine m = far_sighted;
    m.hits[GN_SAMPLE_HEAD] = 0.888;
    gn_sample_choice_init(&c);
    assert_true(run(&c, &m, 1000, true) < 0.35 * 210 * 64 * 1000);
}

/*
 * Whole changed buffers beside whole unchanged ones, however few: measured by time for each page,
 * and by changed pages that are hashed nevertheless.
 */
static void adjacent_changes_are_sampled_in_runs(void **state)
{
    static const struct machine *const machines[] = {&dear, &far_sighted};
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned percent = 5; percent <= 95; percent += 10) {
            for (unsigned noise = 0; noise < 2; noise++) {
                struct gn_sample_choice c;
                struct machine m = *machines[k];
                m.run = 500;
                m.hits[GN_SAMPLE_HEAD] = percent / 100.0;
                gn_sample_choice_init(&c);
                const double took = run(&c, &m, 4000, noise) / (m.hash_ns * 64 * 4000);
                if (took > 1.02 - 0.7 * percent / 100.0)
                    fail_msg("machine %u, %u %% changed side by side costs %.3f of hashing all", k,
                             percent, took);
            }
        }
    }
}

/* In runs of two pages, the first one hardly predicts the second. */
static void short_runs_are_not_sampled(void **state)
{
    for (unsigned percent = 0; percent <= 35; percent += 5) {
        struct gn_sample_choice c;
        struct machine m = far_sighted;
        m.run = 2;
        m.hits[GN_SAMPLE_HEAD] = percent / 100.0;
        gn_sample_choice_init(&c);
        const double took = run(&c, &m, 2000, false) / (m.hash_ns * 64 * 2000);
        if (took > 1.02)
            fail_msg("%u %% changed costs %.3f of hashing all", percent, took);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_the_bytes_they_are_of),
        cmocka_unit_test(short_pages_are_sampled_whole),
        cmocka_unit_test(the_papers_mix_is_a_fifth_cheaper),
        cmocka_unit_test(no_mix_is_two_percent_dearer),
        cmocka_unit_test(choice_follows_a_changed_mix),
        cmocka_unit_test(expensive_samples_are_not_taken),
        cmocka_unit_test(small_savings_are_not_taken),
        cmocka_unit_test(large_savings_are_taken),
        cmocka_unit_test(adjacent_changes_are_sampled_in_runs),
        cmocka_unit_test(short_runs_are_not_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
