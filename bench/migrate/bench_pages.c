/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-pages: the engine of moves by itself. Parts: `hash` (gMig figure 5), `filter` (figures 11
 * and 12: time a page with the filter over that without, by share of changed pages), `overlap` (15
 * and 16: hashing and sending at once over the longer of the two), `load NAME` (9, 10, 12 to 14:
 * what the filter tells of a load's own pages, and what it takes), `stops NAME` (6, 7, 16: how long
 * it would stand), `course` (15), `device` (the kernels that hash pages beside the processor).
 * Prints one JSON object.
 */
#include "pages.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define GBITS(n) ((uint64_t)(n)*125000000u)

static void digest_evp(const EVP_MD *md, const void *page, size_t n)
{
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned len;
    if (!EVP_Digest(page, n, out, &len, md, NULL))
        die("EVP_Digest failed");
}

static void print_rate(const char *name, uint64_t bytes, uint64_t ns, const char *after)
{
    printf("\"%s\": %.3f%s", name, (double)bytes / (double)ns, after);
}

/* 256 MiB of pages each, 64 MiB for the slow ones. */
void bench_hashes(void)
{
    static const struct {
        const char *name;
        enum gn_page_hash_kind kind;
    } ours[] = {
        {"xxh3", GN_PAGE_HASH_XXH3}, {"nh", GN_PAGE_HASH_NH}, {"xor256", GN_PAGE_HASH_OTHER}};
    static const char *const others[] = {"md5", "sha1", "sha256", "sha512"};
    uint64_t bytes = UINT64_C(256) << 20;
    unsigned char *memory = aligned_alloc(PAGE, bytes);
    if (!memory)
        die("out of memory");
    for (uint64_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)memory)[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    printf("{");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        struct gn_page_hasher h;
        hasher_make(&h, ours[i].kind);
        unsigned char digest[GN_PAGE_DIGEST_MAX];
        uint64_t best = UINT64_MAX;
        for (unsigned turn = 0; turn < 5; turn++) {
            uint64_t t0 = gn_now_ns();
            for (uint64_t at = 0; at < bytes; at += PAGE)
                gn_page_digest(&h, memory + at, PAGE, digest);
            uint64_t t = gn_now_ns() - t0;
            best = t < best ? t : best;
        }
        print_rate(ours[i].name, bytes, best, ", ");
        gn_page_hasher_fini(&h);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        EVP_MD *md = EVP_MD_fetch(NULL, others[i], NULL);
        if (!md)
            die("a digest is missing");
        uint64_t t0 = gn_now_ns();
        for (uint64_t at = 0; at < bytes / 4; at += PAGE)
            digest_evp(md, memory + at, PAGE);
        print_rate(others[i], bytes / 4, gn_now_ns() - t0,
                   i + 1 < sizeof others / sizeof *others ? ", " : "}");
        EVP_MD_free(md);
    }
    free(memory);
}

/* Each pair's; bench/harness makes medians and quartiles of them. */
static void print_pairs(const char *name, const double *values, unsigned n)
{
    printf("\"%s\": [", name);
    for (unsigned i = 0; i < n; i++)
        printf("%s%.4f", i ? ", " : "", values[i]);
    printf("]");
}

/* Time a page, verified on one thread and sent nowhere. */
static double page_ns(struct gn_rounds *r, struct pages *p, enum gn_sample_place place,
                      struct gn_round_stats *s)
{
    struct line none;
    line_none(&none);
    pages_again(p);
    return (double)timed_round(
               r, p, (struct gn_round_options){.kind = GN_ROUND_STOP, .sample = place}, &none, s) /
           (double)p->n;
}

static void filter_row(struct pages *p, const char *name, struct mix mix,
                       enum gn_sample_place place, unsigned pairs, const char *after)
{
    struct gn_rounds *r = rounds(0);
    struct gn_round_stats s;
    double ratios[64], off[64], on[64];
    pages_mix(p, mix);
    page_ns(r, p, GN_SAMPLE_OFF, &s);
    for (unsigned i = 0; i < pairs; i++) {
        if (i % 2)
            on[i] = page_ns(r, p, place, &s);
        off[i] = page_ns(r, p, GN_SAMPLE_OFF, &s);
        if (i % 2 == 0)
            on[i] = page_ns(r, p, place, &s);
        ratios[i] = on[i] / off[i];
    }
    page_ns(r, p, place, &s);
    printf("{\"name\": \"%s\", \"changed\": %.3f, \"told\": %.3f, \"sampled\": %.3f, ", name,
           mix.changed, mix.reported, (double)s.verify.sampled / (double)p->n);
    print_pairs("ratio", ratios, pairs);
    printf(", ");
    print_pairs("off_ns", off, pairs);
    printf(", ");
    print_pairs("on_ns", on, pairs);
    printf("}%s", after);
    gn_rounds_destroy(r);
}

