/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BENCH_PAGES_H
#define GN_BENCH_PAGES_H

/*
 * What bench-pages' parts share: one buffer whose pages have changed in a given mix since they were sent, and a line to send them
 * over. One thread; whatever goes wrong ends the program with status 1.
 */
#include <stdint.h>
#include <stdio.h>

#include "migrate/rounds.h"

#define PAGE 4096u

/* Of the pages: those that changed, and those whose first bytes tell it. */
struct mix {
    double changed, told;
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
 * A line of some bytes a second (0: as fast as memory) behind a socket's buffer: what is sent is copied once, as a kernel does, and the
 * sender waits only when 2 ms are under way.
 */
struct line {
    uint64_t bytes_per_s, free_at_ns;
    unsigned char *buffer;
    uint64_t at;
    struct gn_page_sink sink;
};

_Noreturn void die(const char *what);
void need(int r, const char *what);

void pages_make(struct pages *p, uint64_t n, enum gn_page_hash_kind kind);
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
uint64_t timed_round(struct gn_rounds *r, struct pages *p, struct gn_round_options o, struct line *l, struct gn_round_stats *s);

/* The parts; each prints one JSON value. */
void bench_hashes(void);
void bench_filter(unsigned pairs, uint64_t n_pages);
void bench_overlap(unsigned pairs, uint64_t n_pages);
void bench_load(const char *name, unsigned rounds_between);

#endif
