/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BENCH_PAGES_H
#define GN_BENCH_PAGES_H

/*
 * What bench-pages' parts share: one buffer whose pages have changed in a given mix since they were
 * sent, and a line to send them over. One thread; whatever goes wrong ends the program with
 * status 1.
 */
#include <stdint.h>
#include <stdio.h>

#include "migrate/rounds.h"

#define PAGE 4096u

/* Of the pages: those that changed, and those whose first bytes tell it; and how many that changed
 * lie side by side, in the mean (0: each page is drawn by itself). */
struct mix {
    double changed, reported, run;
};

struct pages {
    unsigned char *memory;
    uint64_t n;
    struct gn_page_hasher hasher;
    struct gn_page_table *table;
    struct gn_round_item item;
    uint64_t *sent, *hashed; /* the table's bits when everything was sent */
};

/*
 * A line of some bytes a second (0: as fast as memory) behind a socket's buffer: what is sent is
 * copied once, as a kernel does, and the sender waits only when 2 ms are under way.
 */
struct line {
    uint64_t bytes_per_s, free_at_ns;
    unsigned char *buffer;
    uint64_t at;
    struct gn_page_sink sink;
    /* NULL, or room for what is noted of each group of pages that goes: when its first page came,
     * and when the last one had gone. */
    struct line_note {
        uint64_t began_ns, ended_ns, pages;
    } * notes;
    uint64_t n_notes, most_notes;
    struct line_note now;
};

_Noreturn void die(const char *what);
void need(int r, const char *what);

/* GN_PAGE_HASH_OTHER: XOR256, the fastest hash of gMig (3.3.1). */
void hasher_make(struct gn_page_hasher *h, enum gn_page_hash_kind kind);

void pages_make(struct pages *p, uint64_t n, enum gn_page_hash_kind kind);
/* As before the first round: nothing has been sent. */
void pages_forget(struct pages *p);
/* Everything is sent, unhurried; then pages change. */
void pages_mix(struct pages *p, struct mix mix);
/* As it was right after pages_mix. */
void pages_again(struct pages *p);
void pages_free(struct pages *p);

void line_open(struct line *l, uint64_t bytes_per_s);
/* A line that takes nothing at all: what verifying alone costs. */
void line_none(struct line *l);
/* Until the last byte has left. */
void line_drain(struct line *l);

struct gn_rounds *rounds(unsigned threads);
/* One round; its time until the line is empty. */
uint64_t timed_round(struct gn_rounds *r, struct pages *p, struct gn_round_options o,
                     struct line *l, struct gn_round_stats *s);

/* A load of bench/loads with its buffers in page tables of their own. */
#define MOST_BUFFERS 24u
struct gn_run;
struct tracked {
    struct gn_round_item items[MOST_BUFFERS];
    struct tracked_source {
        struct gn_run *run;
        void *mem;
    } sources[MOST_BUFFERS];
    uint64_t *sent[MOST_BUFFERS],
        *hashed[MOST_BUFFERS];  /* the tables' bits after the first round */
    void *stands[MOST_BUFFERS]; /* what the buffers hold while the load stands */
    size_t n;
    uint64_t n_pages;
};

/* Opens the load, and runs a round of it. */
void load_begin(struct gn_run *run, const char *name);
void load_end(struct gn_run *run);
/* All of it is sent once. */
void tracked_open(struct tracked *t, struct gn_run *run, const struct gn_page_hasher *h,
                  unsigned sample_bytes);
void tracked_close(struct tracked *t);
/* The load runs no more: from now on its buffers are looked at in their place, as a driver's maps
 * would show them. */
void tracked_stand(struct tracked *t);
/* As it was after the first round: the round that stops can be repeated. */
void tracked_again(struct tracked *t);

/* The parts; each prints one JSON value. */
void bench_hashes(void);
void bench_filter(unsigned pairs, uint64_t n_pages);
void bench_overlap(unsigned pairs, uint64_t n_pages);
void bench_load(const char *name, unsigned rounds_between);
void bench_stops(const char *name, unsigned rounds_between);
void bench_course(uint64_t n_pages);
void bench_device(void);

#endif