void bench_filter(unsigned pairs, uint64_t n_pages)
{
    static const double shares[] = {0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.75, 1};
    /* gMig 4.4, Tropics: of 81 pages verified 38.4 had not changed, 37.8 were told by their first
     * byte, 4.8 were not. */
    const struct mix paper = {.changed = 0.526, .reported = 0.467};
    struct mix runs = paper;
    struct pages p;
    pages_make(&p, n_pages, GN_PAGE_HASH_XXH3);
    printf("{\"rows\": [");
    filter_row(&p, "paper", paper, GN_SAMPLE_AUTO, pairs, ", ");
    filter_row(&p, "paper, head always", paper, GN_SAMPLE_HEAD, pairs, ", ");
    runs.run = 8;
    filter_row(&p, "paper in runs of 8", runs, GN_SAMPLE_AUTO, pairs, ", ");
    runs.run = 64;
    filter_row(&p, "paper in runs of 64", runs, GN_SAMPLE_AUTO, pairs, ", ");
    filter_row(&p, "paper in runs of 64, head always", runs, GN_SAMPLE_HEAD, pairs, ", ");
    runs = (struct mix){.changed = 0.05, .reported = 0.0444, .run = 64};
    filter_row(&p, "5 % in runs of 64,", runs, GN_SAMPLE_AUTO, pairs, ", ");
    filter_row(&p, "unchanged, head always", (struct mix){0}, GN_SAMPLE_HEAD, pairs, ", ");
    filter_row(&p, "50 %, none in the head,", (struct mix){.changed = 0.5}, GN_SAMPLE_AUTO, pairs,
               ", ");
    filter_row(&p, "100 %, none in the head,", (struct mix){.changed = 1}, GN_SAMPLE_AUTO, pairs,
               ", ");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        char name[32];
        snprintf(name, sizeof name, "%.0f %%", 100 * shares[i]);
        filter_row(&p, name, (struct mix){.changed = shares[i], .reported = 0.888 * shares[i]},
                   GN_SAMPLE_AUTO, pairs, i + 1 < sizeof shares / sizeof *shares ? ", " : "]}");
    }
    pages_free(&p);
}

/* The round that stops: verifying alone, sending alone (what was found to have changed), one after
 * the other, and at once. */
static void overlap_row(struct pages *p, uint64_t bytes_per_s, unsigned pairs, const char *after)
{
    struct gn_rounds *one = rounds(1), *inline_rounds = rounds(0);
    const struct gn_round_options stop = {.kind = GN_ROUND_STOP, .sample = GN_SAMPLE_OFF};
    struct gn_round_stats s;
    struct line line, none;
    double ratios[64], sequential[64];
    double sum[4] = {0};
    line_open(&line, bytes_per_s);
    line_none(&none);
    for (unsigned i = 0; i < pairs; i++) {
        pages_again(p);
        double hash = (double)timed_round(inline_rounds, p, stop, &none, &s);
        /* Sending alone: the same pages are known to be unsent, and nothing else is verified. */
        struct pages sending = *p;
        struct gn_page_hasher no_hash;
        need(gn_page_hasher_init(&no_hash, GN_PAGE_HASH_NONE, PAGE, 0, NULL), "no hasher");
        need(gn_page_table_create(&no_hash, p->n * PAGE, false, 4, &sending.table), "no table");
        memset(sending.table->sent, 0xff, 8 * sending.table->n_groups);
        for (uint64_t g = 0; g < sending.table->n_groups; g++)
            sending.table->sent[g] =
                p->table->hashed[g]; /* the last round let go of the digests of what it sent */
        sending.item.table = sending.table;
        double send = (double)timed_round(inline_rounds, &sending, stop, &line, &s);
        gn_page_table_destroy(sending.table);
        pages_again(p);
        double both = (double)timed_round(one, p, stop, &line, &s);
        pages_again(p);
        double in_turn = (double)timed_round(inline_rounds, p, stop, &line, &s);
        ratios[i] = both / (hash > send ? hash : send);
        sequential[i] = in_turn / (hash > send ? hash : send);
        double each[4] = {hash, send, both, in_turn};
        for (unsigned k = 0; k < 4; k++)
            sum[k] += each[k] / pairs / (double)p->n;
    }
    printf("{\"gbit_per_s\": %.1f, \"sent\": %.3f, \"hash_ns\": %.1f, \"send_ns\": %.1f, "
           "\"overlapped_ns\": %.1f, \"sequential_ns\": %.1f, ",
           (double)bytes_per_s / 125e6, (double)s.sent_pages / (double)p->n, sum[0], sum[1], sum[2],
           sum[3]);
    print_pairs("ratio", ratios, pairs);
    printf(", ");
    print_pairs("sequential", sequential, pairs);
    printf("}%s", after);
    free(line.buffer);
    gn_rounds_destroy(one);
    gn_rounds_destroy(inline_rounds);
}

