/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_MIGRATE_ROUNDS_H
#define GN_MIGRATE_ROUNDS_H

#include "base/error.h"
#include "migrate/verify.h"

/*
 * The rounds of a migration: find, hash and send buffers' pages (gMig 3.3, 3.4). Hashing threads
 * run ahead of the sending thread by a bounded number of groups of 64 pages, so that one group is
 * verified while another is sent (3.4.2), and pages in flight take less than 17 MiB.
 *
 * 1. One live round sends everything while kernels go on (one-shot pre-copy); more live rounds send
 *    the pages changed since.
 * 2. The gate closes and the driver drains. One round GN_ROUND_STOP sends the pages changed since
 * the last round.
 *
 * After the last round the destination has every page as it was when writing stopped: a page that
 * differs from its last sent content is always sent. A round that fails leaves a table that claims
 * no more than the destination has, provided that everything accepted by the sink arrived;
 * otherwise the next attempt needs new tables.
 */

struct gn_round_item {
    /* In only one item of a round; all tables of an engine have the same page size. */
    struct gn_page_table *table;
    struct gn_page_source source;
    uint64_t id; /* passed to the sink */
};

/*
 * The receiver of pages. Called on the thread that runs the round, group after group, with rising
 * offsets within a group of 64 pages. A live round visits groups buffer by buffer in address order;
 * a stop that has pages to verify visits them in a mixed order. A run has at most 64 pages; data,
 * NULL for pages of zeros, stays valid until the function returns. digests: an XXH3 digest for each
 * page, as the stream needs it, if all digests of the run are known; else NULL. With `flush`,
 * called after the runs of each group, data and digests stay valid until flush returns, so that the
 * sink can send them together. Returns 0, or -errno, which ends the round.
 */
struct gn_page_sink {
    int (*data)(void *ctx, uint64_t id, uint64_t offset, const void *data, uint64_t n,
                const void *digests);
    int (*flush)(void *ctx); /* may be NULL */
    void *ctx;
};

struct gn_round_options {
    enum gn_round_kind kind;
    enum gn_sample_place
        sample;           /* GN_SAMPLE_AUTO, or for measurements one place, or GN_SAMPLE_OFF */
    uint64_t bytes_per_s; /* limit for page data given to the sink; 0: none */
    /*
     * Reports that so many more bytes are done, sent or found unchanged. Called after each group of
     * pages, on the thread that runs the round. May be NULL.
     */
    void (*done)(void *ctx, uint64_t bytes);
    void *done_ctx;
};

struct gn_round_stats {
    struct gn_verify_stats verify;
    uint64_t sent_pages, sent_bytes; /* sent as data; zero pages are counted in verify.zero */
};

struct gn_rounds;

/*
 * n_threads: number of hashing threads; 0: the thread that runs the round does everything in
 * sequence. Threads sleep between rounds. Returns -EINVAL (more than 64 threads, page_bytes),
 * -ENOMEM, -EAGAIN (no thread available).
 */
int gn_rounds_create(uint32_t page_bytes, unsigned n_threads, struct gn_rounds **ret,
                     struct gn_error *err);
/* NULL is allowed. No round may be running. */
void gn_rounds_destroy(struct gn_rounds *r);

/*
 * Runs one round; one at a time. After it returns, no thread touches items or sink. Returns 0;
 * the error of a source or the sink; -EINVAL (a table of another page size); -ENOMEM.
 * ret_stats is filled in any case.
 */
int gn_rounds_run(struct gn_rounds *r, const struct gn_round_options *options,
                  const struct gn_round_item *items, size_t n_items,
                  const struct gn_page_sink *sink, struct gn_round_stats *ret_stats,
                  struct gn_error *err);

#endif