/* The first round: sent and hashed, over sent alone. */
static void precopy_row(struct pages *p, struct pages *unhashed, uint64_t bytes_per_s,
                        unsigned pairs, const char *after)
{
    struct gn_rounds *one = rounds(1);
    const struct gn_round_options live = {.kind = GN_ROUND_LIVE};
    struct gn_round_stats s;
    struct line line;
    double ratios[64], sum[2] = {0};
    line_open(&line, bytes_per_s);
    for (unsigned i = 0; i < pairs; i++) {
        double t[2];
        for (unsigned k = 0; k < 2; k++) {
            bool hashed = k == i % 2;
            pages_forget(hashed ? p : unhashed);
            t[hashed] = (double)timed_round(one, hashed ? p : unhashed, live, &line, &s);
            sum[hashed] += t[hashed] / pairs / (double)p->n;
        }
        ratios[i] = t[1] / t[0];
    }
    printf("{\"gbit_per_s\": %.1f, \"send_ns\": %.1f, \"hashed_ns\": %.1f, ",
           (double)bytes_per_s / 125e6, sum[0], sum[1]);
    print_pairs("ratio", ratios, pairs);
    printf("}%s", after);
    free(line.buffer);
    gn_rounds_destroy(one);
}

void bench_overlap(unsigned pairs, uint64_t n_pages)
{
    const uint64_t rates[] = {GBITS(5), GBITS(10), GBITS(25), GBITS(40), 0};
    struct pages p, unhashed;
    pages_make(&p, n_pages, GN_PAGE_HASH_XXH3);
    pages_make(&unhashed, n_pages, GN_PAGE_HASH_NONE);
    pages_mix(&p, (struct mix){.changed = 0.526, .reported = 0.467});
    printf("{\"stop\": [");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        overlap_row(&p, rates[i], pairs, i + 1 < sizeof rates / sizeof *rates ? ", " : "]");
    printf(", \"precopy\": [");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        precopy_row(&p, &unhashed, rates[i], pairs,
                    i + 1 < sizeof rates / sizeof *rates ? ", " : "]}");
    pages_free(&p);
    pages_free(&unhashed);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    unsigned pairs = 11;
    uint64_t n_pages = UINT64_C(65536);
    const char *load = NULL;
    unsigned between = 1;
    for (int i = 2; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--pairs") == 0)
            pairs = (unsigned)atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--mib") == 0)
            n_pages = (uint64_t)atoi(argv[++i]) * 256;
        else if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
            between = (unsigned)atoi(argv[++i]);
        else if (!load && (strcmp(part, "load") == 0 || strcmp(part, "stops") == 0))
            load = argv[i];
        else
            part = "";
    }
    if (pairs < 1 || pairs > 64 || n_pages < 256)
        part = "";
    if (strcmp(part, "hash") == 0)
        bench_hashes();
    else if (strcmp(part, "filter") == 0)
        bench_filter(pairs, n_pages);
    else if (strcmp(part, "overlap") == 0)
        bench_overlap(pairs, n_pages);
    else if (strcmp(part, "load") == 0 && load)
        bench_load(load, between);
    else if (strcmp(part, "stops") == 0 && load)
        bench_stops(load, between);
    else if (strcmp(part, "course") == 0)
        bench_course(n_pages);
    else if (strcmp(part, "device") == 0)
        bench_device();
    else {
        fprintf(
            stderr,
            "usage: bench-pages hash | filter [--pairs N] [--mib N] | overlap [--pairs N] [--mib "
            "N] | load NAME [--rounds N] | "
            "stops NAME [--rounds N] | course [--mib N] | device\n");
        return 2;
    }
    printf("\n");
    return 0;
}
